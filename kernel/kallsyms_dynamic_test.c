// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests for the registry of dynamic kernel text
 *
 * The symbols have addresses below the kernel, where nothing runs and nothing
 * else is registered. Concurrent lookups of other addresses still reach them in
 * the tree, so each test waits for a grace period before it leaves the stack.
 */

#include <kunit/test.h>
#include <linux/kallsyms.h>
#include <linux/kallsyms_dynamic.h>
#include <linux/minmax.h>
#include <linux/poison.h>
#include <linux/rcupdate.h>

#define BASE	0x1000UL
#define SIZE	0x100UL
#define NR	8

struct walked {
	unsigned long starts[2 * NR];
	int nr;
	int limit;
};

static void init_sym(struct kallsym_dyn *sym, unsigned long start,
		     unsigned long size, const char *name)
{
	*sym = (struct kallsym_dyn){
		.start = start,
		.end = start + size,
		.name = name,
		.modname = "kunit",
		.type = KALLSYM_DYN_OOL,
	};
}

static struct kallsym_dyn *find(unsigned long addr)
{
	guard(rcu)();
	return kallsym_dyn_find(addr);
}

/* Record the symbols of these tests, and stop the walk after @limit of them. */
static int keep(const struct kallsym_dyn *sym, void *data)
{
	struct walked *walked = data;

	if (strcmp(sym->modname, "kunit"))
		return 0;
	if (walked->nr == ARRAY_SIZE(walked->starts))
		return -ENOSPC;

	walked->starts[walked->nr++] = sym->start;
	return walked->nr == walked->limit;
}

static void test_bounds(struct kunit *test)
{
	struct kallsym_dyn a, b;

	init_sym(&a, BASE, SIZE, "a");
	init_sym(&b, BASE + SIZE, SIZE, "b");
	a.type = KALLSYM_DYN_BPF;
	b.type = KALLSYM_DYN_BPF;
	kallsym_dyn_register(&b);
	kallsym_dyn_register(&a);

	KUNIT_EXPECT_NULL(test, find(BASE - 1));
	KUNIT_EXPECT_PTR_EQ(test, find(BASE), &a);
	KUNIT_EXPECT_PTR_EQ(test, find(BASE + SIZE - 1), &a);
	/* First byte of b and possible return address of a: b wins */
	KUNIT_EXPECT_PTR_EQ(test, find(BASE + SIZE), &b);
	KUNIT_EXPECT_PTR_EQ(test, find(BASE + 2 * SIZE - 1), &b);
	/* Return address, if the last instruction of b is a call */
	KUNIT_EXPECT_PTR_EQ(test, find(BASE + 2 * SIZE), &b);
	KUNIT_EXPECT_NULL(test, find(BASE + 2 * SIZE + 1));

	KUNIT_EXPECT_TRUE(test, kallsym_dyn_unregister(&b));
	KUNIT_EXPECT_PTR_EQ(test, find(BASE + SIZE), &a);
	KUNIT_EXPECT_NULL(test, find(BASE + SIZE + 1));
	KUNIT_EXPECT_TRUE(test, kallsym_dyn_unregister(&a));
	KUNIT_EXPECT_NULL(test, find(BASE));
	synchronize_rcu();
}

/* Nothing may be mapped after a page of slots, so its end is not text */
static void test_end_of_no_function(struct kunit *test)
{
	struct kallsym_dyn a;

	init_sym(&a, BASE, SIZE, "a");
	kallsym_dyn_register(&a);
	KUNIT_EXPECT_PTR_EQ(test, find(BASE + SIZE - 1), &a);
	KUNIT_EXPECT_NULL(test, find(BASE + SIZE));
	KUNIT_EXPECT_TRUE(test, kallsym_dyn_unregister(&a));
	synchronize_rcu();
}

static void test_lookup(struct kunit *test)
{
	char *name = kunit_kzalloc(test, KSYM_NAME_LEN, GFP_KERNEL);
	unsigned long size = 1, off = 2;
	struct kallsym_dyn sym;

	KUNIT_ASSERT_NOT_NULL(test, name);
	init_sym(&sym, BASE, SIZE, "some_text");

	KUNIT_EXPECT_EQ(test, kallsym_dyn_lookup(BASE, &size, &off, name), 0);
	KUNIT_EXPECT_EQ(test, size, 1);
	KUNIT_EXPECT_EQ(test, off, 2);
	KUNIT_EXPECT_FALSE(test, is_kallsym_dyn_address(BASE));

	kallsym_dyn_register(&sym);
	KUNIT_EXPECT_EQ(test, kallsym_dyn_lookup(BASE + 3, &size, &off, name),
			strlen("some_text"));
	KUNIT_EXPECT_STREQ(test, name, "some_text");
	KUNIT_EXPECT_EQ(test, size, SIZE);
	KUNIT_EXPECT_EQ(test, off, 3);
	KUNIT_EXPECT_TRUE(test, is_kallsym_dyn_address(BASE));
	kallsym_dyn_unregister(&sym);
	synchronize_rcu();
}

static void test_register_again(struct kunit *test)
{
	struct kallsym_dyn sym;
	u64 seq;

	init_sym(&sym, BASE, SIZE, "again");
	KUNIT_EXPECT_FALSE(test, kallsym_dyn_registered(&sym));
	KUNIT_EXPECT_FALSE(test, kallsym_dyn_unregister(&sym));

	kallsym_dyn_register(&sym);
	KUNIT_EXPECT_TRUE(test, kallsym_dyn_registered(&sym));
	seq = sym.seq;
	KUNIT_EXPECT_TRUE(test, kallsym_dyn_unregister(&sym));
	KUNIT_EXPECT_FALSE(test, kallsym_dyn_unregister(&sym));
	synchronize_rcu();

	kallsym_dyn_register(&sym);
	KUNIT_EXPECT_GT(test, sym.seq, seq);
	kallsym_dyn_unregister(&sym);
	synchronize_rcu();
}

static void test_perf_only(struct kunit *test)
{
	struct walked walked = {};
	struct kallsym_dyn sym;
	u64 seq = 0;

	init_sym(&sym, BASE, SIZE, "perf_only");
	sym.flags = KALLSYM_DYN_PERF_ONLY;
	kallsym_dyn_register(&sym);

	KUNIT_EXPECT_NULL(test, find(BASE));
	KUNIT_EXPECT_EQ(test, kallsym_dyn_walk(&seq, keep, &walked), 0);
	KUNIT_EXPECT_EQ(test, walked.nr, 1);
	kallsym_dyn_unregister(&sym);
	synchronize_rcu();
}

/*
 * A walk stops after three symbols. Then the last symbol shown, an earlier one
 * and a later one are unregistered, and a new one is registered at the address
 * of the later one. The walk continues and shows each of the others once, in
 * order.
 */
static void test_walk_of_changes(struct kunit *test)
{
	static const int expected[] = { 0, 1, 2, 4, 5, 6, 7, 3 };
	struct walked walked = { .limit = 3 };
	struct kallsym_dyn syms[NR];
	u64 seq = 0;
	int i;

	for (i = 0; i < NR; i++) {
		init_sym(&syms[i], BASE + i * SIZE, SIZE, "walked");
		kallsym_dyn_register(&syms[i]);
	}

	KUNIT_EXPECT_EQ(test, kallsym_dyn_walk(&seq, keep, &walked), 1);
	KUNIT_EXPECT_EQ(test, seq, syms[2].seq);
	kallsym_dyn_unregister(&syms[0]);
	kallsym_dyn_unregister(&syms[2]);
	kallsym_dyn_unregister(&syms[3]);
	synchronize_rcu();
	kallsym_dyn_register(&syms[3]);

	walked.limit = 0;
	KUNIT_EXPECT_EQ(test, kallsym_dyn_walk(&seq, keep, &walked), 0);
	KUNIT_EXPECT_EQ(test, walked.nr, ARRAY_SIZE(expected));
	for (i = 0; i < min_t(int, walked.nr, ARRAY_SIZE(expected)); i++)
		KUNIT_EXPECT_EQ(test, walked.starts[i], BASE + expected[i] * SIZE);

	for (i = 0; i < NR; i++)
		kallsym_dyn_unregister(&syms[i]);
	synchronize_rcu();
}

/*
 * A reader without the lock keeps its place when symbols are added, also when the
 * symbol at its place is removed.
 */
static void test_next(struct kunit *test)
{
	static const int expected[] = { 1, 2, 4, 5, 6, 7, 0 };
	struct kallsym_dyn_cursor cur = {};
	const struct kallsym_dyn *sym;
	struct kallsym_dyn syms[NR];
	int i, nr = 0;

	for (i = 1; i < NR; i++) {
		init_sym(&syms[i], BASE + i * SIZE, SIZE, "next");
		kallsym_dyn_register(&syms[i]);
	}
	init_sym(&syms[0], BASE, SIZE, "next");

	for (;;) {
		scoped_guard(rcu) {
			do {
				sym = kallsym_dyn_next(&cur);
			} while (sym && strcmp(sym->modname, "kunit"));
			if (sym && nr < ARRAY_SIZE(expected))
				KUNIT_EXPECT_PTR_EQ(test, sym, &syms[expected[nr]]);
		}
		if (!sym)
			break;
		if (++nr == 2) {
			kallsym_dyn_unregister(&syms[2]);
			kallsym_dyn_unregister(&syms[3]);
			synchronize_rcu();
			memset(&syms[2].node, POISON_FREE, sizeof(syms[2].node));
			kallsym_dyn_register(&syms[0]);
		}
	}
	KUNIT_EXPECT_EQ(test, nr, ARRAY_SIZE(expected));

	for (i = 0; i < NR; i++)
		kallsym_dyn_unregister(&syms[i]);
	synchronize_rcu();
}

static void test_walk_failure(struct kunit *test)
{
	struct walked walked = { .nr = ARRAY_SIZE(walked.starts) };
	struct kallsym_dyn sym;
	u64 seq = 0;

	init_sym(&sym, BASE, SIZE, "no_room");
	kallsym_dyn_register(&sym);

	KUNIT_EXPECT_EQ(test, kallsym_dyn_walk(&seq, keep, &walked), -ENOSPC);
	KUNIT_EXPECT_LT(test, seq, sym.seq);
	walked.nr = 0;
	KUNIT_EXPECT_EQ(test, kallsym_dyn_walk(&seq, keep, &walked), 0);
	KUNIT_EXPECT_EQ(test, walked.nr, 1);
	kallsym_dyn_unregister(&sym);
	synchronize_rcu();
}

static struct kunit_case kallsyms_dynamic_cases[] = {
	KUNIT_CASE(test_bounds),
	KUNIT_CASE(test_end_of_no_function),
	KUNIT_CASE(test_lookup),
	KUNIT_CASE(test_register_again),
	KUNIT_CASE(test_perf_only),
	KUNIT_CASE(test_walk_of_changes),
	KUNIT_CASE(test_next),
	KUNIT_CASE(test_walk_failure),
	{}
};

static struct kunit_suite kallsyms_dynamic_suite = {
	.name = "kallsyms_dynamic",
	.test_cases = kallsyms_dynamic_cases,
};

kunit_test_suite(kallsyms_dynamic_suite);

MODULE_DESCRIPTION("KUnit tests for the registry of dynamic kernel text");
MODULE_LICENSE("GPL");
