// SPDX-License-Identifier: GPL-2.0
/*
 * A program for the samples of perf record --bpf-prog: it reads each sample from
 * ctx->data by plain loads, and counts. perf prints these variables at the end.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

__u64 samples;
__u64 in_kernel;
__u64 deepest_call_chain;

SEC("perf_event")
int look_at_sample(struct bpf_perf_event_data *ctx)
{
	__u64 depth = ctx->data.callchain_nr;

	__sync_fetch_and_add(&samples, 1);
	if ((__s64)ctx->data.ip < 0)
		__sync_fetch_and_add(&in_kernel, 1);
	if (depth > deepest_call_chain)
		deepest_call_chain = depth;
	return 1;
}

char _license[] SEC("license") = "GPL";
