// SPDX-License-Identifier: GPL-2.0
/*
 * Where the arguments of a function are, if the compiler changed them
 */
#include <string.h>

#include <array_size.h>

#include "btf_func.h"

static bool param__is(const struct param *param, const struct btf_type *t)
{
	const struct btf_loc_param *loc = btf_loc_param(t);

	return t->size == param->size && loc->flags == param->flags &&
	       btf_vlen(t) == param->nr &&
	       !memcmp(loc->values, param->values, param->nr * sizeof(*param->values));
}

/* Add a LOC_PARAM, and return its id. */
int types__add_param(struct types *types, const struct param *param)
{
	const struct btf_type *t;
	unsigned int id, i;
	int ret;

	for_each_type(types, id, t, BTF_KIND_LOC_PARAM, param->size, param->values[0]) {
		if (btf_is_loc_param(t) && param__is(param, t))
			return id;
	}
	ret = btf__add_loc_param(types->btf, param->size, param->flags);
	for (i = 0; ret > 0 && i < param->nr; i++) {
		if (btf__add_loc_param_value(types->btf, param->values[i]))
			ret = -1;
	}
	return types__added(types, ret);
}

/* Argument registers come first; what is called has its return address below the rest. */
static struct param param_of(const struct argument *arg)
{
	struct param param = { .size = arg->words * 8 };
	Dwarf_Word size;
	Dwarf_Die type;

	type = arg->type;
	if (arg->has_type && !dwarf_aggregate_size(&type, &size))
		param.size = size;
	if (arg->slot < ABI_REGS) {
		param.flags = BTF_LOC_PARAM_REG;
		param.nr = arg->words;
		memcpy(param.values, &abi_regs[arg->slot], arg->words * sizeof(*abi_regs));
	} else {
		param.flags = BTF_LOC_PARAM_REG | BTF_LOC_PARAM_DEREF | BTF_LOC_PARAM_OFFSET;
		param.nr = 2;
		param.values[0] = ABI_SP;
		param.values[1] = 8 * (arg->slot - ABI_REGS + 1);
	}
	return param;
}

/* Add a LOC_PROTO, and return its id. */
int types__add_loc_proto(struct types *types, const int *ids, unsigned int nr)
{
	unsigned int first = nr ? ids[0] : 0, id, i;
	const struct btf_type *t;
	int ret;

	for_each_type(types, id, t, BTF_KIND_LOC_PROTO, nr, first) {
		if (btf_is_loc_proto(t) && btf_vlen(t) == nr &&
		    !memcmp(btf_loc_proto_params(t), ids, nr * sizeof(*ids)))
			return id;
	}
	ret = btf__add_loc_proto(types->btf);
	for (i = 0; ret > 0 && i < nr; i++) {
		if (btf__add_loc_proto_param(types->btf, ids[i]))
			ret = -1;
	}
	return types__added(types, ret);
}

/*
 * Add where the arguments are that an optimized function is passed. Return the id of the
 * LOC_PROTO. It also says that the function is not passed what the source says.
 */
int types__add_locations(struct types *types, const struct proto *proto)
{
	int ids[MAX_PARAMS], i;
	struct param param;

	for (i = 0; i < proto->nr; i++) {
		param = param_of(&proto->args[i]);
		ids[i] = types__add_param(types, &param);
	}
	if (proto->variadic)
		ids[i++] = 0;
	return types__add_loc_proto(types, ids, i);
}
