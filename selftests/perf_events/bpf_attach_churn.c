// SPDX-License-Identifier: GPL-2.0
/*
 * Stress BPF programs of perf events that are attached, inherited and detached at
 * the same time.
 *
 * Processes fork, execute and exit under inherited events; others open events on
 * them with a program, attach one by ioctl or by link, close the link while the
 * event overflows, query the program of an event, and close. Once all have exited
 * the program must be freed. Use after free and wrong locking show in the kernel
 * log, if the kernel has KASAN and lockdep.
 *
 * It takes CHURN_MS, or BPF_ATTACH_CHURN_SECONDS if the environment has it.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "lib/bpf_event.h"
#include "lib/test_env.h"

#define CHURN_MS	15000
#define PERIOD_NS	100000
#define NR_FORKERS	2

/* In memory that all processes share */
struct churn {
	__u64 end;		/* in ms, of now_ms() */
	bool over;		/* no more events are opened */
	pid_t forkers[NR_FORKERS];
	struct {
		unsigned long times;
		int err;
	} done[8];
};

static struct churn *churn;

static struct perf_event_attr churn_attr(int prog)
{
	struct perf_event_attr attr = sw_event_attr(PERF_COUNT_SW_CPU_CLOCK);

	attr.sample_period = PERIOD_NS;
	attr.sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_TID;
	attr.inherit = 1;
	attr.disabled = 0;
	if (prog >= 0) {
		attr.bpf_fd = prog;
		attr.bpf_flags = PERF_BPF_F_ATTACH;
	}
	return attr;
}

/* An event on one of the tasks that fork, with @prog unless that is -1. */
static int open_on_forker(int prog)
{
	struct perf_event_attr attr = churn_attr(prog);

	return open_event_on(&attr, churn->forkers[rand() % NR_FORKERS], -1);
}

/* One step of each process. Return: 0 or -errno. */

static int fork_once(int prog)
{
	pid_t pid = fork();

	if (!pid) {
		pid = fork();
		if (!pid)
			execl("/bin/true", "true", NULL);
		if (pid > 0)
			waitpid(pid, NULL, 0);
		_exit(!!fault_pages(8));
	}
	return pid < 0 || waitpid(pid, NULL, 0) != pid ? -errno : 0;
}

static int open_once(int prog)
{
	int fd = open_on_forker(prog);

	if (fd < 0)
		return fd;
	usleep(rand() % 2000);
	close(fd);
	return 0;
}

static int set_once(int prog)
{
	int fd = open_on_forker(-1), err;

	if (fd < 0)
		return fd;
	err = event_ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog);
	usleep(rand() % 1000);
	close(fd);
	return err;
}

static int link_once(int prog)
{
	int fd = open_on_forker(-1), link;

	if (fd < 0)
		return fd;
	link = link_to_event(prog, fd, 1);
	usleep(rand() % 1000);
	if (link >= 0)
		close(link);
	usleep(rand() % 1000);
	close(fd);
	return link < 0 ? link : 0;
}

static int query_once(int prog)
{
	int fd = open_on_forker(prog), err;
	__u32 len = 0, id, type;
	__u64 off, addr;
	char buf[1024];
	FILE *f;

	if (fd < 0)
		return fd;
	snprintf(buf, sizeof(buf), "/proc/self/fdinfo/%d", fd);
	f = fopen(buf, "re");
	err = f ? 0 : -errno;
	if (f && !fread(buf, 1, sizeof(buf), f))
		err = -EIO;
	if (f)
		fclose(f);
	err = err ?: bpf_task_fd_query(getpid(), fd, 0, NULL, &len, &id, &type, &off, &addr);
	close(fd);
	return err;
}

static const struct part {
	const char *name;
	int (*once)(int prog);
} parts[] = {
	{ "forks", fork_once },
	{ "forks", fork_once },
	{ "opens with a program", open_once },
	{ "ioctls", set_once },
	{ "links", link_once },
	{ "queries", query_once },
};

#define NR_PARTS	ARRAY_SIZE(parts)

static_assert(sizeof(churn->done) / sizeof(*churn->done) >= NR_PARTS, "room for all");

/* The forking tasks end last: no event can be opened on a task that has exited. */
static bool part_ends(unsigned int i)
{
	return i < NR_FORKERS ? __atomic_load_n(&churn->over, __ATOMIC_RELAXED) :
				now_ms() >= churn->end;
}

static int do_part(unsigned int i, int prog)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	srand(i + 1);
	while (!part_ends(i)) {
		int err = parts[i].once(prog);

		if (err)
			churn->done[i].err = err;
		else
			churn->done[i].times++;
		if (err)
			return 1;
	}
	return 0;
}

FIXTURE(programs) {
};

FIXTURE_SETUP(programs)
{
	if (geteuid())
		SKIP(return, "needs root");
}

FIXTURE_TEARDOWN(programs)
{
}

TEST_F_TIMEOUT(programs, survive_all_at_once, MAX_CHURN_S + TEST_S)
{
	long ms = churn_ms("BPF_ATTACH_CHURN_SECONDS", CHURN_MS);
	int map, prog, status;
	pid_t pids[NR_PARTS];
	unsigned int i;
	__u32 id;

	churn = mmap(NULL, sizeof(*churn), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, churn);
	ASSERT_LE(0, ms);
	churn->end = now_ms() + ms;
	prog = load_counter(BPF_PROG_TYPE_PERF_EVENT, &map);
	ASSERT_LE(0, prog);
	id = id_of(prog);
	ASSERT_NE(0, id);

	for (i = 0; i < NR_PARTS; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(do_part(i, prog));
		ASSERT_LT(0, pids[i]);
		if (i < NR_FORKERS)
			churn->forkers[i] = pids[i];
	}
	for (i = NR_PARTS; i-- > 0;) {
		if (i < NR_FORKERS)
			__atomic_store_n(&churn->over, true, __ATOMIC_RELAXED);
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		TH_LOG("%lu %s", churn->done[i].times, parts[i].name);
		EXPECT_LT(0, churn->done[i].times);
		EXPECT_EQ(0, status)
			TH_LOG("%s: %s", parts[i].name, strerror(-churn->done[i].err));
	}

	close(prog);
	EXPECT_TRUE(prog_goes_within(id, WAIT_MS));
	close(map);
}

TEST_HARNESS_MAIN
