/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which bytes are the machine code of a BPF function?
 *
 * The kernel gives the code of a program in one piece, its functions one after
 * the other in the order of jited_ksyms and jited_func_lens, while perf has a
 * map, a dso and a symbol for each function. Everything in perf that reads the
 * code of a BPF function, to disassemble it, to print it or to decode a trace,
 * asks here for the part that is the function's.
 */
#ifndef __PERF_BPF_CODE_H
#define __PERF_BPF_CODE_H

#include <linux/types.h>

struct dso;
struct perf_bpil;

/**
 * struct bpf_code - the machine code of one function
 * @insns: its bytes; they belong to the perf_env and live as long
 * @len: how many
 * @addr: where the first one was in the recorded kernel
 */
struct bpf_code {
	const u8	*insns;
	u32		len;
	u64		addr;
};

#ifdef HAVE_LIBBPF_SUPPORT
int bpil__code(const struct perf_bpil *bpil, u32 sub_id, struct bpf_code *code);
int bpil__find_code(const struct perf_bpil *bpil, u64 addr, u32 *sub_id,
		    struct bpf_code *code);
int dso__bpf_code(struct dso *dso, struct bpf_code *code);
#else
#include <linux/compiler.h>
#include "annotate.h"

static inline int dso__bpf_code(struct dso *dso __maybe_unused,
				struct bpf_code *code __maybe_unused)
{
	return SYMBOL_ANNOTATE_ERRNO__BPF_NO_LIBBPF;
}
#endif

#endif /* __PERF_BPF_CODE_H */
