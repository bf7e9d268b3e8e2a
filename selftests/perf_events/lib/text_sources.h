/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What creates kernel text after boot? One entry of ksym_sources[] each.
 *
 *   name       for the output
 *   pattern    the names of its text, for fnmatch()
 *   all        it is reported to events with attr.ksymbol_all only
 *   ends       when its text is freed: after unmake() (GOES), before make()
 *              returns (AT_ONCE), or perhaps never (STAYS), as the kernel keeps
 *              some for the next time
 *   make       see made.h
 *   unmake     undoes make(), also one that failed
 */
#ifndef SELFTESTS_PERF_EVENTS_TEXT_SOURCES_H
#define SELFTESTS_PERF_EVENTS_TEXT_SOURCES_H

#include "ksym_play.h"
#include "made.h"

#define NR_SOURCES	14

enum ksym_ends { GOES, AT_ONCE, STAYS };

struct ksym_source {
	const char *name, *pattern;
	bool all;
	enum ksym_ends ends;
	int (*make)(struct made *m);
	void (*unmake)(struct made *m);
};

extern const struct ksym_source ksym_sources[NR_SOURCES];

/* Return: how many texts of @src exist, by the records that were replayed. */
int live_of(const struct ksym_play *play, const struct ksym_source *src);

/*
 * Return: how many records of @src there are at @from or later, without those that
 * a snapshot replayed. MMAP2 of a module does not say whether it is one of these.
 */
int records_of(const struct ksym_rings *rings, size_t from,
	       const struct ksym_source *src, bool unregister);

/*
 * Wait up to WAIT_MS until no more than @before texts of @src exist: grace periods
 * and work queues delay the end.
 */
void wait_for_end(struct ksym_play *play, struct ksym_rings *rings,
		  const struct ksym_source *src, int before);

#endif
