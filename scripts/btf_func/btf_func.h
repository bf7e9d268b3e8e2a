/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __BTF_FUNC_H
#define __BTF_FUNC_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <bpf/btf.h>

#include <xalloc.h>

extern bool verbose;

#define warn(format, ...) \
	fprintf(stderr, "btf_func: " format "\n", ##__VA_ARGS__)
#define fatal(format, ...)			\
	do {					\
		warn(format, ##__VA_ARGS__);	\
		exit(1);			\
	} while (0)

/*
 * object.c: the sections and the function symbols of vmlinux or of a module
 */

/* Where code is. A module has no addresses yet, so it is an offset in a section. */
struct place {
	unsigned int sec;		/* number of the ELF section */
	unsigned int offset;	/* in bytes */
};

struct symbol {
	const char *name;
	Dwarf_Addr addr;	/* in the debug information */
	struct place at;
	bool ambiguous;		/* other functions of the object have this name */
};

struct object {
	const char *path;
	bool relocatable;
	Dwfl *dwfl;
	Dwfl_Module *mod;
	Elf *elf;
	GElf_Addr bias;
	Dwarf_CFI *cfi;
	Dwarf_Addr cfi_bias;
	struct symbol *symbols;	/* sorted by place */
	size_t nr_symbols;
	const char **btf_ids;	/* symbols that BTF_ID(func, ...) made */
	size_t nr_btf_ids;
};

void object__open(struct object *obj, const char *path);
void object__close(struct object *obj);
void object__write(const struct object *obj, const char *suffix, const void *data, size_t size);
bool object__place(struct object *obj, Dwarf_Addr addr, struct place *place);
const char *object__section_name(struct object *obj, unsigned int sec);
unsigned int object__section_size(struct object *obj, unsigned int sec);
void *object__section_data(struct object *obj, const char *name, size_t *size);
bool object__has_btf_id(struct object *obj, const char *name);
int place__cmp(const struct place *a, const struct place *b);

/*
 * dwarf.c: the functions that the debug information describes
 */

struct function {
	const char *name;
	Dwarf_Die unit;
	Dwarf_Die die;
	Dwarf_Addr entry;
	struct place at;
	bool has_code;		/* false: inlined everywhere, or folded into another one */
};

struct functions {
	struct function *all;	/* with code, sorted by place; then those without */
	size_t nr;
	size_t nr_code;
	struct function **by_name;
};

void functions__read(struct functions *functions, struct object *obj);
void functions__free(struct functions *functions);
struct function *functions__of_symbol(struct functions *functions, const struct symbol *sym);
const char *function__unit_name(const struct function *func);
char *function__path(const struct function *func);
bool function__is_named(const struct function *func, const char *symbol);

/* Where a parameter is when its function is entered. */
struct location {
	enum { LOC_GONE, LOC_REG, LOC_REG_PAIR, LOC_STACK } kind;
	int reg;		/* which argument register of the ABI, from 0 */
	int slot;		/* which word of the stack arguments, from 0 */
};

#define ABI_REGS	6
#define ABI_SP		7	/* rsp */

extern const int abi_regs[ABI_REGS];	/* their numbers in DWARF */

struct location function__param(struct function *func, Dwarf_Die *param);
/*
 * dwarf_type.c: the types that the debug information describes
 */

bool die__type(Dwarf_Die *die, Dwarf_Die *type);
Dwarf_Die *die__target(Dwarf_Die *die, Dwarf_Die *mem);
bool die__flag(Dwarf_Die *die, unsigned int attr);
Dwarf_Word die__udata(Dwarf_Die *die, unsigned int attr, Dwarf_Word otherwise);
bool die__first(Dwarf_Die *parent, Dwarf_Die *child, int tag);
bool die__next(Dwarf_Die *child, int tag);
int die__count(Dwarf_Die *die, int tag);
int die__kind(Dwarf_Die *die);
unsigned int die__array_length(Dwarf_Die *die);

#define for_each_child(parent, child, tag)				\
	for (bool more_ = die__first(parent, child, tag); more_;	\
	     more_ = die__next(child, tag))

/*
 * proto.c: the arguments that a function is passed
 */

struct argument {
	char *name;
	Dwarf_Die type;
	bool has_type;		/* false: a register with no name, of type unsigned long */
	int slot;		/* if @optimized: argument register, then word on the stack */
	int words;		/* registers or words that it takes */
};

struct proto {
	int nr;
	struct argument *args;
	bool variadic;
	Dwarf_Die ret;
	bool has_ret;		/* false: void, or not known */
	bool optimized;		/* not the arguments of the source */
	int nr_removed;
	char **removed;		/* parameters that are not passed, or in pieces */
};

bool symbol__is_cold(const char *name);
bool symbol__is_clone(const char *name);
void proto__read_source(struct proto *proto, Dwarf_Die *func);
bool proto__read(struct proto *proto, struct function *func, const char *symbol);
void proto__free(struct proto *proto);

/*
 * types.c: the types of DWARF in BTF
 */

struct types {
	struct btf *btf;	/* types are searched here, and added here */
	unsigned int first_own;	/* ids from this one on are the object's */
	unsigned int nr_base;	/* and from this one on, in @btf itself */
	unsigned int nr;
	unsigned int *heads;
	unsigned int *next;
};

#define MAX_PARAMS	64

unsigned int types__first(struct types *types, int kind, unsigned int a, unsigned int b);
int types__added(struct types *types, int id);

/* Types that may be of a kind without names, by what tells them apart: see hash_type() */
#define for_each_type(types, id, t, kind, a, b)				\
	for (id = types__first(types, kind, a, b);			\
	     id && (t = btf__type_by_id((types)->btf, id));		\
	     id = (types)->next[id])

void types__init(struct types *types, struct btf *btf);
void types__free(struct types *types);
int types__find_func(struct types *types, const struct proto *proto, const char *name);
int types__find_base_func(struct types *types, const char *name);
int types__word(struct types *types);
const char *types__name(struct types *types, const struct btf_type *t);
bool types__is_kind(struct types *types, const struct btf_type *t, int kind, const char *name);
bool types__has_set_only(struct types *types, struct object *obj, const char *name);
bool types__is_ambiguous(struct types *types, int kind, const char *name);
int types__resolve(struct types *types, Dwarf_Die *die);
int types__add_func(struct types *types, const struct proto *proto, const char *name,
		    const char *file);
int types__add_unknown(struct types *types, const char *name, const char *file);
bool types__is_unknown(struct types *types, int func_id);

/*
 * compare.c
 */

bool types__same(struct types *types, Dwarf_Die *die, unsigned int id);

/* How the prototype that BTF has for a name differs from the function's own. */
enum difference {
	SAME,
	NO_FUNC,
	DIFFERENT_COUNT,
	DIFFERENT_TYPES,
	DIFFERENT_NAMES,
	NR_DIFFERENCES,
};

enum difference types__compare(struct types *types, const struct proto *proto, int func_id);

/*
 * location.c: where arguments are
 */

/* What a LOC_PARAM says */
struct param {
	unsigned int size;	/* in bytes */
	unsigned int flags;	/* BTF_LOC_PARAM_* */
	unsigned int nr;	/* of the values */
	unsigned int values[2];
};

int types__add_param(struct types *types, const struct param *param);
int types__add_loc_proto(struct types *types, const int *ids, unsigned int nr);
int types__add_locations(struct types *types, const struct proto *proto);

/*
 * index.c: which function is at which address
 */

struct index_entry {
	struct place at;
	unsigned int func;		/* FUNC */
	unsigned int loc_proto;		/* LOC_PROTO, or 0: as the ABI has it */
};

/* What sections are for, in their names: .BTF.func has LOCSECs "func.text" and so on. */
#define KIND_FUNC	"func"
#define KIND_INLINE	"inline"

struct index {
	struct index_entry *entries;
	size_t nr;
};

void index__add(struct index *index, const struct place *at, unsigned int func,
		unsigned int loc_proto);
void index__sort(struct index *index);
bool index__add_sections(const struct index *index, struct object *obj, struct btf *btf,
			 const char *kind);
void index__read(struct index *index, struct object *obj, struct btf *btf);
int index__resolve(const struct index *index, struct types *types, const struct symbol *sym);

/*
 * param.c, inline.c: where functions were inlined
 */

struct site {
	struct object *obj;
	Dwarf_Die *func;	/* into which */
	Dwarf_Die origin;	/* which */
	Dwarf_Die die;
	Dwarf_Addr pc;		/* of the first instruction */
	struct place at;
};

struct sites {
	struct site *all;
	size_t nr;
	size_t nr_without_address;
	/* with all parameters known, with none, though there are some */
	size_t nr_all;
	size_t nr_none;
	size_t nr_params;
	size_t nr_known;
};

bool param__at(struct param *param, const struct site *site, Dwarf_Die *die);
void sites__read(struct sites *sites, struct object *obj, struct functions *functions);
void sites__generate(struct sites *sites, struct types *types, struct index *index);
void sites__print(const struct sites *sites, const struct object *obj);
void sites__free(struct sites *sites);

/*
 * generate.c, verify.c
 */
void generate(struct object *obj, struct functions *functions, struct types *types,
	      struct index *index);
int verify(struct object *obj, struct functions *functions, struct types *types,
	   const struct index *index, bool list, bool summary);
int verify_inline(struct object *obj, const struct sites *sites, const void *data, size_t size);

extern const char *source_dirs[];

#endif /* __BTF_FUNC_H */
