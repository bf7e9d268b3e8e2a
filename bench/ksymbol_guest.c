// SPDX-License-Identifier: GPL-2.0
/*
 * Runs in the guest for bench/ksymbol: prints "NAME INSTRUCTIONS" lines.
 *
 * Under qemu's -icount shift=0 an instruction takes a nanosecond, and the time
 * stamp counter counts those. What may wait is measured by the time of this
 * process instead, which comes from the same counter.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <x86intrin.h>

#include "bpf_load.h"
#include "ksym_ring.h"
#include "made.h"
#include "own_time.h"

#define MAX_PROGS	10000
#define READINGS	5
#define LOOKUPS		200
#define FUNCTIONS	1024
#define LOADS		1001
#define NAME_SIZE	256
#define MODULES		101

static int progs[MAX_PROGS], nr_progs;

static void die(const char *what, int err)
{
	fprintf(stderr, "ksymbol_guest: %s: %s\n", what, strerror(err));
	exit(1);
}

static void load_up_to(int nr)
{
	int fd;

	for (; nr_progs < nr; nr_progs++) {
		fd = load_filter("bench");
		if (fd < 0)
			die("loading a program", -fd);
		progs[nr_progs] = fd;
	}
}

static __u64 cost_of_read(void)
{
	static char buf[1 << 16];
	int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	__u64 t0 = __rdtsc();

	while (read(fd, buf, sizeof(buf)) > 0)
		;
	t0 = __rdtsc() - t0;
	close(fd);
	return t0;
}

/* The least of some: the kernel may have work left from before. */
static void bench_read(int nr)
{
	__u64 least = ~0ULL;
	int i;

	load_up_to(nr);
	for (i = 0; i < READINGS; i++) {
		__u64 cost = cost_of_read();

		least = cost < least ? cost : least;
	}
	printf("read_%d %llu\n", nr, least);
}

/* Return: the instructions of one lookup, by a program of a type whose test runs repeat. */
static __u64 cost_of_lookup(__u64 addr)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_RDONLY_PROG);
	int format = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, sizeof(int), sizeof("%ps"), 1, &opts);
	int out = value_map(NAME_SIZE), prog, err;
	const struct bpf_insn insns[] = {
		BPF_LD_IMM64(BPF_REG_1, addr),
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_1, -8),
		BPF_LD_MAP_VALUE(BPF_REG_1, out, 0),
		BPF_MOV64_IMM(BPF_REG_2, NAME_SIZE),
		BPF_LD_MAP_VALUE(BPF_REG_3, format, 0),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_4, -8),
		BPF_MOV64_IMM(BPF_REG_5, 8),
		BPF_EMIT_CALL(BPF_FUNC_snprintf),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	__u64 t0;

	if (bpf_map_update_elem(format, &zero, "%ps", BPF_ANY) || bpf_map_freeze(format))
		die("a format", errno);
	prog = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, NULL, "GPL", insns, ARRAY_SIZE(insns), NULL);
	t0 = __rdtsc();
	err = run_on_packet(prog, LOOKUPS);
	t0 = __rdtsc() - t0;
	if (err)
		die("running a lookup", -err);
	close(prog);
	close(out);
	close(format);
	return t0 / LOOKUPS;
}

static void bench_lookup(const char *what, __u64 addr)
{
	printf("lookup_%s %llu\n", what, cost_of_lookup(addr));
}

/* Addresses in functions of vmlinux, all over it. Return: how many. */
static int spread_functions(__u64 *addrs)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	int nr = 0, all = 0, pass;
	char line[1024], type;
	__u64 addr;

	/* how many there are, and then each so-manieth */
	for (pass = 0; pass < 2; pass++) {
		int seen = 0;

		rewind(f);
		while (fgets(line, sizeof(line), f)) {
			if (strchr(line, '[') || sscanf(line, "%llx %c", &addr, &type) != 2 ||
			    (type != 't' && type != 'T'))
				continue;
			if (!pass)
				all++;
			else if (seen++ % (all / FUNCTIONS) == 0 && nr < FUNCTIONS)
				addrs[nr++] = addr;
		}
	}
	fclose(f);
	return nr;
}

/*
 * The mean of many: vmlinux has its names in a compressed list with a mark at each
 * 256th, so what one costs depends on how far from a mark it happens to be.
 */
static void bench_vmlinux(void)
{
	static __u64 addrs[FUNCTIONS];
	__u64 sum = 0;
	int nr = spread_functions(addrs), i;

	for (i = 0; i < nr; i++)
		sum += cost_of_lookup(addrs[i]);
	printf("lookup_vmlinux %llu\n", sum / nr);
}

/* The address of the first symbol that begins with @begin and is of @mod. */
static __u64 find_symbol(const char *begin, const char *mod)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[1024], name[512];
	__u64 addr, found = 0;

	while (!found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %*c %511s", &addr, name) == 2 &&
		    !strncmp(name, begin, strlen(begin)) &&
		    (mod ? !!strstr(line, mod) : !strchr(line, '[')))
			found = addr;
	fclose(f);
	return found;
}

static void bench_lookups(void)
{
	struct made tramp, module;

	made__init(&tramp);
	made__init(&module);
	if (make_trampolines(&tramp) || make_module(&module))
		die("making text", 0);
	bench_vmlinux();
	bench_lookup("module", find_symbol("dummy_", "[dummy]") + 8);
	bench_lookup("program", find_symbol("bpf_prog_", "[bpf]") + 8);
	bench_lookup("trampoline", find_symbol("bpf_trampoline_", "[bpf]") + 8);
	bench_lookup("nothing", 0xffffffffff000000);
	unmake_module(&module);
	unmake_fds(&tramp);
}

/*
 * Own: the system calls, the median. All: what the kernel does later because of
 * them, too, the mean.
 */
static void bench_load(const char *who)
{
	static __u64 times[LOADS];
	__u64 all = __rdtsc();
	int i, fd;

	for (i = 0; i < LOADS; i++) {
		times[i] = own_time();
		fd = load_filter("bench");
		if (fd < 0)
			die("loading a program", -fd);
		close(fd);
		times[i] = own_time() - times[i];
	}
	all = (__rdtsc() - all) / LOADS;
	qsort(times, LOADS, sizeof(*times), cmp_times);
	printf("load_own_%s %llu\n", who, times[LOADS / 2]);
	printf("load_all_%s %llu\n", who, all);
}

/* The median: what a module waits for makes some rounds longer than others. */
static void bench_module(const char *who)
{
	__u64 times[MODULES], t0;
	struct made module;
	int i, err;

	for (i = 0; i < MODULES; i++) {
		made__init(&module);
		t0 = own_time();
		err = make_module(&module);
		if (err)
			die("loading a module", -err);
		unmake_module(&module);
		times[i] = own_time() - t0;
	}
	qsort(times, MODULES, sizeof(*times), cmp_times);
	printf("module_%s %llu\n", who, times[MODULES / 2]);
}

#define MAX_INSNS	400

/*
 * Attach a filter of @nr instructions to a socket and detach it, the median; and the
 * bytes of all its records, the mean.
 */
static void bench_filter(const char *who, int nr, struct ksym_rings *rings)
{
	struct sock_filter insns[MAX_INSNS];
	struct sock_fprog filter = { .len = nr, .filter = insns };
	int sk = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), unused = 0, i;
	static __u64 times[LOADS];

	for (i = 0; i < nr - 1; i++)
		insns[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, i);
	insns[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	for (i = 0; i < LOADS; i++) {
		times[i] = own_time();
		if (setsockopt(sk, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
		    setsockopt(sk, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused)))
			die("attaching a filter", errno);
		times[i] = own_time() - times[i];
		if (rings && ksym_rings__read(rings))
			die("reading the records", EPROTO);
		if (rings)
			ksym_rings__forget(rings);
	}
	close(sk);
	qsort(times, LOADS, sizeof(*times), cmp_times);
	printf("filter_%s %llu\n", who, times[LOADS / 2]);
	if (rings)
		printf("bytes_%s %llu\n", who, rings->maps[0]->data_head / LOADS);
}

/* Kernels without these attr bits report KSYMBOL, but no filters. */
static void bench_filter_listened(const char *who, bool code)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.ksymbol_all = 1,
		.ksymbol_code = code,
	};
	struct ksym_rings rings;
	int err = ksym_rings__open(&rings, &attr);

	if (err == -EINVAL) {
		attr.ksymbol_all = 0;
		attr.ksymbol_code = 0;
		err = ksym_rings__open(&rings, &attr);
	}
	if (err)
		die("opening the event", -err);
	bench_filter(who, 10, &rings);
	ksym_rings__close(&rings);
}

static void bench_filters(void)
{
	bench_filter("no_event", 10, NULL);
	bench_filter("400", MAX_INSNS, NULL);
	bench_filter_listened("event", false);
	bench_filter_listened("code", true);
}

static void bench_listened(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
	};
	struct ksym_rings rings;
	int err;

	bench_load("no_event");
	bench_module("no_event");
	err = ksym_rings__open(&rings, &attr);
	if (err)
		die("opening the event", -err);
	bench_load("event");
	bench_module("event");
	ksym_rings__close(&rings);
}

int main(void)
{
	struct rlimit files = { MAX_PROGS + 100, MAX_PROGS + 100 };

	setlinebuf(stdout);
	setrlimit(RLIMIT_NOFILE, &files);
	bench_listened();
	bench_filters();
	bench_read(0);
	bench_lookups();
	bench_read(1000);
	bench_read(10000);
	return 0;
}
