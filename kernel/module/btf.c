// SPDX-License-Identifier: GPL-2.0
/*
 * The BTF of a module's functions, and where their sections were loaded
 */
#include <linux/btf_func.h>
#include <linux/module.h>
#include <linux/string.h>

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

/* Find .BTF.func and .BTF.inline, which are in memory while the module is loaded. */
void module_find_btf_func(struct module *mod, const struct load_info *info)
{
	mod->btf_func_data = find_data(info, ".BTF.func", &mod->btf_func_size);
	mod->btf_inline_data = find_data(info, ".BTF.inline", &mod->btf_inline_size);
	mod->btf_func_info = info;
}

/**
 * module_btf_section - find a section of a module that is being loaded
 * @mod: the module
 * @name: of the section
 * @size: gets its size in bytes
 *
 * Context: Process, while the module is coming.
 * Return: its address; 0 if it was not loaded, or has no unique name.
 */
unsigned long module_btf_section(const struct module *mod, const char *name, u32 *size)
{
	const struct load_info *info = mod->btf_func_info;
	unsigned long addr = 0;
	unsigned int i;

	for (i = 1; i < info->hdr->e_shnum; i++) {
		if (!(info->sechdrs[i].sh_flags & SHF_ALLOC) ||
		    strcmp(info->secstrings + info->sechdrs[i].sh_name, name))
			continue;
		if (addr)
			return 0;
		addr = info->sechdrs[i].sh_addr;
		*size = info->sechdrs[i].sh_size;
	}
	return addr;
}
