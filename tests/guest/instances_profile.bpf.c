// SPDX-License-Identifier: GPL-2.0
/* A program that runs for as many rounds as a prologue says, for instances_profile.c. */

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct xdp_md;

static __attribute__((noinline)) unsigned int mix(unsigned int n)
{
	return n * 31 + 7;
}

SEC("xdp")
int spin(struct xdp_md *ctx, unsigned long rounds)
{
	volatile unsigned int mixed = 1;

	for (unsigned long i = 0; i < rounds && i < 1000; i++)
		mixed = mix(mixed);
	return mixed & 1 ? XDP_PASS : XDP_DROP;
}

char _license[] SEC("license") = "GPL";
