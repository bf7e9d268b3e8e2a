// SPDX-License-Identifier: GPL-2.0
/* Programs that can't have instances, as others name them. */

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} own SEC(".maps");

SEC("socket")
int exclusive(void *ctx)
{
	__u32 key = 0;

	return !bpf_map_lookup_elem(&own, &key);
}

SEC("socket")
int called(void *ctx)
{
	return 1;
}

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__uint(key_size, sizeof(__u32));
	__array(values, int (void *));
} slots SEC(".maps") = {
	.values = { [1] = (void *)&called },
};

SEC("socket")
int caller(void *ctx)
{
	bpf_tail_call(ctx, &slots, 1);
	return 0;
}

SEC("struct_ops")
void BPF_PROG(member, struct sock *sk)
{
}

SEC(".struct_ops")
struct tcp_congestion_ops ops = {
	.init = (void *)member,
	.name = "bpf_instances",
};

char _license[] SEC("license") = "GPL";
