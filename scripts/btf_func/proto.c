// SPDX-License-Identifier: GPL-2.0
/*
 * The arguments that a function is passed
 *
 * A function that has its name from the source is passed what the source says, by
 * the rules of the ABI. The compiler may also make a clone of a static function,
 * and call that instead. It has a suffix, and other parameters:
 *
 *   foo.isra.0       a parameter is gone that is not used, or is passed in pieces,
 *                    as the members of a structure instead of its address
 *   foo.constprop.0  one that always has the same value is gone
 *   foo.part.0       is a part of foo(), and passed what that part needs
 *
 * or several of these: foo.constprop.0.isra.0.
 *
 * What is left is passed by the ABI, in the order of the source. The debug information
 * has the register of each parameter that is passed whole. So a clone's arguments
 * are its registers in the ABI's order; one that no parameter is in has no name:
 *
 *   static int foo(struct a *a, int b, int c)     foo.isra.0(b, a->x, c):
 *     b in rdi, c in rdx                            b, __arg2, c; removed: a
 *
 * Registers behind the last named one may hold pieces, too, in an .isra: it gets all six.
 * Clang changes functions without a suffix, but marks them with DW_CC_nocall.
 */
#include <string.h>

#include "btf_func.h"

enum suffix {
	NO_SUFFIX,
	RENAMED,		/* the arguments are those of the source */
	CLONED,
	CLONED_IN_PIECES,
};

static bool part_is(const char *part, size_t len, const char *word)
{
	return strlen(word) == len && !strncmp(part, word, len);
}

static enum suffix suffix_of(const char *symbol)
{
	enum suffix suffix = NO_SUFFIX;
	bool cloned = false;
	const char *part;
	size_t len;

	/* A label in assembly may begin with a dot. */
	for (part = strchr(symbol + (*symbol == '.'), '.'); part;
	     part = part[len] ? part + len : NULL) {
		part++;
		len = strcspn(part, ".");
		if (part_is(part, len, "isra"))
			return CLONED_IN_PIECES;
		if (part_is(part, len, "llvm") || part_is(part, len, "lto_priv") ||
		    (suffix == RENAMED && len && strspn(part, "0123456789abcdef") >= len))
			suffix = RENAMED;
		else if (len && strspn(part, "0123456789") < len)
			cloned = true;
	}
	return cloned ? CLONED : suffix;
}

/* The part of a function that is rarely run has a symbol, but is not called. */
bool symbol__is_cold(const char *name)
{
	const char *cold = strstr(name, ".cold");

	return cold && (!cold[5] || cold[5] == '.');
}

bool symbol__is_clone(const char *name)
{
	return suffix_of(name) >= CLONED;
}

static struct argument *add_argument(struct proto *proto)
{
	proto->args = xrealloc(proto->args, (proto->nr + 1) * sizeof(*proto->args));
	proto->args[proto->nr] = (struct argument){};
	return &proto->args[proto->nr++];
}

static void set_argument(struct argument *arg, Dwarf_Die *param)
{
	arg->name = xstrdup(dwarf_diename(param) ?: "");
	arg->has_type = die__type(param, &arg->type);
}

static void add_removed(struct proto *proto, const char *name)
{
	if (!name)
		return;
	proto->removed = xrealloc(proto->removed,
				  (proto->nr_removed + 1) * sizeof(*proto->removed));
	proto->removed[proto->nr_removed++] = xstrdup(name);
}

static bool first_param(Dwarf_Die *func, Dwarf_Die *param)
{
	return !dwarf_child(func, param);
}

/* Read the parameters of the source, in its order. */
void proto__read_source(struct proto *proto, Dwarf_Die *func)
{
	Dwarf_Die origin = *func, param;
	Dwarf_Attribute attr;

	/* What the compiler did not need may be missing in the function with the code. */
	while (dwarf_attr(&origin, DW_AT_abstract_origin, &attr) &&
	       dwarf_formref_die(&attr, &origin))
		;
	proto->has_ret = die__type(&origin, &proto->ret);
	if (!first_param(&origin, &param))
		return;
	do {
		if (dwarf_tag(&param) == DW_TAG_formal_parameter)
			set_argument(add_argument(proto), &param);
		else if (dwarf_tag(&param) == DW_TAG_unspecified_parameters)
			proto->variadic = true;
	} while (!dwarf_siblingof(&param, &param));
}

#define MAX_SLOTS	32

/* Who is in each register and then in each word of the stack arguments? */
struct slots {
	Dwarf_Die params[MAX_SLOTS];
	enum { FREE, TAKEN, SECOND_WORD } state[MAX_SLOTS];
	int nr;
};

static bool take_slot(struct slots *slots, int slot, int words, Dwarf_Die *param)
{
	if (slot + words > MAX_SLOTS || slots->state[slot] != FREE ||
	    (words == 2 && slots->state[slot + 1] != FREE))
		return false;
	slots->params[slot] = *param;
	slots->state[slot] = TAKEN;
	if (words == 2)
		slots->state[slot + 1] = SECOND_WORD;
	if (slots->nr < slot + words)
		slots->nr = slot + words;
	return true;
}

/* A parameter of more than one word that is not in as many registers is in pieces. */
static bool fits(Dwarf_Die *param, int words)
{
	Dwarf_Word size;
	Dwarf_Die type;

	return die__type(param, &type) && !dwarf_aggregate_size(&type, &size) &&
	       (size + 7) / 8 == words;
}

static void place_param(struct proto *proto, struct slots *slots, struct function *func,
			Dwarf_Die *param)
{
	struct location loc = function__param(func, param);
	bool placed = false;

	if (loc.kind == LOC_REG && fits(param, 1))
		placed = take_slot(slots, loc.reg, 1, param);
	else if (loc.kind == LOC_REG_PAIR && loc.reg + 1 < ABI_REGS && fits(param, 2))
		placed = take_slot(slots, loc.reg, 2, param);
	else if (loc.kind == LOC_STACK && fits(param, 1))
		placed = take_slot(slots, ABI_REGS + loc.slot, 1, param);
	if (!placed)
		add_removed(proto, dwarf_diename(param));
}

static void read_passed(struct proto *proto, struct function *func, bool in_pieces)
{
	struct slots slots = {};
	struct argument *arg;
	Dwarf_Die param;
	char name[16];
	int i;

	if (first_param(&func->die, &param)) {
		do {
			if (dwarf_tag(&param) == DW_TAG_formal_parameter)
				place_param(proto, &slots, func, &param);
			/* GCC repeats parameters behind the "..." of a clone. */
			proto->variadic = dwarf_tag(&param) == DW_TAG_unspecified_parameters;
		} while (!proto->variadic && !dwarf_siblingof(&param, &param));
	}
	if (in_pieces && slots.nr < ABI_REGS)
		slots.nr = ABI_REGS;
	for (i = 0; i < slots.nr; i++) {
		if (slots.state[i] == SECOND_WORD)
			continue;
		arg = add_argument(proto);
		if (slots.state[i] == TAKEN) {
			set_argument(arg, &slots.params[i]);
		} else {
			sprintf(name, "__arg%d", i + 1);
			arg->name = xstrdup(name);
		}
		arg->slot = i;
		arg->words = i + 1 < slots.nr && slots.state[i + 1] == SECOND_WORD ? 2 : 1;
	}
}

/* Read what a function is passed whose symbol is @symbol. */
bool proto__read(struct proto *proto, struct function *func, const char *symbol)
{
	enum suffix suffix = suffix_of(symbol);

	*proto = (struct proto){};
	proto->optimized = suffix >= CLONED ||
			   die__udata(&func->die, DW_AT_calling_convention, 0) == DW_CC_nocall;
	if (!proto->optimized)
		proto__read_source(proto, &func->die);
	else if (func->has_code)
		read_passed(proto, func, suffix != CLONED);
	else
		return false;
	return true;
}

void proto__free(struct proto *proto)
{
	int i;

	for (i = 0; i < proto->nr; i++)
		free(proto->args[i].name);
	for (i = 0; i < proto->nr_removed; i++)
		free(proto->removed[i]);
	free(proto->args);
	free(proto->removed);
}
