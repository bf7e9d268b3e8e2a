// SPDX-License-Identifier: GPL-2.0
/*
 * A program with an argument that its context does not have. instances_user.c loads it
 * as one instance for each place where the argument can be.
 */

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define MAX_POINTS 16

struct pt_regs;

/* By point: the sum of all values that were passed there. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_POINTS);
	__type(key, __u32);
	__type(value, __u64);
} sums SEC(".maps");

SEC("uprobe")
int sum_values(struct pt_regs *ctx, __u64 value)
{
	__u32 point = bpf_get_attach_cookie(ctx);
	__u64 *sum = bpf_map_lookup_elem(&sums, &point);

	if (sum)
		__sync_fetch_and_add(sum, value);
	return 0;
}

char _license[] SEC("license") = "GPL";
