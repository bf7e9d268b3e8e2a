// SPDX-License-Identifier: GPL-2.0
/*
 * Aggregates samples in a map, and lets every n-th pass to the ring buffer.
 *
 * The sample is read by plain loads from the context: no BTF of the kernel, no
 * helper, and no test whether a field is valid. Fields that the sample does not
 * have read as 0.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#include "sample_hist.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HIST_MAX_KEYS);
	__type(key, struct hist_key);
	__type(value, struct hist_value);
} hist SEC(".maps");

__u64 keep_every = 1;
struct hist_counts counts;

static __noinline __u32 bits_of(__u64 number)
{
	__u32 bits = 0;

	while (number && bits < 64) {
		number >>= 1;
		bits++;
	}
	return bits;
}

static __noinline void add_sample(struct bpf_perf_sample_data *data)
{
	struct hist_value first = { .samples = 1, .weight = data->weight };
	struct hist_key key = {
		.cgroup = data->cgroup,
		.data_src = data->data_src,
		.cost = bits_of(data->weight),
	};
	struct hist_value *value;

	value = bpf_map_lookup_elem(&hist, &key);
	if (!value) {
		if (!bpf_map_update_elem(&hist, &key, &first, BPF_NOEXIST))
			return;
		/* Another CPU was faster, or the map is full */
		value = bpf_map_lookup_elem(&hist, &key);
	}
	if (!value) {
		__sync_fetch_and_add(&counts.no_room, 1);
		return;
	}
	__sync_fetch_and_add(&value->samples, 1);
	__sync_fetch_and_add(&value->weight, first.weight);
}

SEC("perf_event")
int sum_up(struct bpf_perf_event_data *ctx)
{
	__u64 nr = __sync_fetch_and_add(&counts.samples, 1);

	add_sample(&ctx->data);
	return keep_every && nr % keep_every == 0;
}

char LICENSE[] SEC("license") = "GPL";
