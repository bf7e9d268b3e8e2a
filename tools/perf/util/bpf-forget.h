/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_FORGET_H
#define __PERF_BPF_FORGET_H

#include <linux/compiler.h>
#include <linux/types.h>

struct bpf_prog_info_node;
struct dso;
struct perf_env;

#ifdef HAVE_LIBBPF_SUPPORT
void dso__hold_bpf_info(struct dso *dso, struct bpf_prog_info_node *info);
void dso__put_bpf_info(struct dso *dso);
void perf_env__bpf_prog_unloaded(struct perf_env *env, u32 id);
#else
static inline void dso__put_bpf_info(struct dso *dso __maybe_unused) { }
#endif

#endif /* __PERF_BPF_FORGET_H */
