// SPDX-License-Identifier: GPL-2.0
/*
 * Runs in the guest for bench/bpf-event: prints "NAME INSTRUCTIONS" lines, what it
 * takes to load a BPF program and to close it, without an event, with one that asks
 * for BPF_EVENT, and with one that also has the kernel keep what there is to tell.
 *
 * Under qemu's -icount shift=0 an instruction takes a nanosecond, and the time
 * stamp counter counts those.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <x86intrin.h>

#include "bpf_info.h"
#include "bpf_load.h"
#include "ksym_ring.h"
#include "own_time.h"

#define ROUNDS	1001

static void die(const char *what, int err)
{
	fprintf(stderr, "bpf_event_guest: %s: %s\n", what, strerror(err));
	exit(1);
}

static int load_small(void)
{
	return load_filter("bench");
}

/*
 * Two functions with BTF and lines, and a map; no bpf_throw(), as finding that by its
 * name takes thousands of instructions, more or less by the kernel's number of symbols.
 */
static int load_told(void)
{
	return info_prog__load_with(0);
}

/*
 * Own: the system calls, the median of the rounds, as some meet an interrupt. All:
 * what the kernel does later because of them, too, the mean.
 */
static void bench_load(const char *what, const char *who, int (*load)(void))
{
	static __u64 times[ROUNDS];
	__u64 all = __rdtsc(), own;
	int i, fd;

	for (i = 0; i < ROUNDS; i++) {
		own = own_time();
		fd = load();
		if (fd < 0)
			die("loading a program", -fd);
		close(fd);
		times[i] = own_time() - own;
	}
	all = __rdtsc() - all;
	qsort(times, ROUNDS, sizeof(*times), cmp_times);
	printf("%s_own_%s %llu\n", what, who, times[ROUNDS / 2]);
	printf("%s_all_%s %llu\n", what, who, all / ROUNDS);
}

static void bench_both(const char *who)
{
	bench_load("small", who, load_small);
	bench_load("told", who, load_told);
}

/* Return: 0 or -errno, a kernel without attr.bpf_retain says -EINVAL */
static int bench_listened(const char *who, bool retain)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.bpf_event = 1,
		.bpf_retain = retain,
	};
	struct perf_event_mmap_page *page;
	const size_t size = 65 * sysconf(_SC_PAGESIZE);
	int fd = syscall(__NR_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		die("the event's ring", errno);
	bench_both(who);
	munmap(page, size);
	close(fd);
	return 0;
}

int main(void)
{
	int err;

	setlinebuf(stdout);
	bench_both("warm_up");
	bench_both("no_event");
	err = bench_listened("event", false);
	if (err)
		die("opening an event", -err);
	err = bench_listened("retain", true);
	if (err)
		fprintf(stderr, "no attr.bpf_retain: %s\n", strerror(-err));
	return 0;
}
