// SPDX-License-Identifier: GPL-2.0
/* A program for libbpf_open.c: no sample passes, and it is known to have run. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 runs, cookie;

SEC("perf_event")
int count(void *ctx)
{
	__sync_fetch_and_add(&runs, 1);
	cookie = bpf_get_attach_cookie(ctx);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
