// SPDX-License-Identifier: GPL-2.0
/*
 * Has each function that BPF compiles a symbol and KSYMBOL records?
 *
 * Of text that has no fd of its own: callbacks that the verifier adds to a program
 * that can throw, trampolines of bpf_dummy_ops.
 */
#define _GNU_SOURCE
#include <fnmatch.h>
#include <stdbool.h>

#include "kselftest_harness.h"
#include "lib/ksym_check.h"
#include "lib/ksym_ring.h"
#include "lib/made.h"
#include "lib/test_env.h"

FIXTURE(records) {
	struct ksym_rings rings;
	struct made made;
	struct ksym_rec *begun;		/* copies, as waiting moves the records */
	int nr;
};

FIXTURE_VARIANT(records) {
	int (*make)(struct made *m);
	const char *pattern;		/* of the name, for fnmatch() */
	bool gone;			/* freed before make() returns */
};

FIXTURE_VARIANT_ADD(records, exception_callback) {
	.make = make_exception_callback,
	.pattern = "bpf_prog_*_F",
};

FIXTURE_VARIANT_ADD(records, dummy_struct_ops) {
	.make = make_dummy_struct_ops,
	.pattern = "bpf__bpf_dummy_ops_*",
	.gone = true,
};

FIXTURE_SETUP(records)
{
	const char *reason = skip_reason();

	memset(self, 0, sizeof(*self));
	made__init(&self->made);
	if (reason)
		SKIP(return, "%s", reason);
	ASSERT_EQ(0, ksym_rings__open_dummy(&self->rings));
}

FIXTURE_TEARDOWN(records)
{
	unmake_fds(&self->made);
	free(self->begun);
	ksym_rings__close(&self->rings);
}

/* Keep copies of all REGISTER records whose name has @pattern. Return: 0 or -errno. */
static int keep_registered(const struct ksym_rings *rings, const char *pattern,
			   struct ksym_rec **recs, int *nr)
{
	size_t i;

	*recs = calloc(rings->nr_recs + 1, sizeof(**recs));
	if (!*recs)
		return -ENOMEM;
	for (i = 0; i < rings->nr_recs; i++)
		if (ksym_rec__is(&rings->recs[i], false) &&
		    !fnmatch(pattern, rings->recs[i].name, 0))
			(*recs)[(*nr)++] = rings->recs[i];
	return 0;
}

TEST_F_TIMEOUT(records, are_complete, TEST_S)
{
	const struct ksym_rec *rec;
	const char *bad;
	int i, err;

	err = variant->make(&self->made);
	if (err == -ENOTSUP && self->made.why[0])
		SKIP(return, "%s", self->made.why);
	ASSERT_EQ(0, err) TH_LOG("%s", strerror(-err));
	ASSERT_EQ(0, ksym_rings__drain(&self->rings));
	ASSERT_EQ(0, keep_registered(&self->rings, variant->pattern,
				     &self->begun, &self->nr));
	EXPECT_LE(self->made.want, self->nr)
		TH_LOG("%d of %d texts have a record", self->nr, self->made.want);
	for (i = 0; i < self->nr && !variant->gone; i++)
		EXPECT_EQ(1, kallsyms_has(self->begun[i].name, self->begun[i].k.addr));

	unmake_fds(&self->made);
	for (i = 0; i < self->nr; i++) {
		rec = ksym_rings__wait(&self->rings, self->begun[i].name,
				       self->begun[i].k.addr, true, WAIT_MS);
		ASSERT_NE(NULL, rec) TH_LOG("no UNREGISTER of %s", self->begun[i].name);
		EXPECT_EQ(self->begun[i].k.len, rec->k.len);
	}
	bad = records_wrong(&self->rings);
	EXPECT_EQ(NULL, bad) TH_LOG("%s", bad);
	EXPECT_EQ(0, self->rings.lost);
}

TEST_HARNESS_MAIN
