// SPDX-License-Identifier: GPL-2.0
/*
 * Where a parameter is at an address, as a LOC_PARAM tells it
 *
 * The debug information has its location there, in its own language, or the value that the
 * compiler found it to have. A LOC_PARAM can tell of a value, of one or two registers, and
 * of a register plus an offset, which is the value or where the value is. Of all else
 * nothing is told: what is computed from several registers, what was passed when the function
 * was entered and is in no register any more, addresses of data, which the final link changes.
 */
#include <stdint.h>
#include <string.h>

#include "btf_func.h"

/* Of a sign, only the bytes that the type has */
static bool set_const(struct param *param, Dwarf_Word value)
{
	if (param->size > 8)
		return false;
	if (param->size < 8)
		value &= (1ULL << 8 * param->size) - 1;
	param->flags = BTF_LOC_PARAM_CONST;
	param->values[0] = value;
	param->values[1] = value >> 32;
	param->nr = param->size > 4 ? 2 : 1;
	return true;
}

static bool set_regs(struct param *param, int first, int second, unsigned int nr)
{
	if (first < 0 || (nr == 2 && second < 0) || nr != (param->size > 8 ? 2 : 1))
		return false;
	param->flags = BTF_LOC_PARAM_REG;
	param->values[0] = first;
	param->values[1] = second;
	param->nr = nr;
	return true;
}

/* The memory at the register plus an offset or, with @value, this address itself */
static bool set_offset(struct param *param, unsigned int reg, Dwarf_Sword offset, bool value)
{
	if (offset != (int32_t)offset || (value && param->size > 8))
		return false;
	param->flags = BTF_LOC_PARAM_REG | BTF_LOC_PARAM_OFFSET |
		       (value ? 0 : BTF_LOC_PARAM_DEREF);
	param->values[0] = reg;
	param->values[1] = offset;
	param->nr = 2;
	return true;
}

/* The number of a register, or -1 */
static int op_reg(const Dwarf_Op *op)
{
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31)
		return op->atom - DW_OP_reg0;
	return op->atom == DW_OP_regx ? (int)op->number : -1;
}

/* Is this a register plus an offset? */
static bool op_breg(const Dwarf_Op *op, unsigned int *reg, Dwarf_Sword *offset)
{
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		*reg = op->atom - DW_OP_breg0;
		*offset = op->number;
		return true;
	}
	*reg = op->number;
	*offset = op->number2;
	return op->atom == DW_OP_bregx;
}

/* Is this a number? */
static bool op_const(const Dwarf_Op *op, Dwarf_Word *value)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		*value = op->atom - DW_OP_lit0;
		return true;
	}
	*value = op->number;
	return (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts);
}

/* The canonical frame address as a register plus an offset */
static bool cfa_at(struct object *obj, Dwarf_Addr pc, unsigned int *reg, Dwarf_Sword *offset)
{
	Dwarf_Frame *frame;
	Dwarf_Op *ops;
	size_t nr;
	bool found;

	if (!obj->cfi || dwarf_cfi_addrframe(obj->cfi, pc - obj->cfi_bias, &frame))
		return false;
	found = !dwarf_frame_cfa(frame, &ops, &nr) && nr == 1 && op_breg(&ops[0], reg, offset);
	free(frame);
	return found;
}

/* The frame base of a function as a register plus an offset */
static bool frame_base_at(struct object *obj, Dwarf_Die *func, Dwarf_Addr pc, unsigned int *reg,
			  Dwarf_Sword *offset)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t nr;
	int base;

	if (!dwarf_attr_integrate(func, DW_AT_frame_base, &attr) ||
	    dwarf_getlocation_addr(&attr, pc, &ops, &nr, 1) != 1 || nr != 1)
		return false;
	if (ops[0].atom == DW_OP_call_frame_cfa)
		return cfa_at(obj, pc, reg, offset);
	base = op_reg(&ops[0]);
	*reg = base;
	*offset = 0;
	return base >= 0;
}

/* A value that the location has in itself, as bytes of the target */
static bool set_implicit(struct param *param, Dwarf_Attribute *attr, const Dwarf_Op *op)
{
	Dwarf_Word value = 0;
	Dwarf_Block block;

	if (dwarf_getlocation_implicit_value(attr, op, &block) || block.length != param->size ||
	    block.length > sizeof(value))
		return false;
	memcpy(&value, block.data, block.length);
	return set_const(param, value);
}

static bool set_location(struct param *param, const struct site *site, Dwarf_Attribute *attr,
			 const Dwarf_Op *ops, size_t nr)
{
	bool value = nr > 1 && ops[nr - 1].atom == DW_OP_stack_value;
	Dwarf_Sword offset, base;
	unsigned int reg;
	Dwarf_Word number;

	if (nr == 4 && ops[1].atom == DW_OP_piece && ops[1].number == 8 &&
	    ops[3].atom == DW_OP_piece && ops[3].number == param->size - 8)
		return set_regs(param, op_reg(&ops[0]), op_reg(&ops[2]), 2);
	if (nr != 1 + value)
		return false;
	if (op_const(&ops[0], &number))
		return value && set_const(param, number);
	if (op_breg(&ops[0], &reg, &offset))
		return set_offset(param, reg, offset, value);
	if (ops[0].atom == DW_OP_implicit_value)
		return set_implicit(param, attr, &ops[0]);
	if (ops[0].atom == DW_OP_fbreg)
		return frame_base_at(site->obj, site->func, site->pc, &reg, &base) &&
		       set_offset(param, reg, base + (Dwarf_Sword)ops[0].number, value);
	return !value && set_regs(param, op_reg(&ops[0]), -1, 1);
}

static bool param__same(const struct param *a, const struct param *b)
{
	return a->flags == b->flags && a->nr == b->nr &&
	       !memcmp(a->values, b->values, a->nr * sizeof(*a->values));
}

/*
 * An empty range tells of the state before the instruction at its address, with which code
 * that made no instruction was to begin. If several ranges tell of this address, the parameter
 * was assigned there, and none is certain.
 */
static bool set_location_at(struct param *param, const struct site *site, Dwarf_Attribute *attr)
{
	struct param unset = *param, other;
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;
	bool found = false;
	Dwarf_Op *ops;
	size_t nr;

	while ((offset = dwarf_getlocations(attr, offset, &base, &start, &end, &ops, &nr)) > 0) {
		if (site->pc < start || (site->pc >= end && site->pc != start))
			continue;
		other = unset;
		if (!set_location(&other, site, attr, ops, nr) ||
		    (found && !param__same(&other, param)))
			return false;
		*param = other;
		found = true;
	}
	return found && !offset;
}

/* Only DW_FORM_sdata and the like tell a sign: data1 is unsigned, however short it is. */
static bool const_value(Dwarf_Attribute *attr, Dwarf_Word *value)
{
	Dwarf_Sword number;

	switch (dwarf_whatform(attr)) {
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata:
		return !dwarf_formudata(attr, value);
	default:
		if (dwarf_formsdata(attr, &number))
			return false;
		*value = number;
		return true;
	}
}

/**
 * param__at - find where a parameter is
 * @param: the result
 * @site: where the function was inlined
 * @die: the parameter there
 *
 * Return: false: it is nowhere, or where a LOC_PARAM cannot tell.
 */
bool param__at(struct param *param, const struct site *site, Dwarf_Die *die)
{
	Dwarf_Word size, value;
	Dwarf_Attribute attr;
	Dwarf_Die type;

	*param = (struct param){};
	if (!die__type(die, &type) || dwarf_aggregate_size(&type, &size) || !size ||
	    size != (unsigned int)size)
		return false;
	param->size = size;
	if (dwarf_attr(die, DW_AT_const_value, &attr))
		return const_value(&attr, &value) && set_const(param, value);
	return dwarf_attr(die, DW_AT_location, &attr) && set_location_at(param, site, &attr);
}
