// SPDX-License-Identifier: GPL-2.0
/*
 * bpf_loop() that has no iteration, for example because a constant of the program says
 * so: its callback is never verified and is removed as dead code.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "bpf_misc.h"

__u64 no_flags;

static int dead_before(__u32 i, int *sum)
{
	*sum += 1;
	return 0;
}

static int live(__u32 i, int *sum)
{
	*sum += 2;
	return 0;
}

static int dead_behind(__u32 i, int *sum)
{
	*sum += 4;
	return 0;
}

/* The functions stand in the program in the order of the calls here. */
static __always_inline int loops(__u64 flags)
{
	int sum = 40;

	bpf_loop(0, dead_before, &sum, flags);
	bpf_loop(0, live, &sum, flags);
	bpf_loop(3, live, &sum, flags);
	bpf_loop(0, dead_behind, &sum, flags);
	return sum;
}

SEC("tc")
__description("bpf_loop() without an iteration")
__success __retval(46)
int zero(struct __sk_buff *skb)
{
	return loops(0);
}

SEC("tc")
__description("bpf_loop() without an iteration, not inlined")
__success __retval(46)
int zero_flags_unknown(struct __sk_buff *skb)
{
	return loops(no_flags);
}

SEC("tc")
__description("pointer to a callback that no call takes")
__success __retval(46)
int unused_pointer(struct __sk_buff *skb)
{
	int sum = 40;

	bpf_loop(3, live, &sum, 0);
	asm volatile ("" :: "r"(dead_behind));
	return sum;
}

char _license[] SEC("license") = "GPL";
