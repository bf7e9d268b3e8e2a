/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_FETCH_H
#define __PERF_BPF_FETCH_H

#include <stdbool.h>

struct bpf_prog_info_node;
struct bpf_counts;
struct perf_env;

int perf_env__add_bpf_info(struct perf_env *env, int fd, struct bpf_counts *counts);
int perf_env__fetch_bpf_progs(struct perf_env *env,
			      int (*cb)(struct bpf_prog_info_node *node, void *data),
			      void *data, struct bpf_counts *counts);
void perf_env__read_bpf_runs(struct perf_env *env, int event);

#ifdef HAVE_LIBBPF_SUPPORT
bool bpf_progs__can_read(void);
#else
static inline bool bpf_progs__can_read(void)
{
	return false;
}
#endif

#endif /* __PERF_BPF_FETCH_H */
