// SPDX-License-Identifier: GPL-2.0
/*
 * Do the records, /proc/kallsyms and the snapshot still agree after all sources
 * of kernel text were at work at the same time?
 *
 * A process for each source of ksym_sources.h makes its text and lets it go, over
 * and over, while the rings are read and snapshots are taken. Then the records
 * are played in their order: no text overlaps another one that lives, nothing
 * ends that did not begin, a snapshot replays only what lives, no record is lost,
 * and what is left is what /proc/kallsyms and a last snapshot list.
 *
 * That is one round, of ROUND_MS; KSYM_CHURN_SECONDS in the environment asks for
 * as many as begin in that time.
 */
#define _GNU_SOURCE
#include <stdbool.h>

#include "kselftest_harness.h"
#include "ksym_env.h"
#include "ksym_ring.h"
#include "ksym_sets.h"
#include "ksym_sources.h"
#include "ksym_verdict.h"

#define ROUND_MS	5000
#define MIN_TIMES	2	/* also of a source that takes longer than that */
#define MAX_CHURN_S	7200
#define SNAPSHOT_MS	500
#define READ_MS		20

/* What the process of a source has to tell, in memory shared with the test. */
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
	bool all;
};

FIXTURE(churn) {
	struct churn c;
};

FIXTURE_SETUP(churn)
{
	const char *reason = cannot_run();
	struct churn *c = &self->c;

	memset(c, 0, sizeof(*c));
	c->churned = MAP_FAILED;
	if (reason)
		SKIP(return, "%s", reason);
	c->churned = mmap(NULL, NR_SOURCES * sizeof(*c->churned),
			  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	ASSERT_NE(MAP_FAILED, c->churned);
	c->all = begin_sets(_metadata, &c->play, &c->rings);
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
	__u64 end = ksym_now_ms() + ROUND_MS;
	struct made m;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; !churned->err && (i < MIN_TIMES || ksym_now_ms() < end); i++) {
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
	__u64 next = ksym_now_ms() + SNAPSHOT_MS;
	int err = 0, nr = 0;

	while (err >= 0 && any_left(children)) {
		poll(rings->fds, rings->nr, READ_MS);
		err = ksym_rings__read(rings);
		if (err || !snapshots || ksym_now_ms() < next)
			continue;
		err = ksym_snapshot(rings);
		next = ksym_now_ms() + SNAPSHOT_MS;
		nr++;
	}
	return err < 0 ? err : nr;
}

/* In milliseconds; 1 is one round. */
static __u64 churn_ms(struct __test_metadata *_metadata)
{
	const char *seconds = getenv("KSYM_CHURN_SECONDS");
	char *end;
	long n;

	if (!seconds)
		return 1;
	n = strtol(seconds, &end, 10);
	ASSERT_TRUE(*seconds && !*end && n > 0 && n <= MAX_CHURN_S)
		TH_LOG("KSYM_CHURN_SECONDS is \"%s\": say 1 to %d", seconds,
		       MAX_CHURN_S);
	return n * 1000;
}

/* Does the source have something to do on this kernel? */
static bool has_part(struct ksym_source const *src, bool all,
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

/* Nothing of a source is left but what stays, and the sets are equal. */
static void check_round(struct __test_metadata *_metadata, struct churn *c)
{
	const struct ksym_source *src;
	int i;

	for (i = 0; i < NR_SOURCES; i++)
		if (ksym_sources[i].ends != STAYS)
			wait_for_end(&c->play, &c->rings, &ksym_sources[i],
				     c->before[i]);
	check_sets(_metadata, &c->play, &c->rings, "After a round");

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

static void report(struct __test_metadata *_metadata, struct churn *c)
{
	const struct ksym_source *src;
	const struct churned *done;
	int i;

	for (i = 0; i < NR_SOURCES; i++) {
		src = &ksym_sources[i];
		done = &c->churned[i];
		if (!has_part(src, c->all, done))
			TH_LOG("%s: left out, %s", src->name,
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
	__u64 end = ksym_now_ms() + churn_ms(_metadata);
	struct churn *c = &self->c;
	int i, rounds = 0, snapshots = 0, taken;
	size_t records = 0;

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
	} while (ksym_now_ms() < end && __test_passed(_metadata));
	report(_metadata, c);
	TH_LOG("%d rounds, %zu records, %d snapshots meanwhile, %llu lost",
	       rounds, records, snapshots, c->rings.lost);
}

TEST_HARNESS_MAIN
