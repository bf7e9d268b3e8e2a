// SPDX-License-Identifier: GPL-2.0
/*
 * Loads through a ctx pointer with a constant offset, in programs of types whose loads
 * are rewritten
 */

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "bpf_misc.h"

#define load_at_offset(type, name, ctx, member)				\
SEC(type)								\
__description(type ": load of " #member " at an offset")		\
__success								\
__naked void name##_##member(void)					\
{									\
	asm volatile ("							\
	r1 += %[off];							\
	r2 = *(u32 *)(r1 + 0);						\
	r1 = *(u32 *)(r1 + 0);						\
	r0 = 1;								\
	exit;								\
"	:								\
	: __imm_const(off, offsetof(struct ctx, member))		\
	: __clobber_all);						\
}

load_at_offset("tc", tc, __sk_buff, priority)
load_at_offset("tc", tc, __sk_buff, hash)
load_at_offset("xdp", xdp, xdp_md, rx_queue_index)
load_at_offset("socket", socket, __sk_buff, protocol)
load_at_offset("cgroup/skb", cgroup_skb, __sk_buff, mark)
load_at_offset("cgroup/connect4", connect4, bpf_sock_addr, user_port)
load_at_offset("cgroup/sock", sock, bpf_sock, protocol)
load_at_offset("cgroup/sysctl", sysctl, bpf_sysctl, write)
load_at_offset("cgroup/getsockopt", sockopt, bpf_sockopt, optname)
load_at_offset("sockops", sockops, bpf_sock_ops, local_port)
load_at_offset("sk_skb", sk_skb, __sk_buff, len)
load_at_offset("sk_lookup", sk_lookup, bpf_sk_lookup, local_port)
load_at_offset("sk_reuseport", sk_reuseport, sk_reuseport_md, hash)
load_at_offset("lwt_in", lwt_in, __sk_buff, mark)
load_at_offset("perf_event", perf_event, bpf_perf_event_data, sample_period)

SEC("tc")
__description("tc: load at an offset reads the field")
__success __retval(1)
__naked void tc_reads_ifindex(void)
{
	asm volatile ("					\
	r1 += 8;					\
	r0 = *(u32 *)(r1 + %[off]);			\
	exit;						\
"	:
	: __imm_const(off, offsetof(struct __sk_buff, ifindex) - 8)
	: __clobber_all);
}

SEC("tc")
__description("tc: load of a part of a field at an offset")
__success
__naked void tc_reads_part_of_ifindex(void)
{
	asm volatile ("					\
	r1 += 8;					\
	r0 = *(u8 *)(r1 + %[off]);			\
	exit;						\
"	:
	: __imm_const(off, offsetof(struct __sk_buff, ifindex) - 8)
	: __clobber_all);
}

SEC("tc")
__description("tc: load at two offsets")
__failure __msg("same insn reads the ctx at different offsets")
__naked void tc_two_offsets(void)
{
	asm volatile ("					\
	r2 = *(u32 *)(r1 + %[off]);			\
	if r2 == 0 goto l0_%=;				\
	r1 += 4;					\
l0_%=:	r0 = *(u32 *)(r1 + %[off]);			\
	exit;						\
"	:
	: __imm_const(off, offsetof(struct __sk_buff, len))
	: __clobber_all);
}

SEC("tc")
__description("tc: load at an offset behind the ctx")
__failure __msg("invalid bpf_context access")
__naked void tc_behind_the_ctx(void)
{
	asm volatile ("					\
	r1 += %[off];					\
	r0 = *(u32 *)(r1 + 0);				\
	exit;						\
"	:
	: __imm_const(off, sizeof(struct __sk_buff))
	: __clobber_all);
}

SEC("tc")
__description("tc: store at an offset")
__failure __msg("dereference of modified ctx ptr")
__naked void tc_store(void)
{
	asm volatile ("					\
	r0 = 0;						\
	r1 += %[off];					\
	*(u32 *)(r1 + 0) = r0;				\
	exit;						\
"	:
	: __imm_const(off, offsetof(struct __sk_buff, mark))
	: __clobber_all);
}

char _license[] SEC("license") = "GPL";
