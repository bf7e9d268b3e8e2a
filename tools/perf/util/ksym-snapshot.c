// SPDX-License-Identifier: GPL-2.0
/*
 * Which dynamic text does the kernel have already?
 *
 * The kernel tells what comes and what goes. What was there before perf can only
 * be synthesized: BPF programs by their ids, their trampolines from /proc/kallsyms
 * where no lengths are, and what has no name there not at all. What comes or goes
 * meanwhile is told twice, or never.
 *
 * The kernel itself knows, and PERF_EVENT_IOC_KSYM_SNAPSHOT makes it write the same
 * records to the ring buffer of one event, under the lock that orders what comes
 * and goes. With the events of all CPUs open, one snapshot leaves nothing out.
 * Its records have the time of the snapshot, so that it has to be taken before
 * the first sample.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <linux/perf_event.h>
#include <internal/xyarray.h>
#include "cpumap.h"
#include "debug.h"
#include "evlist.h"
#include "evsel.h"
#include "ksym-snapshot.h"

/* The ring buffer may be full of other records, but not twice in a row. */
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

/* Events of tasks on any CPU have no ring buffer of a CPU's. */
static int evsel__ksym_snapshot(struct evsel *evsel, struct ksym_snapshot *snapshot)
{
	struct perf_cpu cpu;
	unsigned int idx;
	int err = -EINVAL;

	perf_cpu_map__for_each_cpu(cpu, idx, evsel__cpus(evsel)) {
		int *fd = xyarray__entry(evsel->core.fd, idx, 0);

		if (cpu.cpu < 0 || *fd < 0)
			continue;

		err = ksym_snapshot__take(snapshot, *fd);
		/* that CPU went offline */
		if (err != -ENODEV)
			break;
	}
	return err;
}

/**
 * evlist__ksym_snapshot - let the kernel replay its dynamic text
 * @evlist: events that are open and mapped
 * @snapshot: what to do when a ring buffer is full
 *
 * Return: 0 when all of it is in the ring buffers, or was drained from there. Else
 * -errno: the kernel has no snapshots, perf may not take one, or no event asks
 * for all that one has to have.
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
