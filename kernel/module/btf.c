// SPDX-License-Identifier: GPL-2.0
/*
 * The BTF of a module's functions, and where their sections were loaded
 */
#include <linux/btf_func.h>
#include <linux/btf_func_index.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include "internal.h"

/* Find a section that is only in memory while the module is loaded. */
static void *find_data(const struct load_info *info, const char *name, unsigned int *size)
{
	unsigned int i;

	for (i = 1; i < info->hdr->e_shnum; i++) {
		if (info->sechdrs[i].sh_type != SHT_PROGBITS ||
		    (info->sechdrs[i].sh_flags & SHF_ALLOC) ||
		    strcmp(info->secstrings + info->sechdrs[i].sh_name, name))
			continue;
		*size = info->sechdrs[i].sh_size;
		return (void *)info->sechdrs[i].sh_addr;
	}
	*size = 0;
	return NULL;
}

/* Return the address of a section, 0 if it was not loaded, or has no unique name. */
static unsigned long find_text(const struct load_info *info, const char *name)
{
	unsigned long addr = 0;
	unsigned int i;

	for (i = 1; i < info->hdr->e_shnum; i++) {
		if (!(info->sechdrs[i].sh_flags & SHF_ALLOC) ||
		    strcmp(info->secstrings + info->sechdrs[i].sh_name, name))
			continue;
		if (addr)
			return 0;
		addr = info->sechdrs[i].sh_addr;
	}
	return addr;
}

/*
 * Find .BTF.func and .BTF.func_index, which are in memory while the module is loaded, and
 * write into the latter where each section of functions is now.
 */
void module_find_btf_func(struct module *mod, const struct load_info *info)
{
	unsigned int size;
	struct btf_func_index *index = find_data(info, ".BTF.func_index", &size);
	struct btf_func_section *sec;
	const char *names;
	u32 i;

	mod->btf_func_data = find_data(info, ".BTF.func", &mod->btf_func_size);
	mod->btf_func_index = NULL;
	if (!index)
		return;
	if (btf_func_index_check(index, size)) {
		pr_warn("%s: ignoring .BTF.func_index, which is not valid\n", mod->name);
		return;
	}
	sec = (void *)(index + 1);
	names = (void *)sec + index->nr_sections * sizeof(*sec) +
		index->nr_entries * sizeof(struct btf_func_entry);
	for (i = 0; i < index->nr_sections; i++, sec++)
		put_unaligned(find_text(info, names + sec->name), &sec->start);
	mod->btf_func_index = index;
}
