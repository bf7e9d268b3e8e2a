// SPDX-License-Identifier: GPL-2.0
/* A program with a jump table: it returns 7, by the table's second target. */

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "bpf_misc.h"
#include "../../../include/linux/filter.h"

SEC("socket")
__naked int jump_table(void)
{
	asm volatile ("						\
	.pushsection .jumptables,\"\",@progbits;		\
table_%=:							\
	.quad first_%= - socket;				\
	.quad second_%= - socket;				\
	.size table_%=, 16;					\
	.global table_%=;					\
	.popsection;						\
								\
	r0 = table_%= ll;					\
	r0 += 8;						\
	r0 = *(u64 *)(r0 + 0);					\
	.8byte %[gotox_r0];					\
first_%=:							\
	r0 = 3;							\
	exit;							\
second_%=:							\
	r0 = 7;							\
	exit;							\
"	:
	: __imm_insn(gotox_r0, BPF_RAW_INSN(BPF_JMP | BPF_JA | BPF_X, BPF_REG_0, 0, 0, 0))
	: __clobber_all);
}

char _license[] SEC("license") = "GPL";
