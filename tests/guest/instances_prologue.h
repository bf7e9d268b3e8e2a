/* SPDX-License-Identifier: GPL-2.0 */
/* A callback of bpf_program__instantiate(), for instances_faults.c and instances_profile.c */
#include <string.h>
#include <linux/bpf.h>
#include <bpf/libbpf.h>

#define ROUNDS 500

/*
 * The first instance has a prologue of one instruction, each of the next ones has one more.
 * They all set r2, the second argument, to ROUNDS. @ctx is the buffer for the code.
 */
static int prologue(const struct bpf_program *prog, __u32 idx, const struct bpf_insn *insns,
		    size_t insn_cnt, struct bpf_instance_code *code, void *ctx)
{
	const struct bpf_insn set_rounds = {
		.code = BPF_ALU64 | BPF_MOV | BPF_K,
		.dst_reg = BPF_REG_2,
		.imm = ROUNDS,
	};
	struct bpf_insn *buf = ctx;
	__u32 i;

	(void)prog;
	for (i = 0; i <= idx; i++)
		buf[i] = set_rounds;
	memcpy(buf + i, insns, insn_cnt * sizeof(*buf));
	code->insns = buf;
	code->insn_cnt = i + insn_cnt;
	code->prologue_cnt = i;
	return 0;
}
