/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests ask of the sets and of the records when a source made text or
 * let it go. For programs that include kselftest_harness.h.
 */
#ifndef SELFTESTS_PERF_EVENTS_KSYM_VERDICT_H
#define SELFTESTS_PERF_EVENTS_KSYM_VERDICT_H

#include <fnmatch.h>

#include "ksym_env.h"
#include "ksym_ring.h"
#include "ksym_sets.h"
#include "ksym_sources.h"

/* Open the rings, and begin with what is there. Return: has it attr.ksymbol_all? */
static inline bool begin_sets(struct __test_metadata *_metadata,
			      struct ksym_play *play, struct ksym_rings *rings)
{
	int all = ksym_rings__open_all(rings), err;

	ASSERT_LE(0, all) TH_LOG("perf_event_open: %s", strerror(-all));
	err = ksym_play__begin(play, rings);
	ASSERT_EQ(0, err) TH_LOG("the first set: %s", strerror(-err));
	return all;
}

/* The sets are equal, and nothing was wrong with the records so far. */
static inline void check_sets(struct __test_metadata *_metadata,
			      struct ksym_play *play,
			      struct ksym_rings *rings, const char *when)
{
	char say[KSYM_SAY_LEN] = "";
	int diff = ksym_play__compare(play, rings, say);

	EXPECT_EQ(0, diff)
		TH_LOG("%s the sets differ in %d texts:%s", when, diff, say);
	EXPECT_STREQ("", play->wrong);
	EXPECT_EQ(0, rings->lost);
}

/* Texts of @src that live, by what was played. */
static inline int live_of(const struct ksym_play *play,
			  const struct ksym_source *src)
{
	int nr = 0;
	size_t i;

	for (i = 0; i < play->live.nr; i++)
		nr += !fnmatch(src->pattern, play->live.texts[i].name, 0);
	return nr;
}

/*
 * Records of @src at @from or later, without what a snapshot replayed; only the
 * MMAP2 of a module does not tell whether it is that.
 */
static inline int records_of(const struct ksym_rings *rings, size_t from,
			     const struct ksym_source *src, bool unregister)
{
	int nr = 0;
	size_t i;

	for (i = from; i < rings->nr_recs; i++) {
		const struct ksym_rec *rec = &rings->recs[i];

		if (rec->type == PERF_RECORD_MMAP2 ? !unregister :
		    ksym_rec__is(rec, unregister) && !ksym_rec__is_replay(rec))
			nr += !fnmatch(src->pattern, rec->name, 0);
	}
	return nr;
}

/* What ends is waited for: grace periods and work queues are between. */
static inline void wait_for_end(struct ksym_play *play,
				struct ksym_rings *rings,
				const struct ksym_source *src, int before)
{
	__u64 end = ksym_now_ms() + WAIT_MS, now;

	while (!ksym_play__drain(play, rings) && live_of(play, src) > before) {
		now = ksym_now_ms();
		if (now >= end)
			return;
		poll(rings->fds, rings->nr, end - now);
	}
}

#endif
