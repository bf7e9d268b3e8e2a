// SPDX-License-Identifier: GPL-2.0
/* Loads from the sample in the context of BPF_PROG_TYPE_PERF_EVENT */

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "bpf_misc.h"

#define CTX_OFF(member)	offsetof(struct bpf_perf_event_data, member)

SEC("perf_event")
__description("perf_event ctx: fields of the sample")
__success
int sample_fields(struct bpf_perf_event_data *ctx)
{
	struct bpf_perf_sample_data *data = &ctx->data;

	return data->sample_flags + data->ip + data->pid + data->weight + data->data_src;
}

static __noinline __u64 weight_of(struct bpf_perf_event_data *ctx)
{
	return ctx->data.weight;
}

SEC("perf_event")
__description("perf_event ctx: field of the sample in a subprogram")
__success
int sample_field_in_subprog(struct bpf_perf_event_data *ctx)
{
	return weight_of(ctx) > 1000;
}

SEC("perf_event")
__description("perf_event ctx: part of a field")
__success
__naked void part_of_a_field(void)
{
	asm volatile ("					\
	r0 = *(u16 *)(r1 + %[off]);			\
	exit;						\
"	:
	: __imm_const(off, CTX_OFF(data.data_src) + 2)
	: __clobber_all);
}

SEC("perf_event")
__description("perf_event ctx: reject a load of two fields")
__failure __msg("invalid bpf_context access")
__naked void two_fields(void)
{
	asm volatile ("					\
	r0 = *(u64 *)(r1 + %[off]);			\
	exit;						\
"	:
	: __imm_const(off, CTX_OFF(data.pid))
	: __clobber_all);
}

SEC("perf_event")
__description("perf_event ctx: reject a load behind the last field")
__failure __msg("invalid bpf_context access")
__naked void behind_the_last_field(void)
{
	asm volatile ("					\
	r0 = *(u64 *)(r1 + %[off]);			\
	exit;						\
"	:
	: __imm_const(off, sizeof(struct bpf_perf_event_data))
	: __clobber_all);
}

SEC("perf_event")
__description("perf_event ctx: reject a store")
__failure __msg("invalid bpf_context access")
__naked void store_to_a_field(void)
{
	asm volatile ("					\
	r0 = 0;						\
	*(u64 *)(r1 + %[off]) = r0;			\
	exit;						\
"	:
	: __imm_const(off, CTX_OFF(data.weight))
	: __clobber_all);
}

char _license[] SEC("license") = "GPL";
