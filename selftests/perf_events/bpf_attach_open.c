// SPDX-License-Identifier: GPL-2.0
/*
 * Test programs that perf_event_open() attaches: attr.bpf_fd, PERF_BPF_F_ATTACH.
 *
 * The program must run on each overflow from the first to the last, in the task and in
 * all children, and fdinfo and BPF_TASK_FD_QUERY must report it. Wrong attrs must be
 * refused.
 *
 * Most programs here return 0, which drops the sample. A sample in the ring buffer
 * therefore means an overflow for which no program ran.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "kselftest_harness.h"
#include "lib/bpf_event.h"
#include "lib/sample_ring.h"
#include "lib/test_env.h"

#define COOKIE		0xabc
#define LOOP_S		40	/* time limit of each loop of races or opens */
#define FORK_RACES	1000
#define RACES_WITHOUT	100	/* the same with SET_BPF, for comparison */
#define NR_SWAPS	200
#define NR_OPENS	10000
#define MISS_S		60
#define MISS_PERIOD_NS	1000000	/* a sample may take a tenth of it under emulation */
#define NR_UPDATES	20
#define NR_MISSES	20
#define TRACEPOINT_ID	"/sys/kernel/tracing/events/sched/sched_process_fork/id"

struct counts {
	__u64 runs, cookies;
};

/* Load a program that counts its runs, sums up its cookies, and returns @ret. */
static int load_cookie_counter(int map, int ret)
{
	const struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie),
		BPF_LD_MAP_VALUE(BPF_REG_1, map, 0),
		BPF_MOV64_IMM(BPF_REG_2, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_2, offsetof(struct counts, runs)),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0,
			      offsetof(struct counts, cookies)),
		BPF_MOV64_IMM(BPF_REG_0, ret),
		BPF_EXIT_INSN(),
	};

	return bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "count_cookies", "GPL", insns,
			     ARRAY_SIZE(insns), NULL);
}

static struct perf_event_attr attach_attr(int prog)
{
	struct perf_event_attr attr = sw_event_attr(PERF_COUNT_SW_PAGE_FAULTS);

	attr.disabled = 0;
	attr.inherit = 1;
	attr.bpf_fd = prog;
	attr.bpf_flags = PERF_BPF_F_ATTACH;
	attr.bpf_cookie = COOKIE;
	return attr;
}

static unsigned int samples_in(const struct ring *ring)
{
	unsigned int nr = 0;
	__u64 at = 0;

	while (ring__next_sample(ring, &at))
		nr++;
	return nr;
}

FIXTURE(open) {
	struct ring ring;
	struct counts counts;
	int map, prog;
};

FIXTURE_SETUP(open)
{
	self->ring.event = -1;
	self->map = -1;
	self->prog = -1;
	if (geteuid())
		SKIP(return, "needs root");
	self->map = value_map(sizeof(struct counts));
	ASSERT_LE(0, self->map);
	self->prog = load_cookie_counter(self->map, 0);
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN(open)
{
	ring__close(&self->ring);
	close_fd(&self->prog);
	close_fd(&self->map);
}

/* The event holds the program after its fd is closed, and passes the attr's cookie. */
TEST_F(open, attaches)
{
	struct perf_event_attr attr = attach_attr(self->prog);

	attr.inherit = 0;
	ASSERT_EQ(0, ring__open(&self->ring, &attr));
	close_fd(&self->prog);
	ASSERT_EQ(0, fault_pages(4));
	ASSERT_EQ(0, bpf_map_lookup_elem(self->map, &zero, &self->counts));
	EXPECT_LE(4, self->counts.runs);
	EXPECT_EQ(COOKIE * self->counts.runs, self->counts.cookies);
	EXPECT_EQ(0, samples_in(&self->ring));
}

/* If the program returns 1, the sample is written. */
TEST_F(open, passes_samples)
{
	struct perf_event_attr attr;

	close_fd(&self->prog);
	self->prog = load_cookie_counter(self->map, 1);
	ASSERT_LE(0, self->prog);
	attr = attach_attr(self->prog);
	attr.inherit = 0;
	ASSERT_EQ(0, ring__open(&self->ring, &attr));
	ASSERT_EQ(0, fault_pages(4));
	ASSERT_EQ(0, event_ioctl(self->ring.event, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_EQ(0, bpf_map_lookup_elem(self->map, &zero, &self->counts));
	EXPECT_LE(4, self->counts.runs);
	EXPECT_EQ(self->counts.runs, samples_in(&self->ring));
}

/* Start a process on @cpu that forks children with page faults until *@end is closed. */
static pid_t start_forker(int cpu, int *end)
{
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		return -errno;
	pid = fork();
	if (!pid) {
		char c;

		close(fds[1]);
		if (run_on_cpu(cpu))
			_exit(1);
		fcntl(fds[0], F_SETFL, O_NONBLOCK);
		while (read(fds[0], &c, 1) < 0) {
			pid_t child = fork();

			if (!child)
				_exit(!!fault_pages(2));
			if (child > 0)
				waitpid(child, NULL, 0);
		}
		_exit(0);
	}
	close(fds[0]);
	*end = fds[1];
	return pid;
}

/*
 * Open an event on a task that forks all the time. The program is in @attr, or is
 * attached with PERF_EVENT_IOC_SET_BPF right after the open.
 * Return: the number of overflows for which no program ran, or -errno.
 */
static int race_with_fork(pid_t forker, int cpu, struct perf_event_attr *attr, int prog)
{
	struct ring ring = { .event = -1 };
	int ret = ring__open_on(&ring, attr, forker, cpu);

	if (!ret && !attr->bpf_flags)
		ret = event_ioctl(ring.event, PERF_EVENT_IOC_SET_BPF, prog);
	if (!ret)
		usleep(2000);
	if (!ret)
		ret = samples_in(&ring);
	ring__close(&ring);
	return ret;
}

/*
 * A child that is forked while the event is opened has the program too. With SET_BPF
 * instead, samples before it have none: in how many races is printed, but depends on
 * timing.
 */
TEST_F_TIMEOUT(open, no_child_without, TEST_S)
{
	struct perf_event_attr attr = attach_attr(self->prog), without = attr;
	int cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1, end = -1, i, seen;
	int missed = 0, missed_without = 0, races;
	time_t stop = time(NULL) + LOOP_S;
	pid_t forker;

	without.bpf_fd = 0;
	without.bpf_flags = 0;
	without.bpf_cookie = 0;
	forker = start_forker(cpu, &end);
	ASSERT_LT(0, forker);
	if (cpu)
		ASSERT_EQ(0, run_on_cpu(0));
	for (races = 0; races < FORK_RACES && time(NULL) < stop; races++) {
		seen = race_with_fork(forker, cpu, &attr, self->prog);
		ASSERT_LE(0, seen);
		missed += !!seen;
	}
	ASSERT_EQ(0, bpf_map_lookup_elem(self->map, &zero, &self->counts));
	for (i = 0; i < RACES_WITHOUT; i++) {
		seen = race_with_fork(forker, cpu, &without, self->prog);
		ASSERT_LE(0, seen);
		missed_without += !!seen;
	}
	close(end);
	EXPECT_EQ(forker, waitpid(forker, NULL, 0));
	TH_LOG("%d of %d races lost, %llu samples; with SET_BPF %d of %d", missed,
	       races, self->counts.runs, missed_without, RACES_WITHOUT);
	EXPECT_LT(races / 100, self->counts.runs);
	EXPECT_EQ(COOKIE * self->counts.runs, self->counts.cookies);
	EXPECT_EQ(0, missed);
}

static void *fault_in_thread(void *arg)
{
	return (void *)(long)fault_pages(4);
}

/* Threads and children inherit the program, and a child keeps it across exec(). */
TEST_F_TIMEOUT(open, is_inherited, TEST_S)
{
	struct perf_event_attr attr = attach_attr(self->prog);
	__u64 before = 0;
	pthread_t thread;
	int i, status;

	self->ring.event = open_own_event(&attr);
	ASSERT_LE(0, self->ring.event);
	for (i = 0; i < 3; i++) {
		pid_t pid = 0;

		if (i == 0) {
			ASSERT_EQ(0, pthread_create(&thread, NULL, fault_in_thread, NULL));
			ASSERT_EQ(0, pthread_join(thread, NULL));
		} else {
			pid = fork();
		}
		if (i == 1 && !pid)
			_exit(!!fault_pages(4));
		if (i == 2 && !pid) {
			execl("/bin/true", "true", NULL);
			_exit(127);
		}
		if (i) {
			ASSERT_EQ(pid, waitpid(pid, &status, 0));
			ASSERT_EQ(0, status);
		}
		ASSERT_EQ(0, bpf_map_lookup_elem(self->map, &zero, &self->counts));
		TH_LOG("%s: %llu runs", i == 0 ? "thread" : i == 1 ? "fork" : "exec",
		       self->counts.runs - before);
		EXPECT_LE(before + 4, self->counts.runs);
		before = self->counts.runs;
	}
	EXPECT_EQ(COOKIE * self->counts.runs, self->counts.cookies);
}

/* Wait for the other task, cause a page fault, wake up the other task: @nr times. */
static int fault_in_turns(int from, int to, int nr)
{
	char c = 0;

	while (nr--) {
		if (read(from, &c, 1) != 1 || fault_pages(1) || write(to, &c, 1) != 1)
			return 1;
	}
	return 0;
}

/*
 * Return: the number of samples that were taken in one task by the event of the other.
 * While the two tasks take turns, one and the same event is active in both: this
 * task's, or the child's once another task has run between them.
 */
static unsigned int samples_of_others(const struct ring *ring)
{
	__u64 at = 0, own_id;
	const __u64 *sample;
	unsigned int nr = 0;

	if (event_ioctl(ring->event, PERF_EVENT_IOC_ID, (long)&own_id))
		return 0;
	while ((sample = ring__next_sample(ring, &at))) {
		const __u32 *pid_tid = (const __u32 *)sample;

		nr += (sample[1] == own_id) != (pid_tid[1] == (__u32)getpid());
	}
	return nr;
}

/*
 * Parent and child take turns on one CPU. As their events are clones, the context
 * switch only swaps the two perf_event_contexts, and each task goes on with the events
 * of the other. Both events must have the program. A second pair of events has no
 * program: its samples show that contexts were swapped.
 */
TEST_F_TIMEOUT(open, contexts_are_swapped, TEST_S)
{
	struct perf_event_attr attr = attach_attr(self->prog);
	struct perf_event_attr witness = sw_event_attr(PERF_COUNT_SW_PAGE_FAULTS);
	struct ring beside = { .event = -1 };
	int ping[2], pong[2], status;
	char c = 0;
	pid_t pid;

	witness.disabled = 0;
	witness.inherit = 1;
	witness.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_STREAM_ID;
	ASSERT_EQ(0, run_on_cpu(0));
	ASSERT_EQ(0, pipe(ping));
	ASSERT_EQ(0, pipe(pong));
	ASSERT_EQ(0, ring__open_on(&self->ring, &attr, 0, 0));
	ASSERT_EQ(0, ring__open_on(&beside, &witness, 0, 0));
	pid = fork();
	if (!pid)
		_exit(fault_in_turns(ping[0], pong[1], NR_SWAPS));
	ASSERT_LT(0, pid);
	ASSERT_EQ(1, write(pong[1], &c, 1));
	EXPECT_EQ(0, fault_in_turns(pong[0], ping[1], NR_SWAPS));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	ASSERT_EQ(0, bpf_map_lookup_elem(self->map, &zero, &self->counts));
	TH_LOG("%llu runs, %u samples of %u by the other's event", self->counts.runs,
	       samples_of_others(&beside), samples_in(&beside));
	EXPECT_LE(2 * NR_SWAPS, self->counts.runs);
	EXPECT_LT(0, samples_of_others(&beside));
	EXPECT_EQ(0, samples_in(&self->ring));
	ring__close(&beside);
}

/* Each row is an attr that perf_event_open() refuses, and the errno. */
TEST_F(open, errors)
{
	int other_type = load_filter("no_perf_event");
	long tracepoint = read_number(TRACEPOINT_ID), kprobe = read_number(KPROBE_PMU);
	const struct {
		const char *what;
		int err;
		struct perf_event_attr attr;
	} rows[] = {
#define ROW(WHAT, ERR, ...)							\
	{ WHAT, ERR, ({ struct perf_event_attr attr = attach_attr(self->prog);	\
			__VA_ARGS__; attr; }) }
		ROW("a closed fd", EBADF, attr.bpf_fd = 12345),
		ROW("a negative fd", EBADF, attr.bpf_fd = -1),
		ROW("no program", EINVAL, attr.bpf_fd = self->map),
		ROW("a program of another type", EINVAL, attr.bpf_fd = other_type),
		ROW("no samples", EINVAL, attr.sample_period = 0),
		ROW("an unknown flag", EINVAL, attr.bpf_flags |= PERF_BPF_F_PASS_ON_MISS << 1),
		ROW("an fd without ATTACH", EINVAL, attr.bpf_flags = 0; attr.bpf_cookie = 0),
		ROW("a cookie without ATTACH", EINVAL, attr.bpf_flags = 0; attr.bpf_fd = 0),
		ROW("a flag without ATTACH", EINVAL, attr.bpf_fd = 0; attr.bpf_cookie = 0;
		    attr.bpf_flags = PERF_BPF_F_PASS_ON_MISS),
		ROW("output of programs", EOPNOTSUPP, attr.type = PERF_TYPE_SOFTWARE;
		    attr.config = PERF_COUNT_SW_BPF_OUTPUT),
		ROW("a tracepoint", EOPNOTSUPP, attr.type = PERF_TYPE_TRACEPOINT;
		    attr.config = tracepoint),
		ROW("a kprobe", EOPNOTSUPP, attr.type = kprobe;
		    attr.kprobe_func = (unsigned long)"do_exit"; attr.config = 0),
#undef ROW
	};
	unsigned int i;

	ASSERT_LE(0, other_type);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct perf_event_attr attr = rows[i].attr;

		if ((attr.type == PERF_TYPE_TRACEPOINT && tracepoint < 0) ||
		    (int)attr.type < 0) {
			TH_LOG("%s: not on this machine", rows[i].what);
			continue;
		}
		EXPECT_EQ(-rows[i].err, open_own_event(&attr)) TH_LOG("%s", rows[i].what);
	}
	close_fd(&other_type);
}

/* The attr is larger or smaller than the kernel's. */
TEST_F(open, attr_sizes)
{
	struct {
		struct perf_event_attr attr;
		__u64 newer;
	} big = { .attr = attach_attr(self->prog) };
	struct perf_event_attr old = sw_event_attr(PERF_COUNT_SW_PAGE_FAULTS);

	ASSERT_EQ(PERF_ATTR_SIZE_VER10, sizeof(big.attr));
	big.attr.size = sizeof(big);
	self->ring.event = open_own_event(&big.attr);
	EXPECT_LE(0, self->ring.event);
	close_fd(&self->ring.event);

	big.newer = 1;
	EXPECT_EQ(-E2BIG, open_own_event(&big.attr));
	EXPECT_EQ(sizeof(big.attr), big.attr.size);

	old.size = PERF_ATTR_SIZE_VER9;
	old.bpf_cookie = 1;	/* is beyond old.size and ignored */
	self->ring.event = open_own_event(&old);
	EXPECT_LE(0, self->ring.event);
	close_fd(&self->ring.event);
}

/* An event has one program at most. */
TEST_F(open, has_one_program)
{
	struct perf_event_attr attr = attach_attr(self->prog);

	self->ring.event = open_own_event(&attr);
	ASSERT_LE(0, self->ring.event);
	EXPECT_EQ(-EEXIST, event_ioctl(self->ring.event, PERF_EVENT_IOC_SET_BPF, self->prog));
	EXPECT_EQ(-EEXIST, link_to_event(self->prog, self->ring.event, 1));
}

/* fdinfo and BPF_TASK_FD_QUERY report the program and its cookie. */
TEST_F(open, is_reported)
{
	struct perf_event_attr attr = attach_attr(self->prog);
	union bpf_attr query = {
		.task_fd_query.pid = getpid(),
	}, old_query;
	__u32 id = id_of(self->prog);

	ASSERT_NE(0, id);
	self->ring.event = open_own_event(&attr);
	ASSERT_LE(0, self->ring.event);
	EXPECT_EQ(id, fdinfo_number(self->ring.event, "bpf_prog_id"));
	EXPECT_EQ(COOKIE, fdinfo_number(self->ring.event, "bpf_cookie"));

	query.task_fd_query.fd = self->ring.event;
	old_query = query;
	ASSERT_EQ(0, syscall(__NR_bpf, BPF_TASK_FD_QUERY, &query, sizeof(query)));
	EXPECT_EQ(id, query.task_fd_query.prog_id);
	EXPECT_EQ(BPF_FD_TYPE_PERF_EVENT, query.task_fd_query.fd_type);
	EXPECT_EQ(COOKIE, query.task_fd_query.cookie);

	/* The kernel does not write beyond the size that it was called with. */
	old_query.task_fd_query.cookie = 1;
	ASSERT_EQ(0, syscall(__NR_bpf, BPF_TASK_FD_QUERY, &old_query,
			     offsetof(union bpf_attr, task_fd_query.cookie)));
	EXPECT_EQ(id, old_query.task_fd_query.prog_id);
	EXPECT_EQ(1, old_query.task_fd_query.cookie);
}

/* The program is freed with the last event, however many were opened. */
TEST_F_TIMEOUT(open, does_not_leak, TEST_S)
{
	struct perf_event_attr attr = attach_attr(self->prog);
	time_t stop = time(NULL) + LOOP_S;
	__u32 id = id_of(self->prog);
	int i, fd;

	attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	for (i = 0; i < NR_OPENS && time(NULL) < stop; i++) {
		fd = open_own_event(&attr);
		ASSERT_LE(0, fd);
		/* Refused after it got the program: the leader is an event of another CPU. */
		ASSERT_EQ(-1, syscall(__NR_perf_event_open, &attr, 0, 0, fd, 0));
		ASSERT_EQ(EINVAL, errno);
		close(fd);
	}
	TH_LOG("%d opens", i);
	close_fd(&self->prog);
	EXPECT_TRUE(prog_goes_within(id, WAIT_MS));
}

/*
 * No program runs while this CPU updates a hash map (bpf_prog_active). With
 * PERF_BPF_F_PASS_ON_MISS, samples that are taken then are written.
 */
TEST_F_TIMEOUT(open, pass_on_miss, TEST_S)
{
	struct perf_event_attr attr = attach_attr(self->prog);
	time_t end = time(NULL) + MISS_S;
	int hash, key = 1, i;

	hash = bpf_map_create(BPF_MAP_TYPE_HASH, NULL, sizeof(key), sizeof(key), 1, NULL);
	ASSERT_LE(0, hash);
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_period = MISS_PERIOD_NS;
	attr.inherit = 0;
	attr.bpf_flags |= PERF_BPF_F_PASS_ON_MISS;
	ASSERT_EQ(0, ring__open(&self->ring, &attr));
	while (misses_of(self->prog) < NR_MISSES && time(NULL) < end)
		for (i = 0; i < NR_UPDATES; i++)
			ASSERT_EQ(0, bpf_map_update_elem(hash, &key, &key, BPF_ANY));
	ASSERT_EQ(0, event_ioctl(self->ring.event, PERF_EVENT_IOC_DISABLE, 0));
	TH_LOG("%lld misses", misses_of(self->prog));
	EXPECT_LT(0, misses_of(self->prog));
	EXPECT_EQ(misses_of(self->prog), samples_in(&self->ring));
	close_fd(&hash);
}

TEST_HARNESS_MAIN
