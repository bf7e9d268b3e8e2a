// SPDX-License-Identifier: GPL-2.0
/*
 * Which FUNC of BTF is the function at this address?
 *
 * The name is not enough. Several functions may share it, clones that the compiler
 * made have other arguments, and pahole may have taken another function's prototype, or
 * none. scripts/btf_func compares each function with its debug information when the kernel
 * is built. Those for which .BTF has no right FUNC of their name are in .BTF.func, which is
 * split BTF over the object's .BTF, and .BTF.func_index tells their addresses:
 *
 *   address --bisection--> entry of its address and name  --> FUNC in .BTF.func
 *                   or     no entry                       --> FUNC of its name in .BTF
 *
 * A symbol that is only another name of a function has that one's FUNC.
 *
 * vmlinux has both sections in its image, and they are parsed when the kernel boots. Those
 * of a module are copied when it is loaded, and are gone with it; who got a struct
 * btf_func has a reference of the BTF.
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_func.h>
#include <linux/btf_func_index.h>
#include <linux/cleanup.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include <asm/sections.h>

#include "btf_func.h"

struct btf_funcs {
	struct btf			*btf;
	const struct btf_func_entry	*entries;
	void				*copy;		/* of the entries, or NULL */
	u32				nr_sections;
	struct btf_func_section		sections[] __counted_by(nr_sections);
};

static const struct btf_func_section *index_sections(const struct btf_func_index *index)
{
	return (const void *)(index + 1);
}

static const struct btf_func_entry *index_entries(const struct btf_func_index *index)
{
	return (const void *)(index_sections(index) + index->nr_sections);
}

static const char *index_names(const struct btf_func_index *index)
{
	return (const void *)(index_entries(index) + index->nr_entries);
}

static bool section_is_valid(const struct btf_func_index *index,
			     const struct btf_func_section *sec, u32 first)
{
	const struct btf_func_entry *e = index_entries(index) + sec->first;
	u32 i;

	if (sec->first != first || sec->nr > index->nr_entries - first ||
	    sec->name >= index->str_len)
		return false;
	for (i = 0; i < sec->nr; i++) {
		if (e[i].offset >= sec->size || (i && e[i].offset < e[i - 1].offset))
			return false;
	}
	return true;
}

/**
 * btf_func_index_check - is this a section .BTF.func_index that can be searched?
 * @data: the section
 * @size: its size in bytes
 *
 * Context: Any.
 * Return: 0, -EPROTO if it is of another version, or -EINVAL.
 */
int btf_func_index_check(const void *data, u32 size)
{
	const struct btf_func_index *index = data;
	u32 i, first = 0;
	u64 need;

	if (size < sizeof(*index) || index->magic != BTF_FUNC_INDEX_MAGIC)
		return -EINVAL;
	if (index->version != BTF_FUNC_INDEX_VERSION || index->flags)
		return -EPROTO;
	need = sizeof(*index) + (u64)index->nr_sections * sizeof(struct btf_func_section) +
	       (u64)index->nr_entries * sizeof(struct btf_func_entry) + index->str_len;
	if (need != size || (index->str_len && index_names(index)[index->str_len - 1]))
		return -EINVAL;
	for (i = 0; i < index->nr_sections; i++) {
		if (!section_is_valid(index, &index_sections(index)[i], first))
			return -EINVAL;
		first += index_sections(index)[i].nr;
	}
	return first == index->nr_entries ? 0 : -EINVAL;
}

static struct btf_funcs *funcs_alloc(const struct btf_func_index *index)
{
	struct btf_funcs *funcs = kvzalloc_flex(*funcs, sections, index->nr_sections);

	if (!funcs)
		return NULL;
	funcs->nr_sections = index->nr_sections;
	memcpy(funcs->sections, index_sections(index),
	       flex_array_size(funcs, sections, index->nr_sections));
	return funcs;
}

/* Free what btf_funcs_new_module() returned. */
void btf_funcs_free(struct btf_funcs *funcs)
{
	if (!funcs)
		return;
	btf_put(funcs->btf);
	kvfree(funcs->copy);
	kvfree(funcs);
}

/* An index that has no FUNC of its own has no .BTF.func. */
static int set_btf(struct btf_funcs *funcs, struct btf *owner, const char *object,
		   const void *data, u32 size, bool copy)
{
	char name[MODULE_NAME_LEN + 8];
	struct btf *btf;

	if (!size) {
		btf_get(owner);
		funcs->btf = owner;
		return 0;
	}
	snprintf(name, sizeof(name), "%s.func", object);
	btf = btf_parse_split(owner, name, data, size, copy);
	if (IS_ERR(btf))
		return PTR_ERR(btf);
	funcs->btf = btf;
	return 0;
}

/*
 * vmlinux
 */

static u64 core_section_start(const char *name)
{
	if (!strcmp(name, ".text"))
		return (unsigned long)_stext;
	if (!strcmp(name, ".init.text"))
		return (unsigned long)_sinittext;
	/* Nobody asks for code that is never called, or gone when the kernel has booted. */
	return 0;
}

static struct btf_funcs *parse_core(void)
{
	const struct btf_func_index *index = (void *)__start_BTF_func_index;
	struct btf *owner = bpf_get_btf_vmlinux();
	struct btf_funcs *funcs;
	int i, err;

	if (IS_ERR_OR_NULL(owner))
		return ERR_PTR(-ENODATA);
	err = btf_func_index_check(index, __stop_BTF_func_index - __start_BTF_func_index);
	if (err)
		return ERR_PTR(err);
	funcs = funcs_alloc(index);
	if (!funcs)
		return ERR_PTR(-ENOMEM);
	funcs->entries = index_entries(index);
	for (i = 0; i < funcs->nr_sections; i++)
		funcs->sections[i].start =
			core_section_start(index_names(index) + funcs->sections[i].name);
	err = set_btf(funcs, owner, "vmlinux", __start_BTF_func,
		      __stop_BTF_func - __start_BTF_func, false);
	if (err) {
		kvfree(funcs);
		return ERR_PTR(err);
	}
	return funcs;
}

/* NULL: not parsed yet */
static struct btf_funcs *core_index;

static const struct btf_funcs *core_funcs(void)
{
	static DEFINE_MUTEX(lock);
	/* Pairs with smp_store_release() below. */
	struct btf_funcs *funcs = smp_load_acquire(&core_index);

	if (!funcs) {
		guard(mutex)(&lock);
		funcs = core_index;
		if (!funcs) {
			funcs = parse_core();
			if (IS_ERR(funcs))
				pr_warn("BTF: .BTF.func of vmlinux cannot be used: %ld\n",
					PTR_ERR(funcs));
			/* Pairs with smp_load_acquire() above. */
			smp_store_release(&core_index, funcs);
		}
	}
	return IS_ERR(funcs) ? NULL : funcs;
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
 * Copy the sections of a module that is being loaded. Without them its functions are
 * searched by name, so an error is only told.
 */
struct btf_funcs *btf_funcs_new_module(const struct module *mod, struct btf *owner)
{
	const struct btf_func_index *index = mod->btf_func_index;
	struct btf_funcs *funcs;
	int err = -ENOMEM;

	if (!index)
		return NULL;
	funcs = funcs_alloc(index);
	if (!funcs)
		goto err;
	funcs->copy = kvmemdup(index_entries(index),
			       index->nr_entries * sizeof(struct btf_func_entry),
			       GFP_KERNEL | __GFP_NOWARN);
	if (!funcs->copy && index->nr_entries)
		goto err;
	funcs->entries = funcs->copy;
	err = set_btf(funcs, owner, mod->name, mod->btf_func_data, mod->btf_func_size, true);
	if (err)
		goto err;
	return funcs;
err:
	pr_warn("BTF: .BTF.func of module %s cannot be used: %d\n", mod->name, err);
	btf_funcs_free(funcs);
	return NULL;
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

/* Return the number of the first entry of @sec that is not before @offset. */
static u32 first_entry(const struct btf_funcs *funcs, const struct btf_func_section *sec,
		       u32 offset)
{
	u32 low = sec->first, high = sec->first + sec->nr, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (funcs->entries[mid].offset < offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static const char *func_name(const struct btf *btf, u32 id)
{
	const struct btf_type *t = btf_type_by_id(btf, id);

	return t && btf_type_is_func(t) ? btf_name_by_offset(btf, t->name_off) : "";
}

/* What the entries of an address say. */
struct at_address {
	u32 named;		/* entry of the symbol's name */
	u32 other;		/* of another name of the function */
	bool unknown;		/* what .BTF has for the name is wrong */
};

static struct at_address look_up(const struct btf_funcs *funcs, unsigned long addr,
				 const char *name)
{
	const struct btf_func_section *sec = find_section(funcs, addr);
	struct at_address at = {};
	u32 i, offset, id;

	if (!sec)
		return at;
	offset = addr - sec->start;
	for (i = first_entry(funcs, sec, offset);
	     i < sec->first + sec->nr && funcs->entries[i].offset == offset; i++) {
		id = funcs->entries[i].id;
		if (id & BTF_FUNC_FILE)
			continue;
		if (!id)
			at.unknown = true;
		else if (!strcmp(func_name(funcs->btf, id & ~BTF_FUNC_OPTIMIZED), name))
			at.named = id;
		else if (!at.other)
			at.other = id;
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

static int set_func(struct btf_func *func, struct btf *btf, u32 id)
{
	const struct btf_type *t = btf_type_by_id(btf, id & ~BTF_FUNC_OPTIMIZED);

	if (!t || !btf_type_is_func(t))
		return -ENOENT;
	t = btf_type_by_id(btf, t->type);
	if (!t || !btf_type_is_func_proto(t))
		return -ENOENT;
	btf_get(btf);
	*func = (struct btf_func){
		.btf = btf,
		.id = id & ~BTF_FUNC_OPTIMIZED,
		.proto = t,
		.optimized = id & BTF_FUNC_OPTIMIZED,
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
	struct at_address at;
	s32 exact;

	if (!funcs)
		return -ENODATA;
	at = look_up(funcs, addr, name);
	if (at.named)
		return set_func(func, funcs->btf, at.named);
	exact = btf_func_find_exact(owner, name);
	if (exact > 0)
		return at.unknown ? -ENOENT : set_func(func, owner, exact);
	return at.other ? set_func(func, funcs->btf, at.other) : -ENOENT;
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

/* The path of the file that the function at @addr is from, or "" */
static const char *file_of(const struct btf_funcs *funcs, unsigned long addr)
{
	const struct btf_func_section *sec = find_section(funcs, addr);
	u32 i;

	if (!sec)
		return "";
	for (i = first_entry(funcs, sec, addr - sec->start + 1); i > sec->first; i--) {
		if (funcs->entries[i - 1].id & BTF_FUNC_FILE)
			return btf_name_by_offset(funcs->btf,
						  funcs->entries[i - 1].id & ~BTF_FUNC_FILE);
	}
	return "";
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
	return funcs && btf_func_owner(funcs->btf) ? funcs->btf : NULL;
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

static unsigned long only_address(const struct btf_funcs *funcs, u32 id, bool *optimized)
{
	const struct btf_func_section *sec = funcs->sections;
	unsigned long addr = 0, start;
	u32 i;

	for (; sec < funcs->sections + funcs->nr_sections; sec++) {
		for (i = sec->first; i < sec->first + sec->nr; i++) {
			if ((funcs->entries[i].id & ~BTF_FUNC_OPTIMIZED) != id)
				continue;
			start = sec->start ? sec->start + funcs->entries[i].offset : 0;
			if (!start || (addr && addr != start))
				return 0;
			addr = start;
			*optimized |= funcs->entries[i].id & BTF_FUNC_OPTIMIZED;
		}
	}
	return addr;
}

/*
 * Return the address of the function that FUNC @id of .BTF.func describes, or 0 if it
 * describes several. Init code is gone when the object has been initialized.
 */
unsigned long btf_func_address(const struct btf *btf, u32 id, bool *optimized)
{
	const struct btf *owner = btf_func_owner(btf);
	const struct btf_funcs *funcs = lock_funcs(owner);
	unsigned long addr;

	*optimized = false;
	addr = funcs && funcs->btf == btf ? only_address(funcs, id, optimized) : 0;
	unlock_funcs(owner);
	return addr;
}

static u32 lowest_id(const struct btf_funcs *funcs, unsigned long addr)
{
	const struct btf_func_section *sec = find_section(funcs, addr);
	u32 i, offset, id, lowest = 0;

	if (!sec)
		return 0;
	offset = addr - sec->start;
	for (i = first_entry(funcs, sec, offset);
	     i < sec->first + sec->nr && funcs->entries[i].offset == offset; i++) {
		id = funcs->entries[i].id & ~BTF_FUNC_OPTIMIZED;
		if (id && !(id & BTF_FUNC_FILE) && (!lowest || id < lowest))
			lowest = id;
	}
	return lowest;
}

/* Return the lowest id of the FUNCs for the symbols at an address, or 0. */
u32 btf_func_first_id(const struct btf *btf, unsigned long addr)
{
	const struct btf *owner = btf_func_owner(btf);
	const struct btf_funcs *funcs = lock_funcs(owner);
	u32 id = funcs && funcs->btf == btf ? lowest_id(funcs, addr) : 0;

	unlock_funcs(owner);
	return id;
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
