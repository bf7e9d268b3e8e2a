// SPDX-License-Identifier: GPL-2.0
/*
 * The functions that the debug information describes
 *
 * A function that was compiled has a DIE with the address of its code. If it was
 * also inlined, or cloned, that DIE refers to one with what they share: name, types
 * and the parameters in the order of the source. Only the DIE with the address knows
 * where each parameter is on entry.
 *
 * Identical code may be folded: then the symbol of the other function has the
 * same address, or jumps there, and its DIE has no address.
 */
#include <string.h>

#include "btf_func.h"

/*
 * The call of ftrace, and ENDBR before it, come before the first instruction of a
 * function. A location list may begin behind them.
 */
#define ENTRY_BYTES	9

/* A function in parts, as with foo.cold(), has ranges, of which the first has its entry. */
static bool entry_of(Dwarf_Die *die, Dwarf_Addr *entry)
{
	Dwarf_Addr base, end;

	return !dwarf_entrypc(die, entry) || dwarf_ranges(die, 0, &base, entry, &end) > 0;
}

static void add_function(struct functions *functions, struct object *obj, Dwarf_Die *die,
			 Dwarf_Die *unit)
{
	struct function *func;
	Dwarf_Addr entry = 0;
	bool has_code;

	if (die__flag(die, DW_AT_declaration))
		return;
	has_code = entry_of(die, &entry);
	/* GCC describes a clone by a DIE without an address, too. Its name is what counts. */
	if (!has_code && dwarf_hasattr(die, DW_AT_abstract_origin))
		return;
	if (!(functions->nr & (functions->nr - 1)))
		functions->all = xrealloc(functions->all, (functions->nr ? functions->nr * 2 : 1) *
					  sizeof(*functions->all));
	func = &functions->all[functions->nr];
	*func = (struct function){
		.name = dwarf_diename(die),
		.unit = *unit,
		.die = *die,
		.entry = entry,
	};
	func->has_code = has_code && object__place(obj, entry, &func->at);
	if (func->name)
		functions->nr++;
}

/* The name of the source file as the compiler was given it */
const char *function__unit_name(const struct function *func)
{
	Dwarf_Die unit = func->unit;

	return dwarf_diename(&unit) ?: "";
}

/* Return the path of the source file, to be freed. */
char *function__path(const struct function *func)
{
	const char *name = function__unit_name(func);
	Dwarf_Die unit = func->unit;
	Dwarf_Attribute attr;
	const char *dir;
	char *path;

	dir = dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attr));
	if (*name == '/' || !dir)
		return xstrdup(name);
	path = xmalloc(strlen(dir) + strlen(name) + 2);
	sprintf(path, "%s/%s", dir, name);
	return path;
}

/* Codes of dwarfstd.org/languages.html that <dwarf.h> may be older than */
#define LANG_C17	0x2c
#define LANG_C23	0x3e
#define LANG_ASSEMBLY	0x31

/*
 * Only units in C: the assembler's name functions, but not what they are passed, and BTF has
 * none of those in Rust. Any other language is more likely to be a new C than nothing to
 * look at, and then all functions of the unit would be lost.
 */
static bool is_c(const struct object *obj, Dwarf_Die *unit)
{
	int lang = dwarf_srclang(unit);

	switch (lang) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case LANG_C17:
	case LANG_C23:
		return true;
	case DW_LANG_Mips_Assembler:
	case LANG_ASSEMBLY:
	case DW_LANG_Rust:
		return false;
	default:
		fatal("%s: %s: language %#x of the debug information is not known here",
		      obj->path, dwarf_diename(unit) ?: "a unit", lang);
	}
}

static int function__cmp(const void *a, const void *b)
{
	const struct function *fa = a, *fb = b;

	if (fa->has_code != fb->has_code)
		return fa->has_code ? -1 : 1;
	return place__cmp(&fa->at, &fb->at);
}

/* Equal ones are sorted too, so that the result is the same on each machine. */
static int function__cmp_all(const void *a, const void *b)
{
	Dwarf_Off oa = dwarf_dieoffset((Dwarf_Die *)&((const struct function *)a)->die);
	Dwarf_Off ob = dwarf_dieoffset((Dwarf_Die *)&((const struct function *)b)->die);

	return function__cmp(a, b) ?: (oa < ob ? -1 : oa > ob);
}

static int function__cmp_name(const void *a, const void *b)
{
	const struct function *fa = *(struct function **)a, *fb = *(struct function **)b;

	return strcmp(fa->name, fb->name) ?: (fa < fb ? -1 : fa > fb);
}

static void sort_functions(struct functions *functions)
{
	size_t i;

	qsort(functions->all, functions->nr, sizeof(*functions->all), function__cmp_all);
	functions->by_name = xcalloc(functions->nr, sizeof(*functions->by_name));
	for (i = 0; i < functions->nr; i++) {
		functions->nr_code += functions->all[i].has_code;
		functions->by_name[i] = &functions->all[i];
	}
	qsort(functions->by_name, functions->nr, sizeof(*functions->by_name), function__cmp_name);
}

void functions__read(struct functions *functions, struct object *obj)
{
	Dwarf_Die unit, die;
	Dwarf_CU *cu = NULL;
	Dwarf_Addr bias;
	Dwarf *dwarf;

	*functions = (struct functions){};
	dwarf = dwfl_module_getdwarf(obj->mod, &bias);
	if (!dwarf)
		fatal("%s: no debug information: %s", obj->path, dwfl_errmsg(-1));
	while (!dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL)) {
		if (!is_c(obj, &unit) || dwarf_child(&unit, &die))
			continue;
		do {
			if (dwarf_tag(&die) == DW_TAG_subprogram)
				add_function(functions, obj, &die, &unit);
		} while (!dwarf_siblingof(&die, &die));
	}
	sort_functions(functions);
}

void functions__free(struct functions *functions)
{
	free(functions->by_name);
	free(functions->all);
}

/* The length of a name without the suffixes that the compiler appends. */
static size_t source_name_len(const char *name)
{
	return strcspn(name, ".");
}

bool function__is_named(const struct function *func, const char *symbol)
{
	size_t len = source_name_len(symbol);

	return !strncmp(func->name, symbol, len) && !func->name[len];
}

static struct function *find_code(struct functions *functions, const struct symbol *sym)
{
	struct function key = { .has_code = true, .at = sym->at };
	struct function *func, *last = functions->all + functions->nr_code;

	func = bsearch(&key, functions->all, functions->nr_code, sizeof(key), function__cmp);
	if (!func)
		return NULL;
	while (func > functions->all && !function__cmp(func - 1, &key))
		func--;
	for (; func < last && !function__cmp(func, &key); func++) {
		if (function__is_named(func, sym->name))
			return func;
	}
	return func - 1;
}

/* The function of a symbol's name in the unit that its code is from */
static struct function *find_name(struct functions *functions, const struct symbol *sym)
{
	struct function **first = functions->by_name, **end = first + functions->nr;
	struct function **func;
	size_t half;

	/* The first one whose name is not less than the symbol's. */
	while (first < end) {
		half = (end - first) / 2;
		if (strcmp(first[half]->name, sym->name) < 0)
			first += half + 1;
		else
			end = first + half;
	}
	end = functions->by_name + functions->nr;
	for (func = first; func < end && !strcmp((*func)->name, sym->name); func++) {
		if (dwarf_haspc(&(*func)->unit, sym->addr) > 0)
			return *func;
	}
	return NULL;
}

/*
 * Return the function that a symbol names, or NULL: it is not described, as one
 * in assembly, or it cannot be told which one it is, or it is the rest of a function.
 */
struct function *functions__of_symbol(struct functions *functions, const struct symbol *sym)
{
	struct function *code = find_code(functions, sym), *named;

	if (symbol__is_cold(sym->name))
		return NULL;
	if (code && function__is_named(code, sym->name))
		return code;
	named = find_name(functions, sym);
	/* An alias has what the code has. */
	return named ?: code;
}

/* System V ABI, AMD64, 3.2.3 and figure 3.36: rdi, rsi, rdx, rcx, r8, r9 */
const int abi_regs[ABI_REGS] = { 5, 4, 1, 2, 8, 9 };

/* Which argument register, or -1 */
static int abi_reg(Dwarf_Word dwarf_reg)
{
	int i;

	for (i = 0; i < ABI_REGS; i++) {
		if (abi_regs[i] == dwarf_reg)
			return i;
	}
	return -1;
}

static int op_reg(const Dwarf_Op *op)
{
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31)
		return abi_reg(op->atom - DW_OP_reg0);
	return op->atom == DW_OP_regx ? abi_reg(op->number) : -1;
}

/*
 * Convert an offset from the frame base of a function to one from its CFA, where the first
 * of the stack arguments is. Return false if that is not known at the entry: Clang uses
 * the stack pointer as it is behind the prologue, if it is not the frame pointer.
 */
static bool cfa_offset(struct function *func, Dwarf_Sword *offset)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t nr;

	if (!dwarf_attr_integrate(&func->die, DW_AT_frame_base, &attr) ||
	    dwarf_getlocation(&attr, &ops, &nr) || nr != 1)
		return false;
	if (ops[0].atom == DW_OP_reg6) {
		*offset -= 16;	/* rbp, with the one of the caller and the return address above */
		return true;
	}
	return ops[0].atom == DW_OP_call_frame_cfa;
}

static struct location location_of(struct function *func, const Dwarf_Op *ops, size_t nr)
{
	struct location loc = { .kind = LOC_GONE };
	Dwarf_Sword offset;

	if (nr == 1 && ops[0].atom == DW_OP_fbreg) {
		offset = ops[0].number;
		if (cfa_offset(func, &offset) && offset >= 0 && !(offset % 8)) {
			loc.kind = LOC_STACK;
			loc.slot = offset / 8;
		}
		return loc;
	}
	loc.reg = nr ? op_reg(&ops[0]) : -1;
	if (loc.reg < 0)
		return loc;
	if (nr == 1)
		loc.kind = LOC_REG;
	else if (nr == 4 && ops[1].atom == DW_OP_piece && ops[1].number == 8 &&
		 op_reg(&ops[2]) == loc.reg + 1 && ops[3].atom == DW_OP_piece)
		loc.kind = LOC_REG_PAIR;
	return loc;
}

/*
 * Where is a parameter when the function is entered?
 * A range of the list may be empty: what it says is true at that address only.
 */
struct location function__param(struct function *func, Dwarf_Die *param)
{
	Dwarf_Addr entry = func->entry;
	struct location loc, gone = { .kind = LOC_GONE };
	Dwarf_Addr base, start, end;
	Dwarf_Attribute attr;
	ptrdiff_t offset = 0;
	Dwarf_Op *ops;
	size_t nr;

	if (!dwarf_attr(param, DW_AT_location, &attr))
		return gone;
	while ((offset = dwarf_getlocations(&attr, offset, &base, &start, &end, &ops, &nr)) > 0) {
		if (start > entry + ENTRY_BYTES || (end <= entry && end != start) || end < entry)
			continue;
		loc = location_of(func, ops, nr);
		if (loc.kind != LOC_GONE)
			return loc;
		if (end > entry)
			break;
	}
	return gone;
}
