// SPDX-License-Identifier: GPL-2.0
/*
 * Report the text of modules to perf
 *
 * Lookups of addresses in modules use mod_tree, which covers more than text and
 * leads to the module. The symbols here only serve to write perf records. They
 * are registered before the first instruction can run, and unregistered before
 * the memory can be reused. Init text is unregistered before core text. Walks over
 * all symbols may still use them, so that is before the grace period after which a
 * module is freed.
 */

#include <linux/kallsyms_dynamic.h>
#include <linux/module.h>
#include <linux/string.h>
#include "internal.h"

static const unsigned char *module_ksym_build_id(struct module *mod)
{
	const unsigned char *build_id = module_buildid(mod);

	if (!build_id || !memchr_inv(build_id, 0, BUILD_ID_SIZE_MAX))
		return NULL;

	return build_id;
}

/*
 * The range starts at @section, because readers map that section of the module
 * file there. On s390 there is a GOT before it in the memory.
 */
static void module_ksym_register(struct kallsym_dyn_module *ksym, struct module *mod,
				 enum mod_mem_type type, const void *section)
{
	const struct module_memory *mem = &mod->mem[type];

	if (!mem->size)
		return;

	if (section < mem->base || section >= mem->base + mem->size)
		section = mem->base;

	ksym->build_id = module_ksym_build_id(mod);
	ksym->sym = (struct kallsym_dyn){
		.start   = (unsigned long)section,
		.end     = (unsigned long)mem->base + mem->size,
		.name    = mod->name,
		.modname = mod->name,
		.type    = KALLSYM_DYN_MODULE,
	};
	if (type == MOD_INIT_TEXT)
		ksym->sym.flags |= KALLSYM_DYN_INIT_TEXT;
	kallsym_dyn_register(&ksym->sym);
}

/*
 * Called before any code of @mod can run, when its text and name are final.
 * @text and @init_text are its .text and .init.text sections, or NULL.
 */
void module_ksym_add(struct module *mod, const void *text,
		     const void *init_text)
{
	module_ksym_register(&mod->ksym, mod, MOD_TEXT, text);
	module_ksym_register(&mod->init_ksym, mod, MOD_INIT_TEXT, init_text);
}

/* The init text of @mod has run, and its memory is about to be freed. */
void module_ksym_del_init(struct module *mod)
{
	kallsym_dyn_unregister(&mod->init_ksym.sym);
}

/* @mod is freed after a grace period. Symbols may not be registered. */
void module_ksym_del(struct module *mod)
{
	kallsym_dyn_unregister(&mod->init_ksym.sym);
	kallsym_dyn_unregister(&mod->ksym.sym);
}
