/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SAMPLE_HIST_H
#define SAMPLE_HIST_H

#include <linux/types.h>

/* Samples that are alike: where the data was, for whom, and how much it cost. */
struct hist_key {
	__u64 cgroup;
	__u64 data_src;		/* union perf_mem_data_src */
	__u32 cost;		/* bits of the weight: 0, 1, 2 to 3, 4 to 7, ... */
	__u32 __pad;
};

struct hist_value {
	__u64 samples;
	__u64 weight;		/* sum */
};

struct hist_counts {
	__u64 samples;
	__u64 no_room;		/* of them, not in the histogram */
};

#define HIST_MAX_KEYS	10240

#endif
