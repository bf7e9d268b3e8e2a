// SPDX-License-Identifier: GPL-2.0
/*
 * Does what is kept of BPF programs survive all who use it at the same time?
 *
 * Processes load programs and let them end, read what is told of all there are
 * by id, ask events for what has ended, close events while they are asked, fork
 * and are killed while they hold one, and change the budget. Nobody may be told
 * of another program than the one that was asked for, or run into an error that
 * has no reason here; and when all are gone, nothing is kept. What the kernel
 * has to say of it is in its log, on a kernel with KASAN and lockdep.
 *
 * It takes CHURN_MS; BPF_CHURN_SECONDS in the environment asks for more.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "bpf_info.h"
#include "bpf_raw.h"
#include "ksym_env.h"
#include "ksym_ring.h"

#define BUDGET		"/proc/sys/kernel/perf_bpf_retain_kb"
#define CHURN_MS	15000
#define MAX_CHURN_S	7200
#define NR_IDS		64	/* of those that ended last */
#define NR_KEPT		8	/* files that outlive the event they came from */

/* In memory that all processes share. */
struct churn {
	__u64 end;			/* in ms, of ksym_now_ms() */
	unsigned int next;		/* how many ids there were */
	__u32 ids[NR_IDS];
	struct {
		unsigned long times;
		int err;
		char why[64];
	} done[8];
};

static struct churn *churn;

static bool churn_ends(void)
{
	return ksym_now_ms() >= churn->end;
}

static int open_event(bool retain)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.bpf_event = 1,
		.bpf_retain = retain,
	};
	int fd = syscall(__NR_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static __u32 some_id(void)
{
	unsigned int next = __atomic_load_n(&churn->next, __ATOMIC_ACQUIRE);

	return next ? churn->ids[(next - 1 - rand() % NR_IDS) % NR_IDS] : 0;
}

/* Is what @fd tells that of program @id? Return: 0 or -errno. */
static int told_of(int fd, __u32 id)
{
	static struct info_copy c;
	int err = info_copy__read(&c, fd, false);

	if (err)
		return err;
	return c.info.id == id && c.info.jited_prog_len ? 0 : -EBADMSG;
}

/* Each does its part once. Return: 0, or -errno and in @why what it did. */

static int load_one(const char **why)
{
	unsigned int at;
	bool throws;
	int prog, err;
	static struct info_copy c;

	*why = "load";
	prog = info_prog__load(&throws);
	if (prog < 0)
		return prog;
	*why = "run and read";
	err = info_prog__run(prog, 1) ?: info_copy__read(&c, prog, false);
	at = __atomic_fetch_add(&churn->next, 1, __ATOMIC_ACQ_REL);
	churn->ids[at % NR_IDS] = c.info.id;
	close_fd(&prog);
	return err;
}

/* Readers pause: others need the processors to load what is to be read. */
#define PAUSE_US	1000

static int read_by_id(const char **why)
{
	union bpf_attr attr = { 0 };
	int fd, err;

	*why = "read by id";
	while (!bpf_raw(BPF_PROG_GET_NEXT_ID, &attr)) {
		__u32 id = attr.next_id;

		attr = (union bpf_attr) { .prog_id = id };
		fd = bpf_raw(BPF_PROG_GET_FD_BY_ID, &attr);
		attr = (union bpf_attr) { .start_id = id };
		if (fd == -ENOENT)
			continue;
		if (fd < 0)
			return fd;
		err = told_of(fd, id);
		close(fd);
		if (err && err != -EBADMSG)	/* of others, which may hide their code */
			return err;
	}
	usleep(PAUSE_US);
	return 0;
}

/* An event of this process's own, and files that outlive it. */
static int ask_event(const char **why)
{
	static int event = -1, kept[NR_KEPT], nr_kept;
	int fd, err = 0, i;
	__u32 id = some_id();

	*why = "open an event";
	if (event < 0)
		event = open_event(true);
	if (event < 0)
		return event;

	*why = "ask an event";
	fd = ioctl(event, PERF_EVENT_IOC_BPF_PROG_FD, id);
	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd < 0) {	/* lives, or was evicted, or had ended before */
		usleep(PAUSE_US);
		return 0;
	}
	err = told_of(fd, id);
	kept[nr_kept++] = fd;
	if (nr_kept < NR_KEPT)
		return err;

	close_fd(&event);
	for (i = 0; i < nr_kept; i++) {
		static struct info_copy c;

		*why = "read after the event's end";
		err = err ?: info_copy__read(&c, kept[i], true);
		close(kept[i]);
	}
	nr_kept = 0;
	return err;
}

/* Closed while what it asked for is on the way. */
static int close_event(const char **why)
{
	int event, fd;

	*why = "open an event to close it";
	event = open_event(true);
	if (event < 0)
		return event;
	fcntl(event, F_SETFL, O_NONBLOCK);
	fd = ioctl(event, PERF_EVENT_IOC_BPF_PROG_FD, some_id());
	close_fd(&fd);
	close_fd(&event);
	usleep(PAUSE_US);
	return 0;
}

/* Many have the event, one of them loads, and all are killed. */
static int fork_and_kill(const char **why)
{
	pid_t pids[4];
	int event, i;

	*why = "fork";
	event = open_event(true);
	if (event < 0)
		return event;
	for (i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			int fd = ioctl(event, PERF_EVENT_IOC_BPF_PROG_FD, some_id());

			if (!i && load_one(why))
				_exit(1);
			close_fd(&fd);
		}
	}
	close_fd(&event);
	usleep(rand() % 50000);
	for (i = 0; i < 4; i++) {
		if (pids[i] < 0)
			return -EAGAIN;
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	return 0;
}

static int change_budget(const char **why)
{
	static const int kb[] = { 0, 8, 64, 1024, 16384 };
	FILE *f = fopen(BUDGET, "we");

	*why = "set the budget";
	if (!f)
		return -errno;
	fprintf(f, "%d\n", kb[rand() % 5]);
	usleep(20000);
	return fclose(f) ? -errno : 0;
}

static int (*const parts[])(const char **why) = {
	load_one, load_one, read_by_id, ask_event, ask_event, close_event, fork_and_kill,
	change_budget,
};

#define NR_PARTS	(sizeof(parts) / sizeof(*parts))

static void play(unsigned int part)
{
	const char *why = "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	srand(part + 1);
	do {
		churn->done[part].err = parts[part](&why);
		churn->done[part].times++;
	} while (!churn->done[part].err && !churn_ends());
	snprintf(churn->done[part].why, sizeof(churn->done[part].why), "%s", why);
	_exit(0);
}

/* Return: how many programs are kept, when none is on the way any more, or -errno. */
static long long kept_at_last(void)
{
	__u64 end = ksym_now_ms() + WAIT_MS;
	char path[64], line[128];
	long long kept = -1;

	while (kept && ksym_now_ms() < end) {
		int event = open_event(true);
		FILE *f;

		if (event < 0)
			return event;
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", event);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			sscanf(line, "bpf_retained: %lld", &kept);
		if (f)
			fclose(f);
		close(event);
		usleep(10000);
	}
	return kept;
}

static __u64 churn_ms(struct __test_metadata *_metadata)
{
	const char *seconds = getenv("BPF_CHURN_SECONDS");
	char *end;
	long n;

	if (!seconds)
		return CHURN_MS;
	n = strtol(seconds, &end, 10);
	EXPECT_TRUE(*seconds && !*end && n > 0 && n <= MAX_CHURN_S)
		TH_LOG("BPF_CHURN_SECONDS=%s: 1 to %d, please", seconds, MAX_CHURN_S);
	return n * 1000;
}

FIXTURE(churn) {
	long budget;
};

FIXTURE_SETUP(churn)
{
	const char *reason = cannot_run();

	self->budget = -1;
	churn = MAP_FAILED;
	if (reason)
		SKIP(return, "%s", reason);
	self->budget = read_number(BUDGET);
	ASSERT_LE(0, self->budget) TH_LOG(BUDGET ": %s", strerror(-self->budget));
	churn = mmap(NULL, sizeof(*churn), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, churn);
}

FIXTURE_TEARDOWN(churn)
{
	FILE *f = self->budget < 0 ? NULL : fopen(BUDGET, "we");

	if (f) {
		fprintf(f, "%ld\n", self->budget);
		fclose(f);
	}
	if (churn != MAP_FAILED)
		munmap(churn, sizeof(*churn));
}

TEST_F_TIMEOUT(churn, all_at_once, MAX_CHURN_S + TEST_S)
{
	pid_t pids[NR_PARTS];
	unsigned int i;

	churn->end = ksym_now_ms() + churn_ms(_metadata);
	for (i = 0; i < NR_PARTS; i++) {
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (!pids[i])
			play(i);
	}
	for (i = 0; i < NR_PARTS; i++)
		EXPECT_EQ(pids[i], waitpid(pids[i], NULL, 0));

	for (i = 0; i < NR_PARTS; i++) {
		TH_LOG("%-28s %lu times", churn->done[i].why, churn->done[i].times);
		EXPECT_LT(1UL, churn->done[i].times);
		EXPECT_EQ(0, churn->done[i].err)
			TH_LOG("%s: %s", churn->done[i].why, strerror(-churn->done[i].err));
	}
	EXPECT_EQ(0, kept_at_last());
}

TEST_HARNESS_MAIN
