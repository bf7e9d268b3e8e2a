/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Find the machine code of a BPF function.
 *
 * The kernel reports the code of a program in one piece: its functions follow one
 * another in the order of jited_ksyms and jited_func_lens. perf has a map, a dso
 * and a symbol for each function. All readers of the code of a BPF function, which
 * disassemble it, print it or decode a trace with it, use these functions to find
 * the bytes of that function.
 */
#ifndef __PERF_BPF_CODE_H
#define __PERF_BPF_CODE_H

#include <linux/types.h>

struct dso;
struct perf_bpil;

/**
 * struct bpf_code - the machine code of one function
 * @insns: its bytes, which belong to the perf_env and live as long
 * @len: number of bytes
 * @addr: memory address of the first byte, in the recorded kernel
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
bool bpil__has_same_code(const struct perf_bpil *left, u32 left_id,
			 const struct perf_bpil *right, u32 right_id);
#else
#include <linux/compiler.h>
#include "annotate.h"

static inline int dso__bpf_code(struct dso *dso __maybe_unused,
				struct bpf_code *code __maybe_unused)
{
	return SYMBOL_ANNOTATE_ERRNO__BPF_NO_LIBBPF;
}

static inline bool bpil__has_same_code(const struct perf_bpil *left __maybe_unused,
				       u32 left_id __maybe_unused,
				       const struct perf_bpil *right __maybe_unused,
				       u32 right_id __maybe_unused)
{
	return true;
}
#endif

#endif /* __PERF_BPF_CODE_H */
