// SPDX-License-Identifier: GPL-2.0
/*
 * Does a BPF program read the same values as the record of the sample has?
 *
 * The program copies all fields of its context to a map, one copy per sample, and
 * lets the sample be written. The n-th copy is compared with the n-th record, for
 * each kind of event of this machine, with all sample types, with each one alone,
 * and with none. A field that the sample does not have reads 0.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "lib/bpf_event.h"
#include "lib/sample_ctx.h"
#include "lib/sample_ring.h"
#include "lib/test_env.h"

#define MAX_SEEN	32
#define MAX_TRIES	200
#define MAX_STACK	8	/* lets MAX_SEEN records fit in the ring */
#define MAX_INSNS	1024
#define CLOCK_PERIOD_NS	500000
#define SPIN_NS		(MAX_SEEN * CLOCK_PERIOD_NS)

#define ALL_TYPES	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |	\
			 PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |			\
			 PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_CPU |		\
			 PERF_SAMPLE_PERIOD | PERF_SAMPLE_STREAM_ID |		\
			 PERF_SAMPLE_RAW | PERF_SAMPLE_WEIGHT |			\
			 PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |	\
			 PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP |		\
			 PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE)

/* The context behind the registers */
struct copy {
	__u64 sample_period;
	__u64 addr;
	struct bpf_perf_sample_data data;
};

static_assert(sizeof(struct copy) == CTX_SIZE - CTX_REGS_END, "all but the registers");

struct copies {
	__u64 nr;
	struct copy copy[MAX_SEEN];
};

static long watched;	/* by the breakpoint */

static void watch_memory(void)
{
	int i;

	for (i = 0; i < MAX_SEEN / 2; i++)
		__atomic_store_n(&watched, i, __ATOMIC_RELAXED);
}

static void spin(void)
{
	__u64 end = now_ns() + SPIN_NS;

	while (now_ns() < end)
		;
}

static void fault(void)
{
	fault_pages(MAX_SEEN / 2);
}

static void sleep_often(void)
{
	int i;

	for (i = 0; i < MAX_SEEN / 2; i++)
		usleep(1000);
}

static const struct source {
	const char *name;
	__u32 type;
	__u64 config, period;
	void (*make)(void);
} sources[] = {
	{ "page faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1, fault },
	{ "context switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 1, sleep_often },
	{ "cpu clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, CLOCK_PERIOD_NS, spin },
	{ "task clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, CLOCK_PERIOD_NS, spin },
	{ "breakpoint", PERF_TYPE_BREAKPOINT, 0, 1, watch_memory },
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1000000, spin },
};

#define NR_SOURCES	ARRAY_SIZE(sources)

static struct perf_event_attr source_attr(const struct source *source, __u64 sample_type)
{
	struct perf_event_attr attr = sw_event_attr(source->config);

	attr.type = source->type;
	attr.sample_period = source->period;
	attr.sample_type = sample_type;
	attr.sample_max_stack = MAX_STACK;
	if (source->type == PERF_TYPE_BREAKPOINT) {
		attr.bp_type = HW_BREAKPOINT_W;
		attr.bp_addr = (unsigned long)&watched;
		attr.bp_len = HW_BREAKPOINT_LEN_8;
	}
	return attr;
}

/* How a program copies: in loads of at most @chunk bytes, from the context + @behind. */
struct way {
	unsigned int chunk, behind;
};

static const struct way ways[] = {
	{ 8, 0 }, { 4, 0 }, { 2, 0 }, { 1, 0 }, { 8, CTX_DATA }, { 1, CTX_REGS_END },
};

#define NR_WAYS		ARRAY_SIZE(ways)

static int copy_fields(struct bpf_insn *insns, const struct way *way)
{
	unsigned int i, at, nr = 0;

	for (i = 0; i < NR_CTX_FIELDS; i++) {
		const struct ctx_field *f = &ctx_fields[i];
		unsigned int bytes = f->size < way->chunk ? f->size : way->chunk;

		for (at = f->off; at < f->off + f->size; at += bytes) {
			insns[nr++] = BPF_LDX_MEM(bpf_size_of(bytes), BPF_REG_2, BPF_REG_6,
						  at - way->behind);
			insns[nr++] = BPF_STX_MEM(bpf_size_of(bytes), BPF_REG_7, BPF_REG_2,
						  offsetof(struct copies, copy) +
						  at - CTX_REGS_END);
		}
	}
	return nr;
}

/* Copies each sample to @map, struct copies, until it is full. */
static int load_copier(int map, const struct way *way)
{
	const struct bpf_insn begin[] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_6, way->behind),
		BPF_LD_MAP_VALUE(BPF_REG_7, map, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_8, BPF_REG_7, 0),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_JMP_IMM(BPF_JLT, BPF_REG_8, MAX_SEEN, 1),
		BPF_EXIT_INSN(),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_8),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 1),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_2, 0),
		BPF_ALU64_IMM(BPF_MUL, BPF_REG_8, sizeof(struct copy)),
		BPF_ALU64_REG(BPF_ADD, BPF_REG_7, BPF_REG_8),
	};
	struct bpf_insn insns[MAX_INSNS];
	unsigned int nr = ARRAY_SIZE(begin);

	memcpy(insns, begin, sizeof(begin));
	nr += copy_fields(insns + nr, way);
	insns[nr++] = BPF_EXIT_INSN();
	return load_perf_prog(insns, nr);
}

/* The first and the second half of a word of the record */
static __u32 first(const __u64 *word)
{
	__u32 half;

	memcpy(&half, word, sizeof(half));
	return half;
}

static __u32 second(const __u64 *word)
{
	__u32 half;

	memcpy(&half, (const char *)word + sizeof(half), sizeof(half));
	return half;
}

/* Return: the fields of the record @p of a sample with @type. */
static struct copy read_record(const __u64 *p, __u64 type)
{
	struct copy c = {};

	if (type & PERF_SAMPLE_IP)
		c.data.ip = *p++;
	if (type & PERF_SAMPLE_TID) {
		c.data.pid = first(p);
		c.data.tid = second(p++);
	}
	if (type & PERF_SAMPLE_TIME)
		c.data.time = *p++;
	if (type & PERF_SAMPLE_ADDR)
		c.addr = *p++;
	if (type & PERF_SAMPLE_ID)
		c.data.id = *p++;
	if (type & PERF_SAMPLE_STREAM_ID)
		c.data.stream_id = *p++;
	if (type & PERF_SAMPLE_CPU)
		c.data.cpu = first(p++);
	if (type & PERF_SAMPLE_PERIOD)
		c.sample_period = *p++;
	if (type & PERF_SAMPLE_CALLCHAIN) {
		c.data.callchain_nr = *p;
		p += *p + 1;
	}
	if (type & PERF_SAMPLE_RAW) {
		/* the size of an empty raw sample is 4 */
		c.data.raw_size = first(p) == 4 ? 0 : first(p);
		p += (first(p) + sizeof(__u32)) / sizeof(*p);
	}
	if (type & WEIGHT_TYPES) {
		const union perf_sample_weight *weight = (const void *)p++;

		c.data.weight = weight->full;
		c.data.weight1 = weight->var1_dw;
		c.data.weight2 = weight->var2_w;
		c.data.weight3 = weight->var3_w;
	}
	if (type & PERF_SAMPLE_DATA_SRC)
		c.data.data_src = *p++;
	if (type & PERF_SAMPLE_TRANSACTION)
		c.data.txn = *p++;
	if (type & PERF_SAMPLE_PHYS_ADDR)
		c.data.phys_addr = *p++;
	if (type & PERF_SAMPLE_CGROUP)
		c.data.cgroup = *p++;
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		c.data.data_page_size = *p++;
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		c.data.code_page_size = *p++;
	return c;
}

static __u64 field_of(const struct copy *c, const struct ctx_field *f)
{
	const char *at = (const char *)c + f->off - CTX_REGS_END;

	return f->size == 8 ? *(const __u64 *)at : f->size == 4 ? *(const __u32 *)at :
	       *(const __u16 *)at;
}

/* Is @f in a record with @type, or known from the event? */
static bool is_in_record(const struct ctx_field *f, __u64 type)
{
	if (f->off == offsetof(struct bpf_perf_event_data, sample_period))
		return type & PERF_SAMPLE_PERIOD;
	if (f->off == offsetof(struct bpf_perf_event_data, data.id) ||
	    f->off == offsetof(struct bpf_perf_event_data, data.stream_id) ||
	    f->off == offsetof(struct bpf_perf_event_data, data.event_type) ||
	    f->off == offsetof(struct bpf_perf_event_data, data.event_config))
		return true;
	return f->flags & type;
}

/* A run of a program, and the results of all runs so far */
struct run {
	struct ring ring;
	struct copies *copies;
	int map, prog;
	unsigned int nr_samples, nr_wrong;
};

FIXTURE(fields) {
	struct run run;
};

FIXTURE_SETUP(fields)
{
	self->run.ring.event = -1;
	self->run.map = -1;
	self->run.prog = -1;
	if (geteuid())
		SKIP(return, "needs root");
	self->run.copies = calloc(1, sizeof(*self->run.copies));
	ASSERT_NE(NULL, self->run.copies);
}

FIXTURE_TEARDOWN(fields)
{
	ring__close(&self->run.ring);
	close_fd(&self->run.prog);
	close_fd(&self->run.map);
	free(self->run.copies);
}

static void check_copy(struct __test_metadata *_metadata, struct run *run,
		       const struct source *source, const struct copy *copy,
		       const struct copy *want, __u64 type)
{
	const __u64 flags = copy->data.sample_flags;
	unsigned int i;

	EXPECT_EQ(type, flags & type);
	for (i = 0; i < NR_CTX_FIELDS; i++) {
		const struct ctx_field *f = &ctx_fields[i];
		__u64 got = field_of(copy, f);

		if (is_in_record(f, type) ? got == field_of(want, f) :
					    !f->flags || (f->flags & flags) || !got)
			continue;
		TH_LOG("%s, type %llx, flags %llx: %s is %llx, not %llx", source->name,
		       type, flags, f->name, got, field_of(want, f));
		run->nr_wrong++;
	}
}

static void check_copies(struct __test_metadata *_metadata, struct run *run,
			 const struct source *source, __u64 type)
{
	const __u64 *record;
	__u64 id, at = 0;
	unsigned int i;

	ASSERT_EQ(0, event_ioctl(run->ring.event, PERF_EVENT_IOC_ID, (long)&id));
	ASSERT_EQ(0, bpf_map_lookup_elem(run->map, &zero, run->copies));
	for (i = 0; i < run->copies->nr; i++) {
		struct copy want;

		record = ring__next_sample(&run->ring, &at);
		ASSERT_NE(NULL, record);
		want = read_record(record, type);
		if (type & PERF_SAMPLE_ID)
			EXPECT_EQ(id, want.data.id);
		want.data.id = id;
		if (!(type & PERF_SAMPLE_STREAM_ID))
			want.data.stream_id = id;	/* no child */
		want.data.event_type = source->type;
		want.data.event_config = source->config;
		check_copy(_metadata, run, source, &run->copies->copy[i], &want, type);
	}
	run->nr_samples += i;
}

/*
 * Repeat @make until the program has seen a sample: a clock does not run while this
 * process is not running. Return: 0 or -errno.
 */
static int make_samples(struct run *run, void (*make)(void))
{
	int i, err = 0;

	run->copies->nr = 0;
	for (i = 0; !err && !run->copies->nr && i < MAX_TRIES; i++) {
		make();
		err = bpf_map_lookup_elem(run->map, &zero, run->copies);
	}
	return err;
}

/* Return: the number of samples, or -errno if this machine has no such event. */
static int record_samples(struct __test_metadata *_metadata, struct run *run,
			  const struct source *source, const struct way *way, __u64 type)
{
	struct perf_event_attr attr = source_attr(source, type);
	unsigned int before = run->nr_samples;
	int err = ring__open(&run->ring, &attr);

	if (err)
		return err;
	run->map = value_map(sizeof(struct copies));
	EXPECT_LE(0, run->map);
	run->prog = load_copier(run->map, way);
	EXPECT_LE(0, run->prog);
	EXPECT_EQ(0, event_ioctl(run->ring.event, PERF_EVENT_IOC_SET_BPF, run->prog));
	EXPECT_EQ(0, event_ioctl(run->ring.event, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_EQ(0, make_samples(run, source->make));
	EXPECT_EQ(0, event_ioctl(run->ring.event, PERF_EVENT_IOC_DISABLE, 0));
	check_copies(_metadata, run, source, type);
	ring__close(&run->ring);
	close_fd(&run->prog);
	close_fd(&run->map);
	return run->nr_samples - before;
}

/* All sample types, read in each way */
TEST_F_TIMEOUT(fields, equal_the_record, TEST_S)
{
	unsigned int s, w, events = 0;

	for (s = 0; s < NR_SOURCES; s++) {
		int nr = 0;

		for (w = 0; w < NR_WAYS && nr >= 0; w++) {
			nr = record_samples(_metadata, &self->run, &sources[s],
					    &ways[w], ALL_TYPES);
			EXPECT_NE(0, nr) TH_LOG("%s: no samples", sources[s].name);
		}
		TH_LOG("%s: %s", sources[s].name, nr < 0 ? strerror(-nr) : "compared");
		events += nr >= 0;
	}
	TH_LOG("%u samples of %u events", self->run.nr_samples, events);
	EXPECT_LE(4, events);	/* software events are everywhere */
	EXPECT_EQ(0, self->run.nr_wrong);
}

/* A weight of three parts */
TEST_F_TIMEOUT(fields, equal_the_record_of_parts, TEST_S)
{
	const __u64 type = PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_TID;
	unsigned int s;

	for (s = 0; s < NR_SOURCES; s++)
		record_samples(_metadata, &self->run, &sources[s], &ways[0], type);
	EXPECT_LT(0, self->run.nr_samples);
	EXPECT_EQ(0, self->run.nr_wrong);
}

/* Each sample type alone, and none: a field without its type reads 0. */
TEST_F_TIMEOUT(fields, that_nobody_asked_for, TEST_S)
{
	unsigned int s, bit;

	for (s = 0; s < NR_SOURCES; s++) {
		if (record_samples(_metadata, &self->run, &sources[s], &ways[0], 0) < 0)
			continue;
		for (bit = 0; (1ULL << bit) <= ALL_TYPES; bit++)
			if (ALL_TYPES & (1ULL << bit))
				record_samples(_metadata, &self->run, &sources[s],
					       &ways[0], 1ULL << bit);
	}
	TH_LOG("%u samples", self->run.nr_samples);
	EXPECT_LT(0, self->run.nr_samples);
	EXPECT_EQ(0, self->run.nr_wrong);
}

static unsigned int copies_of(const struct copies *copies, pid_t pid)
{
	unsigned int i, nr = 0;

	for (i = 0; i < copies->nr; i++)
		nr += copies->copy[i].data.pid == (__u32)pid;
	return nr;
}

/*
 * Samples of a child have the id and the type of the event that it inherited. When it
 * shares a CPU with its parent their contexts may be swapped: then samples of the
 * child have the stream id of the parent's event.
 */
TEST_F_TIMEOUT(fields, of_a_child, TEST_S)
{
	const struct source *source = &sources[2];	/* cpu clock: a PMU changes its type */
	struct perf_event_attr attr = source_attr(source, PERF_SAMPLE_TID);
	unsigned int i, own_stream = 0;
	struct run *run = &self->run;
	int status;
	pid_t pid;
	__u64 id;

	attr.inherit = 1;
	run->map = value_map(sizeof(struct copies));
	ASSERT_LE(0, run->map);
	run->prog = load_copier(run->map, &ways[0]);
	ASSERT_LE(0, run->prog);
	run->ring.event = open_own_event(&attr);
	ASSERT_LE(0, run->ring.event);
	ASSERT_EQ(0, event_ioctl(run->ring.event, PERF_EVENT_IOC_ID, (long)&id));
	ASSERT_EQ(0, event_ioctl(run->ring.event, PERF_EVENT_IOC_SET_BPF, run->prog));
	ASSERT_EQ(0, event_ioctl(run->ring.event, PERF_EVENT_IOC_ENABLE, 0));
	pid = fork();
	if (!pid) {
		/* The first copies may be of the parent in fork(): until one is ours */
		for (i = 0; i < MAX_TRIES && !copies_of(run->copies, getpid()); i++) {
			memset(run->copies, 0, sizeof(*run->copies));
			if (bpf_map_update_elem(run->map, &zero, run->copies, BPF_ANY) ||
			    make_samples(run, source->make))
				_exit(1);
		}
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(0, bpf_map_lookup_elem(run->map, &zero, run->copies));
	for (i = 0; i < run->copies->nr; i++) {
		const struct bpf_perf_sample_data *data = &run->copies->copy[i].data;

		own_stream += data->stream_id != id;
		EXPECT_EQ(id, data->id);
		EXPECT_EQ(source->type, data->event_type);
		EXPECT_EQ(source->config, data->event_config);
	}
	TH_LOG("%u of %u samples are the child's, %u have a stream of its own",
	       copies_of(run->copies, pid), i, own_stream);
	EXPECT_LT(0, copies_of(run->copies, pid));
}

/*
 * Read a field of the kernel's structure that is not initialised, as a program does
 * that casts the context. With CONFIG_INIT_STACK_ALL_PATTERN it is not 0, which shows
 * that that_nobody_asked_for tests something; without that option it may be 0.
 */
TEST_F(fields, of_a_poisoned_stack)
{
	const struct source *source = &sources[1];	/* context switches */
	struct perf_event_attr attr = source_attr(source, 0);
	int txn = vmlinux_offset_of("perf_sample_data", "txn", NULL), cast;
	struct { __u64 in_context, in_kernel; } seen;

	cast = vmlinux_btf_id("bpf_cast_to_kern_ctx", BTF_KIND_FUNC);
	if (txn < 0 || cast < 0)
		SKIP(return, "no txn or no kfunc bpf_cast_to_kern_ctx() in the kernel's BTF");
	self->run.map = value_map(sizeof(seen));
	ASSERT_LE(0, self->run.map);

	const struct bpf_insn insns[] = {
		BPF_LD_MAP_VALUE(BPF_REG_7, self->run.map, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_1,
			    offsetof(struct bpf_perf_event_data, data.txn)),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_2, 0),
		BPF_CALL_KFUNC(cast),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, sizeof(long)),	/* ->data */
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_1, txn),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_2, 8),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};

	self->run.prog = load_perf_prog(insns, ARRAY_SIZE(insns));
	ASSERT_LE(0, self->run.prog);
	ASSERT_EQ(0, ring__open(&self->run.ring, &attr));
	ASSERT_EQ(0, event_ioctl(self->run.ring.event, PERF_EVENT_IOC_SET_BPF, self->run.prog));
	ASSERT_EQ(0, event_ioctl(self->run.ring.event, PERF_EVENT_IOC_ENABLE, 0));
	source->make();
	ASSERT_EQ(0, bpf_map_lookup_elem(self->run.map, &zero, &seen));
	EXPECT_EQ(0, seen.in_context);
	if (!seen.in_kernel)
		SKIP(return, "the stack is 0: needs CONFIG_INIT_STACK_ALL_PATTERN");
	TH_LOG("the kernel's field is %llx, the context's is 0", seen.in_kernel);
}

TEST_HARNESS_MAIN
