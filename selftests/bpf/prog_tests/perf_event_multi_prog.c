// SPDX-License-Identifier: GPL-2.0
/*
 * Programs of kprobe.multi, uprobe.multi and session links must not be attached to a
 * perf event: their helpers read a run context that only these links provide.
 */
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include "test_progs.h"
#include "perf_event_multi_prog.skel.h"

static noinline void probed(void)
{
	asm volatile ("");
}

static int pmu_type(const char *pmu)
{
	char path[64];
	int type = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", pmu);
	file = fopen(path, "r");
	if (file) {
		if (fscanf(file, "%d", &type) != 1)
			type = -1;
		fclose(file);
	}
	return type;
}

/* A disabled event of this task: a kprobe at a function, or a uprobe in a file */
static int open_probe(const char *pmu, const char *where, __u64 offset)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = pmu_type(pmu),
		.config1 = ptr_to_u64(where),
		.config2 = offset,
		.disabled = 1,
	};

	return syscall(__NR_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int open_tracepoint(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_TRACEPOINT,
		.disabled = 1,
	};
	FILE *file = fopen("/sys/kernel/tracing/events/sched/sched_switch/id", "r");

	if (!file)
		file = fopen("/sys/kernel/debug/tracing/events/sched/sched_switch/id", "r");
	if (!file)
		return -1;
	if (fscanf(file, "%llu", &attr.config) != 1)
		attr.config = 0;
	fclose(file);
	return syscall(__NR_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void expect(int event, const struct bpf_program *prog, int expected)
{
	int err = ioctl(event, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(prog)) ? -errno : 0;

	ASSERT_EQ(err, expected, bpf_program__name(prog));
}

static void test_event(int event, struct perf_event_multi_prog *skel)
{
	if (!ASSERT_GE(event, 0, "perf_event_open"))
		return;
	/* An event takes one program, so what must be refused comes first */
	expect(event, skel->progs.kprobe_multi, -EINVAL);
	expect(event, skel->progs.kprobe_session, -EINVAL);
	expect(event, skel->progs.uprobe_multi, -EINVAL);
	expect(event, skel->progs.uprobe_session, -EINVAL);
	expect(event, skel->progs.kprobe_prog, 0);
	close(event);
}

static void test_tracepoint(int event, struct perf_event_multi_prog *skel)
{
	if (!ASSERT_GE(event, 0, "perf_event_open"))
		return;
	expect(event, skel->progs.tracepoint_prog, 0);
	close(event);
}

void test_perf_event_multi_prog(void)
{
	struct perf_event_multi_prog *skel = perf_event_multi_prog__open();

	if (!ASSERT_OK_PTR(skel, "open"))
		return;
	bpf_program__set_expected_attach_type(skel->progs.tracepoint_prog, BPF_TRACE_KPROBE_MULTI);
	if (!ASSERT_OK(perf_event_multi_prog__load(skel), "load"))
		goto out;
	if (test__start_subtest("kprobe"))
		test_event(open_probe("kprobe", "vfs_read", 0), skel);
	if (test__start_subtest("uprobe"))
		test_event(open_probe("uprobe", "/proc/self/exe",
				      get_uprobe_offset(&probed)), skel);
	if (test__start_subtest("tracepoint"))
		test_tracepoint(open_tracepoint(), skel);
out:
	perf_event_multi_prog__destroy(skel);
}
