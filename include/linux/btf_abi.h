/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_BTF_ABI_H
#define _LINUX_BTF_ABI_H

#include <linux/types.h>

struct btf;
struct btf_type;

int arch_btf_param_slot(const struct btf *btf, const struct btf_type *proto, int nr);
bool arch_btf_is_in_regs(const struct btf *btf, u32 id);
int arch_dwarf_reg_offset(u32 reg);

#endif /* _LINUX_BTF_ABI_H */
