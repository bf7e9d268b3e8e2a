// SPDX-License-Identifier: GPL-2.0
/*
 * Where are the arguments of a kernel function, as BTF tells it?
 *
 * Where the function begins they are where the ABI has them, in the order of its FUNC_PROTO.
 * Where it was inlined a LOC_PARAM tells for each parameter of the source that it is in a
 * register, in memory at one, or a constant; or there is none, and the parameter is gone.
 * From there fields are reached through pointers, as in probe-finder.c.
 */
#include <bpf/btf.h>
#include <dwarf-regs.h>
#include <errno.h>
#include <linux/bitops.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <stdlib.h>
#include <string.h>
#include "btf-place.h"
#include "debug.h"
#include "probe-arg.h"
#include "probe-event.h"
#include "strbuf.h"

#define REMOVED		"removed:"

/* An argument, from its parameter to the field that is asked for */
struct btf_value {
	const struct btf		*btf;
	u32				type;		/* id, with modifiers */
	u32				bitfield_size;	/* in bits; 0: it is none */
	u32				bit;		/* first one, in its structure */
	long				offset;		/* of the address, if that is computed */
	struct probe_trace_arg		*tvar;
	struct probe_trace_arg_ref	*ref;		/* the last one */
};

static const struct btf_type *real_type(const struct btf *btf, u32 id)
{
	int real = btf__resolve_type(btf, id);

	return real > 0 ? btf__type_by_id(btf, real) : NULL;
}

static const char *name_of(const struct btf *btf, const struct btf_type *type)
{
	return type ? btf__name_by_offset(btf, type->name_off) ?: "" : "";
}

/* Where a function begins */

#define MAX_ARG_REGS	8

/* DWARF numbers of the registers that have arguments */
struct abi {
	int	nr_regs;
	int	regs[MAX_ARG_REGS];
	int	sp;
	int	stack;		/* offset of the first argument from sp */
};

static const struct abi *host_abi(void)
{
	static const struct abi x86_64 = {
		.nr_regs = 6, .regs = { 5, 4, 1, 2, 8, 9 }, .sp = 7, .stack = 8,
	};
	static const struct abi aarch64 = {
		.nr_regs = 8, .regs = { 0, 1, 2, 3, 4, 5, 6, 7 }, .sp = 31, .stack = 0,
	};

	/* Bit-fields, and small arguments on the stack, are elsewhere there. */
	if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
		return NULL;
	switch (EM_HOST) {
	case EM_X86_64:
		return &x86_64;
	case EM_AARCH64:
		return &aarch64;
	default:
		return NULL;
	}
}

bool btf_place__knows_registers(void)
{
	return host_abi();
}

static bool is_plain(const struct btf *btf, u32 id, u32 offset, unsigned long *used);

static bool has_plain_members(const struct btf *btf, const struct btf_type *type, u32 offset,
			      unsigned long *used)
{
	for (u32 i = 0; i < btf_vlen(type); i++) {
		u32 bit = btf_member_bit_offset(type, i), size = btf_member_bitfield_size(type, i);
		u32 start = 8 * offset + bit;

		if (size)
			*used |= BIT(start / 64) | BIT((start + size - 1) / 64);
		else if (!is_plain(btf, btf_members(type)[i].type, start / 8, used))
			return false;
	}
	return true;
}

static bool has_plain_elements(const struct btf *btf, const struct btf_array *array, u32 offset,
			       unsigned long *used)
{
	s64 size = btf__resolve_size(btf, array->type);

	for (u32 i = 0; i < array->nelems; i++) {
		if (size <= 0 || !is_plain(btf, array->type, offset + i * size, used))
			return false;
	}
	return true;
}

/*
 * Has it numbers and pointers only, where their size aligns them? @offset: where it is in a
 * value of one or two words; @used gets a bit for each word that it is in.
 */
static bool is_plain(const struct btf *btf, u32 id, u32 offset, unsigned long *used)
{
	const struct btf_type *type = real_type(btf, id);
	u32 size;

	if (!type)
		return false;
	if (btf_is_array(type))
		return has_plain_elements(btf, btf_array(type), offset, used);
	if (btf_is_composite(type))
		return has_plain_members(btf, type, offset, used);
	if (!btf_is_ptr(type) && !btf_is_any_enum(type) && !btf_is_int(type))
		return false;
	size = btf_is_ptr(type) ? sizeof(u64) : type->size;
	if (!size || size > sizeof(u64) || offset % size)
		return false;
	*used |= BIT(offset / sizeof(u64));
	return true;
}

/*
 * In how many registers one is passed, or 0 for what is not certainly passed so. A word without
 * a member, as of an aligned structure, takes no register on x86-64. BTF does not tell that
 * a member is aligned, which matters to arm64.
 */
static int nr_regs_of(const struct btf *btf, u32 id)
{
	s64 size = btf__resolve_size(btf, id);
	int words = DIV_ROUND_UP(size, (int)sizeof(u64));
	unsigned long used = 0;

	if (size <= 0 || words > 2 || !is_plain(btf, id, 0, &used))
		return 0;
	return used == BIT(words) - 1 ? words : 0;
}

/* The number of its first register, or of its word of the stack behind these, or -ENOTSUP */
static int find_slot(const struct btf *btf, const struct btf_type *proto, int nr)
{
	const struct btf_type *returned = real_type(btf, proto->type);
	const int nr_regs = host_abi()->nr_regs;
	int slot = 0, size = 0;

	/* What is returned in memory, at an address that may be an argument, too */
	if (returned && btf_is_composite(returned) && !nr_regs_of(btf, proto->type))
		return -ENOTSUP;
	for (int i = 0; i <= nr; i++) {
		slot += size;
		size = nr_regs_of(btf, btf_params(proto)[i].type);
		/* A structure of two words is as a whole on the stack, and the next is not */
		if (!size || (size == 2 && slot + size > nr_regs))
			return -ENOTSUP;
	}
	return slot;
}

static int set_register(struct btf_value *value, u32 reg)
{
	const char *name = get_dwarf_regstr(reg, EM_HOST, EF_HOST);

	if (!name)
		return -ENOTSUP;
	value->tvar->value = strdup(name);
	return value->tvar->value ? 0 : -ENOMEM;
}

static int add_ref(struct btf_value *value, long offset)
{
	struct probe_trace_arg_ref *ref = alloc_trace_arg_ref(value->offset + offset);

	if (!ref)
		return -ENOMEM;
	if (value->ref)
		value->ref->next = ref;
	else
		value->tvar->ref = ref;
	value->ref = ref;
	value->offset = 0;
	return 0;
}

static int set_place_at_entry(struct btf_value *value, const struct btf_type *proto, int nr)
{
	const struct abi *abi = host_abi();
	int slot = find_slot(value->btf, proto, nr), err;

	if (slot < 0)
		return slot;
	if (slot < abi->nr_regs)
		return set_register(value, abi->regs[slot]);
	err = set_register(value, abi->sp);
	return err ?: add_ref(value, abi->stack + (slot - abi->nr_regs) * (long)sizeof(u64));
}

/* Where it was inlined */

static bool is_signed(const struct btf_type *type)
{
	if (type && btf_is_any_enum(type))
		return btf_kflag(type);
	return type && btf_is_int(type) && (btf_int_encoding(type) & BTF_INT_SIGNED);
}

/* A number of one word, or of two, the low one first */
static s64 number_of(const u32 *words, u32 nr, bool has_sign)
{
	if (nr > 1)
		return (u64)words[1] << 32 | words[0];
	return has_sign ? (s64)(s32)words[0] : (s64)words[0];
}

/* An int of -1 may be stored as 0xffffffff */
static int set_constant(struct btf_value *value, s64 number)
{
	const struct btf_type *type = real_type(value->btf, value->type);
	int unused = is_signed(type) && type->size < sizeof(u64) ? 64 - 8 * type->size : 0;

	number = (s64)((u64)number << unused) >> unused;
	return probe_trace_arg__set_immediate(value->tvar, number);
}

static int set_place(struct btf_value *value, const struct btf_type *type)
{
	const struct btf_loc_param *param = (const struct btf_loc_param *)(type + 1);
	const u32 flags = param->flags, *values = param->values, nr = btf_vlen(type);
	long offset = 0;
	int err;

	if (!nr || (flags & BTF_LOC_PARAM_ADDR) ||
	    btf__resolve_size(value->btf, value->type) != type->size)
		return -ENOTSUP;
	if (flags & BTF_LOC_PARAM_CONST)
		return set_constant(value, number_of(values, nr, flags & BTF_LOC_PARAM_SIGNED));
	if (!(flags & BTF_LOC_PARAM_REG))
		return -ENOTSUP;
	/* Of two registers the first one, as probe-finder.c */
	if ((flags & BTF_LOC_PARAM_OFFSET) && nr > 1)
		offset = number_of(values + 1, nr - 1, true);
	err = set_register(value, values[0]);
	if (err)
		return err;
	if (flags & BTF_LOC_PARAM_DEREF)
		return add_ref(value, offset);
	value->offset = offset;
	return 0;
}

static int set_place_inlined(struct btf_value *value, const struct btf_type *locs, int nr)
{
	const u32 *params = (const u32 *)(locs + 1);
	u32 id = (u32)nr < btf_vlen(locs) ? params[nr] : 0;
	const struct btf_type *type;

	type = id ? btf__type_by_id(value->btf, id) : NULL;
	if (!type)
		return -ENOENT;
	return btf_kind(type) == BTF_KIND_LOC_PARAM ? set_place(value, type) : -ENOTSUP;
}

/* Fields */

static const struct btf_member *find_member(const struct btf *btf, const struct btf_type *type,
					    const char *name, u32 *bit, u32 *bitfield_size)
{
	for (u32 i = 0; i < btf_vlen(type); i++) {
		const struct btf_member *member = &btf_members(type)[i], *inner;
		const char *member_name = btf__name_by_offset(btf, member->name_off) ?: "";
		const struct btf_type *inner_type = real_type(btf, member->type);
		u32 start;

		*bit = btf_member_bit_offset(type, i);
		*bitfield_size = btf_member_bitfield_size(type, i);
		if (*name && !strcmp(member_name, name))
			return member;
		if (*member_name || !inner_type || !btf_is_composite(inner_type))
			continue;
		start = *bit;
		inner = find_member(btf, inner_type, name, bit, bitfield_size);
		if (inner) {
			*bit += start;
			return inner;
		}
	}
	return NULL;
}

static int convert_index(struct btf_value *value, const struct btf_type *type, long index,
			 const char *varname)
{
	u32 element = btf_is_array(type) ? btf_array(type)->type : type->type;
	s64 size = btf__resolve_size(value->btf, element);
	int err = btf_is_ptr(type) ? add_ref(value, 0) : 0;

	if (err)
		return err;
	if (size < 0) {
		pr_warning("Failed to get the size of what %s has.\n", varname);
		return -EINVAL;
	}
	if (!value->ref) {
		pr_warning("Array indexing not supported for variables in registers.\n");
		return -ENOTSUP;
	}
	value->ref->offset += size * index;
	value->type = element;
	return 0;
}

/* Check that '.', or '->', is before the field: @type is what that is in, or points to it. */
static int check_operator(const struct perf_probe_arg_field *field, bool is_ptr,
			  const struct btf_type *type, const char *varname)
{
	if (is_ptr != field->ref) {
		pr_err("Semantic error: %s must be referred by '%s'\n", field->name,
		       is_ptr ? "->" : ".");
		return -EINVAL;
	}
	if (!type || !btf_is_composite(type)) {
		pr_warning("%s is not a data structure nor a union.\n", varname);
		return -EINVAL;
	}
	if (field->name[0] == '[') {
		pr_err("Semantic error: %s is not a pointer nor array.\n", varname);
		return -EINVAL;
	}
	return 0;
}

/* The smallest aligned integer that has the whole bit-field, as die_get_bitfield() */
static int bitfield_place(u32 bit, u32 width, u32 *shift)
{
	for (int size = 8; size <= 64; size *= 2) {
		*shift = bit % size;
		if (*shift + width <= (u32)size)
			return size;
	}
	return -ENOTSUP;
}

static int convert_field(struct btf_value *value, const struct perf_probe_arg_field *field,
			 const char *varname)
{
	const struct btf_type *type = real_type(value->btf, value->type);
	bool is_ptr = type && btf_is_ptr(type);
	const struct btf_member *member;
	u32 shift = 0;
	int err, size;

	if (field->name[0] == '[' && type && (is_ptr || btf_is_array(type)))
		return convert_index(value, type, field->index, varname);
	if (is_ptr)
		type = real_type(value->btf, type->type);
	err = check_operator(field, is_ptr, type, varname);
	if (!err && is_ptr)
		err = add_ref(value, 0);
	if (err)
		return err;
	if (!value->ref) {
		pr_warning("Structure on a register is not supported yet.\n");
		return -ENOTSUP;
	}
	member = find_member(value->btf, type, field->name, &value->bit, &value->bitfield_size);
	if (!member) {
		pr_warning("%s(type:%s) has no member %s.\n", varname,
			   name_of(value->btf, type), field->name);
		return -EINVAL;
	}
	if (value->bitfield_size) {
		size = bitfield_place(value->bit, value->bitfield_size, &shift);
		if (size < 0)
			return size;
		value->ref->offset += (value->bit - shift) / 8;
	} else {
		value->ref->offset += value->bit / 8;
	}
	value->type = member->type;
	return 0;
}

static int convert_fields(struct btf_value *value, const struct perf_probe_arg *pvar)
{
	const char *varname = pvar->var;
	int err = 0;

	for (struct perf_probe_arg_field *field = pvar->field; field && !err; field = field->next) {
		err = convert_field(value, field, varname);
		if (!err && value->ref)
			value->ref->user_access = pvar->user_access;
		varname = field->name;
	}
	return err;
}

/* Types */

static int convert_string(struct btf_value *value, const struct btf_type *type,
			  const struct perf_probe_arg *pvar)
{
	const struct btf_type *element;
	int err;

	if (!btf_is_ptr(type) && !btf_is_array(type)) {
		pr_warning("Failed to cast into string: %s(%s) is not a pointer nor array.\n",
			   pvar->var, name_of(value->btf, type));
		return -EINVAL;
	}
	element = real_type(value->btf, btf_is_ptr(type) ? type->type : btf_array(type)->type);
	if (!element || !btf_is_int(element) || element->size != 1) {
		pr_warning("Failed to cast into string: %s is not (unsigned) char *.\n",
			   pvar->var);
		return -EINVAL;
	}
	if (btf_is_ptr(type)) {
		err = add_ref(value, 0);
		if (err)
			return err;
		value->ref->user_access = pvar->user_access;
	}
	value->tvar->type = strdup(pvar->type);
	return value->tvar->type ? 0 : -ENOMEM;
}

/*
 * The user's type of a bit-field, as in c:b7@8/32, is for the place of the integer that was
 * declared. BTF has its type, and no place: it is aligned, and has the first bit.
 */
static void keep_declared_offset(struct btf_value *value)
{
	s64 size = 8 * btf__resolve_size(value->btf, value->type);
	u32 shift;

	if (!value->bitfield_size || size <= 0 ||
	    bitfield_place(value->bit, value->bitfield_size, &shift) < 0)
		return;
	value->ref->offset += (long)(value->bit / size * size / 8) -
			      (long)(value->bit - shift) / 8;
}

static int convert_type(struct btf_value *value, const struct perf_probe_arg *pvar)
{
	const struct btf_type *type = real_type(value->btf, value->type);
	s64 size = btf__resolve_size(value->btf, value->type);
	u32 shift;
	int bits;

	if (is_type_cast(pvar->type)) {
		keep_declared_offset(value);
		value->tvar->type = strdup(pvar->type);
		return value->tvar->type ? 0 : -ENOMEM;
	}
	if (value->bitfield_size) {
		bits = bitfield_place(value->bit, value->bitfield_size, &shift);
		return asprintf(&value->tvar->type, "b%u@%u/%d", value->bitfield_size, shift,
				bits) < 0 ? -ENOMEM : 0;
	}
	if (!type)
		return -ENOENT;
	if (is_string_cast(pvar->type))
		return convert_string(value, type, pvar);
	/* An array, a function, or what is only declared: the default */
	if (size <= 0 || btf_is_array(type))
		return 0;
	return probe_trace_arg__set_number(value->tvar, pvar->type, is_signed(type), size,
					   *name_of(value->btf, type) ?
					   name_of(value->btf, type) : "<unknown>");
}

static int find_param_place(struct btf_value *value, const struct btf_place *place, int nr)
{
	return place->locs ? set_place_inlined(value, place->locs, nr) :
			     set_place_at_entry(value, place->proto, nr);
}

const char *btf_place__param_name(const struct btf_place *place, int nr)
{
	return btf__name_by_offset(place->btf, btf_params(place->proto)[nr].name_off) ?: "";
}

/* "__arg2" is a register of a clone that has no parameter of the source. */
static bool is_param(const struct btf_place *place, int nr)
{
	const char *name = btf_place__param_name(place, nr);

	return btf_params(place->proto)[nr].type && *name &&
	       !(strstarts(name, "__arg") && isdigit(name[5]));
}

/* The number of a parameter, or -ENOENT */
int btf_place__find_param(const struct btf_place *place, const char *name)
{
	int nr = place->proto ? btf_vlen(place->proto) : 0;

	for (int i = 0; i < nr; i++) {
		if (is_param(place, i) && !strcmp(btf_place__param_name(place, i), name))
			return i;
	}
	return -ENOENT;
}

/* Has the compiler removed it, as the tag "removed:NAME" behind the FUNC of a clone tells? */
bool btf_place__is_removed(const struct btf_place *place, const char *name)
{
	u32 id = place->func + 1;

	for (; place->proto && id < btf__type_cnt(place->btf); id++) {
		const struct btf_type *tag = btf__type_by_id(place->btf, id);
		const char *text = name_of(place->btf, tag);

		if (!btf_is_decl_tag(tag) || tag->type != place->func)
			return false;
		if (strstarts(text, REMOVED) && !strcmp(text + strlen(REMOVED), name))
			return true;
	}
	return false;
}

/* Is it somewhere where probe events reach it? */
bool btf_place__has_param(const struct btf_place *place, int nr)
{
	struct probe_trace_arg tvar = {};
	struct btf_value value = {
		.btf = place->btf, .tvar = &tvar, .type = btf_params(place->proto)[nr].type,
	};
	bool has = is_param(place, nr) && !find_param_place(&value, place, nr) && !value.offset;

	clear_probe_trace_arg_value(&tvar);
	return has;
}

/**
 * btf_place__convert_arg - Convert a parameter and fields to an argument of a probe event
 * @place: where @place->proto is known
 * @pvar: what the user asks for
 * @tvar: gets the value, the references and the type
 *
 * Return: 0; -ENOENT if there is no such parameter, or it is not there; -ENOTSUP if it is
 * where probe events do not reach it; -EINVAL for fields that it does not have; -ENOMEM.
 */
int btf_place__convert_arg(const struct btf_place *place, const struct perf_probe_arg *pvar,
			   struct probe_trace_arg *tvar)
{
	struct btf_value value = { .btf = place->btf, .tvar = tvar, };
	int nr = btf_place__find_param(place, pvar->var), err;

	if (nr < 0)
		return nr;
	value.type = btf_params(place->proto)[nr].type;
	err = find_param_place(&value, place, nr);
	if (!err)
		err = convert_fields(&value, pvar);
	if (!err)
		err = convert_type(&value, pvar);
	/* An address in no register */
	return !err && value.offset ? -ENOTSUP : err;
}

/* As die_get_typename() has it */
static int describe_type(const struct btf *btf, u32 id, struct strbuf *buf)
{
	const struct btf_type *type = btf__type_by_id(btf, id);
	int err;

	while (type && btf_is_mod(type)) {
		id = type->type;
		type = btf__type_by_id(btf, id);
	}
	if (!type)
		return -ENOENT;
	switch (btf_kind(type)) {
	case BTF_KIND_PTR:
		err = type->type ? describe_type(btf, type->type, buf) :
				   strbuf_addstr(buf, "void");
		return err ?: strbuf_addstr(buf, "*");
	case BTF_KIND_ARRAY:
		err = describe_type(btf, btf_array(type)->type, buf);
		return err ?: strbuf_addstr(buf, "[]");
	case BTF_KIND_FUNC_PROTO:
		return strbuf_addstr(buf, "(function_type)");
	case BTF_KIND_STRUCT:
		return strbuf_addf(buf, "struct %s", name_of(btf, type));
	case BTF_KIND_UNION:
		return strbuf_addf(buf, "union %s", name_of(btf, type));
	case BTF_KIND_FWD:
		return strbuf_addf(buf, "%s %s", btf_kflag(type) ? "union" : "struct",
				   name_of(btf, type));
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return strbuf_addf(buf, "enum %s", name_of(btf, type));
	default:
		return id ? strbuf_addstr(buf, name_of(btf, type)) : strbuf_addstr(buf, "void");
	}
}

/* "TYPE\tNAME" */
int btf_place__describe_param(const struct btf_place *place, int nr, struct strbuf *buf)
{
	int err = describe_type(place->btf, btf_params(place->proto)[nr].type, buf);

	return err ?: strbuf_addf(buf, "\t%s", btf_place__param_name(place, nr));
}
