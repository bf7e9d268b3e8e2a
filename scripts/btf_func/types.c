// SPDX-License-Identifier: GPL-2.0
/*
 * The types of DWARF in BTF
 *
 * pahole wrote BTF from the same debug information, so nearly each type is there, and
 * only has to be found. What is found first is what a type refers to; then the type is the
 * one of its kind and name that refers to the same id. Structures are found by name. If
 * there are several of a name, their members tell which it is.
 */
#include <string.h>

#include <hash.h>

#include "btf_func.h"

#define HASH_BITS	17

/*
 * The hash table
 */

static unsigned int hash_key(int kind, const char *name, unsigned int a, unsigned int b)
{
	unsigned int key = hash_str(name);

	/* A declaration and both kinds of enums are searched as what they declare. */
	if (kind == BTF_KIND_ENUM64)
		kind = BTF_KIND_ENUM;
	key = hash_32(key ^ kind);
	key = hash_32(key ^ a);
	key = hash_32(key ^ b);
	return key >> (32 - HASH_BITS);
}

const char *types__name(struct types *types, const struct btf_type *t)
{
	return btf__name_by_offset(types->btf, t->name_off) ?: "";
}

static unsigned int hash_type(struct types *types, const struct btf_type *t)
{
	const char *name = types__name(types, t);
	int kind = btf_kind(t);

	switch (kind) {
	case BTF_KIND_PTR:
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return hash_key(kind, name, t->type, 0);
	case BTF_KIND_ARRAY:
		return hash_key(kind, name, btf_array(t)->type, btf_array(t)->nelems);
	case BTF_KIND_FUNC_PROTO:
		return hash_key(kind, name, t->type, btf_vlen(t));
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		if (!*name)
			return hash_key(kind, name, t->size, btf_vlen(t));
		break;
	case BTF_KIND_LOC_PARAM:
		return hash_key(kind, name, t->size, btf_loc_param(t)->values[0]);
	case BTF_KIND_LOC_PROTO:
		return hash_key(kind, name, btf_vlen(t),
				btf_vlen(t) ? btf_loc_proto_params(t)[0] : 0);
	}
	return hash_key(kind, name, 0, 0);
}

/* Add the types that are new in the BTF. */
static void hash_new_types(struct types *types)
{
	unsigned int id, nr = btf__type_cnt(types->btf);
	unsigned int key;

	types->next = xrealloc(types->next, nr * sizeof(*types->next));
	for (id = types->nr; id < nr; id++) {
		key = id ? hash_type(types, btf__type_by_id(types->btf, id)) : 0;
		types->next[id] = types->heads[key];
		types->heads[key] = id;
	}
	types->nr = nr;
}

void types__init(struct types *types, struct btf *btf)
{
	const struct btf *own = btf__base_btf(btf);

	*types = (struct types){
		.btf = btf,
		.heads = xcalloc(1 << HASH_BITS, sizeof(*types->heads)),
		.first_own = btf__base_btf(own) ? btf__type_cnt(btf__base_btf(own)) : 1,
		.nr_base = btf__type_cnt(own),
		.nr = 1,
	};
	hash_new_types(types);
}

void types__free(struct types *types)
{
	free(types->heads);
	free(types->next);
}

#define for_each_candidate(types, id, t, key)				\
	for (id = (types)->heads[key];					\
	     id && (t = btf__type_by_id((types)->btf, id));		\
	     id = (types)->next[id])

bool types__is_kind(struct types *types, const struct btf_type *t, int kind, const char *name)
{
	int k = btf_kind(t);

	return (k == kind || (kind == BTF_KIND_ENUM && k == BTF_KIND_ENUM64)) &&
	       !strcmp(types__name(types, t), name);
}

/* Find a type by its kind, its name and what it refers to. */
static int find_ref(struct types *types, int kind, const char *name, unsigned int ref)
{
	bool by_name = kind == BTF_KIND_TYPEDEF;
	const struct btf_type *t;
	unsigned int id;

	for_each_candidate(types, id, t, hash_key(kind, name, by_name ? 0 : ref, 0)) {
		if (types__is_kind(types, t, kind, name) && t->type == ref)
			return id;
	}
	return 0;
}

unsigned int types__first(struct types *types, int kind, unsigned int a, unsigned int b)
{
	return types->heads[hash_key(kind, "", a, b)];
}

/* Add a new type to those that are found. @id: as libbpf has returned it */
int types__added(struct types *types, int id)
{
	if (id < 0)
		fatal("no memory for BTF");
	hash_new_types(types);
	return id;
}

/*
 * Find the FUNC that the object's BTF or, if it has none, that of vmlinux has for a name.
 * Return its id, or 0. The first of several counts, as in the kernel.
 */
int types__find_base_func(struct types *types, const char *name)
{
	unsigned int id, found = 0, own = types->first_own;
	const struct btf_type *t;

	for_each_candidate(types, id, t, hash_key(BTF_KIND_FUNC, name, 0, 0)) {
		if (id >= types->nr_base || !types__is_kind(types, t, BTF_KIND_FUNC, name))
			continue;
		/* Chains have the last type first. */
		if (id >= own || found < own)
			found = id;
	}
	return found;
}

/* Return the id of the FUNC that has this name and this prototype, or 0. */
int types__find_func(struct types *types, const struct proto *proto, const char *name)
{
	const struct btf_type *t;
	unsigned int id;

	for_each_candidate(types, id, t, hash_key(BTF_KIND_FUNC, name, 0, 0)) {
		if (types__is_kind(types, t, BTF_KIND_FUNC, name) &&
		    types__compare(types, proto, id) == SAME)
			return id;
	}
	return 0;
}

/*
 * The kernel denies and allows programs on functions by the FUNC in .BTF, for a clone by that
 * of the source. Without it, one that a set has could not be told from others.
 */
bool types__has_set_only(struct types *types, struct object *obj, const char *name)
{
	char *source = strndup(name, strcspn(name, "."));
	bool only;

	if (!source)
		fatal("no memory");
	only = object__has_btf_id(obj, source) && !types__find_base_func(types, source);
	free(source);
	return only;
}

bool types__is_ambiguous(struct types *types, int kind, const char *name)
{
	const struct btf_type *t;
	unsigned int id;
	int nr = 0;

	for_each_candidate(types, id, t, hash_key(kind, name, 0, 0))
		nr += types__is_kind(types, t, kind, name);
	return nr > 1;
}

/*
 * Find or add
 */

static int resolve_int(struct types *types, Dwarf_Die *die)
{
	Dwarf_Word size = die__udata(die, DW_AT_byte_size, 0);
	Dwarf_Word encoding = die__udata(die, DW_AT_encoding, 0);
	const char *name = dwarf_diename(die) ?: "";
	const struct btf_type *t;
	int flags = 0;
	unsigned int id;

	for_each_candidate(types, id, t, hash_key(die__kind(die), name, 0, 0)) {
		if (types__is_kind(types, t, die__kind(die), name) && t->size == size)
			return id;
	}
	if (encoding == DW_ATE_float)
		return types__added(types, btf__add_float(types->btf, name, size));
	if (encoding == DW_ATE_boolean)
		flags = BTF_INT_BOOL;
	else if (encoding == DW_ATE_signed || encoding == DW_ATE_signed_char)
		flags = BTF_INT_SIGNED;
	return types__added(types, btf__add_int(types->btf, name, size, flags));
}

/* The type of a register */
int types__word(struct types *types)
{
	const char *name = "long unsigned int";
	const struct btf_type *t;
	unsigned int id;

	for_each_candidate(types, id, t, hash_key(BTF_KIND_INT, name, 0, 0)) {
		if (types__is_kind(types, t, BTF_KIND_INT, name))
			return id;
	}
	name = "unsigned long";
	for_each_candidate(types, id, t, hash_key(BTF_KIND_INT, name, 0, 0)) {
		if (types__is_kind(types, t, BTF_KIND_INT, name))
			return id;
	}
	return types__added(types, btf__add_int(types->btf, name, 8, 0));
}

static int resolve_composite(struct types *types, Dwarf_Die *die)
{
	bool declared = die__flag(die, DW_AT_declaration);
	const char *name = dwarf_diename(die) ?: "";
	const struct btf_type *t;
	int kind = die__kind(die);
	unsigned int id, a = 0, b = 0;

	if (!*name) {
		a = die__udata(die, DW_AT_byte_size, 0);
		b = die__count(die, kind == BTF_KIND_ENUM ? DW_TAG_enumerator : DW_TAG_member);
	}
	for_each_candidate(types, id, t, hash_key(kind, name, a, b)) {
		if (types__is_kind(types, t, kind, name) &&
		    (declared || types__same(types, die, id)))
			return id;
	}
	for_each_candidate(types, id, t, hash_key(BTF_KIND_FWD, name, 0, 0)) {
		if (types__is_kind(types, t, BTF_KIND_FWD, name))
			return id;
	}
	/* An unknown type: a pointer to it is one to void. */
	if (!*name)
		return 0;
	return types__added(types, btf__add_fwd(types->btf, name, kind == BTF_KIND_UNION ?
					 BTF_FWD_UNION : kind == BTF_KIND_ENUM ?
					 BTF_FWD_ENUM : BTF_FWD_STRUCT));
}

static int resolve_typedef(struct types *types, Dwarf_Die *die)
{
	const char *name = dwarf_diename(die) ?: "";
	Dwarf_Die mem, *target = die__target(die, &mem);
	const struct btf_type *t;
	unsigned int id;
	int ref;

	for_each_candidate(types, id, t, hash_key(BTF_KIND_TYPEDEF, name, 0, 0)) {
		if (types__is_kind(types, t, BTF_KIND_TYPEDEF, name) &&
		    types__same(types, target, t->type))
			return id;
	}
	ref = target ? types__resolve(types, target) : 0;
	return types__added(types, btf__add_typedef(types->btf, name, ref));
}

#define DW_TAG_LLVM_annotation	0x6000

/* Clang's __attribute__((btf_type_tag())), as __user is one, are children of a pointer. */
static int resolve_pointer(struct types *types, Dwarf_Die *die)
{
	Dwarf_Die mem, tag, *target = die__target(die, &mem);
	int id = target ? types__resolve(types, target) : 0, ref;
	Dwarf_Attribute attr;
	const char *value;

	for_each_child(die, &tag, DW_TAG_LLVM_annotation) {
		value = dwarf_formstring(dwarf_attr(&tag, DW_AT_const_value, &attr));
		if (!value || strcmp(dwarf_diename(&tag) ?: "", "btf_type_tag"))
			continue;
		ref = id;
		id = find_ref(types, BTF_KIND_TYPE_TAG, value, ref) ?:
		     types__added(types, btf__add_type_tag(types->btf, value, ref));
	}
	return find_ref(types, BTF_KIND_PTR, "", id) ?:
	       types__added(types, btf__add_ptr(types->btf, id));
}

static int resolve_modifier(struct types *types, Dwarf_Die *die)
{
	Dwarf_Die mem, *target = die__target(die, &mem);
	int ref = target ? types__resolve(types, target) : 0;
	int kind = die__kind(die);
	int id = find_ref(types, kind, "", ref);

	if (id)
		return id;
	if (kind == BTF_KIND_CONST)
		return types__added(types, btf__add_const(types->btf, ref));
	if (kind == BTF_KIND_VOLATILE)
		return types__added(types, btf__add_volatile(types->btf, ref));
	return types__added(types, btf__add_restrict(types->btf, ref));
}

static int resolve_array(struct types *types, Dwarf_Die *die)
{
	Dwarf_Die mem, *elem = die__target(die, &mem);
	int ref = elem ? types__resolve(types, elem) : 0;
	unsigned int id, nr = die__array_length(die);
	const struct btf_type *t;

	for_each_candidate(types, id, t, hash_key(BTF_KIND_ARRAY, "", ref, nr)) {
		if (btf_is_array(t) && btf_array(t)->type == ref && btf_array(t)->nelems == nr)
			return id;
	}
	return types__added(types, btf__add_array(types->btf, types__word(types), ref, nr));
}

static int find_proto(struct types *types, int ret, int nr, const int *ids, const char **names)
{
	const struct btf_param *p;
	const struct btf_type *t;
	unsigned int id;
	int i;

	for_each_candidate(types, id, t, hash_key(BTF_KIND_FUNC_PROTO, "", ret, nr)) {
		if (!btf_is_func_proto(t) || t->type != ret || btf_vlen(t) != nr)
			continue;
		p = btf_params(t);
		for (i = 0; i < nr; i++) {
			if (p[i].type != ids[i] ||
			    strcmp(btf__name_by_offset(types->btf, p[i].name_off), names[i]))
				break;
		}
		if (i == nr)
			return id;
	}
	return 0;
}

static int add_proto(struct types *types, int ret, int nr, const int *ids, const char **names)
{
	int i, id = find_proto(types, ret, nr, ids, names);

	if (id)
		return id;
	id = btf__add_func_proto(types->btf, ret);
	for (i = 0; id > 0 && i < nr; i++) {
		if (btf__add_func_param(types->btf, names[i], ids[i]))
			id = -1;
	}
	return types__added(types, id);
}

static int resolve_func_proto(struct types *types, Dwarf_Die *die)
{
	Dwarf_Die param, mem, *type = die__target(die, &mem);
	int ret = type ? types__resolve(types, type) : 0;
	const char *names[MAX_PARAMS];
	int ids[MAX_PARAMS];
	int nr = 0;

	for_each_child(die, &param, DW_TAG_formal_parameter) {
		if (nr == MAX_PARAMS - 1)
			return 0;
		type = die__target(&param, &mem);
		names[nr] = "";
		ids[nr++] = type ? types__resolve(types, type) : 0;
	}
	if (die__count(die, DW_TAG_unspecified_parameters)) {
		names[nr] = "";
		ids[nr++] = 0;
	}
	return add_proto(types, ret, nr, ids, names);
}

/* Return the id of a type of DWARF. It is added if BTF does not have it. */
int types__resolve(struct types *types, Dwarf_Die *die)
{
	Dwarf_Die mem;

	switch (die__kind(die)) {
	case BTF_KIND_INT:
	case BTF_KIND_FLOAT:
		return resolve_int(types, die);
	case BTF_KIND_PTR:
		return resolve_pointer(types, die);
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
		return resolve_modifier(types, die);
	case BTF_KIND_TYPEDEF:
		return resolve_typedef(types, die);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_ENUM:
		return resolve_composite(types, die);
	case BTF_KIND_ARRAY:
		return resolve_array(types, die);
	case BTF_KIND_FUNC_PROTO:
		return resolve_func_proto(types, die);
	default:
		/* _Atomic, which BTF does not have */
		return die__target(die, &mem) ? types__resolve(types, &mem) : 0;
	}
}

static void add_tag(struct types *types, int func_id, const char *key, const char *value)
{
	char *tag = xmalloc(strlen(key) + strlen(value) + 1);

	sprintf(tag, "%s%s", key, value);
	types__added(types, btf__add_decl_tag(types->btf, tag, func_id, -1));
	free(tag);
}

static int add_func(struct types *types, const char *name, int proto, const char *file)
{
	int id = types__added(types, btf__add_func(types->btf, name, BTF_FUNC_STATIC, proto));

	if (file)
		add_tag(types, id, "file:", file);
	return id;
}

/*
 * Add a function and, right behind it, its tags. Return its id.
 */
int types__add_func(struct types *types, const struct proto *proto, const char *name,
		    const char *file)
{
	const char *names[MAX_PARAMS];
	int ids[MAX_PARAMS], id;
	int i, ret;

	if (proto->nr >= MAX_PARAMS)
		fatal("%s() has more than %d arguments", name, MAX_PARAMS - 1);
	ret = proto->has_ret ? types__resolve(types, (Dwarf_Die *)&proto->ret) : 0;
	for (i = 0; i < proto->nr; i++) {
		names[i] = proto->args[i].name;
		ids[i] = proto->args[i].has_type ? types__resolve(types, &proto->args[i].type) :
			 types__word(types);
	}
	if (proto->variadic) {
		names[i] = "";
		ids[i] = 0;
	}
	id = add_proto(types, ret, proto->nr + proto->variadic, ids, names);
	id = add_func(types, name, id, file);
	for (i = 0; i < proto->nr_removed; i++)
		add_tag(types, id, "removed:", proto->removed[i]);
	return id;
}

/* Add a function of which nothing is known, "void NAME(...)", and return its id. */
int types__add_unknown(struct types *types, const char *name, const char *file)
{
	const char *no_name = "";
	int dots = 0;

	return add_func(types, name, add_proto(types, 0, 1, &dots, &no_name), file);
}

bool types__is_unknown(struct types *types, int func_id)
{
	const struct btf_type *t = btf__type_by_id(types->btf, func_id);

	t = btf__type_by_id(types->btf, t->type);
	return !t->type && btf_vlen(t) == 1 && !btf_params(t)->type;
}
