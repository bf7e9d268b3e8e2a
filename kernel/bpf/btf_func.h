/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __BTF_FUNC_H
#define __BTF_FUNC_H

struct btf;
struct btf_func;

/* See gen_btf_o() of scripts/gen-btf.sh. */
extern char __start_BTF_func[], __stop_BTF_func[];
extern char __start_BTF_func_index[], __stop_BTF_func_index[];

/* In btf.c */
struct btf *btf_parse_split(struct btf *base, const char *name, const void *data, u32 size,
			    bool copy);
#ifdef CONFIG_DEBUG_INFO_BTF_MODULES
int btf_module_func_find(struct btf *owner, unsigned long addr, const char *name,
			 struct btf_func *func);
#else
static inline int btf_module_func_find(struct btf *owner, unsigned long addr,
				       const char *name, struct btf_func *func)
{
	return -ENODATA;
}
#endif

#endif /* __BTF_FUNC_H */
