// SPDX-License-Identifier: GPL-2.0
/*
 * Are a type of DWARF and one of BTF the same?
 *
 * That is, to somebody who reads a value: size, sign, and what a pointer points to, down
 * to a structure with a name. The members are compared if BTF has several structures
 * of that name. Modifiers and typedefs may differ.
 */
#include <string.h>

#include "btf_func.h"

static Dwarf_Die *skip_modifiers(Dwarf_Die *die, Dwarf_Die *mem)
{
	if (!die)
		return NULL;
	*mem = *die;
	for (;;) {
		switch (dwarf_tag(mem)) {
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
		case DW_TAG_typedef:
			if (!die__type(mem, mem))
				return NULL;
			break;
		case DW_TAG_unspecified_type:
			return NULL;
		default:
			return mem;
		}
	}
}

static unsigned int skip_btf_modifiers(struct types *types, unsigned int id)
{
	const struct btf_type *t = btf__type_by_id(types->btf, id);

	while (t && id && (btf_is_mod(t) || btf_is_typedef(t) || btf_is_type_tag(t))) {
		id = t->type;
		t = btf__type_by_id(types->btf, id);
	}
	return id;
}

static bool same_type(struct types *types, Dwarf_Die *die, unsigned int id, int depth);

static bool same_int(struct types *types, Dwarf_Die *die, const struct btf_type *t)
{
	Dwarf_Word encoding = die__udata(die, DW_AT_encoding, 0);

	if (die__udata(die, DW_AT_byte_size, 0) != t->size)
		return false;
	/* Whether char is signed is not in each BTF. */
	if (!strcmp(dwarf_diename(die) ?: "", types__name(types, t)))
		return true;
	return (encoding == DW_ATE_signed || encoding == DW_ATE_signed_char) ==
	       !!(btf_int_encoding(t) & BTF_INT_SIGNED);
}

static bool same_array(struct types *types, Dwarf_Die *die, const struct btf_type *t, int depth)
{
	unsigned int nr = btf_array(t)->nelems, id = btf_array(t)->type;
	Dwarf_Die mem;

	/* An array of arrays in BTF is one of several dimensions in DWARF. */
	for (t = btf__type_by_id(types->btf, id); die__count(die, DW_TAG_subrange_type) > 1 &&
	     btf_is_array(t); t = btf__type_by_id(types->btf, id)) {
		nr *= btf_array(t)->nelems;
		id = btf_array(t)->type;
	}
	return die__array_length(die) == nr && same_type(types, die__target(die, &mem), id, depth);
}

static bool same_func_proto(struct types *types, Dwarf_Die *die, const struct btf_type *t,
			    int depth)
{
	const struct btf_param *p = btf_params(t);
	Dwarf_Die param, mem;
	int i = 0;

	if (!same_type(types, die__target(die, &mem), t->type, depth))
		return false;
	for_each_child(die, &param, DW_TAG_formal_parameter) {
		if (i == btf_vlen(t) ||
		    !same_type(types, die__target(&param, &mem), p[i].type, depth))
			return false;
		i++;
	}
	/* The last one may stand for "...". */
	return i + (i < btf_vlen(t) && !p[i].type) == btf_vlen(t);
}

static bool same_members(struct types *types, Dwarf_Die *die, const struct btf_type *t, int depth)
{
	const struct btf_member *m = btf_members(t);
	Dwarf_Die member, mem;
	Dwarf_Word offset;
	int i = 0;

	for_each_child(die, &member, DW_TAG_member) {
		if (i == btf_vlen(t) ||
		    strcmp(dwarf_diename(&member) ?: "",
			   btf__name_by_offset(types->btf, m[i].name_off)) ||
		    !same_type(types, die__target(&member, &mem), m[i].type, depth))
			return false;
		offset = die__udata(&member, DW_AT_data_member_location, 0) * 8;
		if (!btf_member_bitfield_size(t, i) && btf_kind(t) == BTF_KIND_STRUCT &&
		    offset != btf_member_bit_offset(t, i) &&
		    die__udata(&member, DW_AT_data_bit_offset, 0) != btf_member_bit_offset(t, i))
			return false;
		i++;
	}
	return i == btf_vlen(t);
}

static bool same_enum(struct types *types, Dwarf_Die *die, const struct btf_type *t)
{
	unsigned int name_off;
	Dwarf_Die value;

	if (die__count(die, DW_TAG_enumerator) != btf_vlen(t))
		return false;
	if (!btf_vlen(t))
		return true;
	name_off = btf_is_enum64(t) ? btf_enum64(t)->name_off : btf_enum(t)->name_off;
	return die__first(die, &value, DW_TAG_enumerator) &&
	       !strcmp(dwarf_diename(&value) ?: "", btf__name_by_offset(types->btf, name_off));
}

static bool same_composite(struct types *types, Dwarf_Die *die, const struct btf_type *t,
			   int depth)
{
	const char *name = dwarf_diename(die) ?: "";
	int kind = die__kind(die);

	if (strcmp(name, types__name(types, t)))
		return false;
	/* One of them may be declared only. */
	if (*name && (btf_is_fwd(t) || die__flag(die, DW_AT_declaration)))
		return true;
	if (!types__is_kind(types, t, kind, name) || die__udata(die, DW_AT_byte_size, 0) != t->size)
		return false;
	/* The members of an ambiguous structure's members are not compared. */
	if (*name && (depth || !types__is_ambiguous(types, kind, name)))
		return true;
	if (kind == BTF_KIND_ENUM)
		return same_enum(types, die, t);
	return same_members(types, die, t, *name ? depth + 1 : depth);
}

static bool same_type(struct types *types, Dwarf_Die *die, unsigned int id, int depth)
{
	const struct btf_type *t;
	Dwarf_Die mem, ref;

	die = skip_modifiers(die, &mem);
	id = skip_btf_modifiers(types, id);
	if (!die || !id)
		return !die && !id;
	t = btf__type_by_id(types->btf, id);
	switch (die__kind(die)) {
	case BTF_KIND_INT:
		return btf_is_int(t) && same_int(types, die, t);
	case BTF_KIND_FLOAT:
		return btf_is_float(t) && die__udata(die, DW_AT_byte_size, 0) == t->size;
	case BTF_KIND_PTR:
		return btf_is_ptr(t) && same_type(types, die__target(die, &ref), t->type, depth);
	case BTF_KIND_ARRAY:
		return btf_is_array(t) && same_array(types, die, t, depth);
	case BTF_KIND_FUNC_PROTO:
		return btf_is_func_proto(t) && same_func_proto(types, die, t, depth);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_ENUM:
		return same_composite(types, die, t, depth);
	default:
		return false;
	}
}

bool types__same(struct types *types, Dwarf_Die *die, unsigned int id)
{
	return same_type(types, die, id, 0);
}

/* What types__word() returns */
static bool is_word(struct types *types, unsigned int id)
{
	const struct btf_type *t = btf__type_by_id(types->btf, id);

	return t && btf_is_int(t) && t->size == 8 && !btf_int_encoding(t);
}

enum difference types__compare(struct types *types, const struct proto *proto, int func_id)
{
	const struct btf_type *t = btf__type_by_id(types->btf, func_id);
	const struct btf_param *p;
	bool names = true;
	int i, nr;

	t = t && btf_is_func(t) ? btf__type_by_id(types->btf, t->type) : NULL;
	if (!t || !btf_is_func_proto(t))
		return NO_FUNC;
	p = btf_params(t);
	nr = btf_vlen(t);
	if (nr != proto->nr + proto->variadic)
		return DIFFERENT_COUNT;
	if (!types__same(types, proto->has_ret ? (Dwarf_Die *)&proto->ret : NULL, t->type))
		return DIFFERENT_TYPES;
	for (i = 0; i < proto->nr; i++) {
		if (!proto->args[i].has_type ?
		    !is_word(types, p[i].type) :
		    !types__same(types, &proto->args[i].type, p[i].type))
			return DIFFERENT_TYPES;
		names &= !strcmp(proto->args[i].name, btf__name_by_offset(types->btf,
									    p[i].name_off));
	}
	if (proto->variadic && p[i].type)
		return DIFFERENT_TYPES;
	return names ? SAME : DIFFERENT_NAMES;
}

