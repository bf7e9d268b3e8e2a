/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_PROLOGUE_H
#define __PERF_BPF_PROLOGUE_H

#include <linux/bpf.h>
#include <linux/types.h>

struct probe_trace_arg;

#define BPF_PROLOGUE_MAX_ARGS	3	/* r3 to r5 */
#define BPF_PROLOGUE_MAX_INSNS	512

struct bpf_prologue_target {
	u16	e_machine;	/* the program runs on, EM_* */
	bool	user;		/* addresses are those of a user's task (a uprobe) */
	bool	retprobe;	/* when the function returns: its arguments are gone */

	/* The address of a symbol of the kernel, or 0. NULL: symbols are refused */
	u64	(*symbol)(const char *name, void *ctx);
	void	*ctx;
};

struct bpf_prologue {
	struct bpf_insn	insns[BPF_PROLOGUE_MAX_INSNS];
	int		cnt;
	char		error[256];	/* which argument, and why */
};

/* Code in front of a BPF program that fetches the arguments of a probe point */
int bpf_prologue__generate(struct bpf_prologue *prologue,
			   const struct bpf_prologue_target *target,
			   const struct probe_trace_arg *args, int nargs);

#endif /* __PERF_BPF_PROLOGUE_H */
