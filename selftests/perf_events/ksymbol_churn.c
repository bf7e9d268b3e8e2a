// SPDX-License-Identifier: GPL-2.0
/*
 * Do the records, /proc/kallsyms and the snapshot still agree after all sources
 * of dynamic kernel text ran at the same time?
 *
 * A process for each source in lib/text_sources.c creates and frees its text, over
 * and over, while the rings are read and snapshots are taken. Then the records are
 * replayed in their order: no text overlaps another one that exists, each
 * UNREGISTER follows a REGISTER, a snapshot replays only text that exists, no
 * record is lost, and the text that is left is what /proc/kallsyms and a last
 * snapshot list.
 *
 * That is one round of ROUND_MS. With KSYM_CHURN_SECONDS in the environment, rounds
 * begin until that time has passed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "lib/ksym_play.h"
#include "lib/ksym_ring.h"
#include "lib/ksym_snapshot.h"
#include "lib/made.h"
#include "lib/test_env.h"
#include "lib/text_sources.h"

#define ROUND_MS	5000
#define MIN_TIMES	2	/* also of a source that takes longer than that */
#define SNAPSHOT_MS	500
#define READ_MS		20

/* Results of the process of a source, in memory that it shares with the test. */
struct churned {
	int times, err;
	char why[384];
};

struct churn {
	struct ksym_rings rings;
	struct ksym_play play;
	struct churned *churned;
	pid_t children[NR_SOURCES];
	int before[NR_SOURCES];
	int begun[NR_SOURCES], ended[NR_SOURCES];	/* records */
	int all;		/* 1: the kernel has attr.ksymbol_all */
};

FIXTURE(churn) {
	struct churn c;
};

FIXTURE_SETUP(churn)
{
	const char *reason = skip_reason();
	struct churn *c = &self->c;

	memset(c, 0, sizeof(*c));
	c->churned = MAP_FAILED;
	if (reason)
		SKIP(return, "%s", reason);
	c->churned = mmap(NULL, NR_SOURCES * sizeof(*c->churned),
			  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	ASSERT_NE(MAP_FAILED, c->churned);
	c->all = ksym_play__begin(&c->play, &c->rings);
	ASSERT_LE(0, c->all) TH_LOG("beginning: %s", strerror(-c->all));
}

FIXTURE_TEARDOWN(churn)
{
	struct churn *c = &self->c;
	int i;

	for (i = 0; i < NR_SOURCES; i++)
		if (c->children[i] > 0)
			kill(c->children[i], SIGKILL);
	munmap(c->churned, NR_SOURCES * sizeof(*c->churned));
	ksym_set__clear(&c->play.live);
	ksym_rings__close(&c->rings);
}

/* The process of a source. */
static void churn_source(const struct ksym_source *src, struct churned *churned)
{
	__u64 end = now_ms() + ROUND_MS;
	struct made m;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; !churned->err && (i < MIN_TIMES || now_ms() < end); i++) {
		made__init(&m);
		churned->err = src->make(&m);
		memcpy(churned->why, m.why, sizeof(m.why));
		src->unmake(&m);
		churned->times += !churned->err;
	}
	_exit(0);
}

static bool any_left(pid_t *children)
{
	bool left = false;
	int i;

	for (i = 0; i < NR_SOURCES; i++) {
		if (children[i] > 0 && waitpid(children[i], NULL, WNOHANG))
			children[i] = 0;
		left |= children[i] > 0;
	}
	return left;
}

/*
 * Read the rings until all sources are done, and take snapshots meanwhile.
 * Return: how many, or -errno.
 */
static int read_while_left(struct ksym_rings *rings, pid_t *children,
			   bool snapshots)
{
	__u64 next = now_ms() + SNAPSHOT_MS;
	int err = 0, nr = 0;

	while (err >= 0 && any_left(children)) {
		poll(rings->fds, rings->nr, READ_MS);
		err = ksym_rings__read(rings);
		if (err || !snapshots || now_ms() < next)
			continue;
		err = ksym_snapshot(rings);
		next = now_ms() + SNAPSHOT_MS;
		nr++;
	}
	return err < 0 ? err : nr;
}

/* Can the source create text on this kernel? */
static bool has_part(const struct ksym_source *src, bool all,
		     const struct churned *done)
{
	return (all || !src->all) && !done->why[0];
}

static void start_sources(struct __test_metadata *_metadata, struct churn *c)
{
	int i;

	for (i = 0; i < NR_SOURCES; i++) {
		if (!has_part(&ksym_sources[i], c->all, &c->churned[i]))
			continue;
		c->children[i] = fork();
		ASSERT_LE(0, c->children[i]);
		if (!c->children[i])
			churn_source(&ksym_sources[i], &c->churned[i]);
	}
}

/* No text is left of sources whose text is freed, and the sets are equal. */
static void check_round(struct __test_metadata *_metadata, struct churn *c)
{
	const struct ksym_source *src;
	char why[KSYM_WHY_LEN];
	int i;

	for (i = 0; i < NR_SOURCES; i++)
		if (ksym_sources[i].ends != STAYS)
			wait_for_end(&c->play, &c->rings, &ksym_sources[i],
				     c->before[i]);
	EXPECT_TRUE(ksym_play__agrees(&c->play, &c->rings, why)) TH_LOG("after a round: %s", why);

	for (i = 0; i < NR_SOURCES; i++) {
		src = &ksym_sources[i];
		c->begun[i] += records_of(&c->rings, 0, src, false);
		c->ended[i] += records_of(&c->rings, 0, src, true);
		if (!has_part(src, c->all, &c->churned[i]))
			continue;
		EXPECT_EQ(0, c->churned[i].err)
			TH_LOG("%s: %s", src->name, strerror(-c->churned[i].err));
		if (src->ends != STAYS)
			EXPECT_GE(c->before[i], live_of(&c->play, src))
				TH_LOG("%s without UNREGISTER", src->name);
	}
}

static void report_sources(struct __test_metadata *_metadata, struct churn *c)
{
	const struct ksym_source *src;
	const struct churned *done;
	int i;

	for (i = 0; i < NR_SOURCES; i++) {
		src = &ksym_sources[i];
		done = &c->churned[i];
		if (!has_part(src, c->all, done))
			TH_LOG("%s: skipped, %s", src->name,
			       done->why[0] ? done->why :
			       "this kernel has no perf_event_attr.ksymbol_all");
		else
			TH_LOG("%s: made %d times, %d %s, %d UNREGISTER, %d live",
			       src->name, done->times, c->begun[i],
			       src->make == make_module ?
			       "MMAP2, with replays" : "REGISTER",
			       c->ended[i], live_of(&c->play, src));
	}
}

TEST_F_TIMEOUT(churn, all_sources_at_once, MAX_CHURN_S + TEST_S)
{
	long ms = churn_ms("KSYM_CHURN_SECONDS", 1);	/* at least one round */
	__u64 end = now_ms() + ms;
	struct churn *c = &self->c;
	int i, rounds = 0, snapshots = 0, taken;
	size_t records = 0;

	ASSERT_LE(0, ms);
	for (i = 0; i < NR_SOURCES; i++)
		c->before[i] = live_of(&c->play, &ksym_sources[i]);
	do {
		ksym_play__forget(&c->play, &c->rings);
		start_sources(_metadata, c);
		taken = read_while_left(&c->rings, c->children, c->play.whole);
		ASSERT_LE(0, taken) TH_LOG("reading: %s", strerror(-taken));
		check_round(_metadata, c);
		snapshots += taken;
		records += c->rings.nr_recs;
		rounds++;
	} while (now_ms() < end && __test_passed(_metadata));
	report_sources(_metadata, c);
	TH_LOG("%d rounds, %zu records, %d snapshots meanwhile, %llu lost",
	       rounds, records, snapshots, c->rings.lost);
}

TEST_HARNESS_MAIN
