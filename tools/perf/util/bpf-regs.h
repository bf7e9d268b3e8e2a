/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_REGS_H
#define __PERF_BPF_REGS_H

#include <linux/types.h>

/* "%di", "$arg1", ...: its offset in bytes in the context of a BPF program, or -errno */
int bpf_regs__offset(u16 e_machine, const char *name);

#endif /* __PERF_BPF_REGS_H */
