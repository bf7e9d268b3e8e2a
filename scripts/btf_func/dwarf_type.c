// SPDX-License-Identifier: GPL-2.0
/*
 * The types that the debug information describes
 */
#include <string.h>

#include "btf_func.h"

bool die__type(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, DW_AT_type, &attr) && dwarf_formref_die(&attr, type);
}

bool die__flag(Dwarf_Die *die, unsigned int attr)
{
	Dwarf_Attribute mem;
	bool flag;

	return dwarf_attr(die, attr, &mem) && !dwarf_formflag(&mem, &flag) && flag;
}

Dwarf_Word die__udata(Dwarf_Die *die, unsigned int attr, Dwarf_Word otherwise)
{
	Dwarf_Attribute mem;
	Dwarf_Word value;

	if (!dwarf_attr_integrate(die, attr, &mem) || dwarf_formudata(&mem, &value))
		return otherwise;
	return value;
}

/* Like die__type(), or NULL for void. */
Dwarf_Die *die__target(Dwarf_Die *die, Dwarf_Die *mem)
{
	return die__type(die, mem) ? mem : NULL;
}

bool die__next(Dwarf_Die *child, int tag)
{
	do {
		if (dwarf_siblingof(child, child))
			return false;
	} while (dwarf_tag(child) != tag);
	return true;
}

bool die__first(Dwarf_Die *parent, Dwarf_Die *child, int tag)
{
	return !dwarf_child(parent, child) && (dwarf_tag(child) == tag || die__next(child, tag));
}

int die__count(Dwarf_Die *die, int tag)
{
	Dwarf_Die child;
	int nr = 0;

	for_each_child(die, &child, tag)
		nr++;
	return nr;
}

/* Return the kind of BTF that has a type, or BTF_KIND_UNKN. */
int die__kind(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type:
		return die__udata(die, DW_AT_encoding, 0) == DW_ATE_float ?
		       BTF_KIND_FLOAT : BTF_KIND_INT;
	case DW_TAG_pointer_type:
		return BTF_KIND_PTR;
	case DW_TAG_const_type:
		return BTF_KIND_CONST;
	case DW_TAG_volatile_type:
		return BTF_KIND_VOLATILE;
	case DW_TAG_restrict_type:
		return BTF_KIND_RESTRICT;
	case DW_TAG_typedef:
		return BTF_KIND_TYPEDEF;
	case DW_TAG_structure_type:
		return BTF_KIND_STRUCT;
	case DW_TAG_union_type:
		return BTF_KIND_UNION;
	case DW_TAG_enumeration_type:
		return BTF_KIND_ENUM;
	case DW_TAG_array_type:
		return BTF_KIND_ARRAY;
	case DW_TAG_subroutine_type:
		return BTF_KIND_FUNC_PROTO;
	default:
		return BTF_KIND_UNKN;
	}
}

/* Return how many elements an array has, in all its dimensions. */
unsigned int die__array_length(Dwarf_Die *die)
{
	Dwarf_Word count;
	Dwarf_Die range;
	unsigned int nr = 1;

	for_each_child(die, &range, DW_TAG_subrange_type) {
		count = die__udata(&range, DW_AT_count, 0);
		if (!count && dwarf_hasattr(&range, DW_AT_upper_bound))
			count = die__udata(&range, DW_AT_upper_bound, -1) + 1;
		nr *= count;
	}
	return nr;
}
