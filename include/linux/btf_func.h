/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_BTF_FUNC_H
#define _LINUX_BTF_FUNC_H

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/types.h>
#include <uapi/linux/bpf.h>

struct bpf_attach_target_info;
struct bpf_prog;
struct bpf_verifier_log;
struct btf;
struct btf_funcs;
struct btf_loc_param;
struct btf_type;
struct load_info;
struct module;

/**
 * struct btf_func - what BTF says of the function at an address
 * @btf: BTF object of @proto, to be put
 * @id: of the FUNC in @btf
 * @proto: its FUNC_PROTO
 * @optimized: each argument is in the register of its number, and the return value is not
 *	known: the compiler changed the arguments
 */
struct btf_func {
	struct btf		*btf;
	u32			id;
	const struct btf_type	*proto;
	bool			optimized;
};

/**
 * struct btf_site - a place where a function was inlined
 * @addr: of its first instruction there
 * @func: id of the FUNC
 * @loc_proto: id of the LOC_PROTO: where the parameters of the FUNC_PROTO are there; or 0
 */
struct btf_site {
	unsigned long	addr;
	u32		func;
	u32		loc_proto;
};

/**
 * struct btf_sites - the places where functions of a name were inlined
 * @btf: BTF object of the ids
 * @nr: number of places
 * @sites: the places
 */
struct btf_sites {
	struct btf	*btf;
	u32		nr;
	struct btf_site	sites[] __counted_by(nr);
};

/* The number that one or two values of a LOC_PARAM are */
static inline s64 btf_loc_value(const u32 *values, u32 nr, bool is_signed)
{
	if (nr > 1)
		return (u64)values[1] << 32 | values[0];
	return is_signed ? (s64)(s32)values[0] : (s64)values[0];
}

#ifdef CONFIG_DEBUG_INFO_BTF_INLINE
struct btf_sites *btf_func_sites(struct btf *owner, const char *name);
const struct btf_loc_param *btf_site_param(const struct btf_sites *sites,
					   const struct btf_site *site, u32 nr,
					   const struct btf_type **type);
void btf_sites_free(struct btf_sites *sites);

/* For kernel/bpf/btf.c */
struct btf_funcs *btf_sites_new_module(const struct module *mod, struct btf *owner);
#else
static inline struct btf_sites *btf_func_sites(struct btf *owner, const char *name)
{
	return ERR_PTR(-ENODATA);
}

static inline const struct btf_loc_param *btf_site_param(const struct btf_sites *sites,
							 const struct btf_site *site, u32 nr,
							 const struct btf_type **type)
{
	return NULL;
}

static inline void btf_sites_free(struct btf_sites *sites)
{
}

static inline struct btf_funcs *btf_sites_new_module(const struct module *mod,
						     struct btf *owner)
{
	return NULL;
}
#endif

#ifdef CONFIG_DEBUG_INFO_BTF_FUNC
int btf_func_find(struct btf *owner, unsigned long addr, const char *name,
		  struct btf_func *func);
int btf_func_file(const struct btf *owner, unsigned long addr, char *file, size_t size);
const char *btf_func_tag(const struct btf_func *func, const char *key, u32 *nr);

/* For the verifier and the trampolines */
struct btf *bpf_attach_btf(struct btf *btf, u32 id, enum bpf_attach_type type);
int bpf_attach_func_address(struct bpf_verifier_log *log, const struct bpf_prog *prog,
			    const struct btf *btf, u32 id, struct module *mod,
			    struct bpf_attach_target_info *tgt_info);
u32 bpf_attach_set_id(const struct btf *btf, u32 id);
u32 bpf_attach_key_id(struct btf *btf, u32 id);

/* For kernel/bpf/btf.c */
struct btf_funcs *btf_funcs_new_module(const struct module *mod, struct btf *owner);
void btf_funcs_free(struct btf_funcs *funcs);
struct btf *btf_funcs_btf(const struct btf_funcs *funcs);
int btf_funcs_find(const struct btf_funcs *funcs, struct btf *owner, unsigned long addr,
		   const char *name, struct btf_func *func);

/* For the module loader */
void module_find_btf_func(struct module *mod, const struct load_info *info);
unsigned long module_btf_section(const struct module *mod, const char *name, u32 *size);
#else
static inline int btf_func_find(struct btf *owner, unsigned long addr, const char *name,
				struct btf_func *func)
{
	return -ENODATA;
}

static inline int btf_func_file(const struct btf *owner, unsigned long addr, char *file,
				size_t size)
{
	return -ENODATA;
}

static inline const char *btf_func_tag(const struct btf_func *func, const char *key, u32 *nr)
{
	return NULL;
}

static inline struct btf *bpf_attach_btf(struct btf *btf, u32 id,
					 enum bpf_attach_type type)
{
	return btf;
}

static inline int bpf_attach_func_address(struct bpf_verifier_log *log,
					  const struct bpf_prog *prog, const struct btf *btf,
					  u32 id, struct module *mod,
					  struct bpf_attach_target_info *tgt_info)
{
	return -ENOENT;
}

static inline u32 bpf_attach_set_id(const struct btf *btf, u32 id)
{
	return id;
}

static inline u32 bpf_attach_key_id(struct btf *btf, u32 id)
{
	return id;
}

static inline struct btf_funcs *btf_funcs_new_module(const struct module *mod,
						     struct btf *owner)
{
	return NULL;
}

static inline void btf_funcs_free(struct btf_funcs *funcs)
{
}

static inline struct btf *btf_funcs_btf(const struct btf_funcs *funcs)
{
	return NULL;
}

static inline int btf_funcs_find(const struct btf_funcs *funcs, struct btf *owner,
				 unsigned long addr, const char *name, struct btf_func *func)
{
	return -ENODATA;
}

static inline void module_find_btf_func(struct module *mod, const struct load_info *info)
{
}
#endif

#endif /* _LINUX_BTF_FUNC_H */
