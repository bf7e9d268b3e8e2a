/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __BTF_FUNC_H
#define __BTF_FUNC_H

struct btf;
struct btf_funcs;
struct btf_loc;

/* See gen_btf_o() of scripts/gen-btf.sh. */
extern char __start_BTF_func[], __stop_BTF_func[];

/* In btf.c */
struct btf *btf_parse_split(struct btf *base, const char *name, const void *data, u32 size,
			    bool copy);

/* In btf_func.c */
bool btf_func_is_sorted(const struct btf_loc *locs, u32 nr, u32 size);

/* For btf_func_attach.c */
struct btf *btf_func_get_btf(const struct btf *owner);
unsigned long btf_func_address(const struct btf *btf, u32 id, bool *optimized);
u32 btf_func_first_id(const struct btf *btf, unsigned long addr);
s32 btf_func_find_exact(const struct btf *owner, const char *name);
#ifdef CONFIG_DEBUG_INFO_BTF_MODULES
const struct btf_funcs *btf_module_funcs_lock(const struct btf *owner);
void btf_module_funcs_unlock(void);
#else
static inline const struct btf_funcs *btf_module_funcs_lock(const struct btf *owner)
{
	return NULL;
}

static inline void btf_module_funcs_unlock(void)
{
}
#endif

#endif /* __BTF_FUNC_H */
