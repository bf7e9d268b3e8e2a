// SPDX-License-Identifier: GPL-2.0
/*
 * Which CPUs have gone offline while their events were open?
 *
 * The kernel takes the events off a CPU that goes offline, as all but one do when the
 * machine is suspended. It does not put them back when the CPU is online again: from then
 * on, the CPU has no samples, and no record of kernel text that is loaded there. Nothing
 * tells perf so. poll() waits, and read() returns the last count.
 *
 * But the time for which an event has been enabled stands still then, which it does for no
 * other event that is enabled. It also tells when the CPU went offline. evsel__config()
 * requests it for the tracking event, which is open on all CPUs.
 *
 * Unknown remains a CPU that goes offline while the events are disabled, if they are
 * enabled again: the time goes on, though the kernel schedules none of them.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <perf/cpumap.h>
#include <perf/evsel.h>
#include "debug.h"
#include "evlist.h"
#include "evsel.h"
#include "offline-cpus.h"
#include "time-utils.h"

/* Clocks of some machines stand still that long: a tick */
#define TICK_MS			10

/* Instead of a time: the user has been warned */
#define WARNED			ULLONG_MAX

struct offline_cpus {
	struct evsel	*evsel;
	/* when it has last looked, in ns */
	u64		looked;
	/* the time when the recording began; the event may have been enabled before */
	u64		begin;
	size_t		nr_warned;
	char		last_warning[160];
	/* for each CPU of evsel: how long the event had been enabled at the last look, in ns */
	u64		enabled[];
};

/* The tracking event is open on other CPUs too, if a user has chosen some. */
static bool offline_cpus__is_recorded(const struct offline_cpus *oc, struct perf_cpu cpu)
{
	struct evlist *evlist = oc->evsel->evlist;

	return perf_cpu_map__has(evlist__core(evlist)->user_requested_cpus, cpu);
}

static void offline_cpus__warn(struct offline_cpus *oc, int idx, struct perf_cpu cpu)
{
	u64 ms = (max(oc->enabled[idx], oc->begin) - oc->begin) / NSEC_PER_MSEC;

	oc->nr_warned++;
	oc->enabled[idx] = WARNED;
	scnprintf(oc->last_warning, sizeof(oc->last_warning),
		  "CPU %d went offline after %" PRIu64 ".%03" PRIu64 " s: %s (%zu of %d CPUs)",
		  cpu.cpu, ms / MSEC_PER_SEC, ms % MSEC_PER_SEC,
		  offline_cpus__is_recorded(oc, cpu) ?
		  "since then its samples, and names of what was loaded there, are missing" :
		  "since then names of what was loaded there are missing",
		  oc->nr_warned, perf_cpu_map__nr(oc->evsel->core.cpus));
	pr_warning("%s\n", oc->last_warning);
}

/**
 * offline_cpus__last_warning - get the last warning, for a screen that has been cleared
 * @oc: may be NULL
 *
 * Return: NULL if there was none.
 */
const char *offline_cpus__last_warning(const struct offline_cpus *oc)
{
	return oc && oc->nr_warned ? oc->last_warning : NULL;
}

/**
 * offline_cpus__look - find the CPUs that have been offline
 * @oc: may be NULL
 * @warn: warn of them, once of each
 *
 * It does not warn if the last look was less than a tick ago, see TICK_MS.
 *
 * Return: the number of CPUs that seem to have been offline, and of which it has not warned.
 */
size_t offline_cpus__look(struct offline_cpus *oc, bool warn)
{
	struct perf_counts_values count;
	struct perf_cpu cpu;
	unsigned int idx;
	size_t nr = 0;

	if (!oc || oc->evsel->disabled)
		return 0;
	if (warn && rdclock() - oc->looked < TICK_MS * NSEC_PER_MSEC)
		return 0;
	oc->looked = rdclock();

	perf_cpu_map__for_each_cpu(cpu, idx, oc->evsel->core.cpus) {
		if (oc->enabled[idx] == WARNED ||
		    perf_evsel__read(&oc->evsel->core, idx, /*thread=*/0, &count))
			continue;
		if (count.ena && count.ena == oc->enabled[idx]) {
			nr++;
			if (warn)
				offline_cpus__warn(oc, idx, cpu);
		} else {
			oc->enabled[idx] = count.ena;
		}
	}
	return nr;
}

/**
 * offline_cpus__new - begin to look for CPUs that go offline
 * @evlist: open for CPUs, not for tasks, and enabled; must live as long
 *
 * Return: NULL if out of memory, or if there are only events of cgroups.
 */
struct offline_cpus *offline_cpus__new(struct evlist *evlist)
{
	struct evsel *evsel = evlist__get_tracking_event(evlist);
	struct offline_cpus *oc;

	/* the time of an event of a cgroup stands still where none of its tasks runs, too */
	if (evsel->cgrp || !evsel->core.fd)
		return NULL;

	oc = zalloc(sizeof(*oc) + perf_cpu_map__nr(evsel->core.cpus) * sizeof(oc->enabled[0]));
	if (oc) {
		oc->evsel = evsel;
		offline_cpus__look(oc, /*warn=*/false);
		oc->begin = oc->enabled[0];
	}
	return oc;
}

/**
 * offline_cpus__delete - free what offline_cpus__new() returned
 * @oc: may be NULL
 */
void offline_cpus__delete(struct offline_cpus *oc)
{
	free(oc);
}

/**
 * offline_cpus__finish - warn of CPUs that have been offline since the last look
 * @oc: may be NULL; its events are still enabled
 */
void offline_cpus__finish(struct offline_cpus *oc)
{
	offline_cpus__look(oc, /*warn=*/false);
	if (offline_cpus__look(oc, /*warn=*/false)) {
		usleep(TICK_MS * USEC_PER_MSEC);
		offline_cpus__look(oc, /*warn=*/true);
	}
}
