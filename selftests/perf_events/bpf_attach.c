// SPDX-License-Identifier: GPL-2.0
/*
 * BPF programs of perf events: which events run them after a fork and until when,
 * with which cookie, are missed runs counted, and is a program freed when a fork
 * fails?
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "kselftest_harness.h"
#include "lib/bpf_event.h"
#include "lib/test_env.h"

#define FORK_ID		"/sys/kernel/tracing/events/sched/sched_process_fork/id"
#define COOKIE		0xabc
#define MISS_S		60
#define MISS_PERIOD_NS	1000000	/* a sample may take a tenth of it under emulation */
#define NR_UPDATES	20
#define NR_MISSES	20
#define LSM_HOOK	"bpf_lsm_perf_event_alloc"
#define REFUSED		EKEYREJECTED	/* that no other check returns */

/* A map from the id of a process to the cookie that its program saw */
static int cookie_map(void)
{
	return bpf_map_create(BPF_MAP_TYPE_HASH, NULL, sizeof(pid_t), sizeof(__u64), 16, NULL);
}

static int load_cookie_reader(int map)
{
	const struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie),
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_0, -8),
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_STX_MEM(BPF_W, BPF_REG_10, BPF_REG_0, -12),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -12),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, -8),
		BPF_MOV64_IMM(BPF_REG_4, BPF_ANY),
		BPF_EMIT_CALL(BPF_FUNC_map_update_elem),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};

	return bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "read_cookie", "GPL", insns,
			     ARRAY_SIZE(insns), NULL);
}

/* Run a child that causes page faults and exits. Return: its id, or -errno. */
static pid_t child_with_faults(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(!!fault_pages(4));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? pid : -EFAULT;
}

/* A child that causes page faults whenever it is asked to. */
struct faulter {
	pid_t pid;
	int ask, answer;
};

static int start_faulter(struct faulter *f)
{
	int ask[2], answer[2];
	char c;

	if (pipe2(ask, O_CLOEXEC) || pipe2(answer, O_CLOEXEC))
		return -errno;
	f->pid = fork();
	if (!f->pid) {
		/* Not even a link must have a user here */
		if (dup2(ask[0], 0) < 0 || dup2(answer[1], 1) < 0 ||
		    syscall(__NR_close_range, 2, ~0U, 0))
			_exit(1);
		while (read(0, &c, 1) == 1 && !fault_pages(4) && write(1, &c, 1) == 1)
			;
		_exit(0);
	}
	close(ask[0]);
	close(answer[1]);
	f->ask = ask[1];
	f->answer = answer[0];
	return f->pid < 0 ? -errno : 0;
}

static int let_fault(struct faulter *f)
{
	char c = 0;

	return write(f->ask, &c, 1) == 1 && read(f->answer, &c, 1) == 1 ? 0 : -EPIPE;
}

static void end_faulter(struct faulter *f)
{
	close_fd(&f->ask);
	close_fd(&f->answer);
	waitpid(f->pid, NULL, 0);
}

FIXTURE(attach) {
	int map, prog, event;
};

FIXTURE_SETUP(attach)
{
	self->map = -1;
	self->prog = -1;
	self->event = -1;
	if (geteuid())
		SKIP(return, "needs root");
}

FIXTURE_TEARDOWN(attach)
{
	close_fd(&self->event);
	close_fd(&self->prog);
	close_fd(&self->map);
}

/* An event of this process and its children, for a program that reads cookies */
static void open_inherited(struct __test_metadata *_metadata, FIXTURE_DATA(attach) *self)
{
	struct perf_event_attr attr = sw_event_attr(PERF_COUNT_SW_PAGE_FAULTS);

	attr.inherit = 1;
	self->map = cookie_map();
	ASSERT_LE(0, self->map);
	self->prog = load_cookie_reader(self->map);
	ASSERT_LE(0, self->prog);
	self->event = open_own_event(&attr);
	ASSERT_LE(0, self->event);
	ASSERT_EQ(0, event_ioctl(self->event, PERF_EVENT_IOC_ENABLE, 0));
}

/* A child's program has the cookie of its parent's. */
TEST_F(attach, cookie_is_inherited)
{
	pid_t own = getpid(), pid;
	__u64 cookie = 0;
	int link;

	open_inherited(_metadata, self);
	link = link_to_event(self->prog, self->event, COOKIE);
	ASSERT_LE(0, link);

	ASSERT_EQ(0, fault_pages(4));
	pid = child_with_faults();
	ASSERT_LT(0, pid);
	ASSERT_EQ(0, bpf_map_lookup_elem(self->map, &own, &cookie));
	EXPECT_EQ(COOKIE, cookie);
	ASSERT_EQ(0, bpf_map_lookup_elem(self->map, &pid, &cookie));
	EXPECT_EQ(COOKIE, cookie);
	close_fd(&link);
}

/*
 * A child has the program of its parent's event exactly while that has it, whether it
 * was forked before or after the program was attached.
 */
TEST_F(attach, reaches_children)
{
	struct faulter older, younger;
	__u64 cookie;
	int link;

	open_inherited(_metadata, self);

	ASSERT_EQ(0, start_faulter(&older));
	link = link_to_event(self->prog, self->event, COOKIE);
	ASSERT_LE(0, link);
	ASSERT_EQ(0, start_faulter(&younger));
	ASSERT_EQ(0, let_fault(&older));
	ASSERT_EQ(0, let_fault(&younger));
	cookie = 0;
	EXPECT_EQ(0, bpf_map_lookup_elem(self->map, &older.pid, &cookie));
	EXPECT_EQ(COOKIE, cookie);
	cookie = 0;
	EXPECT_EQ(0, bpf_map_lookup_elem(self->map, &younger.pid, &cookie));
	EXPECT_EQ(COOKIE, cookie);

	close_fd(&link);
	bpf_map_delete_elem(self->map, &older.pid);
	bpf_map_delete_elem(self->map, &younger.pid);
	ASSERT_EQ(0, let_fault(&older));
	ASSERT_EQ(0, let_fault(&younger));
	EXPECT_EQ(-ENOENT, bpf_map_lookup_elem(self->map, &older.pid, &cookie));
	EXPECT_EQ(-ENOENT, bpf_map_lookup_elem(self->map, &younger.pid, &cookie));

	end_faulter(&older);
	end_faulter(&younger);
}

/* The same without a link: the program stays until the event is closed. */
TEST_F(attach, ioctl_reaches_children)
{
	struct faulter older, younger;
	__u64 cookie;

	open_inherited(_metadata, self);

	ASSERT_EQ(0, start_faulter(&older));
	ASSERT_EQ(0, event_ioctl(self->event, PERF_EVENT_IOC_SET_BPF, self->prog));
	ASSERT_EQ(0, start_faulter(&younger));
	ASSERT_EQ(0, let_fault(&older));
	ASSERT_EQ(0, let_fault(&younger));
	EXPECT_EQ(0, bpf_map_lookup_elem(self->map, &older.pid, &cookie));
	EXPECT_EQ(0, bpf_map_lookup_elem(self->map, &younger.pid, &cookie));

	end_faulter(&older);
	end_faulter(&younger);
}

/* A child's exit must not detach the program of a tracepoint, which runs for all events. */
TEST_F(attach, tracepoint_outlives_a_child)
{
	long id = read_number(FORK_ID);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.config = id,
		.size = sizeof(attr),
		.sample_period = 1,
		.inherit = 1,
	};
	__u64 before, after;

	if (id < 0)
		SKIP(return, "no " FORK_ID ": mount tracefs");
	self->prog = load_counter(BPF_PROG_TYPE_TRACEPOINT, &self->map);
	ASSERT_LE(0, self->prog);
	self->event = open_own_event(&attr);
	ASSERT_LE(0, self->event);
	ASSERT_EQ(0, event_ioctl(self->event, PERF_EVENT_IOC_SET_BPF, self->prog));

	ASSERT_LT(0, child_with_faults());
	ASSERT_EQ(0, bpf_map_lookup_elem(self->map, &zero, &before));
	EXPECT_LE(1, before);
	ASSERT_LT(0, child_with_faults());
	ASSERT_EQ(0, bpf_map_lookup_elem(self->map, &zero, &after));
	EXPECT_LT(before, after);
}

/*
 * No program runs on a CPU that updates a hash map, as it might update the same
 * map. Samples are dropped then, and recursion_misses counts them.
 */
TEST_F_TIMEOUT(attach, misses_are_counted, TEST_S)
{
	struct perf_event_attr attr = sw_event_attr(PERF_COUNT_SW_CPU_CLOCK);
	time_t end = time(NULL) + MISS_S;
	int hash = cookie_map(), i;
	__u64 key = 1, runs = 0;

	attr.sample_period = MISS_PERIOD_NS;
	ASSERT_LE(0, hash);
	self->prog = load_counter(BPF_PROG_TYPE_PERF_EVENT, &self->map);
	ASSERT_LE(0, self->prog);
	self->event = open_own_event(&attr);
	ASSERT_LE(0, self->event);
	ASSERT_EQ(0, event_ioctl(self->event, PERF_EVENT_IOC_SET_BPF, self->prog));
	ASSERT_EQ(0, event_ioctl(self->event, PERF_EVENT_IOC_ENABLE, 0));

	while ((misses_of(self->prog) < NR_MISSES || !runs) && time(NULL) < end) {
		for (i = 0; i < NR_UPDATES; i++)
			ASSERT_EQ(0, bpf_map_update_elem(hash, &key, &key, BPF_ANY));
		ASSERT_EQ(0, bpf_map_lookup_elem(self->map, &zero, &runs));
	}
	TH_LOG("%llu runs, %lld misses", (unsigned long long)runs, misses_of(self->prog));
	EXPECT_LT(0, runs);
	EXPECT_LT(0, misses_of(self->prog));
	close_fd(&hash);
}

/* Fork while an LSM program refuses new events. Return: 0 or -errno of fork(). */
static int fork_refused(int lsm_prog)
{
	int link = bpf_link_create(lsm_prog, 0, BPF_LSM_MAC, NULL), err = 0;
	pid_t pid;

	if (link < 0)
		return link;
	pid = fork();
	if (!pid)
		_exit(0);
	if (pid < 0)
		err = -errno;
	else
		waitpid(pid, NULL, 0);
	close(link);
	return err;
}

/* The event of the child is freed when the LSM refuses it, and with it its program. */
TEST_F_TIMEOUT(attach, failed_fork_frees_the_program, TEST_S)
{
	struct perf_event_attr attr = sw_event_attr(PERF_COUNT_SW_PAGE_FAULTS);
	int hook = vmlinux_btf_id(LSM_HOOK, BTF_KIND_FUNC), lsm, err;
	__u32 id;

	lsm = hook < 0 ? hook :
	      load_return(BPF_PROG_TYPE_LSM, BPF_LSM_MAC, hook, -REFUSED);
	if (lsm == -ENOENT || lsm == -EINVAL)
		SKIP(return, "needs CONFIG_BPF_LSM");
	ASSERT_LE(0, lsm) TH_LOG("%s: %s", LSM_HOOK, strerror(-lsm));
	attr.inherit = 1;
	self->prog = load_counter(BPF_PROG_TYPE_PERF_EVENT, &self->map);
	ASSERT_LE(0, self->prog);
	id = id_of(self->prog);
	ASSERT_NE(0, id);
	self->event = open_own_event(&attr);
	ASSERT_LE(0, self->event);
	ASSERT_EQ(0, event_ioctl(self->event, PERF_EVENT_IOC_SET_BPF, self->prog));

	err = fork_refused(lsm);
	close_fd(&lsm);
	if (!err)
		SKIP(return, "needs bpf in the boot parameter lsm=, or in CONFIG_LSM");
	ASSERT_EQ(-REFUSED, err);
	close_fd(&self->event);
	close_fd(&self->prog);
	EXPECT_TRUE(prog_goes_within(id, WAIT_MS))
		TH_LOG("the program is still there %d ms later", WAIT_MS);
}

TEST_HARNESS_MAIN
