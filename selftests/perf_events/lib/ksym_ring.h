/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One event and its ring buffer per CPU, read into one list of records sorted
 * by time: KSYMBOL records come from the CPU that creates or frees the text, and
 * text is often freed on another CPU than the one it was created on.
 */
#ifndef SELFTESTS_PERF_EVENTS_KSYM_RING_H
#define SELFTESTS_PERF_EVENTS_KSYM_RING_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/perf_event.h>

#define KSYM_NAME_LEN	512	/* as in the kernel */

/* A KSYMBOL record without its header, up to the name. */
struct ksym_body {
	__u64 addr;
	__u32 len;
	__u16 ksym_type;
	__u16 flags;
};

struct ksym_rec {
	__u32 type;		/* PERF_RECORD_KSYMBOL, _SAMPLE, _BPF_EVENT, _MMAP2,
				 * _TEXT_POKE
				 */
	__u16 misc;		/* PERF_RECORD_MISC_* */
	__u64 time;		/* CLOCK_MONOTONIC, ns */
	size_t seq;		/* order of reading, for records of the same time */
	struct ksym_body k;	/* k and name are for KSYMBOL and the kernel's MMAP2;
				 * of BPF_EVENT k has type, flags, and the id as addr;
				 * of TEXT_POKE addr and the number of new bytes
				 */
	char name[KSYM_NAME_LEN];
	unsigned char *code;	/* the new bytes of TEXT_POKE, or NULL */
};

struct ksym_rings {
	int nr;
	int pages;		/* of data in each ring, a power of 2 */
	struct pollfd *fds;
	struct perf_event_mmap_page **maps;
	struct ksym_rec *recs;
	size_t nr_recs, max_recs;
	__u64 lost;		/* records that did not fit into a ring */
	unsigned long flags;	/* PERF_FLAG_*, of perf_event_open() */
};

bool ksym_rec__is(const struct ksym_rec *rec, bool unregister);

/*
 * Open @attr on every CPU that is online. The caller sets type, config,
 * sample_period and the records to report in addition to KSYMBOL.
 * Return: 0 or -errno, and then nothing is open.
 */
int ksym_rings__open(struct ksym_rings *r, struct perf_event_attr *attr);
void ksym_rings__close(struct ksym_rings *r);

/* The same, with rings of @pages. */
int ksym_rings__open_size(struct ksym_rings *r, struct perf_event_attr *attr, int pages);

/* As ksym_rings__open() for one event of the current task, on any CPU. */
int ksym_rings__open_task(struct ksym_rings *r, struct perf_event_attr *attr);

/* The same for one event of the cgroup whose directory is @cgroup, on @cpu. */
int ksym_rings__open_cgroup(struct ksym_rings *r, struct perf_event_attr *attr, int cgroup,
			    int cpu);

/* As ksym_rings__open() with a dummy event, for KSYMBOL records alone. */
int ksym_rings__open_dummy(struct ksym_rings *r);

/* Discard the records that were read. */
void ksym_rings__forget(struct ksym_rings *r);

/* Append what is in the rings to r->recs, ring by ring. Return: 0 or -errno. */
int ksym_rings__read(struct ksym_rings *r);

/* The same, and sort all records that were read so far by time. */
int ksym_rings__drain(struct ksym_rings *r);

/*
 * The last record of this kind whose name begins with @prefix, at @addr unless
 * that is 0, or NULL. The result is valid until the rings are read again.
 */
const struct ksym_rec *ksym_rings__find(const struct ksym_rings *r, const char *prefix,
					__u64 addr, bool unregister);

/* As ksym_rings__find(), but drain the rings and wait up to @timeout_ms. */
const struct ksym_rec *ksym_rings__wait(struct ksym_rings *r, const char *prefix,
					__u64 addr, bool unregister, int timeout_ms);

/*
 * Read the rings until they have an UNREGISTER whose name contains @part, for up
 * to WAIT_MS. Return: the record, or NULL.
 */
const struct ksym_rec *ksym_rings__wait_unregister(struct ksym_rings *r, const char *part);

#endif
