/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __BTF_FUNC_H
#define __BTF_FUNC_H

struct btf;
struct btf_loc;
struct module;

/* What the places in a section of BTF are */
struct btf_funcs_kind {
	const char	*prefix;	/* of the LOCSECs' names, before the section's */
	bool		prefix_optional;
	bool		own;		/* no FUNC is one of the base */
	bool		kept_only;	/* no code that is gone later */
	bool		(*is_sorted)(const struct btf_loc *locs, u32 nr, u32 size);
};

/* The places in a section of text, sorted */
struct btf_func_section {
	unsigned long		start;		/* 0: nobody asks for these */
	u32			size;		/* in bytes */
	u32			nr;
	bool			files;		/* it is told where another file begins */
	const struct btf_loc	*locs;
};

struct btf_funcs {
	struct btf		*btf;
	u32			nr_sections;
	struct btf_func_section	sections[] __counted_by(nr_sections);
};

/* A section of vmlinux, parsed when somebody asks for it */
struct btf_core_funcs {
	const struct btf_funcs_kind	*kind;
	const char			*start;
	const char			*stop;
	struct btf_funcs		*funcs;		/* NULL: not parsed yet */
};

/* See gen_btf_o() of scripts/gen-btf.sh. */
extern char __start_BTF_func[], __stop_BTF_func[];
extern char __start_BTF_inline[], __stop_BTF_inline[];

/* In btf.c */
struct btf *btf_parse_split(struct btf *base, const char *name, const void *data, u32 size,
			    bool copy);

/* In btf_func.c */
bool btf_func_is_sorted(const struct btf_loc *locs, u32 nr, u32 size);
const struct btf_funcs *btf_core_funcs(struct btf_core_funcs *core);
struct btf_funcs *btf_module_funcs(const struct module *mod, struct btf *owner,
				   const void *data, u32 size, const struct btf_funcs_kind *kind);

/* In btf_inline.c */
bool btf_sites_are_sorted(const struct btf_loc *locs, u32 nr, u32 size);

/* For btf_func_attach.c */
struct btf *btf_func_get_btf(const struct btf *owner);
unsigned long btf_func_address(const struct btf *btf, u32 id, bool *optimized);
u32 btf_func_first_id(const struct btf *btf, unsigned long addr);
s32 btf_func_find_exact(const struct btf *owner, const char *name);
#ifdef CONFIG_DEBUG_INFO_BTF_MODULES
const struct btf_funcs *btf_module_funcs_lock(const struct btf *owner);
const struct btf_funcs *btf_module_sites_lock(const struct btf *owner);
void btf_module_funcs_unlock(void);
#else
static inline const struct btf_funcs *btf_module_funcs_lock(const struct btf *owner)
{
	return NULL;
}

static inline const struct btf_funcs *btf_module_sites_lock(const struct btf *owner)
{
	return NULL;
}

static inline void btf_module_funcs_unlock(void)
{
}
#endif

#endif /* __BTF_FUNC_H */
