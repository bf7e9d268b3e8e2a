// SPDX-License-Identifier: GPL-2.0
/*
 * Where was a function inlined, and where are its parameters there?
 *
 * .BTF.inline is split BTF over the object's .BTF, made by scripts/btf_func or by pahole. Its
 * LOCSECs have an entry for each place, sorted by FUNC and by offset: that for ".text" is
 * named "inline.text", or as the section itself.
 *
 * vmlinux has it in its image, and it is parsed when somebody asks. That of a module is copied
 * when it is loaded.
 */
#include <linux/btf.h>
#include <linux/btf_func.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "btf_func.h"

/**
 * btf_sites_are_sorted - can these places of a section be searched?
 * @locs: the places
 * @nr: their number
 * @size: of the section in bytes
 *
 * Context: Any.
 * Return: whether they are sorted by ids, and those of one by offset, and are in the section.
 */
bool btf_sites_are_sorted(const struct btf_loc *locs, u32 nr, u32 size)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		if (locs[i].offset >= size ||
		    (i && (locs[i].func < locs[i - 1].func ||
			   (locs[i].func == locs[i - 1].func &&
			    locs[i].offset < locs[i - 1].offset))))
			return false;
	}
	return true;
}

static const struct btf_funcs_kind inline_kind = {
	.prefix = "inline",
	.prefix_optional = true,
	.kept_only = true,
	.is_sorted = btf_sites_are_sorted,
};

static const struct btf_funcs *core_sites(void)
{
	static struct btf_core_funcs core = {
		.kind = &inline_kind,
		.start = __start_BTF_inline,
		.stop = __stop_BTF_inline,
	};

	return btf_core_funcs(&core);
}

#ifdef CONFIG_DEBUG_INFO_BTF_MODULES
/* Copy .BTF.inline of a module that is being loaded. */
struct btf_funcs *btf_sites_new_module(const struct module *mod, struct btf *owner)
{
	return btf_module_funcs(mod, owner, mod->btf_inline_data, mod->btf_inline_size,
				&inline_kind);
}
#endif

/* Count the places where a FUNC named @name was inlined, and fill @sites if it is not NULL. */
static u32 find_sites(const struct btf_funcs *funcs, const char *name, struct btf_sites *sites)
{
	const struct btf_func_section *sec = funcs->sections;
	const struct btf_type *t;
	const struct btf_loc *loc;
	u32 func = 0, nr = 0;
	bool found = false;

	for (; sec < funcs->sections + funcs->nr_sections; sec++) {
		if (!sec->start)
			continue;
		for (loc = sec->locs; loc < sec->locs + sec->nr; loc++) {
			if (loc->func != func) {
				func = loc->func;
				t = btf_type_by_id(funcs->btf, func);
				found = !strcmp(btf_name_by_offset(funcs->btf, t->name_off), name);
			}
			if (!found)
				continue;
			if (sites)
				sites->sites[nr] = (struct btf_site){
					.addr = sec->start + loc->offset,
					.func = func,
					.loc_proto = loc->loc_proto,
				};
			nr++;
		}
	}
	return nr;
}

static struct btf_sites *copy_sites(const struct btf_funcs *funcs, const char *name)
{
	struct btf_sites *sites;
	u32 nr = find_sites(funcs, name, NULL);

	if (!nr)
		return ERR_PTR(-ENOENT);
	sites = kvzalloc_flex(*sites, sites, nr);
	if (!sites)
		return ERR_PTR(-ENOMEM);
	sites->nr = nr;
	find_sites(funcs, name, sites);
	btf_get(funcs->btf);
	sites->btf = funcs->btf;
	return sites;
}

/**
 * btf_func_sites - list the places where a function was inlined
 * @owner: BTF of the object that these are in: vmlinux, or a module
 * @name: of the function. Several may have it: each place tells its FUNC.
 *
 * Context: Process. May sleep.
 * Return: the places, sorted by FUNC and by address, for btf_sites_free(); ERR_PTR:
 * -ENOENT: there are none; -ENODATA: the object was built without
 * CONFIG_DEBUG_INFO_BTF_INLINE; -ENOMEM.
 */
struct btf_sites *btf_func_sites(struct btf *owner, const char *name)
{
	const struct btf_funcs *funcs = btf_is_vmlinux(owner) ? core_sites() :
					btf_module_sites_lock(owner);
	struct btf_sites *sites = funcs ? copy_sites(funcs, name) : ERR_PTR(-ENODATA);

	if (!btf_is_vmlinux(owner))
		btf_module_funcs_unlock();
	return sites;
}

/* Free what btf_func_sites() returned. */
void btf_sites_free(struct btf_sites *sites)
{
	if (IS_ERR_OR_NULL(sites))
		return;
	btf_put(sites->btf);
	kvfree(sites);
}

/**
 * btf_site_param - where a parameter is at a place
 * @sites: the places
 * @site: one of these
 * @nr: number of the parameter, from 0
 * @type: gets the LOC_PARAM: its size, and its vlen is the number of values
 *
 * Context: Any.
 * Return: what follows the LOC_PARAM, or NULL: the parameter is not there, or it is not known
 * where.
 */
const struct btf_loc_param *btf_site_param(const struct btf_sites *sites,
					   const struct btf_site *site, u32 nr,
					   const struct btf_type **type)
{
	const struct btf_type *proto = btf_type_by_id(sites->btf, site->loc_proto);
	const struct btf_type *t;

	if (!site->loc_proto || nr >= btf_type_vlen(proto))
		return NULL;
	t = btf_type_by_id(sites->btf, btf_loc_proto_params(proto)[nr]);
	if (!t || !btf_type_is_loc_param(t))
		return NULL;
	*type = t;
	return btf_loc_param(t);
}
