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
#include <linux/poison.h>
#include <linux/rcupdate.h>

#define BASE	0x1000UL
#define SIZE	0x100UL
#define NR	8

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

/* Return: the next of these tests' symbols that ends above @addr, or NULL. */
static const struct kallsym_dyn *find_next(unsigned long addr)
{
	const struct kallsym_dyn *sym;

	guard(rcu)();
	sym = kallsym_dyn_next(addr);
	return sym && !strcmp(sym->modname, "kunit") ? sym : NULL;
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

	kallsym_dyn_unregister(&b);
	KUNIT_EXPECT_PTR_EQ(test, find(BASE + SIZE), &a);
	KUNIT_EXPECT_NULL(test, find(BASE + SIZE + 1));
	kallsym_dyn_unregister(&a);
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
	kallsym_dyn_unregister(&a);
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
	int i;

	init_sym(&sym, BASE, SIZE, "again");
	KUNIT_EXPECT_FALSE(test, kallsym_dyn_registered(&sym));
	kallsym_dyn_unregister(&sym);

	for (i = 0; i < 2; i++) {
		kallsym_dyn_register(&sym);
		KUNIT_EXPECT_TRUE(test, kallsym_dyn_registered(&sym));
		KUNIT_EXPECT_PTR_EQ(test, find(BASE), &sym);
		kallsym_dyn_unregister(&sym);
		KUNIT_EXPECT_FALSE(test, kallsym_dyn_registered(&sym));
		kallsym_dyn_unregister(&sym);
		synchronize_rcu();
	}
}

/* mod_tree finds the text of modules. It is not the end of the text before it. */
static void test_module(struct kunit *test)
{
	struct kallsym_dyn func, module;

	init_sym(&func, BASE, SIZE, "func");
	func.type = KALLSYM_DYN_BPF;
	init_sym(&module, BASE + SIZE, SIZE, "module");
	module.type = KALLSYM_DYN_MODULE;
	kallsym_dyn_register(&func);
	KUNIT_EXPECT_PTR_EQ(test, find(BASE + SIZE), &func);
	kallsym_dyn_register(&module);

	KUNIT_EXPECT_NULL(test, find(BASE + SIZE));
	KUNIT_EXPECT_NULL(test, find(BASE + SIZE + 1));
	KUNIT_EXPECT_PTR_EQ(test, find_next(func.end), &module);
	kallsym_dyn_unregister(&module);
	kallsym_dyn_unregister(&func);
	synchronize_rcu();
}

/* An address in the middle of a symbol leads to that symbol, its end to the next one. */
static void test_next(struct kunit *test)
{
	struct kallsym_dyn a, b;

	init_sym(&a, BASE, SIZE, "a");
	init_sym(&b, BASE + 2 * SIZE, SIZE, "b");
	kallsym_dyn_register(&b);
	kallsym_dyn_register(&a);

	KUNIT_EXPECT_PTR_EQ(test, find_next(0), &a);
	KUNIT_EXPECT_PTR_EQ(test, find_next(a.start), &a);
	KUNIT_EXPECT_PTR_EQ(test, find_next(a.end - 1), &a);
	KUNIT_EXPECT_PTR_EQ(test, find_next(a.end), &b);
	KUNIT_EXPECT_PTR_EQ(test, find_next(b.end - 1), &b);
	KUNIT_EXPECT_NULL(test, find_next(b.end));
	KUNIT_EXPECT_NULL(test, find_next(ULONG_MAX));

	kallsym_dyn_unregister(&a);
	kallsym_dyn_unregister(&b);
	synchronize_rcu();
}

/*
 * A walk shows symbols in the order of their addresses. Symbols that come and go
 * meanwhile, also the last one shown, do not make it miss or repeat others.
 */
static void test_walk_of_changes(struct kunit *test)
{
	static const int expected[] = { 1, 2, 4, 5, 6, 7 };
	const struct kallsym_dyn *sym;
	struct kallsym_dyn syms[NR];
	unsigned long addr = 0;
	int i, nr = 0;

	for (i = NR - 1; i >= 0; i--) {
		init_sym(&syms[i], BASE + i * SIZE, SIZE, "walked");
		if (i)
			kallsym_dyn_register(&syms[i]);
	}

	for (sym = find_next(addr); sym; sym = find_next(addr)) {
		if (nr < ARRAY_SIZE(expected))
			KUNIT_EXPECT_PTR_EQ(test, sym, &syms[expected[nr]]);
		addr = sym->end;
		if (++nr != 2)
			continue;
		kallsym_dyn_unregister(&syms[2]);
		kallsym_dyn_unregister(&syms[3]);
		synchronize_rcu();
		memset(&syms[2].node, POISON_FREE, sizeof(syms[2].node));
		kallsym_dyn_register(&syms[0]);
	}
	KUNIT_EXPECT_EQ(test, nr, ARRAY_SIZE(expected));

	for (i = 0; i < NR; i++)
		if (i != 2 && i != 3)
			kallsym_dyn_unregister(&syms[i]);
	synchronize_rcu();
}

static int keep_symbol(const struct kallsym_dyn *sym, void *data)
{
	const struct kallsym_dyn **kept = data;

	*kept = sym;
	return -ENOSPC;
}

static void test_with_next(struct kunit *test)
{
	const struct kallsym_dyn *kept = NULL;
	struct kallsym_dyn sym;

	init_sym(&sym, BASE, SIZE, "with_next");
	kallsym_dyn_register(&sym);
	KUNIT_EXPECT_EQ(test, kallsym_dyn_with_next(0, keep_symbol, &kept), -ENOSPC);
	KUNIT_EXPECT_PTR_EQ(test, kept, &sym);
	kept = NULL;
	KUNIT_EXPECT_EQ(test, kallsym_dyn_with_next(ULONG_MAX, keep_symbol, &kept), 0);
	KUNIT_EXPECT_NULL(test, kept);
	kallsym_dyn_unregister(&sym);
	synchronize_rcu();
}

static struct kunit_case kallsyms_dynamic_cases[] = {
	KUNIT_CASE(test_bounds),
	KUNIT_CASE(test_end_of_no_function),
	KUNIT_CASE(test_lookup),
	KUNIT_CASE(test_register_again),
	KUNIT_CASE(test_module),
	KUNIT_CASE(test_next),
	KUNIT_CASE(test_walk_of_changes),
	KUNIT_CASE(test_with_next),
	{}
};

static struct kunit_suite kallsyms_dynamic_suite = {
	.name = "kallsyms_dynamic",
	.test_cases = kallsyms_dynamic_cases,
};

kunit_test_suite(kallsyms_dynamic_suite);

MODULE_DESCRIPTION("KUnit tests for the registry of dynamic kernel text");
MODULE_LICENSE("GPL");
