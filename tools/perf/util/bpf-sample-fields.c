// SPDX-License-Identifier: GPL-2.0
/*
 * Which fields of a sample a program of --bpf-prog reads, and which of them the event does
 * not have: these are 0 for the program, and nothing else tells.
 *
 * Follow the context from register to register, and to the stack and back, with what is
 * added to it. What differs on two ways to an instruction is not followed, as the verifier
 * refuses most loads from it.
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

#define NR_SLOTS	(512 / 8)	/* of the stack: MAX_BPF_STACK in linux/filter.h */

/* Of an instruction: what registers, and words of the stack, are when it is reached */
struct regs {
	bool	reached, in_todo;
	s16	offset[MAX_BPF_REG + NR_SLOTS];	/* from the context, -1: something else */
};

struct scan {
	const struct bpf_insn	*insns;
	int			cnt;
	struct regs		*regs;
	int			*todo;		/* instructions to look at again, each once */
	int			nr_todo;
	bool			*reads;		/* by offset */
};

static const struct field {
	const char	*name;
	size_t		offset, size;
	u64		sample_type;		/* any of these */
	const char	*option;		/* of perf record */
} fields[] = {
#define FIELD(name, type, option) \
	{ #name, offsetof(struct bpf_perf_event_data, name), \
	  sizeof(((struct bpf_perf_event_data *)0)->name), type, option }
	FIELD(addr, PERF_SAMPLE_ADDR, "-d"),
	FIELD(data.time, PERF_SAMPLE_TIME, "-T"),
	FIELD(data.cpu, PERF_SAMPLE_CPU, "--sample-cpu"),
	FIELD(data.weight, PERF_SAMPLE_WEIGHT_TYPE, "-W"),
	FIELD(data.weight1, PERF_SAMPLE_WEIGHT_TYPE, "-W"),
	FIELD(data.weight2, PERF_SAMPLE_WEIGHT_TYPE, "-W"),
	FIELD(data.weight3, PERF_SAMPLE_WEIGHT_TYPE, "-W"),
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
	for (size_t i = 0; i < ARRAY_SIZE(to->offset); i++) {
		bool same = !to->reached || to->offset[i] == from->offset[i];
		s16 offset = same ? from->offset[i] : -1;

		changed |= offset != to->offset[i];
		to->offset[i] = offset;
	}
	to->reached = true;
	if (changed && !to->in_todo)
		scan->todo[scan->nr_todo++] = nr;
	to->in_todo |= changed;
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

	forget(&callee, BPF_REG_6, MAX_BPF_REG + NR_SLOTS - 1);
	forget(&callee, BPF_REG_0, BPF_REG_0);
	if (insn->src_reg == BPF_PSEUDO_CALL)
		reach(scan, nr + 1 + insn->imm, &callee);
	forget(regs, BPF_REG_0, BPF_REG_5);
}

/* Return: the index of a word of the stack in struct regs, -1 if it is none. */
static int stack_slot(const struct bpf_insn *insn, int base)
{
	bool is_word = base == BPF_REG_10 && insn->off < 0 && insn->off % 8 == 0 &&
		       BPF_SIZE(insn->code) == BPF_DW && BPF_MODE(insn->code) == BPF_MEM;

	return is_word && insn->off / -8 <= NR_SLOTS ? MAX_BPF_REG + insn->off / -8 - 1 : -1;
}

/* What is written in another way than a word is, by the verifier's rules, no pointer then */
static void store(const struct bpf_insn *insn, struct regs *regs)
{
	int slot = stack_slot(insn, insn->dst_reg);

	if (slot >= 0)
		regs->offset[slot] = BPF_CLASS(insn->code) == BPF_STX ?
				     regs->offset[insn->src_reg] : -1;
	else if (insn->dst_reg == BPF_REG_10 && insn->off < 0 && insn->off >= -512)
		regs->offset[MAX_BPF_REG + (-insn->off - 1) / 8] = -1;
}

static s16 value_of_alu(const struct bpf_insn *insn, const struct regs *regs)
{
	s16 offset = regs->offset[insn->dst_reg];

	if (insn->code == (BPF_ALU64 | BPF_MOV | BPF_X) && !insn->off)
		return regs->offset[insn->src_reg];
	if (insn->code == (BPF_ALU64 | BPF_ADD | BPF_K) && offset >= 0 && insn->imm >= 0 &&
	    offset + (u64)insn->imm < MAX_OFFSET)
		return offset + insn->imm;
	return -1;
}

static void load(struct scan *scan, const struct bpf_insn *insn, struct regs *regs)
{
	static const int sizes[] = {
		[BPF_W >> 3] = 4, [BPF_H >> 3] = 2, [BPF_B >> 3] = 1, [BPF_DW >> 3] = 8,
	};
	s32 offset = regs->offset[insn->src_reg] + insn->off;

	for (int i = 0; regs->offset[insn->src_reg] >= 0 && i < sizes[BPF_SIZE(insn->code) >> 3];
	     i++) {
		if (offset + i >= 0 && (size_t)(offset + i) < MAX_OFFSET)
			scan->reads[offset + i] = true;
	}
	offset = stack_slot(insn, insn->src_reg);
	regs->offset[insn->dst_reg] = offset >= 0 ? regs->offset[offset] : -1;
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

	/* Arguments on the stack have a number behind those of registers */
	if (insn->dst_reg >= MAX_BPF_REG || insn->src_reg >= MAX_BPF_REG) {
		reach(scan, nr + 1, &regs);
		return;
	}
	switch (BPF_CLASS(insn->code)) {
	case BPF_ALU64:
	case BPF_ALU:
		regs.offset[insn->dst_reg] = value_of_alu(insn, &regs);
		break;
	case BPF_LDX:
		load(scan, insn, &regs);
		break;
	case BPF_STX:
	case BPF_ST:
		store(insn, &regs);
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

	scan.regs = calloc(scan.cnt, sizeof(*scan.regs));
	scan.todo = calloc(scan.cnt, sizeof(*scan.todo));
	forget(&first, 0, ARRAY_SIZE(first.offset) - 1);
	first.offset[BPF_REG_1] = 0;
	if (scan.regs && scan.todo)
		reach(&scan, 0, &first);
	while (scan.nr_todo) {
		int nr = scan.todo[--scan.nr_todo];

		scan.regs[nr].in_todo = false;
		look_at(&scan, nr);
	}
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

		if (!memchr(&reads[field->offset], true, field->size) ||
		    (attr->sample_type & field->sample_type) ||
		    (field->sample_type == PERF_SAMPLE_ADDR && has_address(attr)))
			continue;
		pr_warning("--bpf-prog %s: %s reads %s, which is 0: samples of %s do not have it without %s\n",
			   path, bpf_program__name(prog), field->name, evsel__name(evsel),
			   field->option);
	}
}
