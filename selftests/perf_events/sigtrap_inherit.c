// SPDX-License-Identifier: GPL-2.0
/*
 * Does the SIGTRAP of an inherited event have the type that perf_event_open() was
 * called with?
 *
 * cpu-clock and task-clock are opened as PERF_TYPE_SOFTWARE and belong to PMUs that
 * have types of their own, which must not be in si_perf_type.
 */
#define _GNU_SOURCE

/* The kernel's siginfo_t: si_perf_type is younger than some libraries. */
#include <sys/types.h>
#include <asm/siginfo.h>
#define __have_siginfo_t 1
#define __have_sigval_t 1
#define __have_sigevent_t 1
#define __siginfo_t_defined
#define __sigval_t_defined
#define __sigevent_t_defined
#define _BITS_SIGINFO_CONSTS_H 1
#define _BITS_SIGEVENT_CONSTS_H 1

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "lib/bpf_event.h"
#include "lib/test_env.h"

#define PERIOD_NS	1000000
#define NO_TYPE		-1

/* Written by the handlers of this process and of its child. */
static struct types {
	int parent, child;
} *types;

static int *type_seen;		/* where the handler of this process stores it */

static void store_type(int signum, siginfo_t *info, void *ucontext)
{
	if (info->si_code == TRAP_PERF)
		*type_seen = info->si_perf_type;
}

/* Use the CPU until a signal has come, or for WAIT_MS. */
static void spin_until_signal(void)
{
	__u64 end = now_ms() + WAIT_MS;

	while (__atomic_load_n(type_seen, __ATOMIC_RELAXED) == NO_TYPE && now_ms() < end)
		;
}

FIXTURE(clock) {
	int event;
};

FIXTURE_VARIANT(clock) {
	__u64 config;
};

FIXTURE_VARIANT_ADD(clock, cpu) { .config = PERF_COUNT_SW_CPU_CLOCK };
FIXTURE_VARIANT_ADD(clock, task) { .config = PERF_COUNT_SW_TASK_CLOCK };

FIXTURE_SETUP(clock)
{
	struct perf_event_attr attr = sw_event_attr(variant->config);
	struct sigaction action = {
		.sa_flags = SA_SIGINFO,
		.sa_sigaction = store_type,
	};

	self->event = -1;
	types = mmap(NULL, sizeof(*types), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, types);
	types->parent = NO_TYPE;
	types->child = NO_TYPE;
	type_seen = &types->parent;
	ASSERT_EQ(0, sigaction(SIGTRAP, &action, NULL));

	attr.sample_period = PERIOD_NS;
	attr.inherit = 1;
	attr.remove_on_exec = 1;	/* sigtrap needs it */
	attr.sigtrap = 1;
	attr.exclude_kernel = 1;	/* for users without privilege */
	attr.exclude_hv = 1;
	self->event = open_own_event(&attr);
	if (self->event == -EACCES || self->event == -EPERM)
		SKIP(return, "kernel.perf_event_paranoid forbids events: set it to 2");
	ASSERT_LE(0, self->event) TH_LOG("%s", strerror(-self->event));
	ASSERT_EQ(0, event_ioctl(self->event, PERF_EVENT_IOC_ENABLE, 0));
}

FIXTURE_TEARDOWN(clock)
{
	close_fd(&self->event);
	munmap(types, sizeof(*types));
}

TEST_F_TIMEOUT(clock, type_of_a_child, TEST_S)
{
	int status;
	pid_t pid;

	spin_until_signal();
	EXPECT_EQ(PERF_TYPE_SOFTWARE, types->parent);
	pid = fork();
	if (!pid) {
		type_seen = &types->child;
		spin_until_signal();
		_exit(0);
	}
	ASSERT_LT(0, pid);
	while (waitpid(pid, &status, 0) < 0)
		ASSERT_EQ(EINTR, errno);
	EXPECT_EQ(0, status);
	EXPECT_EQ(PERF_TYPE_SOFTWARE, types->child)
		TH_LOG("the child's SIGTRAP has type %d", types->child);
}

TEST_HARNESS_MAIN
