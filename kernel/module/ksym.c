// SPDX-License-Identifier: GPL-2.0
/*
 * When does the text of a module come and go?
 *
 * Lookups of addresses in modules go through mod_tree, which has more than
 * text and knows the module. Here is only what makes perf's records of text:
 * registered before the first instruction can run, unregistered before the
 * memory can become something else. Init text goes earlier than core text.
 */

#include <linux/kallsyms_dynamic.h>
#include <linux/module.h>
#include <linux/string.h>
#include "internal.h"

static const unsigned char *build_id_of(struct module *mod)
{
	const unsigned char *build_id = module_buildid(mod);

	if (!build_id || !memchr_inv(build_id, 0, BUILD_ID_SIZE_MAX))
		return NULL;

	return build_id;
}

/*
 * From the section, and not from the memory, which begins with a GOT on s390:
 * readers map the section of the module's file there.
 */
static void add(struct kallsym_dyn_module *ksym, struct module *mod,
		enum mod_mem_type type, const void *section)
{
	const struct module_memory *mem = &mod->mem[type];

	if (!mem->size)
		return;

	if (section < mem->base || section >= mem->base + mem->size)
		section = mem->base;

	ksym->build_id = build_id_of(mod);
	ksym->sym = (struct kallsym_dyn){
		.start   = (unsigned long)section,
		.end     = (unsigned long)mem->base + mem->size,
		.name    = mod->name,
		.modname = mod->name,
		.type    = KALLSYM_DYN_MODULE,
		.flags   = KALLSYM_DYN_LIST_ONLY,
	};
	if (type == MOD_INIT_TEXT)
		ksym->sym.flags |= KALLSYM_DYN_INIT_TEXT;
	kallsym_dyn_register(&ksym->sym);
}

/*
 * Before anything in @mod can run; its text and its name are final. @text and
 * @init_text are its sections of these names, or NULL.
 */
void module_ksym_add(struct module *mod, const void *text,
		     const void *init_text)
{
	add(&mod->ksym, mod, MOD_TEXT, text);
	add(&mod->init_ksym, mod, MOD_INIT_TEXT, init_text);
}

/* The init text of @mod has run, and its memory is about to go. */
void module_ksym_del_init(struct module *mod)
{
	kallsym_dyn_unregister(&mod->init_ksym.sym);
}

/* The memory of @mod is about to go. What was not added, or went, is fine. */
void module_ksym_del(struct module *mod)
{
	kallsym_dyn_unregister(&mod->init_ksym.sym);
	kallsym_dyn_unregister(&mod->ksym.sym);
}
