/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _KERNEL_TRACE_BPF_PERF_SAMPLE_H
#define _KERNEL_TRACE_BPF_PERF_SAMPLE_H

#include <linux/bpf.h>

/* struct bpf_verifier_ops callbacks of BPF_PROG_TYPE_PERF_EVENT */
bool pe_prog_is_valid_access(int off, int size, enum bpf_access_type type,
			     const struct bpf_prog *prog,
			     struct bpf_insn_access_aux *info);
u32 pe_prog_convert_ctx_access(enum bpf_access_type type,
			       const struct bpf_insn *si,
			       struct bpf_insn *insn_buf,
			       struct bpf_prog *prog, u32 *target_size);

#endif
