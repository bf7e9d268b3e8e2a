// SPDX-License-Identifier: GPL-2.0
/* Opens and reads the rings; the layouts of the records are above parse_record(). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ksym_ring.h"
#include "test_env.h"

#define RING_PAGES	64	/* of data, unless the caller says how many */
#define MAX_CPUS	1024

bool ksym_rec__is(const struct ksym_rec *rec, bool unregister)
{
	return rec->type == PERF_RECORD_KSYMBOL && unregister ==
	       !!(rec->k.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
}

static size_t ring_size(const struct ksym_rings *r)
{
	return r->pages * sysconf(_SC_PAGESIZE);
}

static int open_one(struct ksym_rings *r, pid_t pid, int cpu,
		    struct perf_event_attr *attr)
{
	size_t size = ring_size(r) + sysconf(_SC_PAGESIZE);
	void *map;
	int fd;

	fd = syscall(__NR_perf_event_open, attr, pid, cpu, -1,
		     PERF_FLAG_FD_CLOEXEC | r->flags);
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

static int ksym_rings__init(struct ksym_rings *r, struct perf_event_attr *attr,
			    int max, int pages)
{
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
	r->fds = calloc(max, sizeof(*r->fds));
	r->maps = calloc(max, sizeof(*r->maps));
	return r->fds && r->maps ? 0 : -ENOMEM;
}

int ksym_rings__open_size(struct ksym_rings *r, struct perf_event_attr *attr, int pages)
{
	int cpu, nr_cpus = sysconf(_SC_NPROCESSORS_CONF), err;

	if (nr_cpus > MAX_CPUS)
		nr_cpus = MAX_CPUS;

	err = ksym_rings__init(r, attr, nr_cpus, pages);
	if (err)
		goto err_close;

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		err = open_one(r, -1, cpu, attr);
		if (err)
			goto err_close;
	}
	return 0;

err_close:
	ksym_rings__close(r);
	return err;
}

int ksym_rings__open_task(struct ksym_rings *r, struct perf_event_attr *attr)
{
	int err = ksym_rings__init(r, attr, 1, RING_PAGES) ?: open_one(r, 0, -1, attr);

	if (err)
		ksym_rings__close(r);
	return err;
}

int ksym_rings__open_cgroup(struct ksym_rings *r, struct perf_event_attr *attr, int cgroup,
			    int cpu)
{
	int err = ksym_rings__init(r, attr, 1, RING_PAGES);

	r->flags = PERF_FLAG_PID_CGROUP;
	err = err ?: open_one(r, cgroup, cpu, attr);
	if (err)
		ksym_rings__close(r);
	return err;
}

void ksym_rings__close(struct ksym_rings *r)
{
	while (r->nr--) {
		munmap(r->maps[r->nr], ring_size(r) + sysconf(_SC_PAGESIZE));
		close(r->fds[r->nr].fd);
	}
	ksym_rings__forget(r);
	free(r->fds);
	free(r->maps);
	free(r->recs);
	memset(r, 0, sizeof(*r));
}

void ksym_rings__forget(struct ksym_rings *r)
{
	while (r->nr_recs)
		free(r->recs[--r->nr_recs].code);
}

int ksym_rings__open(struct ksym_rings *r, struct perf_event_attr *attr)
{
	return ksym_rings__open_size(r, attr, RING_PAGES);
}

int ksym_rings__open_dummy(struct ksym_rings *r)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
	};

	return ksym_rings__open(r, &attr);
}

static int add_record(struct ksym_rings *r, const struct ksym_rec *rec)
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

static bool is_module(const struct perf_event_header *hdr)
{
	return hdr->type == PERF_RECORD_MMAP2 &&
	       (hdr->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
}

/* Text of a module has the file name "[dummy]", which becomes the name "dummy". */
static void parse_module(struct ksym_rec *rec, const char *body, size_t size)
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

static void parse_bpf_event(struct ksym_rec *rec, const char *body)
{
	__u32 id;

	memcpy(&rec->k.ksym_type, body, sizeof(rec->k.ksym_type));
	memcpy(&rec->k.flags, body + 2, sizeof(rec->k.flags));
	memcpy(&id, body + 4, sizeof(id));
	rec->k.addr = id;
}

static int parse_text_poke(struct ksym_rec *rec, const char *body, size_t size)
{
	__u16 old_len, new_len;
	const char *bytes = body + 12;

	memcpy(&rec->k.addr, body, sizeof(rec->k.addr));
	memcpy(&old_len, body + 8, sizeof(old_len));
	memcpy(&new_len, body + 10, sizeof(new_len));
	if (12 + old_len + new_len > size)
		return -EPROTO;
	rec->k.len = new_len;
	rec->code = malloc(new_len + 1);
	if (!rec->code)
		return -ENOMEM;
	memcpy(rec->code, bytes + old_len, new_len);
	return 0;
}

/*
 * KSYMBOL    [ header | struct ksym_body | name, padded to 8 | time ]
 * SAMPLE     [ header | time ]
 * LOST       [ header | id | lost | time ]
 * BPF_EVENT  [ header | type, flags, id | tag | time ]
 * MMAP2      [ header | pid, tid | addr | len | pgoff | 24 bytes that identify
 *              the file | prot, flags | file name, padded to 8 | time ]
 * TEXT_POKE  [ header | addr | old_len, new_len | old bytes | new bytes, padded
 *              to 8 | time ]
 */
static int parse_record(struct ksym_rings *r, const char *buf)
{
	const struct perf_event_header *hdr = (const void *)buf;
	const char *body = buf + sizeof(*hdr);
	struct ksym_rec rec = { .type = hdr->type, .misc = hdr->misc };
	size_t name_len;
	int err;

	if (hdr->type == PERF_RECORD_LOST) {
		r->lost += ((const __u64 *)body)[1];
		return 0;
	}
	if (hdr->type != PERF_RECORD_KSYMBOL && hdr->type != PERF_RECORD_SAMPLE &&
	    hdr->type != PERF_RECORD_BPF_EVENT &&
	    hdr->type != PERF_RECORD_TEXT_POKE && !is_module(hdr))
		return 0;

	memcpy(&rec.time, buf + hdr->size - sizeof(rec.time), sizeof(rec.time));
	if (hdr->type == PERF_RECORD_MMAP2)
		parse_module(&rec, body, hdr->size - sizeof(*hdr) - sizeof(rec.time));
	if (hdr->type == PERF_RECORD_BPF_EVENT)
		parse_bpf_event(&rec, body);
	if (hdr->type == PERF_RECORD_TEXT_POKE) {
		err = parse_text_poke(&rec, body,
				      hdr->size - sizeof(*hdr) - sizeof(rec.time));
		if (err)
			return err;
	}
	if (hdr->type == PERF_RECORD_KSYMBOL) {
		name_len = hdr->size - sizeof(*hdr) - sizeof(rec.k) - sizeof(rec.time);
		if (name_len > sizeof(rec.name))
			return -EPROTO;
		memcpy(&rec.k, body, sizeof(rec.k));
		memcpy(rec.name, body + sizeof(rec.k), name_len);
		rec.name[sizeof(rec.name) - 1] = '\0';
	}
	err = add_record(r, &rec);
	if (err)
		free(rec.code);
	return err;
}

static int read_ring(struct ksym_rings *r, struct perf_event_mmap_page *map)
{
	const char *data = (char *)map + sysconf(_SC_PAGESIZE);
	__u64 head = __atomic_load_n(&map->data_head, __ATOMIC_ACQUIRE);
	static __u64 buf[(1 << 16) / sizeof(__u64)];
	__u64 tail = map->data_tail;
	struct perf_event_header hdr;
	size_t size = ring_size(r), i;
	int err = 0;

	while (tail != head && !err) {
		/* Headers are 8 bytes, aligned: they never wrap around. */
		memcpy(&hdr, data + tail % size, sizeof(hdr));
		if (hdr.size < sizeof(hdr) + sizeof(__u64))
			return -EPROTO;
		for (i = 0; i < hdr.size; i++)
			((char *)buf)[i] = data[(tail + i) % size];
		err = parse_record(r, (char *)buf);
		tail += hdr.size;
	}
	__atomic_store_n(&map->data_tail, tail, __ATOMIC_RELEASE);
	return err;
}

int ksym_rings__read(struct ksym_rings *r)
{
	int i, err = 0;

	for (i = 0; i < r->nr && !err; i++)
		err = read_ring(r, r->maps[i]);
	return err;
}

static int compare_times(const void *a, const void *b)
{
	const struct ksym_rec *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

int ksym_rings__drain(struct ksym_rings *r)
{
	int err = ksym_rings__read(r);

	if (r->nr_recs)
		qsort(r->recs, r->nr_recs, sizeof(*r->recs), compare_times);
	return err;
}

const struct ksym_rec *ksym_rings__find(const struct ksym_rings *r, const char *prefix,
					__u64 addr, bool unregister)
{
	size_t i = r->nr_recs;

	while (i--) {
		const struct ksym_rec *rec = &r->recs[i];

		if (ksym_rec__is(rec, unregister) && (!addr || rec->k.addr == addr) &&
		    !strncmp(rec->name, prefix, strlen(prefix)))
			return rec;
	}
	return NULL;
}

const struct ksym_rec *ksym_rings__wait(struct ksym_rings *r, const char *prefix,
					__u64 addr, bool unregister, int timeout_ms)
{
	__u64 end = now_ms() + timeout_ms, now;
	const struct ksym_rec *rec;

	while (!ksym_rings__drain(r)) {
		rec = ksym_rings__find(r, prefix, addr, unregister);
		now = now_ms();
		if (rec || now >= end)
			return rec;
		poll(r->fds, r->nr, end - now);
	}
	return NULL;
}

static const struct ksym_rec *find_unregister(const struct ksym_rings *r, const char *part)
{
	size_t i;

	for (i = 0; i < r->nr_recs; i++)
		if (ksym_rec__is(&r->recs[i], true) && strstr(r->recs[i].name, part))
			return &r->recs[i];
	return NULL;
}

const struct ksym_rec *ksym_rings__wait_unregister(struct ksym_rings *r, const char *part)
{
	__u64 end = now_ms() + WAIT_MS, now;
	const struct ksym_rec *rec;

	while (!ksym_rings__read(r)) {
		rec = find_unregister(r, part);
		now = now_ms();
		if (rec || now >= end)
			return rec;
		poll(r->fds, r->nr, end - now);
	}
	return NULL;
}
