/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel text that lives at one time, told three ways that have to agree:
 *
 *   records    the KSYMBOL records of the rings, played in their order
 *   kallsyms   what /proc/kallsyms lists and vmlinux and the modules do not own
 *   snapshot   what PERF_EVENT_IOC_KSYM_SNAPSHOT replays
 *
 * /proc/kallsyms lists neither lengths nor the ranges of modules; those are
 * compared where both sides know them.
 */
#ifndef SELFTESTS_PERF_EVENTS_KSYM_SETS_H
#define SELFTESTS_PERF_EVENTS_KSYM_SETS_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include "ksym_ring.h"

#define KSYM_SAY_LEN	2048

struct ksym_text {
	__u64 addr;
	__u32 len;		/* 0: not known */
	__u16 type;		/* PERF_RECORD_KSYMBOL_TYPE_* */
	char *name;
};

struct ksym_set {
	struct ksym_text *texts;
	size_t nr, max;
};

static inline void ksym_set__clear(struct ksym_set *set)
{
	while (set->nr)
		free(set->texts[--set->nr].name);
	free(set->texts);
	memset(set, 0, sizeof(*set));
}

static inline int ksym_set__add(struct ksym_set *set, __u64 addr, __u32 len,
				__u16 type, const char *name)
{
	struct ksym_text *texts = set->texts;
	char *copy = strdup(name);

	if (copy && set->nr == set->max) {
		set->max = set->max ? 2 * set->max : 256;
		texts = realloc(texts, set->max * sizeof(*texts));
	}
	if (!copy || !texts) {
		free(copy);
		return -ENOMEM;
	}
	set->texts = texts;
	set->texts[set->nr++] = (struct ksym_text){
		.addr = addr, .len = len, .type = type, .name = copy,
	};
	return 0;
}

static inline void ksym_set__del(struct ksym_set *set, size_t i)
{
	free(set->texts[i].name);
	set->texts[i] = set->texts[--set->nr];
}

static inline int ksym_text__cmp(const void *a, const void *b)
{
	const struct ksym_text *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return strcmp(x->name, y->name);
}

static inline void ksym_set__sort(struct ksym_set *set)
{
	if (set->nr)
		qsort(set->texts, set->nr, sizeof(*set->texts), ksym_text__cmp);
}

/*
 * Text that /proc/kallsyms gives to no real module. What ftrace keeps of the
 * init functions of a module has that module's name, and no text any more.
 */
static inline bool kallsyms_is_dynamic(const char *mod)
{
	return !strcmp(mod, "bpf") || !strncmp(mod, "__builtin__", 11);
}

/* Add the dynamic text of /proc/kallsyms to @set. Return: 0 or -errno. */
static inline int ksym_set__read_kallsyms(struct ksym_set *set)
{
	char line[2 * KSYM_NAME_LEN], name[KSYM_NAME_LEN], mod[64];
	FILE *f = fopen("/proc/kallsyms", "re");
	int err = 0;
	__u64 addr;

	if (!f)
		return -errno;
	while (!err && fgets(line, sizeof(line), f)) {
		if (!strchr(line, '[') ||
		    sscanf(line, "%llx %*c %511s [%63[^]]", &addr, name, mod) != 3 ||
		    !kallsyms_is_dynamic(mod))
			continue;
		err = ksym_set__add(set, addr, 0, 0, name);
	}
	fclose(f);
	ksym_set__sort(set);
	return err;
}

/*
 * Records played in their order, and the first thing that was wrong with them.
 * Only when no text comes or goes are the rings read to one point in time: a
 * record of one CPU can be read later than a younger one of another CPU.
 */
struct ksym_play {
	struct ksym_set live;
	bool begun;		/* live has all that was there before */
	bool whole;		/* live began with a snapshot */
	size_t next;		/* the first record that was not played yet */
	size_t registers, unregisters;
	char wrong[2 * KSYM_NAME_LEN + 256];
};

static inline void ksym_play__complain(struct ksym_play *p, const char *what,
				       const struct ksym_text *t,
				       const struct ksym_rec *rec)
{
	if (p->wrong[0])
		return;
	snprintf(p->wrong, sizeof(p->wrong), "%s: %s 0x%llx+%u at %llu ns%s%s",
		 what, rec->name, rec->k.addr, rec->k.len, rec->time,
		 t ? ", there is " : "", t ? t->name : "");
	if (t)
		snprintf(p->wrong + strlen(p->wrong),
			 sizeof(p->wrong) - strlen(p->wrong), " 0x%llx+%u",
			 t->addr, t->len);
}

static inline bool ksym_text__is(const struct ksym_text *t,
				 const struct ksym_rec *rec)
{
	return t->addr == rec->k.addr && !strcmp(t->name, rec->name) &&
	       (!t->len || !rec->k.len || t->len == rec->k.len);
}

static inline bool ksym_set__has(const struct ksym_set *set,
				 const struct ksym_rec *rec)
{
	size_t i;

	for (i = 0; i < set->nr; i++)
		if (ksym_text__is(&set->texts[i], rec))
			return true;
	return false;
}

static inline int ksym_play__register(struct ksym_play *p,
				      const struct ksym_rec *rec)
{
	bool again = rec->k.flags & PERF_RECORD_KSYMBOL_FLAGS_SNAPSHOT;
	struct ksym_text *t;
	size_t i;

	if (!rec->k.len || !rec->name[0])
		ksym_play__complain(p, "empty name or range", NULL, rec);
	if (again && p->whole && !ksym_set__has(&p->live, rec))
		ksym_play__complain(p, "replayed, but not registered", NULL, rec);
	for (i = 0; i < p->live.nr; i++) {
		t = &p->live.texts[i];
		if (ksym_text__is(t, rec) && (again || !t->len ||
					      rec->type == PERF_RECORD_MMAP2)) {
			t->len = rec->k.len;
			t->type = rec->k.ksym_type;
			return 0;
		}
		if (t->addr < rec->k.addr + rec->k.len &&
		    rec->k.addr < t->addr + t->len)
			ksym_play__complain(p, "overlap", t, rec);
	}
	return ksym_set__add(&p->live, rec->k.addr, rec->k.len,
			     rec->k.ksym_type, rec->name);
}

static inline void ksym_play__unregister(struct ksym_play *p,
					 const struct ksym_rec *rec)
{
	size_t i;

	for (i = 0; i < p->live.nr; i++) {
		if (!ksym_text__is(&p->live.texts[i], rec))
			continue;
		ksym_set__del(&p->live, i);
		return;
	}
	/* It may end after the rings are open and before the snapshot sees it. */
	if (p->begun)
		ksym_play__complain(p, "UNREGISTER without REGISTER", NULL, rec);
}

/* Read the rings and play what is new. Return: 0 or -errno. */
static inline int ksym_play__drain(struct ksym_play *p, struct ksym_rings *rings)
{
	int err = ksym_rings__drain(rings);
	const struct ksym_rec *rec;

	for (; !err && p->next < rings->nr_recs; p->next++) {
		rec = &rings->recs[p->next];
		if (ksym_rec__is(rec, true)) {
			p->unregisters++;
			ksym_play__unregister(p, rec);
		} else if (ksym_rec__is(rec, false) ||
			   rec->type == PERF_RECORD_MMAP2) {
			p->registers++;
			err = ksym_play__register(p, rec);
		}
	}
	return err;
}

/* Let go of the records, when all of them were played. */
static inline void ksym_play__forget(struct ksym_play *p,
				     struct ksym_rings *rings)
{
	rings->nr_recs = 0;
	p->next = 0;
}

static inline void ksym_say(char *say, const char *what, const char *where,
			    const struct ksym_text *t, int nr)
{
	size_t len = strlen(say);

	if (nr < 4)
		snprintf(say + len, KSYM_SAY_LEN - len, "\n#   only in %s, not in %s: %s 0x%llx+%u",
			 what, where, t->name, t->addr, t->len);
}

/*
 * Compare two sorted sets. Return: in how many texts they differ; @say names
 * the first few.
 */
static inline int ksym_set__diff(const struct ksym_set *a, const char *a_name,
				 const struct ksym_set *b, const char *b_name,
				 char *say)
{
	int cmp, diff = 0, only_a = 0, only_b = 0;
	size_t i = 0, j = 0;

	say[0] = '\0';
	while (i < a->nr || j < b->nr) {
		cmp = i == a->nr ? 1 : j == b->nr ? -1 :
		      ksym_text__cmp(&a->texts[i], &b->texts[j]);
		if (cmp < 0)
			ksym_say(say, a_name, b_name, &a->texts[i], only_a++);
		else if (cmp > 0)
			ksym_say(say, b_name, a_name, &b->texts[j], only_b++);
		else if (a->texts[i].len && b->texts[j].len &&
			 a->texts[i].len != b->texts[j].len)
			ksym_say(say, "this length", b_name, &a->texts[i], diff++);
		i += cmp <= 0;
		j += cmp >= 0;
	}
	return only_a + only_b + diff;
}

/* @from without what is of @type. Return: 0 or -errno. */
static inline int ksym_set__copy(struct ksym_set *to, const struct ksym_set *from,
				 int without_type)
{
	int err = 0;
	size_t i;

	for (i = 0; i < from->nr && !err; i++)
		if (from->texts[i].type != without_type)
			err = ksym_set__add(to, from->texts[i].addr,
					    from->texts[i].len,
					    from->texts[i].type,
					    from->texts[i].name);
	ksym_set__sort(to);
	return err;
}

/*
 * Have the kernel replay all text into the first ring, which is read as often
 * as it is full. Return: how often it was, or -errno; -ENOTTY and -EINVAL come
 * from kernels that know no snapshot.
 */
static inline int ksym_snapshot(struct ksym_rings *rings)
{
	struct perf_event_ksym_snapshot snap = { .cursor = 0 };
	int full, err;

	for (full = 0; full < 10000; full++) {
		if (!ioctl(rings->fds[0].fd, PERF_EVENT_IOC_KSYM_SNAPSHOT, &snap))
			return snap.lost ? -EOVERFLOW : full;
		if (errno != ENOSPC)
			return -errno;
		err = ksym_rings__read(rings);
		if (err)
			return err;
	}
	return -ELOOP;
}

static inline bool ksym_rec__is_replay(const struct ksym_rec *rec)
{
	return rec->type == PERF_RECORD_MMAP2 ||
	       (ksym_rec__is(rec, false) &&
		rec->k.flags & PERF_RECORD_KSYMBOL_FLAGS_SNAPSHOT);
}

/* Add the texts that were replayed into @rings at @from or later. */
static inline int ksym_set__read_snapshot(struct ksym_set *set,
					  const struct ksym_rings *rings,
					  size_t from)
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

/*
 * Play what is in the rings, and read the other sets. Return: 0; -EAGAIN if
 * text came or went meanwhile; -errno.
 */
static inline int ksym_play__read(struct ksym_play *p, struct ksym_rings *rings,
				  struct ksym_set *kallsyms,
				  struct ksym_set *snapshot)
{
	int err = ksym_play__drain(p, rings);
	size_t from = rings->nr_recs, i;

	if (!err)
		err = ksym_set__read_kallsyms(kallsyms);
	if (!err && p->whole)
		err = ksym_snapshot(rings);
	if (err >= 0)
		err = ksym_play__drain(p, rings);
	for (i = from; i < rings->nr_recs && !err; i++)
		if (rings->recs[i].type == PERF_RECORD_KSYMBOL &&
		    !ksym_rec__is_replay(&rings->recs[i]))
			err = -EAGAIN;
	return err ?: ksym_set__read_snapshot(snapshot, rings, from);
}

/* Return: in how many texts the sets differ, or -errno; @say names some. */
static inline int ksym_play__compare_once(struct ksym_play *p,
					  struct ksym_rings *rings, char *say)
{
	struct ksym_set kallsyms = {}, snapshot = {}, all = {}, listed = {};
	int err;

	err = ksym_play__read(p, rings, &kallsyms, &snapshot);
	if (!err)
		err = ksym_set__copy(&all, &p->live, -1);
	if (!err)
		err = ksym_set__copy(&listed, &p->live,
				     PERF_RECORD_KSYMBOL_TYPE_MODULE);
	if (!err)
		err = ksym_set__diff(&listed, "the records", &kallsyms,
				     "/proc/kallsyms", say);
	if (!err && p->whole)
		err = ksym_set__diff(&all, "the records", &snapshot,
				     "the snapshot", say);
	ksym_set__clear(&kallsyms);
	ksym_set__clear(&snapshot);
	ksym_set__clear(&all);
	ksym_set__clear(&listed);
	return err;
}

/* As ksym_play__compare_once(), until nothing came or went meanwhile. */
static inline int ksym_play__compare(struct ksym_play *p,
				     struct ksym_rings *rings, char *say)
{
	int tries = 50, diff;

	do
		diff = ksym_play__compare_once(p, rings, say);
	while (diff == -EAGAIN && --tries);
	return diff;
}

/*
 * Begin with what is there: with a snapshot, or where the kernel has none with
 * /proc/kallsyms. Return: 0 or -errno.
 */
static inline int ksym_play__begin(struct ksym_play *p, struct ksym_rings *rings)
{
	int err = ksym_snapshot(rings), tries = 50;

	memset(p, 0, sizeof(*p));
	if (err >= 0) {
		err = ksym_play__drain(p, rings);
		p->whole = !err;
		p->begun = true;
		return err;
	}
	do {
		ksym_set__clear(&p->live);
		err = ksym_rings__drain(rings);
		p->next = rings->nr_recs;
		err = err ?: ksym_set__read_kallsyms(&p->live);
		err = err ?: ksym_rings__drain(rings);
	} while (!err && rings->nr_recs != p->next && --tries);
	p->begun = true;
	return err ? err : tries ? 0 : -EAGAIN;
}

/*
 * Open the rings for all text that this kernel reports. Return: 1; 0 where it
 * does not know attr.ksymbol_all; -errno.
 */
static inline int ksym_rings__open_all(struct ksym_rings *rings)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.ksymbol_all = 1,
	};
	int err = ksym_rings__open(rings, &attr);

	if (err != -EINVAL)
		return err ?: 1;
	attr.ksymbol_all = 0;
	return ksym_rings__open(rings, &attr);
}

#endif
