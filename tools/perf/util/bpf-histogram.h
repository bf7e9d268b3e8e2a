/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_HISTOGRAM_H
#define __PERF_BPF_HISTOGRAM_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

#define BPF_HISTOGRAM_MAX_SLOTS	64

bool bpf_histogram__has_name(const char *name);
void bpf_histogram__fprintf(const u64 *slots, int nr, FILE *fp);

#endif /* __PERF_BPF_HISTOGRAM_H */
