// SPDX-License-Identifier: GPL-2.0
/*
 * Which loads from the context of a perf event does the verifier accept, and which
 * instructions does it replace them by?
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>

#include "kselftest_harness.h"
#include "lib/sample_ctx.h"

#define LOG_SIZE	4096
#define MAX_XLATED	64
#define TABLE_S		600	/* 1,400 programs, also where the verifier is slow */

/* Does a load of @size bytes at @off read a register, a field or a part of one? */
static bool load_is_valid(unsigned int off, unsigned int size)
{
	const struct ctx_field *field = ctx_field_at(off);

	if (off % size)
		return false;
	if (off < CTX_REGS_END)
		return size == sizeof(long);
	return field && off + size <= field->off + field->size;
}

static int load_one_access(struct bpf_insn access)
{
	const struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_2, 0),
		access,
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};

	return load_perf_prog(insns, ARRAY_SIZE(insns));
}

FIXTURE(context) {
	int prog;
	char log[LOG_SIZE];
};

FIXTURE_SETUP(context)
{
	self->prog = -1;
	if (geteuid())
		SKIP(return, "needs root");
	/* Registers of 32 bits do not end at a multiple of 8 bytes. */
	if (sizeof(long) != 8)
		SKIP(return, "the table of valid loads is for 64 bits");
}

FIXTURE_TEARDOWN(context)
{
	close_fd(&self->prog);
}

/* Loads of 1 to 8 bytes at each offset: registers, fields, parts, padding, and beyond. */
TEST_F_TIMEOUT(context, loads, TABLE_S)
{
	unsigned int off, size, allowed = 0, wrong = 0;

	for (size = 1; size <= 8; size *= 2) {
		for (off = 0; off < CTX_SIZE + 2 * sizeof(__u64); off++) {
			bool valid = load_is_valid(off, size), loaded;

			self->prog = load_one_access(BPF_LDX_MEM(bpf_size_of(size), BPF_REG_0,
								 BPF_REG_1, off));
			loaded = self->prog >= 0;
			if (loaded != valid) {
				TH_LOG("%u bytes at %u: %s", size, off,
				       loaded ? "allowed" : strerror(-self->prog));
				wrong++;
			}
			allowed += loaded;
			close_fd(&self->prog);
		}
	}
	TH_LOG("%u loads are allowed", allowed);
	EXPECT_EQ(0, wrong);
	EXPECT_GT(0, load_one_access(BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, -8)));
}

/* No part of the context can be written. */
TEST_F_TIMEOUT(context, stores, TABLE_S)
{
	unsigned int off, size;

	for (size = 1; size <= 8; size *= 2) {
		for (off = 0; off < CTX_SIZE; off += size) {
			self->prog = load_one_access(BPF_STX_MEM(bpf_size_of(size), BPF_REG_1,
								 BPF_REG_2, off));
			EXPECT_GT(0, self->prog) TH_LOG("%u bytes at %u are written", size, off);
			close_fd(&self->prog);
		}
	}
}

/* Load a program, and get the log of the verifier. */
static int load_with_log(const struct bpf_insn *insns, __u32 cnt, char *log)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .log_level = 1, .log_size = LOG_SIZE, .log_buf = log);

	log[0] = '\0';
	return bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, NULL, "GPL", insns, cnt, &opts);
}

/* A function reads two fields, through the context or through &ctx->data. */
TEST_F(context, subprograms)
{
	unsigned int behind;

	for (behind = 0; behind <= CTX_DATA; behind += CTX_DATA) {
		const unsigned int weight = offsetof(struct bpf_perf_event_data, data.weight);
		const unsigned int src = offsetof(struct bpf_perf_event_data, data.data_src);
		const struct bpf_insn insns[] = {
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, behind),
			BPF_CALL_REL(1),
			BPF_EXIT_INSN(),
			BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, weight - behind),
			BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_1, src - behind),
			BPF_ALU64_REG(BPF_ADD, BPF_REG_0, BPF_REG_1),
			BPF_EXIT_INSN(),
		};

		self->prog = load_with_log(insns, ARRAY_SIZE(insns), self->log);
		EXPECT_LE(0, self->prog) TH_LOG("behind %u: %s", behind, self->log);
		close_fd(&self->prog);
	}
}

/* One instruction cannot load different fields on different paths. */
TEST_F(context, two_fields_of_one_load)
{
	const struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_1, CTX_DATA),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_2, 0, 1),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, CTX_DATA),
		BPF_EXIT_INSN(),
	};

	self->prog = load_with_log(insns, ARRAY_SIZE(insns), self->log);
	EXPECT_EQ(-EINVAL, self->prog);
	EXPECT_NE(NULL, strstr(self->log, "different offsets")) TH_LOG("%s", self->log);
}

/* No helper accepts the context at an offset, and no load a variable offset. */
TEST_F(context, offsets_are_for_loads)
{
	const struct bpf_insn helper[] = {
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8),
		BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie),
		BPF_EXIT_INSN(),
	};
	const struct bpf_insn variable[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_1, CTX_DATA),
		BPF_ALU64_IMM(BPF_AND, BPF_REG_2, 8),
		BPF_ALU64_REG(BPF_ADD, BPF_REG_1, BPF_REG_2),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, CTX_DATA),
		BPF_EXIT_INSN(),
	};

	self->prog = load_perf_prog(helper, ARRAY_SIZE(helper));
	EXPECT_EQ(-EACCES, self->prog);
	close_fd(&self->prog);
	self->prog = load_perf_prog(variable, ARRAY_SIZE(variable));
	EXPECT_EQ(-EACCES, self->prog);
}

/* A program may read both the context and the kernel's structures. */
TEST_F(context, cast)
{
	int func = vmlinux_btf_id("bpf_cast_to_kern_ctx", BTF_KIND_FUNC);

	if (func < 0)
		SKIP(return, "no kfunc bpf_cast_to_kern_ctx() in the kernel's BTF");

	const struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
		BPF_CALL_KFUNC(func),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, sizeof(long)),	/* ->data */
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, 0),		/* ->sample_flags */
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, CTX_DATA),
		BPF_ALU64_REG(BPF_SUB, BPF_REG_0, BPF_REG_1),
		BPF_EXIT_INSN(),
	};

	self->prog = load_with_log(insns, ARRAY_SIZE(insns), self->log);
	EXPECT_LE(0, self->prog) TH_LOG("%s", self->log);
}

/* Read the translated instructions of @prog. Return: how many, or -errno. */
static int xlated_insns(int prog, struct bpf_insn *insns)
{
	struct bpf_prog_info info = {
		.xlated_prog_len = MAX_XLATED * sizeof(*insns),
		.xlated_prog_insns = (unsigned long)insns,
	};
	__u32 len = sizeof(info);
	int err = bpf_prog_get_info_by_fd(prog, &info, &len);

	return err ?: (int)(info.xlated_prog_len / sizeof(*insns));
}

#define LOAD(SIZE)	(BPF_LDX | BPF_MEM | BPF_##SIZE)
#define MOV_IMM		(BPF_ALU64 | BPF_MOV | BPF_K)
#define MOV_REG		(BPF_ALU64 | BPF_MOV | BPF_X)
#define ADD_IMM		(BPF_ALU64 | BPF_ADD | BPF_K)
#define RSH_IMM		(BPF_ALU64 | BPF_RSH | BPF_K)
#define AND32_IMM	(BPF_ALU | BPF_AND | BPF_K)
#define UNLESS_FLAG	(BPF_JMP | BPF_JSET | BPF_K)
#define IF_NULL		(BPF_JMP | BPF_JEQ | BPF_K)

static const struct xlated {
	unsigned int off, size, behind;
	__u8 codes[12];
} xlated[] = {
	/* a register, a field that is always valid, and fields that depend on a flag */
	{ 0, 8, 0, { LOAD(DW), LOAD(DW) } },
	{ offsetof(struct bpf_perf_event_data, sample_period), 8, 0, { LOAD(DW), LOAD(DW) } },
	{ offsetof(struct bpf_perf_event_data, data.data_src), 8, 0,
	  { LOAD(DW), LOAD(DW), LOAD(DW), UNLESS_FLAG, MOV_IMM } },
	{ offsetof(struct bpf_perf_event_data, data.pid), 4, 0,
	  { LOAD(DW), LOAD(DW), LOAD(W), UNLESS_FLAG, MOV_IMM } },
	/* a part of a field, and a field through a pointer at an offset */
	{ offsetof(struct bpf_perf_event_data, data.data_src) + 2, 2, 0,
	  { LOAD(DW), LOAD(DW), LOAD(DW), UNLESS_FLAG, MOV_IMM, RSH_IMM, AND32_IMM } },
	{ offsetof(struct bpf_perf_event_data, data.txn), 8, CTX_DATA,
	  { MOV_REG, ADD_IMM, LOAD(DW), LOAD(DW), LOAD(DW), UNLESS_FLAG, MOV_IMM } },
	/* a count that a pointer in the sample leads to */
	{ offsetof(struct bpf_perf_event_data, data.callchain_nr), 4, 0,
	  { LOAD(DW), LOAD(DW), LOAD(DW), UNLESS_FLAG, MOV_IMM, IF_NULL, LOAD(W) } },
	/* from the event, and from the event or its parent */
	{ offsetof(struct bpf_perf_event_data, data.stream_id), 8, 0, { LOAD(DW), LOAD(DW) } },
	{ offsetof(struct bpf_perf_event_data, data.id), 8, 0,
	  { LOAD(DW), LOAD(DW), IF_NULL, MOV_REG, LOAD(DW) } },
};

/* The instructions that replace each kind of load: not one too many, and no call. */
TEST_F(context, xlated)
{
	const unsigned int around = 2;	/* r1 += behind, exit */
	struct bpf_insn insns[MAX_XLATED];
	unsigned int i, j;
	int nr;

	for (i = 0; i < ARRAY_SIZE(xlated); i++) {
		const struct xlated *x = &xlated[i];
		const struct bpf_insn prog[] = {
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, x->behind),
			BPF_LDX_MEM(bpf_size_of(x->size), BPF_REG_0, BPF_REG_1, x->off - x->behind),
			BPF_EXIT_INSN(),
		};
		unsigned int want = strlen((const char *)x->codes);

		self->prog = load_perf_prog(prog, ARRAY_SIZE(prog));
		ASSERT_LE(0, self->prog);
		nr = xlated_insns(self->prog, insns);
		EXPECT_EQ(want + around, nr) TH_LOG("%u bytes at %u", x->size, x->off);
		for (j = 0; nr == (int)(want + around) && j < want; j++)
			EXPECT_EQ(x->codes[j], insns[1 + j].code)
				TH_LOG("%u bytes at %u, instruction %u", x->size, x->off, j);
		close_fd(&self->prog);
	}
}

/* Of a u64, the half with the low bits */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LOW_HALF	sizeof(__u32)
#else
#define LOW_HALF	0
#endif

/* Where the kernel has a field, and for counts, in what that points to */
static const struct {
	const char *name;
	const char *type, *member;
	unsigned int add;	/* to the offset of the value itself */
	const char *pointee, *count;
} sources[] = {
#define SAMPLE(FIELD, MEMBER, ADD)	{ FIELD, "perf_sample_data", MEMBER, ADD }
#define EVENT(FIELD, MEMBER, ADD)	{ FIELD, "perf_event", MEMBER, ADD }
#define COUNT(FIELD, MEMBER, POINTEE, NR, ADD)					\
	{ FIELD, "perf_sample_data", MEMBER, ADD, POINTEE, NR }
	SAMPLE("sample_period", "period", 0),
	SAMPLE("addr", "addr", 0),
	SAMPLE("data.sample_flags", "sample_flags", 0),
	SAMPLE("data.ip", "ip", 0),
	SAMPLE("data.pid", "tid_entry", 0),
	SAMPLE("data.tid", "tid_entry", sizeof(__u32)),
	SAMPLE("data.time", "time", 0),
	EVENT("data.id", "id", 0),
	EVENT("data.stream_id", "id", 0),
	SAMPLE("data.cpu", "cpu_entry", 0),
	EVENT("data.event_type", "orig_type", 0),
	EVENT("data.event_config", "attr", offsetof(struct perf_event_attr, config)),
	SAMPLE("data.weight", "weight", offsetof(union perf_sample_weight, full)),
	SAMPLE("data.weight1", "weight", offsetof(union perf_sample_weight, var1_dw)),
	SAMPLE("data.weight2", "weight", offsetof(union perf_sample_weight, var2_w)),
	SAMPLE("data.weight3", "weight", offsetof(union perf_sample_weight, var3_w)),
	SAMPLE("data.data_src", "data_src", 0),
	SAMPLE("data.txn", "txn", 0),
	SAMPLE("data.phys_addr", "phys_addr", 0),
	SAMPLE("data.data_page_size", "data_page_size", 0),
	SAMPLE("data.code_page_size", "code_page_size", 0),
	SAMPLE("data.cgroup", "cgroup", 0),
	COUNT("data.callchain_nr", "callchain", "perf_callchain_entry", "nr", LOW_HALF),
	COUNT("data.branch_nr", "br_stack", "perf_branch_stack", "nr", LOW_HALF),
	COUNT("data.raw_size", "raw", "perf_raw_record", "size", 0),
};

/* The offsets that a load of field @i reads from, in their order. Return: how many. */
static unsigned int wanted_offsets(unsigned int i, bool guarded, int *offs)
{
	const bool of_event = !strcmp(sources[i].type, "perf_event");
	unsigned int nr = 0;

	offs[nr++] = vmlinux_offset_of("bpf_perf_event_data_kern", of_event ? "event" : "data",
				       NULL);
	if (!strcmp(sources[i].name, "data.id"))
		offs[nr++] = vmlinux_offset_of("perf_event", "parent", NULL);
	if (guarded)
		offs[nr++] = vmlinux_offset_of("perf_sample_data", "sample_flags", NULL);
	offs[nr++] = vmlinux_offset_of(sources[i].type, sources[i].member, NULL);
	if (sources[i].pointee)
		offs[nr++] = vmlinux_offset_of(sources[i].pointee, sources[i].count, NULL);
	offs[nr - 1] += sources[i].add;
	return nr;
}

/*
 * Each field is read from its own place, under its own flags: no sample that a test can
 * get has a value other than 0 in all of them.
 */
TEST_F(context, places)
{
	struct bpf_insn insns[MAX_XLATED];
	unsigned int i;
	int j, nr;

	if (!vmlinux_btf)
		SKIP(return, "no BTF of the kernel: needs CONFIG_DEBUG_INFO_BTF");
	ASSERT_EQ(NR_CTX_FIELDS, ARRAY_SIZE(sources));
	for (i = 0; i < NR_CTX_FIELDS; i++) {
		const struct ctx_field *field = &ctx_fields[i];
		const struct bpf_insn prog[] = {
			BPF_LDX_MEM(bpf_size_of(field->size), BPF_REG_0, BPF_REG_1, field->off),
			BPF_EXIT_INSN(),
		};
		/* The handler sets it to 0 where the sample has none */
		const bool guarded = field->flags && strcmp(field->name, "addr");
		unsigned int loads = 0, guards = 0, wanted;
		int offs[8];

		ASSERT_STREQ(field->name, sources[i].name);
		self->prog = load_perf_prog(prog, ARRAY_SIZE(prog));
		ASSERT_LE(0, self->prog);
		nr = xlated_insns(self->prog, insns);
		ASSERT_LT(0, nr);
		wanted = wanted_offsets(i, guarded, offs);
		for (j = 0; j < nr; j++) {
			if (BPF_CLASS(insns[j].code) == BPF_LDX && loads < wanted)
				EXPECT_EQ(offs[loads++], insns[j].off)
					TH_LOG("%s, load %u", field->name, loads);
			if (insns[j].code == UNLESS_FLAG) {
				EXPECT_EQ(field->flags, (__u32)insns[j].imm)
					TH_LOG("%s", field->name);
				guards++;
			}
		}
		EXPECT_EQ(wanted, loads) TH_LOG("%s", field->name);
		EXPECT_EQ(guarded, guards) TH_LOG("%s", field->name);
		close_fd(&self->prog);
	}
}

TEST_HARNESS_MAIN
