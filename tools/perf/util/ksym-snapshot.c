// SPDX-License-Identifier: GPL-2.0
/*
 * Records of the dynamic kernel text that exists already.
 *
 * The kernel reports text that is added and removed. Without a snapshot, perf must
 * synthesize records for text that existed before it started. It goes through the ids of
 * BPF programs, and reads their trampolines from /proc/kallsyms, which has no lengths.
 * There are no records for other text. Text that is added or removed while perf does so
 * may be recorded twice, or not at all.
 *
 * PERF_EVENT_IOC_KSYM_SNAPSHOT makes the kernel write these records to the ring buffer
 * of one event, in order with those of removals. A snapshot for one event covers all
 * text. If events are open on all CPUs, all later changes are recorded as well. The
 * records have the time of the snapshot, so it must be taken before the first sample.
 * The kernel writes them on the CPU of the event, where this thread goes meanwhile.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <linux/perf_event.h>
#include <internal/xyarray.h>
#include "affinity.h"
#include "cpumap.h"
#include "debug.h"
#include "evlist.h"
#include "evsel.h"
#include "ksym-snapshot.h"

/* ENOSPC without a record, twice in a row: draining does not help, give up. */
static int ksym_snapshot__take(struct ksym_snapshot *snapshot, int fd)
{
	struct perf_event_ksym_snapshot arg = { .cursor = 0, };
	bool stuck = false;
	int err;

	while (ioctl(fd, PERF_EVENT_IOC_KSYM_SNAPSHOT, &arg)) {
		if (errno != ENOSPC || (stuck && !arg.emitted))
			return -errno;

		stuck = !arg.emitted;
		snapshot->emitted += arg.emitted;
		err = snapshot->drain(snapshot->data);
		if (err)
			return err;
	}
	snapshot->emitted += arg.emitted;
	return 0;
}

/* Events of a task on any CPU (cpu -1) are skipped: they cannot have a snapshot. */
static int evsel__ksym_snapshot(struct evsel *evsel, struct ksym_snapshot *snapshot)
{
	struct affinity affinity;
	struct perf_cpu cpu;
	unsigned int idx;
	int err = -EINVAL;

	if (affinity__setup(&affinity) < 0)
		return -ENOMEM;
	perf_cpu_map__for_each_cpu(cpu, idx, evsel__cpus(evsel)) {
		int *fd = xyarray__entry(evsel->core.fd, idx, 0);

		if (cpu.cpu < 0 || *fd < 0)
			continue;

		affinity__set(&affinity, cpu.cpu);
		err = ksym_snapshot__take(snapshot, *fd);
		/* this CPU went offline, or perf may not run there: try the next one */
		if (err != -ENODEV && err != -EAGAIN)
			break;
	}
	affinity__cleanup(&affinity);
	return err;
}

/**
 * evlist__ksym_snapshot - make the kernel replay its dynamic text
 * @evlist: events that are open and mapped
 * @snapshot: how to drain the ring buffers when one is full
 *
 * Return: 0 if all records are in the ring buffers, or were drained from there. Else
 * -errno: the kernel does not support snapshots, perf may not take one, or no event
 * has both ksymbol_all and bpf_event.
 */
int evlist__ksym_snapshot(struct evlist *evlist, struct ksym_snapshot *snapshot)
{
	struct evsel *evsel;
	int err = -ENOTTY;

	evlist__for_each_entry(evlist, evsel) {
		if (!evsel->core.attr.ksymbol_all || !evsel->core.attr.bpf_event ||
		    !evsel->core.fd)
			continue;

		err = evsel__ksym_snapshot(evsel, snapshot);
		break;
	}

	if (err)
		pr_debug("No snapshot of the kernel's dynamic text: %s\n", strerror(-err));
	else
		pr_debug("The kernel replayed its dynamic text: %lu records\n",
			 snapshot->emitted);
	return err;
}
