// SPDX-License-Identifier: GPL-2.0
/*
 * One program in the ways that bench/instances compares: it gets three arguments, one in
 * a register and two in memory that a register points to, and adds them up by point.
 *
 * instance   a prologue passes the arguments
 * spec_hit   the cookie is that of a description in a map, read once a hit
 * spec_arg   the same, read once an argument, as bpf_usdt_arg() of libbpf's usdt.bpf.h does
 * hand_N     written for the layout N of the arguments
 * empty      does nothing
 */
#include <stddef.h>
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>

#include "instances_bench.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_POINTS);
	__type(key, __u32);
	__type(value, __u64);
} sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_LAYOUTS);
	__type(key, __u32);
	__type(value, struct layout);
} layouts SEC(".maps");

static __always_inline int add_up(__u32 point, __u64 err, __u64 a, __u64 b, __u64 c)
{
	__u64 *sum = bpf_map_lookup_elem(&sums, &point);

	if (sum && !err)
		*sum += !!a + b + c;
	return 0;
}

SEC("kprobe.multi")
int instance(void *ctx, __u64 err, __u64 a, __u64 b, __u64 c)
{
	return add_up(bpf_get_attach_cookie(ctx), err, a, b, c);
}

/* The same for an event of perf, of which each point has one. */
SEC("kprobe")
int instance_event(void *ctx, __u64 err, __u64 a, __u64 b, __u64 c)
{
	return add_up(bpf_get_attach_cookie(ctx), err, a, b, c);
}

static __always_inline int read_arg(void *ctx, const struct arg *arg, __u64 *value)
{
	__u16 reg_off = arg->reg_off;
	__u64 reg;

	/* the offset is not a constant: the verifier wants it read by the helper */
	if (bpf_probe_read_kernel(&reg, sizeof(reg), ctx + reg_off))
		return 1;
	switch (arg->kind) {
	case ARG_CONST:
		*value = arg->val_off;
		return 0;
	case ARG_REG:
		*value = reg;
		return 0;
	case ARG_REG_DEREF:
		return bpf_probe_read_kernel(value, sizeof(*value),
					     (void *)reg + arg->val_off) != 0;
	default:
		return 1;
	}
}

/* The cookie has the layout in its upper half, and the point in its lower. */
SEC("kprobe.multi")
int spec_hit(void *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), args[NR_ARGS] = {};
	__u32 id = cookie >> 32;
	struct layout *layout = bpf_map_lookup_elem(&layouts, &id);
	__u64 err = 0;
	int i;

	if (!layout)
		return 0;
#pragma unroll
	for (i = 0; i < NR_ARGS; i++)
		err |= read_arg(ctx, &layout->args[i], &args[i]);
	return add_up(cookie, err, args[0], args[1], args[2]);
}

SEC("kprobe.multi")
int spec_arg(void *ctx)
{
	__u64 args[NR_ARGS] = {}, err = 0;
	int i;

#pragma unroll
	for (i = 0; i < NR_ARGS; i++) {
		__u32 id = bpf_get_attach_cookie(ctx) >> 32;
		struct layout *layout = bpf_map_lookup_elem(&layouts, &id);

		if (!layout)
			return 0;
		err |= read_arg(ctx, &layout->args[i], &args[i]);
	}
	return add_up(bpf_get_attach_cookie(ctx), err, args[0], args[1], args[2]);
}

/* What a hit takes without anything done at it */
SEC("kprobe.multi")
int empty(void *ctx)
{
	return 0;
}

#define HAND(n)								\
SEC("?kprobe.multi")							\
int hand_##n(struct pt_regs *ctx)					\
{									\
	__u64 a = *(__u64 *)((void *)ctx + reg_off_of(n, 0));		\
	__u64 p = *(__u64 *)((void *)ctx + reg_off_of(n, 1));		\
	__u64 q = *(__u64 *)((void *)ctx + reg_off_of(n, 2));		\
	__u64 b = 0, c = 0, err = 0;					\
									\
	err |= bpf_probe_read_kernel(&b, 8, (void *)p + val_off_of(n, 1)) != 0; \
	err |= bpf_probe_read_kernel(&c, 8, (void *)q + val_off_of(n, 2)) != 0; \
	return add_up(bpf_get_attach_cookie(ctx), err, a, b, c);	\
}

#define HAND10(n) HAND(n##0) HAND(n##1) HAND(n##2) HAND(n##3) HAND(n##4) \
		  HAND(n##5) HAND(n##6) HAND(n##7) HAND(n##8) HAND(n##9)

HAND(0) HAND(1) HAND(2) HAND(3) HAND(4) HAND(5) HAND(6) HAND(7) HAND(8) HAND(9)
HAND10(1)
HAND10(2)
HAND10(3)
HAND10(4)
HAND10(5)
HAND10(6)
HAND10(7)
HAND10(8)

char _license[] SEC("license") = "GPL";
