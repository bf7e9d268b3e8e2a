// SPDX-License-Identifier: GPL-2.0
/*
 * Runs in the guest for bench/sample-data: prints "NAME NUMBER" lines, the
 * instructions of a page fault that is sampled, with programs that read 1, 4 and 16
 * fields of the sample in the ways there are, and the bytes of their code.
 *
 * Under qemu's -icount shift=0 an instruction takes a nanosecond.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include "bpf_event.h"
#include "bpf_load.h"
#include "own_time.h"
#include "sample_ctx.h"

#define ROUNDS		301
#define PAGES		64
#define MAX_FIELDS	16
#define MAX_INSNS	256
#define SAMPLE_TYPE	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |	\
			 PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_CPU |	\
			 PERF_SAMPLE_PERIOD | PERF_SAMPLE_STREAM_ID |		\
			 PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC |		\
			 PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_PHYS_ADDR |	\
			 PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE |	\
			 PERF_SAMPLE_CODE_PAGE_SIZE)

static void die(const char *what, int err)
{
	fprintf(stderr, "sample_data_guest: %s: %s\n", what, strerror(err));
	exit(1);
}

/* A field: in the context, and in which member of the kernel's structure. */
static const struct field {
	unsigned int off, size;
	const char *member;
	unsigned int behind;	/* in that member */
	__u64 flag;
} fields[MAX_FIELDS] = {
#define FIELD(CTX, MEMBER, BEHIND, FLAG)					\
	{ offsetof(struct bpf_perf_event_data, CTX),				\
	  sizeof(((struct bpf_perf_event_data *)0)->CTX), #MEMBER, BEHIND, PERF_SAMPLE_##FLAG }
	FIELD(data.data_src, data_src, 0, DATA_SRC),
	FIELD(data.weight, weight, 0, WEIGHT),
	FIELD(data.cgroup, cgroup, 0, CGROUP),
	FIELD(data.time, time, 0, TIME),
	FIELD(data.ip, ip, 0, IP),
	FIELD(data.pid, tid_entry, 0, TID),
	FIELD(data.tid, tid_entry, 4, TID),
	FIELD(data.cpu, cpu_entry, 0, CPU),
	FIELD(data.txn, txn, 0, TRANSACTION),
	FIELD(data.phys_addr, phys_addr, 0, PHYS_ADDR),
	FIELD(data.data_page_size, data_page_size, 0, DATA_PAGE_SIZE),
	FIELD(data.code_page_size, code_page_size, 0, CODE_PAGE_SIZE),
	FIELD(data.id, id, 0, ID),
	FIELD(data.stream_id, stream_id, 0, STREAM_ID),
	FIELD(addr, addr, 0, ADDR),
	FIELD(sample_period, period, 0, PERIOD),
};

/* Offset in the kernel's struct perf_sample_data, and the id of the cast to it */
static __u32 kernel_offs[MAX_FIELDS];
static int cast;

static void look_up(void)
{
	unsigned int i;
	int off;

	for (i = 0; i < MAX_FIELDS; i++) {
		off = vmlinux_offset_of("perf_sample_data", fields[i].member, NULL);
		if (off < 0)
			die(fields[i].member, -off);
		kernel_offs[i] = off + fields[i].behind;
	}
	cast = vmlinux_btf_id("bpf_cast_to_kern_ctx", BTF_KIND_FUNC);
	if (cast < 0)
		die("bpf_cast_to_kern_ctx()", -cast);
}

/* Each appends the instructions that read field @i: r6 is the context, r7 the sample. */

static int read_ctx(struct bpf_insn *insn, unsigned int i)
{
	insn[0] = BPF_LDX_MEM(bpf_size_of(fields[i].size), BPF_REG_2, BPF_REG_6, fields[i].off);
	return 1;
}

/* As a program has to do it that wants no memory that nobody wrote */
static int read_core(struct bpf_insn *insn, unsigned int i)
{
	insn[0] = BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_7, 0);
	insn[1] = BPF_MOV64_IMM(BPF_REG_2, 0);
	insn[2] = BPF_JMP_IMM(BPF_JSET, BPF_REG_1, fields[i].flag, 1);
	insn[3] = BPF_JMP_A(1);
	insn[4] = BPF_LDX_MEM(bpf_size_of(fields[i].size), BPF_REG_2, BPF_REG_7, kernel_offs[i]);
	return 5;
}

static int read_probe(struct bpf_insn *insn, unsigned int i)
{
	insn[0] = BPF_MOV64_REG(BPF_REG_1, BPF_REG_10);
	insn[1] = BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8);
	insn[2] = BPF_MOV64_IMM(BPF_REG_2, fields[i].size);
	insn[3] = BPF_MOV64_REG(BPF_REG_3, BPF_REG_7);
	insn[4] = BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, kernel_offs[i]);
	insn[5] = BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel);
	return 6;
}

/* Not the sample, but the counter: what there is without a cast */
static int read_value(struct bpf_insn *insn, unsigned int i)
{
	insn[0] = BPF_MOV64_REG(BPF_REG_1, BPF_REG_6);
	insn[1] = BPF_MOV64_REG(BPF_REG_2, BPF_REG_10);
	insn[2] = BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -24);
	insn[3] = BPF_MOV64_IMM(BPF_REG_3, 24);
	insn[4] = BPF_EMIT_CALL(BPF_FUNC_perf_prog_read_value);
	return 5;
}

static const struct way {
	const char *name;
	int (*read)(struct bpf_insn *insn, unsigned int i);
	bool casts;
} ways[] = {
	{ "context", read_ctx, false },
	{ "core", read_core, true },
	{ "probe_read", read_probe, true },
	{ "read_value", read_value, false },
};

/* Drops the sample after it read @nr fields. Return: an fd or -errno. */
static int load_reader(const struct way *way, unsigned int nr)
{
	struct bpf_insn insns[MAX_INSNS];
	unsigned int i, cnt = 0;

	insns[cnt++] = BPF_MOV64_REG(BPF_REG_6, BPF_REG_1);
	if (way && way->casts) {
		insns[cnt++] = BPF_CALL_KFUNC(cast);
		insns[cnt++] = BPF_LDX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, sizeof(long));
	}
	for (i = 0; i < nr; i++)
		cnt += way->read(insns + cnt, i);
	insns[cnt++] = BPF_MOV64_IMM(BPF_REG_0, 0);
	insns[cnt++] = BPF_EXIT_INSN();
	return load_perf_prog(insns, cnt);
}

/* Instructions of a page fault that finds the page of zeros: the median of rounds. */
static __u64 fault_cost(void)
{
	static __u64 times[ROUNDS];
	const size_t page = sysconf(_SC_PAGESIZE);
	volatile char *mem = mmap(NULL, PAGES * page, PROT_READ,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i, j;

	if (mem == MAP_FAILED)
		die("memory", errno);
	madvise((void *)mem, PAGES * page, MADV_NOHUGEPAGE);
	for (i = 0; i < ROUNDS; i++) {
		madvise((void *)mem, PAGES * page, MADV_DONTNEED);
		times[i] = own_time();
		for (j = 0; j < PAGES; j++)
			(void)mem[j * page];
		times[i] = own_time() - times[i];
	}
	munmap((void *)mem, PAGES * page);
	qsort(times, ROUNDS, sizeof(*times), cmp_times);
	return times[ROUNDS / 2] / PAGES;
}

/* @prog: -1 for none */
static __u64 sample_cost(int prog)
{
	struct perf_event_attr attr = sw_event_attr(PERF_COUNT_SW_PAGE_FAULTS);
	__u64 cost;
	int event, err = 0;

	attr.sample_type = SAMPLE_TYPE;
	event = open_own_event(&attr);
	if (event < 0)
		die("opening an event", -event);
	if (prog >= 0)
		err = event_ioctl(event, PERF_EVENT_IOC_SET_BPF, prog);
	err = err ?: event_ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
	if (err)
		die("attaching a program", -err);
	cost = fault_cost();
	close(event);
	return cost;
}

static void bench_way(const struct way *way)
{
	static const unsigned int nrs[] = { 1, 4, MAX_FIELDS };
	struct bpf_prog_info info;
	__u32 size = sizeof(info);
	__u64 bytes = 0;
	unsigned int i;
	int prog;

	for (i = 0; i < sizeof(nrs) / sizeof(*nrs); i++) {
		prog = load_reader(way, nrs[i]);
		if (prog < 0) {
			fprintf(stderr, "%s: %s\n", way->name, strerror(-prog));
			return;
		}
		printf("%s_%u %llu\n", way->name, nrs[i], sample_cost(prog));
		memset(&info, 0, sizeof(info));
		if (bpf_prog_get_info_by_fd(prog, &info, &size))
			die("the length of the code", errno);
		if (nrs[i] == 1)
			bytes = info.jited_prog_len;
		else if (nrs[i] == MAX_FIELDS)
			printf("%s_bytes %llu\n", way->name,
			       (info.jited_prog_len - bytes) / (MAX_FIELDS - 1));
		close(prog);
	}
}

int main(void)
{
	unsigned int i;
	int prog;

	setlinebuf(stdout);
	look_up();
	fault_cost();			/* warms up */
	printf("no_event %llu\n", fault_cost());
	printf("no_program %llu\n", sample_cost(-1));
	prog = load_reader(NULL, 0);
	if (prog < 0)
		die("loading an empty program", -prog);
	printf("empty %llu\n", sample_cost(prog));
	close(prog);
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		bench_way(&ways[i]);
	return 0;
}
