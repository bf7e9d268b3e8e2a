// SPDX-License-Identifier: GPL-2.0
/* bpf_program__open_perf_event(): the program runs from the first overflow on */
#include <linux/perf_event.h>
#include <sys/wait.h>
#include <test_progs.h>
#include "test_perf_link.skel.h"

static const struct perf_event_attr each_switch = {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_CONTEXT_SWITCHES,
	.size = sizeof(each_switch),
	.sample_period = 1,
};

static void switch_tasks(void)
{
	int i;

	for (i = 0; i < 100; i++)
		usleep(100);
}

/* A sleep may end at once, without a switch. */
#define MIN_SWITCHES	10

/* The event counts nothing that the program does not see. */
static void counts_and_runs(struct test_perf_link *skel, struct perf_event_attr attr,
			    const struct bpf_perf_event_open_opts *opts)
{
	__u64 count = 0;
	int pfd;

	skel->bss->run_cnt = 0;
	pfd = bpf_program__open_perf_event(skel->progs.handler, &attr, 0, -1, opts);
	if (!ASSERT_GE(pfd, 0, "open"))
		return;

	switch_tasks();
	ASSERT_OK(ioctl(pfd, PERF_EVENT_IOC_DISABLE, 0), "disable");
	ASSERT_EQ(read(pfd, &count, sizeof(count)), sizeof(count), "read");
	ASSERT_GE(count, MIN_SWITCHES, "count");
	ASSERT_EQ(skel->bss->run_cnt, count, "runs");
	close(pfd);
}

static void attr_sizes(struct test_perf_link *skel)
{
	struct perf_event_attr attr = each_switch;
	struct {
		struct perf_event_attr attr;
		__u64 newer;
	} large = { .attr = each_switch };

	attr.size = PERF_ATTR_SIZE_VER0;
	counts_and_runs(skel, attr, NULL);
	attr.size = PERF_ATTR_SIZE_VER9;
	counts_and_runs(skel, attr, NULL);

	/* what the kernel does not know has to be 0, wherever it is */
	large.attr.size = sizeof(large);
	large.newer = 1;
	ASSERT_EQ(bpf_program__open_perf_event(skel->progs.handler, &large.attr, 0, -1, NULL),
		  -E2BIG, "newer field");
}

/* What a child counts is added to the event when it exits. */
static void children(struct test_perf_link *skel)
{
	struct perf_event_attr attr = each_switch;
	__u64 count = 0;
	pid_t pid;
	int pfd;

	attr.inherit = 1;
	skel->bss->run_cnt = 0;
	pfd = bpf_program__open_perf_event(skel->progs.handler, &attr, 0, -1, NULL);
	if (!ASSERT_GE(pfd, 0, "open"))
		return;

	pid = fork();
	if (!pid) {
		switch_tasks();
		_exit(0);
	}
	if (ASSERT_GE(pid, 0, "fork"))
		waitpid(pid, NULL, 0);
	ASSERT_OK(ioctl(pfd, PERF_EVENT_IOC_DISABLE, 0), "disable");
	ASSERT_EQ(read(pfd, &count, sizeof(count)), sizeof(count), "read");
	ASSERT_GE(count, MIN_SWITCHES, "count");
	ASSERT_EQ(skel->bss->run_cnt, count, "runs");
	close(pfd);
}

static void refused(struct test_perf_link *skel)
{
	LIBBPF_OPTS(bpf_perf_event_open_opts, opts, .bpf_flags = ~0U);
	struct perf_event_attr attr = each_switch;

	ASSERT_EQ(bpf_program__open_perf_event(skel->progs.handler, &attr, 0, -1, &opts),
		  -EINVAL, "unknown flag");
	attr.bpf_flags = PERF_BPF_F_ATTACH;
	ASSERT_EQ(bpf_program__open_perf_event(skel->progs.handler, &attr, 0, -1, NULL),
		  -EINVAL, "bpf_flags in attr");
	attr = each_switch;
	attr.sample_period = 0;
	ASSERT_EQ(bpf_program__open_perf_event(skel->progs.handler, &attr, 0, -1, NULL),
		  -EINVAL, "no period");
}

void test_open_perf_event(void)
{
	LIBBPF_OPTS(bpf_perf_event_open_opts, opts, .bpf_cookie = 1);
	struct test_perf_link *skel = test_perf_link__open_and_load();

	if (!ASSERT_OK_PTR(skel, "load"))
		return;

	if (test__start_subtest("runs"))
		counts_and_runs(skel, each_switch, NULL);
	if (test__start_subtest("cookie"))
		counts_and_runs(skel, each_switch, &opts);
	if (test__start_subtest("attr_sizes"))
		attr_sizes(skel);
	if (test__start_subtest("children"))
		children(skel);
	if (test__start_subtest("refused"))
		refused(skel);
	test_perf_link__destroy(skel);
}
