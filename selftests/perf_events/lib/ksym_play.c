// SPDX-License-Identifier: GPL-2.0
/* Replays records, and compares the result with what the kernel lists: see ksym_play.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ksym_play.h"
#include "ksym_snapshot.h"

#define MAX_TRIES	50	/* until no text comes or goes while the sets are read */

int ksym_rings__open_all(struct ksym_rings *rings)
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

static void complain(struct ksym_play *p, const char *what, const struct ksym_text *t,
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

static int register_text(struct ksym_play *p, const struct ksym_rec *rec)
{
	bool again = rec->misc & PERF_RECORD_MISC_KSYMBOL_SNAPSHOT;
	struct ksym_text *t;
	size_t i;

	if (!rec->k.len || !rec->name[0])
		complain(p, "empty name or range", NULL, rec);
	for (i = 0; i < p->live.nr; i++) {
		t = &p->live.texts[i];
		if (ksym_text__is(t, rec) && (again || t->early || !t->len ||
					      rec->type == PERF_RECORD_MMAP2)) {
			t->len = rec->k.len;
			t->type = rec->k.ksym_type;
			t->early &= again;
			return 0;
		}
		if (t->addr < rec->k.addr + rec->k.len &&
		    rec->k.addr < t->addr + t->len)
			complain(p, "overlap", t, rec);
	}
	if (ksym_set__add(&p->live, rec->k.addr, rec->k.len, rec->k.ksym_type, rec->name))
		return -ENOMEM;
	/* Text is in snapshots a moment before its REGISTER is written */
	p->live.texts[p->live.nr - 1].early = again && p->whole;
	return 0;
}

static void unregister_text(struct ksym_play *p, const struct ksym_rec *rec)
{
	size_t i;

	for (i = 0; i < p->live.nr; i++) {
		if (!ksym_text__is(&p->live.texts[i], rec))
			continue;
		if (p->live.texts[i].early)
			complain(p, "replayed, and no REGISTER before", NULL, rec);
		ksym_set__del(&p->live, i);
		return;
	}
	/* It may end after the rings are open and before a snapshot is taken. */
	if (p->begun)
		complain(p, "UNREGISTER without REGISTER", NULL, rec);
}

int ksym_play__drain(struct ksym_play *p, struct ksym_rings *rings)
{
	int err = ksym_rings__drain(rings);
	const struct ksym_rec *rec;

	for (; !err && p->next < rings->nr_recs; p->next++) {
		rec = &rings->recs[p->next];
		if (ksym_rec__is(rec, true)) {
			p->unregisters++;
			unregister_text(p, rec);
		} else if (ksym_rec__is(rec, false) ||
			   rec->type == PERF_RECORD_MMAP2) {
			p->registers++;
			err = register_text(p, rec);
		}
	}
	return err;
}

void ksym_play__forget(struct ksym_play *p, struct ksym_rings *rings)
{
	ksym_rings__forget(rings);
	p->next = 0;
}

/*
 * Replay what is in the rings, and read the other sets. Return: 0; -EAGAIN if
 * text came or went meanwhile; -errno.
 */
static int read_sets(struct ksym_play *p, struct ksym_rings *rings,
		     struct ksym_set *kallsyms, struct ksym_set *snapshot)
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
static int compare_once(struct ksym_play *p, struct ksym_rings *rings, char *say)
{
	struct ksym_set kallsyms = {}, snapshot = {}, all = {}, listed = {};
	int err;

	err = read_sets(p, rings, &kallsyms, &snapshot);
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

/* As compare_once(), repeated until no text came or went meanwhile. */
static int compare(struct ksym_play *p, struct ksym_rings *rings, char *say)
{
	int tries = MAX_TRIES, diff;

	do
		diff = compare_once(p, rings, say);
	while (diff == -EAGAIN && --tries);
	return diff;
}

bool ksym_play__agrees(struct ksym_play *p, struct ksym_rings *rings, char *why)
{
	char say[KSYM_SAY_LEN] = "";
	int diff = compare(p, rings, say);
	size_t i;

	for (i = 0; i < p->live.nr && !p->wrong[0]; i++)
		if (p->live.texts[i].early)
			snprintf(p->wrong, sizeof(p->wrong), "replayed, but not registered: %s",
				 p->live.texts[i].name);
	if (diff < 0)
		snprintf(why, KSYM_WHY_LEN, "the sets cannot be read: %s", strerror(-diff));
	else
		snprintf(why, KSYM_WHY_LEN, "the sets differ in %d texts, %llu records lost%s%s%s",
			 diff, rings->lost, p->wrong[0] ? ", " : "", p->wrong, say);
	return !diff && !p->wrong[0] && !rings->lost;
}

/* Until no text came or went while /proc/kallsyms was read. Return: 0 or -errno. */
static int begin_with_kallsyms(struct ksym_play *p, struct ksym_rings *rings)
{
	int tries = MAX_TRIES, err;

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

int ksym_play__begin(struct ksym_play *p, struct ksym_rings *rings)
{
	int all, err;

	memset(p, 0, sizeof(*p));
	all = ksym_rings__open_all(rings);
	if (all < 0)
		return all;
	err = ksym_snapshot(rings);
	if (err < 0) {
		err = begin_with_kallsyms(p, rings);
	} else {
		err = ksym_play__drain(p, rings);
		p->whole = !err;
		p->begun = true;
	}
	return err ?: all;
}
