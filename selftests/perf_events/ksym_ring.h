/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One event and its ring buffer per CPU, read into one list of records in the
 * order of their time stamps: KSYMBOL records come from the CPU that makes or
 * frees the text, and text is often freed on another CPU than it was made on.
 */
#ifndef SELFTESTS_PERF_EVENTS_KSYM_RING_H
#define SELFTESTS_PERF_EVENTS_KSYM_RING_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define KSYM_RING_PAGES	64	/* that ksym_rings__open() makes a ring of */
#define KSYM_NAME_LEN	512	/* as in the kernel */
#define KSYM_MAX_CPUS	1024

/* A KSYMBOL record without its header, up to the name. */
struct ksym_body {
	__u64 addr;
	__u32 len;
	__u16 ksym_type;
	__u16 flags;
};

struct ksym_rec {
	__u32 type;		/* PERF_RECORD_KSYMBOL, _SAMPLE, _BPF_EVENT, _MMAP2 */
	__u64 time;		/* CLOCK_MONOTONIC, ns */
	size_t seq;		/* order of reading: ties of the time */
	struct ksym_body k;	/* these two for KSYMBOL, and for the kernel's MMAP2;
				 * of BPF_EVENT the type, flags, and the id as address
				 */
	char name[KSYM_NAME_LEN];
};

struct ksym_rings {
	int nr;
	int pages;		/* of data in each ring, a power of 2 */
	struct pollfd *fds;
	struct perf_event_mmap_page **maps;
	struct ksym_rec *recs;
	size_t nr_recs, max_recs;
	__u64 lost;		/* records that the kernel had no room for */
};

static inline bool ksym_rec__is(const struct ksym_rec *rec, bool unregister)
{
	return rec->type == PERF_RECORD_KSYMBOL && unregister ==
	       !!(rec->k.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
}

static inline size_t ksym_rings__size(const struct ksym_rings *r)
{
	return r->pages * sysconf(_SC_PAGESIZE);
}

static inline int ksym_rings__open_cpu(struct ksym_rings *r, int cpu,
				       struct perf_event_attr *attr)
{
	size_t size = ksym_rings__size(r) + sysconf(_SC_PAGESIZE);
	void *map;
	int fd;

	fd = syscall(__NR_perf_event_open, attr, -1, cpu, -1,
		     PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno == ENODEV ? 0 : -errno;	/* CPU is offline */

	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		int err = -errno;

		close(fd);
		return err;
	}

	r->fds[r->nr] = (struct pollfd){ .fd = fd, .events = POLLIN };
	r->maps[r->nr++] = map;
	return 0;
}

static inline void ksym_rings__close(struct ksym_rings *r)
{
	while (r->nr--) {
		munmap(r->maps[r->nr],
		       ksym_rings__size(r) + sysconf(_SC_PAGESIZE));
		close(r->fds[r->nr].fd);
	}
	free(r->fds);
	free(r->maps);
	free(r->recs);
	memset(r, 0, sizeof(*r));
}

/*
 * Open @attr on every CPU that is online, each with a ring of @pages; type,
 * config, sample_period and what it reports beside KSYMBOL are the caller's.
 * Return: 0 or -errno, and then nothing is open.
 */
static inline int ksym_rings__open_size(struct ksym_rings *r,
					struct perf_event_attr *attr, int pages)
{
	int cpu, nr_cpus = sysconf(_SC_NPROCESSORS_CONF), err = -ENOMEM;

	if (nr_cpus > KSYM_MAX_CPUS)
		nr_cpus = KSYM_MAX_CPUS;

	attr->size = sizeof(*attr);
	attr->ksymbol = 1;
	attr->sample_type = PERF_SAMPLE_TIME;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->watermark = 1;		/* poll() wakes up for each record */
	attr->wakeup_watermark = 1;

	memset(r, 0, sizeof(*r));
	r->pages = pages;
	r->fds = calloc(nr_cpus, sizeof(*r->fds));
	r->maps = calloc(nr_cpus, sizeof(*r->maps));
	if (!r->fds || !r->maps)
		goto err_close;

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		err = ksym_rings__open_cpu(r, cpu, attr);
		if (err)
			goto err_close;
	}
	return 0;

err_close:
	ksym_rings__close(r);
	return err;
}

static inline int ksym_rings__open(struct ksym_rings *r,
				   struct perf_event_attr *attr)
{
	return ksym_rings__open_size(r, attr, KSYM_RING_PAGES);
}

static inline int ksym_rings__add(struct ksym_rings *r,
				  const struct ksym_rec *rec)
{
	if (r->nr_recs == r->max_recs) {
		size_t max = r->max_recs ? 2 * r->max_recs : 64;
		void *recs = realloc(r->recs, max * sizeof(*rec));

		if (!recs)
			return -ENOMEM;
		r->recs = recs;
		r->max_recs = max;
	}
	r->recs[r->nr_recs] = *rec;
	r->recs[r->nr_recs].seq = r->nr_recs;
	r->nr_recs++;
	return 0;
}

/* "[dummy]", the file name of a module's text, is the name "dummy" here. */
static inline void ksym_rings__module(struct ksym_rec *rec, const char *body,
				      size_t size)
{
	const char *file = body + 64;
	__u64 len;

	memcpy(&rec->k.addr, body + 8, sizeof(rec->k.addr));
	memcpy(&len, body + 16, sizeof(len));
	rec->k.len = len;
	rec->k.ksym_type = PERF_RECORD_KSYMBOL_TYPE_MODULE;
	snprintf(rec->name, sizeof(rec->name), "%.*s", (int)(size - 64),
		 *file == '[' ? file + 1 : file);
	rec->name[strcspn(rec->name, "]")] = '\0';
}

/*
 * KSYMBOL    [ header | struct ksym_body | name, padded to 8 | time ]
 * SAMPLE     [ header | time ]
 * LOST       [ header | id | lost | time ]
 * BPF_EVENT  [ header | type, flags, id | tag | time ]
 * MMAP2      [ header | pid, tid | addr | len | pgoff | 24 bytes that tell the
 *              file | prot, flags | file name, padded to 8 | time ]
 */
static inline bool ksym_rings__is_module(const struct perf_event_header *hdr)
{
	return hdr->type == PERF_RECORD_MMAP2 &&
	       (hdr->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
	       PERF_RECORD_MISC_KERNEL;
}

static inline int ksym_rings__record(struct ksym_rings *r, const char *buf)
{
	const struct perf_event_header *hdr = (const void *)buf;
	const char *body = buf + sizeof(*hdr);
	struct ksym_rec rec = { .type = hdr->type };
	size_t name_len;
	__u32 id;

	if (hdr->type == PERF_RECORD_LOST) {
		r->lost += ((const __u64 *)body)[1];
		return 0;
	}
	if (hdr->type != PERF_RECORD_KSYMBOL && hdr->type != PERF_RECORD_SAMPLE &&
	    hdr->type != PERF_RECORD_BPF_EVENT && !ksym_rings__is_module(hdr))
		return 0;

	memcpy(&rec.time, buf + hdr->size - sizeof(rec.time), sizeof(rec.time));
	if (hdr->type == PERF_RECORD_MMAP2)
		ksym_rings__module(&rec, body, hdr->size - sizeof(*hdr) -
				   sizeof(rec.time));
	if (hdr->type == PERF_RECORD_BPF_EVENT) {
		memcpy(&rec.k.ksym_type, body, sizeof(rec.k.ksym_type));
		memcpy(&rec.k.flags, body + 2, sizeof(rec.k.flags));
		memcpy(&id, body + 4, sizeof(id));
		rec.k.addr = id;
	}
	if (hdr->type == PERF_RECORD_KSYMBOL) {
		name_len = hdr->size - sizeof(*hdr) - sizeof(rec.k) -
			   sizeof(rec.time);
		if (name_len > sizeof(rec.name))
			return -EPROTO;
		memcpy(&rec.k, body, sizeof(rec.k));
		memcpy(rec.name, body + sizeof(rec.k), name_len);
		rec.name[sizeof(rec.name) - 1] = '\0';
	}
	return ksym_rings__add(r, &rec);
}

static inline int ksym_rings__drain_one(struct ksym_rings *r,
					struct perf_event_mmap_page *map)
{
	const char *data = (char *)map + sysconf(_SC_PAGESIZE);
	__u64 head = __atomic_load_n(&map->data_head, __ATOMIC_ACQUIRE);
	size_t size = ksym_rings__size(r), i;
	__u64 tail = map->data_tail;
	static __u64 buf[(1 << 16) / sizeof(__u64)];
	struct perf_event_header hdr;
	int err = 0;

	while (tail != head && !err) {
		/* Headers are 8 bytes, aligned: they never wrap around. */
		memcpy(&hdr, data + tail % size, sizeof(hdr));
		if (hdr.size < sizeof(hdr) + sizeof(__u64))
			return -EPROTO;
		for (i = 0; i < hdr.size; i++)
			((char *)buf)[i] = data[(tail + i) % size];
		err = ksym_rings__record(r, (char *)buf);
		tail += hdr.size;
	}
	__atomic_store_n(&map->data_tail, tail, __ATOMIC_RELEASE);
	return err;
}

static inline int ksym_rec__cmp(const void *a, const void *b)
{
	const struct ksym_rec *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/*
 * Read what is in the rings to the end of r->recs, in the order of the rings.
 * Return: 0 or -errno.
 */
static inline int ksym_rings__read(struct ksym_rings *r)
{
	int i, err = 0;

	for (i = 0; i < r->nr && !err; i++)
		err = ksym_rings__drain_one(r, r->maps[i]);
	return err;
}

/* The same, and sort all that was read by its time. */
static inline int ksym_rings__drain(struct ksym_rings *r)
{
	int err = ksym_rings__read(r);

	if (r->nr_recs)
		qsort(r->recs, r->nr_recs, sizeof(*r->recs), ksym_rec__cmp);
	return err;
}

/* The last record of this kind whose name begins with @prefix, or NULL. */
static inline const struct ksym_rec *
ksym_rings__find(const struct ksym_rings *r, const char *prefix, __u64 addr,
		 bool unregister)
{
	size_t i = r->nr_recs;

	while (i--) {
		const struct ksym_rec *rec = &r->recs[i];

		if (ksym_rec__is(rec, unregister) &&
		    (!addr || rec->k.addr == addr) &&
		    !strncmp(rec->name, prefix, strlen(prefix)))
			return rec;
	}
	return NULL;
}

static inline __u64 ksym_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

/*
 * As ksym_rings__find(), but wait up to @timeout_ms for the record. The result
 * is valid until the rings are read again.
 */
static inline const struct ksym_rec *
ksym_rings__wait(struct ksym_rings *r, const char *prefix, __u64 addr,
		 bool unregister, int timeout_ms)
{
	__u64 end = ksym_now_ms() + timeout_ms, now;
	const struct ksym_rec *rec;

	while (!ksym_rings__drain(r)) {
		rec = ksym_rings__find(r, prefix, addr, unregister);
		now = ksym_now_ms();
		if (rec || now >= end)
			return rec;
		poll(r->fds, r->nr, end - now);
	}
	return NULL;
}

#endif
