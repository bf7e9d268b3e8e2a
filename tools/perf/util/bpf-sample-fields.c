// SPDX-License-Identifier: GPL-2.0
/*
 * Which fields of a sample a program of --bpf-prog reads, and which of them the event does
 * not have: these are 0 for the program, and nothing else tells.
 *
 * Follow the context from register to register, with what is added to it. A register that
 * has different values on two ways to an instruction is not followed, as the verifier
 * refuses most loads of these.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>
#include <stdlib.h>
#include <string.h>
#include "bpf-sample-prog.h"
#include "debug.h"
#include "evsel.h"

#define MAX_OFFSET	sizeof(struct bpf_perf_event_data)

/* Of an instruction: what each register is when it is reached */
struct regs {
	bool	reached;
	s32	offset[MAX_BPF_REG];	/* from the context, -1: something else */
};

struct scan {
	const struct bpf_insn	*insns;
	int			cnt;
	struct regs		*regs;
	int			*todo;		/* instructions to look at again */
	int			nr_todo;
	bool			*reads;		/* by offset */
};

static const struct field {
	const char	*name;
	size_t		offset;
	u64		sample_type;		/* any of these */
	const char	*option;		/* of perf record */
} fields[] = {
#define FIELD(name, type, option) \
	{ #name, offsetof(struct bpf_perf_event_data, name), type, option }
	FIELD(addr, PERF_SAMPLE_ADDR, "-d"),
	FIELD(data.time, PERF_SAMPLE_TIME, "-T"),
	FIELD(data.cpu, PERF_SAMPLE_CPU, "--sample-cpu"),
	FIELD(data.weight, PERF_SAMPLE_WEIGHT_TYPE, "-W"),
	FIELD(data.weight1, PERF_SAMPLE_WEIGHT_STRUCT, "-W"),
	FIELD(data.weight2, PERF_SAMPLE_WEIGHT_STRUCT, "-W"),
	FIELD(data.weight3, PERF_SAMPLE_WEIGHT_STRUCT, "-W"),
	FIELD(data.data_src, PERF_SAMPLE_DATA_SRC, "-d"),
	FIELD(data.txn, PERF_SAMPLE_TRANSACTION, "--transaction"),
	FIELD(data.phys_addr, PERF_SAMPLE_PHYS_ADDR, "--phys-data"),
	FIELD(data.data_page_size, PERF_SAMPLE_DATA_PAGE_SIZE, "--data-page-size"),
	FIELD(data.code_page_size, PERF_SAMPLE_CODE_PAGE_SIZE, "--code-page-size"),
	FIELD(data.cgroup, PERF_SAMPLE_CGROUP, "--all-cgroups"),
	FIELD(data.callchain_nr, PERF_SAMPLE_CALLCHAIN, "-g"),
	FIELD(data.branch_nr, PERF_SAMPLE_BRANCH_STACK, "-b"),
	FIELD(data.raw_size, PERF_SAMPLE_RAW, "--raw-samples"),
#undef FIELD
};

/* An instruction is reached with @from: look at it again if that tells something new. */
static void reach(struct scan *scan, int nr, const struct regs *from)
{
	struct regs *to;
	bool changed;

	if (nr < 0 || nr >= scan->cnt)
		return;
	to = &scan->regs[nr];
	changed = !to->reached;
	for (int i = 0; i < MAX_BPF_REG; i++) {
		s32 offset = !to->reached || to->offset[i] == from->offset[i] ? from->offset[i] : -1;

		changed |= offset != to->offset[i];
		to->offset[i] = offset;
	}
	to->reached = true;
	if (changed)
		scan->todo[scan->nr_todo++] = nr;
}

static void forget(struct regs *regs, int first, int last)
{
	for (int i = first; i <= last; i++)
		regs->offset[i] = -1;
}

static void call(struct scan *scan, int nr, struct regs *regs)
{
	const struct bpf_insn *insn = &scan->insns[nr];
	struct regs callee = *regs;

	forget(&callee, BPF_REG_6, BPF_REG_10);
	forget(&callee, BPF_REG_0, BPF_REG_0);
	if (insn->src_reg == BPF_PSEUDO_CALL)
		reach(scan, nr + 1 + insn->imm, &callee);
	forget(regs, BPF_REG_0, BPF_REG_5);
}

static s32 value_of_alu(const struct bpf_insn *insn, const struct regs *regs)
{
	s32 offset = regs->offset[insn->dst_reg];

	if (insn->code == (BPF_ALU64 | BPF_MOV | BPF_X) && !insn->off)
		return regs->offset[insn->src_reg];
	if (insn->code == (BPF_ALU64 | BPF_ADD | BPF_K) && offset >= 0 && insn->imm >= 0 &&
	    offset + (u64)insn->imm < MAX_OFFSET)
		return offset + insn->imm;
	return -1;
}

static void load(struct scan *scan, const struct bpf_insn *insn, struct regs *regs)
{
	s32 offset = regs->offset[insn->src_reg];

	if (offset >= 0 && offset + insn->off >= 0 && (size_t)(offset + insn->off) < MAX_OFFSET)
		scan->reads[offset + insn->off] = true;
	forget(regs, insn->dst_reg, insn->dst_reg);
}

/* Return: where a jump goes to */
static int target(const struct bpf_insn *insn, int nr)
{
	return nr + 1 + (insn->code == (BPF_JMP32 | BPF_JA) ? insn->imm : insn->off);
}

static void look_at(struct scan *scan, int nr)
{
	const struct bpf_insn *insn = &scan->insns[nr];
	struct regs regs = scan->regs[nr];
	u8 op = BPF_OP(insn->code);

	switch (BPF_CLASS(insn->code)) {
	case BPF_ALU64:
	case BPF_ALU:
		regs.offset[insn->dst_reg] = value_of_alu(insn, &regs);
		break;
	case BPF_LDX:
		load(scan, insn, &regs);
		break;
	case BPF_LD:
		forget(&regs, insn->dst_reg, insn->dst_reg);
		nr += insn->code == (BPF_LD | BPF_IMM | BPF_DW);
		break;
	case BPF_JMP:
	case BPF_JMP32:
		if (op == BPF_EXIT)
			return;
		if (op == BPF_CALL)
			call(scan, nr, &regs);
		else
			reach(scan, target(insn, nr), &regs);
		if (op == BPF_JA)
			return;
		break;
	default:
		break;
	}
	reach(scan, nr + 1, &regs);
}

/* Return: 0 or -ENOMEM; @reads: by the offset in the context */
static int find_reads(const struct bpf_program *prog, bool *reads)
{
	struct scan scan = {
		.insns = bpf_program__insns(prog),
		.cnt = bpf_program__insn_cnt(prog),
		.reads = reads,
	};
	struct regs first;

	/* What an instruction is reached with changes once for each register, and at first */
	scan.regs = calloc(scan.cnt, sizeof(*scan.regs));
	scan.todo = calloc(scan.cnt, (MAX_BPF_REG + 1) * sizeof(*scan.todo));
	forget(&first, 0, MAX_BPF_REG - 1);
	first.offset[BPF_REG_1] = 0;
	if (scan.regs && scan.todo)
		reach(&scan, 0, &first);
	while (scan.nr_todo)
		look_at(&scan, scan.todo[--scan.nr_todo]);
	free(scan.regs);
	free(scan.todo);
	return scan.regs && scan.todo ? 0 : -ENOMEM;
}

/* The kernel has the address of these anyway. */
static bool has_address(const struct perf_event_attr *attr)
{
	if (attr->type != PERF_TYPE_SOFTWARE)
		return attr->type == PERF_TYPE_BREAKPOINT;
	return attr->config == PERF_COUNT_SW_PAGE_FAULTS ||
	       attr->config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
	       attr->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ ||
	       attr->config == PERF_COUNT_SW_ALIGNMENT_FAULTS ||
	       attr->config == PERF_COUNT_SW_EMULATION_FAULTS;
}

/**
 * bpf_sample_fields__check - Warn of fields that a program reads and the event does not have
 * @prog: loaded
 * @evsel: with its final attributes
 * @path: of the program's file, for the messages
 *
 * Nothing is said of a program that reads sample_flags: it asks for itself.
 */
void bpf_sample_fields__check(const struct bpf_program *prog, struct evsel *evsel,
			      const char *path)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	bool reads[MAX_OFFSET] = {};

	if (find_reads(prog, reads) ||
	    reads[offsetof(struct bpf_perf_event_data, data.sample_flags)])
		return;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct field *field = &fields[i];

		if (!reads[field->offset] || (attr->sample_type & field->sample_type) ||
		    (field->sample_type == PERF_SAMPLE_ADDR && has_address(attr)))
			continue;
		pr_warning("--bpf-prog %s: %s reads %s, which is 0: samples of %s do not have it without %s\n",
			   path, bpf_program__name(prog), field->name, evsel__name(evsel),
			   field->option);
	}
}
