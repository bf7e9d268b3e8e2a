/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_METADATA_H
#define __PERF_BPF_METADATA_H

#include <linux/types.h>
#include "synthetic-events.h"

struct bpf_prog_info;

struct bpf_metadata {
	union perf_event *event;
	char		 **prog_names;
	__u64		 nr_prog_names;
};

struct bpf_metadata *bpf_metadata_create(struct bpf_prog_info *info);
void bpf_metadata_free(struct bpf_metadata *metadata);
int synthesize_perf_record_bpf_metadata(const struct bpf_metadata *metadata,
					const struct perf_tool *tool,
					perf_event__handler_t process,
					struct machine *machine);

#endif /* __PERF_BPF_METADATA_H */
