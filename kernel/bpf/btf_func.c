// SPDX-License-Identifier: GPL-2.0
/*
 * Which FUNC of BTF is the function at this address?
 *
 * The name is not enough. Several functions may share it, clones that the compiler
 * made have other arguments, and pahole may have taken another function's prototype, or
 * none. scripts/btf_func compares each function with its debug information when the kernel
 * is built. Those for which .BTF has no right FUNC of their name are in .BTF.func, which is
 * split BTF over the object's .BTF. Its LOCSECs tell their addresses: "func.text" has
 * those in the section ".text".
 *
 *   address --bisection--> entry of its address and name  --> FUNC in .BTF.func
 *                   or     no entry                       --> FUNC of its name in .BTF
 *
 * A symbol that is only another name of a function has that one's FUNC. Of "void f(...)"
 * nothing is known.
 *
 * vmlinux has .BTF.func in its image, and it is parsed when the kernel boots. That of a module
 * is copied when it is loaded, and is gone with it; who got a struct btf_func has a
 * reference of the BTF.
 */
#include <linux/bpf.h>
#include <linux/bsearch.h>
#include <linux/btf.h>
#include <linux/btf_func.h>
#include <linux/cleanup.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include <asm/sections.h>

#include "btf_func.h"

/**
 * btf_func_is_sorted - can these entries of a section be searched?
 * @locs: the entries
 * @nr: their number
 * @size: of the section in bytes
 *
 * Context: Any.
 * Return: whether they are sorted by ids, each of which is there once, and by offset, and
 * are in the section.
 */
bool btf_func_is_sorted(const struct btf_loc *locs, u32 nr, u32 size)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		if (locs[i].offset >= size ||
		    (i && (locs[i].func <= locs[i - 1].func ||
			   locs[i].offset < locs[i - 1].offset)))
			return false;
	}
	return true;
}

/* "func.text" is the LOCSEC for functions in ".text". Return that name, or NULL. */
static const char *section_of(const struct btf *btf, const struct btf_type *t,
			      const struct btf_funcs_kind *kind)
{
	const char *name;

	if (!btf_type_is_locsec(t))
		return NULL;
	name = btf_name_by_offset(btf, t->name_off);
	if (strstarts(name, kind->prefix))
		name += strlen(kind->prefix);
	else if (!kind->prefix_optional)
		return NULL;
	return *name == '.' ? name : NULL;
}

/* Where a section of vmlinux or of a module is, and its size */
typedef unsigned long (*find_section_t)(const struct module *mod, const char *name, u32 *size);

/* Are these FUNCs and LOC_PROTOs? The BTF may be that of another base. */
static bool has_functions(const struct btf *btf, const struct btf_loc *locs, u32 nr,
			  const struct btf_funcs_kind *kind)
{
	const struct btf_type *t;
	u32 i;

	for (i = 0; i < nr; i++) {
		t = btf_type_by_id(btf, locs[i].func);
		if (!t || !btf_type_is_func(t) ||
		    (kind->own && locs[i].func < btf_nr_types(btf_base_btf(btf))))
			return false;
		t = btf_type_by_id(btf, t->type);
		if (!t || !btf_type_is_func_proto(t))
			return false;
		t = btf_type_by_id(btf, locs[i].loc_proto);
		if (locs[i].loc_proto && (!t || !btf_type_is_loc_proto(t)))
			return false;
	}
	return true;
}

/* Return the number of sections, and fill @funcs with them if it is not NULL. */
static int read_sections(struct btf_funcs *funcs, const struct btf *btf,
			 const struct module *mod, find_section_t find_section,
			 const struct btf_funcs_kind *kind)
{
	u32 id = btf_nr_types(btf_base_btf(btf)), nr = 0;
	struct btf_func_section *sec;
	const struct btf_type *t;
	const char *name;

	for (; id < btf_nr_types(btf); id++) {
		t = btf_type_by_id(btf, id);
		name = section_of(btf, t, kind);
		if (!name)
			continue;
		if (kind->kept_only && (!strcmp(name, ".init.text") || !strcmp(name, ".exit.text")))
			continue;
		if (funcs) {
			sec = &funcs->sections[nr];
			sec->nr = btf_type_vlen(t);
			sec->locs = btf_locsec_locs(t);
			sec->files = strcmp(name, ".init.text");
			sec->start = find_section(mod, name, &sec->size);
			if (sec->start && (!kind->is_sorted(sec->locs, sec->nr, sec->size) ||
					   !has_functions(btf, sec->locs, sec->nr, kind)))
				return -EINVAL;
		}
		nr++;
	}
	return nr;
}

/* Free what btf_funcs_new_module() returned. */
void btf_funcs_free(struct btf_funcs *funcs)
{
	if (!funcs)
		return;
	btf_put(funcs->btf);
	kvfree(funcs);
}

/* The reference of @btf is used up. */
static struct btf_funcs *funcs_new(struct btf *btf, const struct module *mod,
				   find_section_t find_section, const struct btf_funcs_kind *kind)
{
	int nr = read_sections(NULL, btf, mod, find_section, kind);
	struct btf_funcs *funcs = kvzalloc_flex(*funcs, sections, nr);

	if (!funcs) {
		btf_put(btf);
		return ERR_PTR(-ENOMEM);
	}
	funcs->btf = btf;
	funcs->nr_sections = nr;
	nr = read_sections(funcs, btf, mod, find_section, kind);
	if (nr < 0) {
		btf_funcs_free(funcs);
		return ERR_PTR(nr);
	}
	return funcs;
}

/*
 * vmlinux
 */

static unsigned long find_core_section(const struct module *mod, const char *name, u32 *size)
{
	if (!strcmp(name, ".text")) {
		*size = _etext - _stext;
		return (unsigned long)_stext;
	}
	if (!strcmp(name, ".init.text")) {
		*size = _einittext - _sinittext;
		return (unsigned long)_sinittext;
	}
	/* Nobody asks for code that is never called, or gone when the kernel has booted. */
	return 0;
}

static struct btf_funcs *parse_core(const struct btf_core_funcs *core)
{
	struct btf *owner = bpf_get_btf_vmlinux(), *btf;
	char name[MODULE_NAME_LEN];

	if (IS_ERR_OR_NULL(owner))
		return ERR_PTR(-ENODATA);
	snprintf(name, sizeof(name), "vmlinux.%s", core->kind->prefix);
	btf = btf_parse_split(owner, name, core->start, core->stop - core->start, false);
	return IS_ERR(btf) ? ERR_CAST(btf) :
	       funcs_new(btf, NULL, find_core_section, core->kind);
}

/* Parse a section of vmlinux, once. Return NULL if it cannot be used. */
const struct btf_funcs *btf_core_funcs(struct btf_core_funcs *core)
{
	static DEFINE_MUTEX(lock);
	/* Pairs with smp_store_release() below. */
	struct btf_funcs *funcs = smp_load_acquire(&core->funcs);

	if (!funcs) {
		guard(mutex)(&lock);
		funcs = core->funcs;
		if (!funcs) {
			funcs = parse_core(core);
			if (IS_ERR(funcs))
				pr_warn("BTF: .BTF.%s of vmlinux cannot be used: %ld\n",
					core->kind->prefix, PTR_ERR(funcs));
			/* There may be memory later. */
			if (funcs == ERR_PTR(-ENOMEM))
				return NULL;
			/* Pairs with smp_load_acquire() above. */
			smp_store_release(&core->funcs, funcs);
		}
	}
	return IS_ERR(funcs) ? NULL : funcs;
}

static const struct btf_funcs_kind func_kind = {
	.prefix = "func",
	.own = true,
	.is_sorted = btf_func_is_sorted,
};

static const struct btf_funcs *core_funcs(void)
{
	static struct btf_core_funcs core = {
		.kind = &func_kind,
		.start = __start_BTF_func,
		.stop = __stop_BTF_func,
	};

	return btf_core_funcs(&core);
}

/* From now on a search in the core kernel takes no lock. */
static int __init btf_func_init(void)
{
	core_funcs();
	return 0;
}
late_initcall(btf_func_init);

/*
 * Modules
 */

#ifdef CONFIG_DEBUG_INFO_BTF_MODULES
/*
 * Copy a section of a module that is being loaded. Without it the module's functions are
 * searched by name, so an error is only told.
 */
struct btf_funcs *btf_module_funcs(const struct module *mod, struct btf *owner,
				   const void *data, u32 size, const struct btf_funcs_kind *kind)
{
	char name[MODULE_NAME_LEN + 8];
	struct btf_funcs *funcs;
	struct btf *btf;

	if (!data)
		return NULL;
	snprintf(name, sizeof(name), "%s.%s", mod->name, kind->prefix);
	btf = btf_parse_split(owner, name, data, size, true);
	funcs = IS_ERR(btf) ? ERR_CAST(btf) : funcs_new(btf, mod, module_btf_section, kind);
	if (!IS_ERR(funcs))
		return funcs;
	pr_warn("BTF: .BTF.%s of module %s cannot be used: %ld\n", kind->prefix, mod->name,
		PTR_ERR(funcs));
	return NULL;
}

struct btf_funcs *btf_funcs_new_module(const struct module *mod, struct btf *owner)
{
	return btf_module_funcs(mod, owner, mod->btf_func_data, mod->btf_func_size, &func_kind);
}
#endif

/*
 * Search
 */

static const struct btf_func_section *find_section(const struct btf_funcs *funcs,
						   unsigned long addr)
{
	u32 i;

	for (i = 0; i < funcs->nr_sections; i++) {
		if (funcs->sections[i].start && addr >= funcs->sections[i].start &&
		    addr - funcs->sections[i].start < funcs->sections[i].size)
			return &funcs->sections[i];
	}
	return NULL;
}

/* Return the first entry of @sec that is not before @offset, or its end. */
static const struct btf_loc *first_entry(const struct btf_func_section *sec, u32 offset)
{
	u32 low = 0, high = sec->nr, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (sec->locs[mid].offset < offset)
			low = mid + 1;
		else
			high = mid;
	}
	return sec->locs + low;
}

#define for_each_entry_at(loc, sec, addr)						\
	for (loc = first_entry(sec, (addr) - (sec)->start);				\
	     loc < (sec)->locs + (sec)->nr && loc->offset == (addr) - (sec)->start; loc++)

/* What is "void f(...)" in .BTF.func is not described. */
static bool is_known(const struct btf *btf, u32 func_id)
{
	const struct btf_type *t = btf_type_by_id(btf, btf_type_by_id(btf, func_id)->type);

	return t->type || btf_type_vlen(t) != 1 || btf_params(t)->type;
}

/* What the entries of an address say. */
struct at_address {
	const struct btf_loc *named;	/* entry of the symbol's name */
	const struct btf_loc *other;	/* of another name of the function, which is known */
};

static struct at_address look_up(const struct btf_funcs *funcs, unsigned long addr,
				 const char *name)
{
	const struct btf_func_section *sec = find_section(funcs, addr);
	const struct btf_type *t;
	struct at_address at = {};
	const struct btf_loc *loc;

	if (!sec)
		return at;
	for_each_entry_at(loc, sec, addr) {
		t = btf_type_by_id(funcs->btf, loc->func);
		if (!strcmp(btf_name_by_offset(funcs->btf, t->name_off), name))
			at.named = loc;
		else if (!at.other && is_known(funcs->btf, loc->func))
			at.other = loc;
	}
	return at;
}

/* Find the FUNC of a name in the BTF of vmlinux or of a module. */
s32 btf_func_find_exact(const struct btf *owner, const char *name)
{
	s32 id = btf_find_by_name_kind_own(owner, name, BTF_KIND_FUNC);

	/* A module has no FUNC of its own if it would be the same as that of vmlinux. */
	return id > 0 ? id : btf_find_by_name_kind(owner, name, BTF_KIND_FUNC);
}

static int set_func(struct btf_func *func, struct btf *btf, u32 id, bool optimized)
{
	const struct btf_type *t = btf_type_by_id(btf, id);

	if (!t || !btf_type_is_func(t))
		return -ENOENT;
	t = btf_type_by_id(btf, t->type);
	if (!t || !btf_type_is_func_proto(t))
		return -ENOENT;
	btf_get(btf);
	*func = (struct btf_func){
		.btf = btf,
		.id = id,
		.proto = t,
		.optimized = optimized,
	};
	return 0;
}

/*
 * The search of btf_func_find() in one object. scripts/btf_func verifies this order, so
 * its index__resolve() has to be the same.
 */
int btf_funcs_find(const struct btf_funcs *funcs, struct btf *owner, unsigned long addr,
		   const char *name, struct btf_func *func)
{
	const struct btf_loc *loc;
	struct at_address at;
	s32 exact;

	if (!funcs)
		return -ENODATA;
	at = look_up(funcs, addr, name);
	if (at.named && !is_known(funcs->btf, at.named->func))
		return -ENOENT;
	exact = at.named ? 0 : btf_func_find_exact(owner, name);
	if (exact > 0)
		return set_func(func, owner, exact, false);
	loc = at.named ?: at.other;
	return loc ? set_func(func, funcs->btf, loc->func, loc->loc_proto) : -ENOENT;
}

/* Those of vmlinux are there for good, those of a module until unlock_funcs(). */
static const struct btf_funcs *lock_funcs(const struct btf *owner)
{
	return btf_is_vmlinux(owner) ? core_funcs() : btf_module_funcs_lock(owner);
}

static void unlock_funcs(const struct btf *owner)
{
	if (!btf_is_vmlinux(owner))
		btf_module_funcs_unlock();
}

/**
 * btf_func_find - find the FUNC of the function at an address
 * @owner: BTF of the object that the address is in: vmlinux, or a module
 * @addr: address of the function's symbol
 * @name: of that symbol
 * @func: the result; its BTF is to be put
 *
 * Context: Process. May sleep, unless @owner is that of vmlinux and the kernel has booted.
 * Return: 0; -ENOENT if the function's arguments are not known; -ENODATA if the object
 * was built without CONFIG_DEBUG_INFO_BTF_FUNC, so that there only is the FUNC of the
 * name in @owner, which may be another function's.
 */
int btf_func_find(struct btf *owner, unsigned long addr, const char *name,
		  struct btf_func *func)
{
	int ret = btf_funcs_find(lock_funcs(owner), owner, addr, name, func);

	unlock_funcs(owner);
	return ret;
}

/*
 * The path of the file that the function at @addr is from, or "". Where another file begins,
 * there is an entry with its path. Of init code that is so for ambiguous names only.
 */
static const char *file_of(const struct btf_funcs *funcs, unsigned long addr)
{
	const struct btf_func_section *sec = find_section(funcs, addr);
	const struct btf_loc *loc;
	const char *file = NULL;

	if (!sec)
		return "";
	for (loc = first_entry(sec, addr - sec->start + 1); !file && loc > sec->locs;) {
		struct btf_func func = { .btf = funcs->btf, .id = (--loc)->func };
		u32 nr = 0;

		if (!sec->files && loc->offset != addr - sec->start)
			break;
		file = btf_func_tag(&func, "file:", &nr);
	}
	return file ?: "";
}

/**
 * btf_func_file - find the source file of the function at an address
 * @owner: BTF of the object that the address is in: vmlinux, or a module
 * @addr: an address in the function
 * @file: gets the path in the source tree; its end, if it is longer than @size
 * @size: of @file in bytes
 *
 * Context: Process. May sleep.
 * Return: 0; -ENOENT if the file is not known; -ENODATA if the object was built without
 * CONFIG_DEBUG_INFO_BTF_FUNC.
 */
int btf_func_file(const struct btf *owner, unsigned long addr, char *file, size_t size)
{
	const struct btf_funcs *funcs = lock_funcs(owner);
	const char *path = funcs ? file_of(funcs, addr) : NULL;
	int ret = path ? -ENOENT : -ENODATA;

	if (path && *path) {
		strscpy(file, path + max_t(ssize_t, strlen(path) - size + 1, 0), size);
		ret = 0;
	}
	unlock_funcs(owner);
	return ret;
}

/* Return .BTF.func that @funcs are from, or NULL. @funcs has a reference of it. */
struct btf *btf_funcs_btf(const struct btf_funcs *funcs)
{
	return funcs ? funcs->btf : NULL;
}

/* Get .BTF.func of the object whose .BTF is @owner, or NULL. */
struct btf *btf_func_get_btf(const struct btf *owner)
{
	struct btf *btf = btf_funcs_btf(lock_funcs(owner));

	if (btf)
		btf_get(btf);
	unlock_funcs(owner);
	return btf;
}

static int compare_ids(const void *a, const void *b)
{
	const struct btf_loc *la = a, *lb = b;

	return la->func < lb->func ? -1 : la->func > lb->func;
}

static unsigned long address_of(const struct btf_funcs *funcs, u32 id, bool *optimized)
{
	const struct btf_func_section *sec = funcs->sections;
	const struct btf_loc key = { .func = id }, *loc;

	for (; sec < funcs->sections + funcs->nr_sections; sec++) {
		loc = bsearch(&key, sec->locs, sec->nr, sizeof(key), compare_ids);
		if (!loc)
			continue;
		*optimized = loc->loc_proto;
		return sec->start ? sec->start + loc->offset : 0;
	}
	return 0;
}

/*
 * Return the address of the function that FUNC @id of .BTF.func describes, or 0. Init code is
 * gone when the object has been initialized.
 */
unsigned long btf_func_address(const struct btf *btf, u32 id, bool *optimized)
{
	const struct btf *owner = btf_func_owner(btf);
	const struct btf_funcs *funcs = lock_funcs(owner);
	unsigned long addr = 0;

	*optimized = false;
	if (funcs && funcs->btf == btf && is_known(btf, id))
		addr = address_of(funcs, id, optimized);
	unlock_funcs(owner);
	return addr;
}

/* Return the lowest id of the FUNCs for the symbols at an address, or 0. */
u32 btf_func_first_id(const struct btf *btf, unsigned long addr)
{
	const struct btf *owner = btf_func_owner(btf);
	const struct btf_funcs *funcs = lock_funcs(owner);
	struct at_address at = {};

	/* No symbol has an empty name. */
	if (funcs && funcs->btf == btf)
		at = look_up(funcs, addr, "");
	unlock_funcs(owner);
	return at.other ? at.other->func : 0;
}

/**
 * btf_func_tag - iterate over the tags of a function
 * @func: what btf_func_find() found
 * @key: which tags: "file:" or "removed:"
 * @nr: where to go on, 0 at first
 *
 * The path of the source file is there if the name is not unique in the object. Removed are
 * parameters that are not passed, or are passed in pieces.
 *
 * Context: Any.
 * Return: the value of the next tag that begins with @key, or NULL.
 */
const char *btf_func_tag(const struct btf_func *func, const char *key, u32 *nr)
{
	const struct btf_type *t;
	const char *tag;

	/* The tags of a function come right after it. */
	for (;;) {
		t = btf_type_by_id(func->btf, func->id + ++*nr);
		if (!t || BTF_INFO_KIND(t->info) != BTF_KIND_DECL_TAG || t->type != func->id)
			return NULL;
		tag = btf_name_by_offset(func->btf, t->name_off);
		if (strstarts(tag, key))
			return tag + strlen(key);
	}
}
