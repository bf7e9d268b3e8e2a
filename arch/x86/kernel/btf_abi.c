// SPDX-License-Identifier: GPL-2.0
/*
 * Where a function has its arguments when it is entered: System V ABI, AMD64, 3.2.3, for
 * types that BTF describes.
 */
#include <linux/btf.h>
#include <linux/btf_abi.h>
#include <linux/minmax.h>
#include <linux/stddef.h>

#include <asm/ptrace.h>

#define NR_REGS		6
#define NR_SSE_REGS	8

/* The class of a type, or of its parts: that of all is the highest. */
enum abi_class {
	ABI_REGS,		/* general registers */
	ABI_OTHER,		/* SSE or x87 registers, or BTF does not tell */
	ABI_STACK,
};

struct abi_type {
	enum abi_class	class;
	unsigned int	words;
	unsigned long	used;		/* a bit for each word that has members */
};

static void add_type(const struct btf *btf, u32 id, u32 offset, struct abi_type *type);

static void add_members(const struct btf *btf, const struct btf_type *t, u32 offset,
			struct abi_type *type)
{
	u32 i, bit;

	for (i = 0; i < btf_vlen(t); i++) {
		bit = btf_member_bit_offset(t, i);
		if (btf_member_bitfield_size(t, i))
			type->used |= BIT((offset + bit / 8) / 8);
		else
			add_type(btf, btf_members(t)[i].type, offset + bit / 8, type);
	}
}

static void add_elements(const struct btf *btf, const struct btf_array *array, u32 offset,
			 struct abi_type *type)
{
	u32 i, size;

	if (IS_ERR(btf_resolve_size(btf, btf_type_by_id(btf, array->type), &size)) || !size)
		return;
	for (i = 0; i < array->nelems && offset + i * size < 2 * sizeof(long); i++)
		add_type(btf, array->type, offset + i * size, type);
}

/* Add what is @offset bytes from the begin of a value of one or two words. */
static void add_type(const struct btf *btf, u32 id, u32 offset, struct abi_type *type)
{
	const struct btf_type *t = btf_type_skip_modifiers(btf, id, NULL);
	u32 size = sizeof(long);

	switch (t ? BTF_INFO_KIND(t->info) : BTF_KIND_UNKN) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		add_members(btf, t, offset, type);
		return;
	case BTF_KIND_ARRAY:
		add_elements(btf, btf_array(t), offset, type);
		return;
	case BTF_KIND_PTR:
		break;
	case BTF_KIND_INT:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		size = t->size;
		break;
	case BTF_KIND_FLOAT:
		size = t->size;
		fallthrough;
	default:
		type->class = max(type->class, ABI_OTHER);
	}
	/* That of a packed structure */
	if (offset % size)
		type->class = ABI_STACK;
	type->used |= GENMASK((offset + size - 1) / 8, offset / 8);
}

/* Has it an __int128, so that it is aligned on the stack? An attribute cannot be seen. */
static bool is_wide(const struct btf *btf, u32 id)
{
	const struct btf_type *t = btf_type_skip_modifiers(btf, id, NULL);
	u32 i;

	if (t && btf_type_is_array(t))
		return is_wide(btf, btf_array(t)->type);
	if (!t || !btf_type_is_struct(t))
		return t && btf_type_is_int(t) && t->size > sizeof(long);
	for (i = 0; i < btf_vlen(t); i++) {
		if (is_wide(btf, btf_members(t)[i].type))
			return true;
	}
	return false;
}

static struct abi_type classify(const struct btf *btf, u32 id)
{
	const struct btf_type *t = btf_type_skip_modifiers(btf, id, NULL);
	u32 size = t && (btf_type_is_struct(t) || btf_type_is_int(t)) ? t->size : sizeof(long);
	struct abi_type type = { .words = DIV_ROUND_UP(size, 8) };

	if (type.words > 2) {
		type.class = ABI_STACK;
		return type;
	}
	add_type(btf, id, 0, &type);
	/* A word without members, as of an aligned structure, takes no register. */
	if (type.class == ABI_REGS && type.used != BIT(type.words) - 1)
		type.class = ABI_OTHER;
	return type;
}

/* Those that the parameters before have taken, in words */
struct slots {
	unsigned int regs;
	unsigned int stack;
	unsigned int sse;
	bool unknown;
};

/* Return the slot of the next parameter, or -ENXIO. */
static int take_slots(struct slots *slots, const struct btf *btf, u32 id)
{
	const struct btf_type *t = btf_type_skip_modifiers(btf, id, NULL);
	struct abi_type type = classify(btf, id);
	int slot;

	if (type.class == ABI_OTHER) {
		/*
		 * A structure may take general registers, too, or none, and a long double is
		 * on the stack, but not another float of its size.
		 */
		if (!t || btf_type_is_struct(t) || t->size > sizeof(double) ||
		    ++slots->sse > NR_SSE_REGS)
			slots->unknown = true;
		return -ENXIO;
	}
	/* In registers as a whole, or on the stack */
	if (type.class == ABI_REGS && slots->regs + type.words <= NR_REGS) {
		slot = slots->regs;
		slots->regs += type.words;
	} else {
		if (is_wide(btf, id))
			slots->stack = round_up(slots->stack, 2);
		else if (slots->stack % 2 && type.words % 2 == 0 && btf_type_is_struct(t))
			slots->unknown = true;	/* It may have an attribute. */
		slot = NR_REGS + slots->stack;
		slots->stack += type.words;
	}
	return slots->unknown ? -ENXIO : slot;
}

int arch_btf_param_slot(const struct btf *btf, const struct btf_type *proto, int nr)
{
	struct slots slots = {};
	int i, slot = -ENXIO;

	/* The address of a structure that is returned in memory */
	if (classify(btf, proto->type).class == ABI_STACK)
		slots.regs++;
	for (i = 0; i <= nr; i++)
		slot = take_slots(&slots, btf, btf_params(proto)[i].type);
	return slot;
}

bool arch_btf_is_in_regs(const struct btf *btf, u32 id)
{
	return classify(btf, id).class == ABI_REGS;
}

#define REG(name)	offsetof(struct pt_regs, name)

/* In the order of figure 3.36 */
static const int dwarf_regs[] = {
	REG(ax), REG(dx), REG(cx), REG(bx), REG(si), REG(di), REG(bp), REG(sp),
	REG(r8), REG(r9), REG(r10), REG(r11), REG(r12), REG(r13), REG(r14), REG(r15),
};

int arch_dwarf_reg_offset(u32 reg)
{
	return reg < ARRAY_SIZE(dwarf_regs) ? dwarf_regs[reg] : -ENXIO;
}
