// SPDX-License-Identifier: GPL-2.0
/*
 * Stress retained information of BPF programs.
 *
 * Several processes run at the same time. They load and unload programs, read
 * bpf_prog_info of all programs by id, get unloaded programs from events, open and
 * close events, fork children that are killed while they share an event, and change
 * the memory limit. The information must be that of the requested program, no call may
 * fail with an unexpected error, and in the end nothing may be retained. KASAN and
 * lockdep report use after free and wrong locking in the kernel log.
 *
 * Runs for CHURN_MS, or for the environment's BPF_CHURN_SECONDS.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "lib/bpf_info.h"
#include "lib/bpf_load.h"
#include "lib/retained.h"
#include "lib/test_env.h"

#define CHURN_MS	15000
#define NR_IDS		64	/* ids of the programs loaded last */
#define NR_KEPT		8	/* files that outlive the event they came from */

/* In memory that all processes share */
struct churn {
	__u64 end;			/* in ms, of now_ms() */
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
	return now_ms() >= churn->end;
}

static __u32 some_id(void)
{
	unsigned int next = __atomic_load_n(&churn->next, __ATOMIC_ACQUIRE);

	return next ? churn->ids[(next - 1 - rand() % NR_IDS) % NR_IDS] : 0;
}

/* Check that @fd describes program @id. Return: 0, -EBADMSG if not, or -errno. */
static int is_about(int fd, __u32 id)
{
	static struct info_copy c;
	int err = info_copy__read(&c, fd, false);

	if (err)
		return err;
	return c.info.id == id && c.info.jited_prog_len ? 0 : -EBADMSG;
}

/* One step of each process. Return: 0 or -errno, and in @why what it did. */

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
	err = run_on_packet(prog, 1) ?: info_copy__read(&c, prog, false);
	at = __atomic_fetch_add(&churn->next, 1, __ATOMIC_ACQ_REL);
	churn->ids[at % NR_IDS] = c.info.id;
	close_fd(&prog);
	return err;
}

/* Readers pause, or the processes that load programs get no CPU. */
#define PAUSE_US	1000

static int read_by_id(const char **why)
{
	__u32 id = 0;
	int fd, err;

	*why = "read by id";
	while (!bpf_prog_get_next_id(id, &id)) {
		fd = bpf_prog_get_fd_by_id(id);
		if (fd == -ENOENT)
			continue;
		if (fd < 0)
			return fd;
		err = is_about(fd, id);
		close(fd);
		/* A program of another process may have no code. */
		if (err && err != -EBADMSG)
			return err;
	}
	usleep(PAUSE_US);
	return 0;
}

/* Get unloaded programs from an event, and read them again after it is closed. */
static int ask_event(const char **why)
{
	static int event = -1, kept[NR_KEPT], nr_kept;
	int fd, err = 0, i;
	__u32 id = some_id();

	*why = "open an event";
	if (event < 0)
		event = open_retain_event(true);
	if (event < 0)
		return event;

	*why = "ask an event";
	fd = ended_prog(event, id);
	if (fd < 0 && fd != -ENOENT)
		return fd;
	/* Still loaded, evicted, or unloaded before the event was opened */
	if (fd < 0) {
		usleep(PAUSE_US);
		return 0;
	}
	err = is_about(fd, id);
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

/*
 * Close an event that may be the last one, while others get programs. The program may
 * not be there, or not be complete (EAGAIN): any result is right.
 */
static int close_event(const char **why)
{
	int event, fd;

	*why = "open an event to close it";
	event = open_retain_event(true);
	if (event < 0)
		return event;
	fcntl(event, F_SETFL, O_NONBLOCK);
	fd = ended_prog(event, some_id());
	close_fd(&fd);
	close_fd(&event);
	usleep(PAUSE_US);
	return 0;
}

/*
 * Four children share an event, and all are killed at some moment. What they return
 * does not matter: others check the results, and retained_at_end() what is left.
 */
static int fork_and_kill(const char **why)
{
	pid_t pids[4];
	int event, i;

	*why = "fork";
	event = open_retain_event(true);
	if (event < 0)
		return event;
	for (i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			int fd = ended_prog(event, some_id());

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

	*why = "set the budget";
	usleep(20000);
	return write_number(BUDGET, kb[rand() % 5]);
}

static int (*const parts[])(const char **why) = {
	load_one, load_one, read_by_id, ask_event, ask_event, close_event, fork_and_kill,
	change_budget,
};

#define NR_PARTS	ARRAY_SIZE(parts)

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

/* Wait until nothing is retained. Return: how many programs still are, or -errno. */
static long long retained_at_end(void)
{
	__u64 end = now_ms() + WAIT_MS;
	long long kept = -1;

	while (kept && now_ms() < end) {
		int event = open_retain_event(true);

		if (event < 0)
			return event;
		kept = fdinfo_number(event, "bpf_retained");
		close(event);
		usleep(10000);
	}
	return kept;
}

FIXTURE(churn) {
	long budget;
};

FIXTURE_SETUP(churn)
{
	const char *reason = skip_reason();

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
	if (self->budget >= 0)
		write_number(BUDGET, self->budget);
	if (churn != MAP_FAILED)
		munmap(churn, sizeof(*churn));
}

TEST_F_TIMEOUT(churn, all_at_once, MAX_CHURN_S + TEST_S)
{
	long ms = churn_ms("BPF_CHURN_SECONDS", CHURN_MS);
	pid_t pids[NR_PARTS];
	unsigned int i;

	ASSERT_LE(0, ms);
	churn->end = now_ms() + ms;
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
	EXPECT_EQ(0, retained_at_end());
}

TEST_HARNESS_MAIN
