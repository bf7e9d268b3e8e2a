/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SAMPLE_HIST_H
#define SAMPLE_HIST_H

#include <linux/types.h>

/* A row of the histogram: samples with the same cgroup, data source and cost */
struct hist_key {
	__u64 cgroup;
	__u64 data_src;		/* union perf_mem_data_src */
	__u32 cost;		/* log2 bucket of the weight: 0, 1, 2-3, 4-7, ... */
	__u32 __pad;
};

struct hist_value {
	__u64 samples;
	__u64 weight;		/* sum */
};

struct hist_counts {
	__u64 samples;
	__u64 no_room;		/* samples not in the histogram, which was full */
};

#define HIST_MAX_KEYS	10240

#endif
