// SPDX-License-Identifier: GPL-2.0
/*
 * bpf_loop() that has no iteration, for example because a constant of the program says
 * so: its callback is never verified and is removed as dead code.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "bpf_misc.h"

__u64 no_flags;

static int dead(__u32 i, void *ctx)
{
	*(int *)ctx += 1;
	return 0;
}

static int live(__u32 i, void *ctx)
{
	*(int *)ctx += 2;
	return 0;
}

SEC("tc")
__description("bpf_loop() without an iteration")
__success __retval(40)
int zero(struct __sk_buff *skb)
{
	int sum = 40;

	bpf_loop(0, dead, &sum, 0);
	return sum;
}

SEC("tc")
__description("bpf_loop() without an iteration, not inlined")
__success __retval(40)
int zero_flags_unknown(struct __sk_buff *skb)
{
	int sum = 40;

	bpf_loop(0, dead, &sum, no_flags);
	return sum;
}

SEC("tc")
__description("bpf_loop() without an iteration and one with another callback")
__success __retval(46)
int zero_and_three(struct __sk_buff *skb)
{
	int sum = 40;

	bpf_loop(0, dead, &sum, 0);
	bpf_loop(3, live, &sum, 0);
	return sum;
}

/* nothing comes behind dead() */
SEC("tc")
__description("bpf_loop() without an iteration after one with another callback")
__success __retval(46)
int three_and_zero(struct __sk_buff *skb)
{
	int sum = 40;

	bpf_loop(3, live, &sum, 0);
	bpf_loop(0, dead, &sum, 0);
	return sum;
}

SEC("tc")
__description("the same, not inlined")
__success __retval(46)
int three_and_zero_flags_unknown(struct __sk_buff *skb)
{
	int sum = 40;

	bpf_loop(3, live, &sum, 0);
	bpf_loop(0, dead, &sum, no_flags);
	return sum;
}

SEC("tc")
__description("bpf_loop() without an iteration and one with the same callback")
__success __retval(43)
int zero_and_three_same(struct __sk_buff *skb)
{
	int sum = 40;

	bpf_loop(0, dead, &sum, 0);
	bpf_loop(3, dead, &sum, 0);
	return sum;
}

SEC("tc")
__description("pointer to a callback that no call takes")
__success __retval(40)
int unused_pointer(struct __sk_buff *skb)
{
	asm volatile ("" :: "r"(dead));
	return 40;
}

char _license[] SEC("license") = "GPL";
