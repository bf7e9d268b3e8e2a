/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_VARIABLES_H
#define __PERF_BPF_VARIABLES_H

struct bpf_object;

int bpf_variables__set(struct bpf_object *obj, const char *path, const char *values);

#endif /* __PERF_BPF_VARIABLES_H */
