// SPDX-License-Identifier: GPL-2.0
/* A snapshot that does not fit into the ring continues where it was full. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "ksym_snapshot.h"
#include "test_env.h"

#define MAX_CALLS	10000

/* On the CPU of the first ring */
static int ksym_snapshot_here(struct ksym_rings *rings)
{
	struct perf_event_ksym_snapshot snap = { .cursor = 0 };
	int full, err;

	for (full = 0; full < MAX_CALLS; full++) {
		if (!ioctl(rings->fds[0].fd, PERF_EVENT_IOC_KSYM_SNAPSHOT, &snap))
			return full;
		if (errno != ENOSPC)
			return -errno;
		err = ksym_rings__read(rings);
		if (err)
			return err;
	}
	return -ELOOP;
}

int ksym_snapshot(struct ksym_rings *rings)
{
	cpu_set_t before;
	int ret;

	if (sched_getaffinity(0, sizeof(before), &before))
		return -errno;
	ret = run_on_cpu(0);
	if (!ret)
		ret = ksym_snapshot_here(rings);
	sched_setaffinity(0, sizeof(before), &before);
	return ret;
}

bool ksym_rec__is_replay(const struct ksym_rec *rec)
{
	return rec->type == PERF_RECORD_MMAP2 ||
	       (ksym_rec__is(rec, false) &&
		rec->misc & PERF_RECORD_MISC_KSYMBOL_SNAPSHOT);
}

int ksym_set__read_snapshot(struct ksym_set *set, const struct ksym_rings *rings, size_t from)
{
	const struct ksym_rec *rec;
	int err = 0;
	size_t i;

	for (i = from; i < rings->nr_recs && !err; i++) {
		rec = &rings->recs[i];
		if (ksym_rec__is_replay(rec))
			err = ksym_set__add(set, rec->k.addr, rec->k.len,
					    rec->k.ksym_type, rec->name);
	}
	ksym_set__sort(set);
	return err;
}
