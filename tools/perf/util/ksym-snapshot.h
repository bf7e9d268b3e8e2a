/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_KSYM_SNAPSHOT_H
#define __PERF_KSYM_SNAPSHOT_H

struct evlist;

/**
 * struct ksym_snapshot - a snapshot of the kernel's dynamic text
 * @drain: reads all records in the ring buffers, returns 0 or -errno
 * @data: passed to @drain
 * @emitted: out: number of records that the kernel wrote
 */
struct ksym_snapshot {
	int (*drain)(void *data);
	void *data;
	unsigned long emitted;
};

int evlist__ksym_snapshot(struct evlist *evlist, struct ksym_snapshot *snapshot);

#endif /* __PERF_KSYM_SNAPSHOT_H */
