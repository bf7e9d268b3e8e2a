// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the search of FUNCs by address, and of the check of the entries
 */
#include <kunit/test.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_func.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/kallsyms.h>
#include <linux/string.h>

#include "btf_func.h"
#include "btf_func_test.h"

static noinline __used int btf_func_same_name(int first, long second)
{
	return first + second;
}

static int find(struct kunit *test, unsigned long addr, const char *name, struct btf_func *func)
{
	struct btf *btf = bpf_get_btf_vmlinux();

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, btf);
	return btf_func_find(btf, addr, name, func);
}

/* The names of the arguments, with a comma behind each */
static const char *arguments(struct kunit *test, const struct btf_func *func)
{
	const struct btf_param *params = (const struct btf_param *)(func->proto + 1);
	char *names = kunit_kzalloc(test, 128, GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, names);
	for (i = 0; i < btf_type_vlen(func->proto); i++) {
		strlcat(names, btf_name_by_offset(func->btf, params[i].name_off), 128);
		strlcat(names, ",", 128);
	}
	return names;
}

static void check_found(struct kunit *test, unsigned long addr, const char *name,
			const char *args, const char *file)
{
	struct btf_func func;
	const char *tag;
	u32 nr = 0;

	KUNIT_ASSERT_EQ(test, find(test, addr, name, &func), 0);
	KUNIT_EXPECT_STREQ(test, arguments(test, &func), args);
	KUNIT_EXPECT_FALSE(test, func.optimized);
	if (file) {
		tag = btf_func_tag(&func, "file:", &nr);
		KUNIT_EXPECT_STREQ(test, tag ?: "", file);
		KUNIT_EXPECT_NULL(test, btf_func_tag(&func, "file:", &nr));
	}
	btf_put(func.btf);
}

static void check_file(struct kunit *test, unsigned long addr, const char *expected)
{
	struct btf *btf = bpf_get_btf_vmlinux();
	char file[64] = "", end[8] = "";

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, btf);
	KUNIT_EXPECT_EQ(test, btf_func_file(btf, addr, file, sizeof(file)),
			*expected ? 0 : -ENOENT);
	KUNIT_EXPECT_STREQ(test, file, expected);
	if (*expected) {
		KUNIT_EXPECT_EQ(test, btf_func_file(btf, addr, end, sizeof(end)), 0);
		KUNIT_EXPECT_STREQ(test, end, expected + strlen(expected) - sizeof(end) + 1);
	}
}

/* The first function of a file and a later one, one whose name is not unique, and assembly */
static void test_file(struct kunit *test)
{
	check_file(test, (unsigned long)vfs_read, "fs/read_write.c");
	check_file(test, (unsigned long)vfs_read + 1, "fs/read_write.c");
	check_file(test, (unsigned long)generic_file_llseek, "fs/read_write.c");
	check_file(test, (unsigned long)filp_close, "fs/open.c");
	check_file(test, (unsigned long)btf_func_same_name, "kernel/bpf/btf_func_test.c");
	check_file(test, btf_func_test_other(), "kernel/bpf/btf_func_test_other.c");
	check_file(test, (unsigned long)memset, "");
	/* There are files of others in its section. */
	check_file(test, kallsyms_lookup_name("start_kernel"), "");
	check_file(test, (unsigned long)&jiffies, "");
}

static void test_same_name(struct kunit *test)
{
	const char *name = "btf_func_same_name";

	check_found(test, (unsigned long)btf_func_same_name, name, "first,second,",
		    "kernel/bpf/btf_func_test.c");
	check_found(test, btf_func_test_other(), name, "head,",
		    "kernel/bpf/btf_func_test_other.c");
}

static void test_unique_name(struct kunit *test)
{
	check_found(test, (unsigned long)vfs_read, "vfs_read", "file,buf,count,pos,", NULL);
}

/* A function in assembly, though other code of the kernel has one of its name in C */
static void test_not_described(struct kunit *test)
{
	struct btf_func func;

	KUNIT_EXPECT_EQ(test, find(test, (unsigned long)memset, "memset", &func), -ENOENT);
	KUNIT_EXPECT_EQ(test, find(test, (unsigned long)vfs_read, "no_such_function", &func),
			-ENOENT);
}

static void test_sorted(struct kunit *test)
{
	static const struct btf_loc locs[] = {
		{ .func = 2, .offset = 0 }, { .func = 3, .offset = 0x10 },
		{ .func = 7, .offset = 0x10 }, { .func = 8, .offset = 0xff },
	};
	struct btf_loc bad[ARRAY_SIZE(locs)];

	KUNIT_EXPECT_TRUE(test, btf_func_is_sorted(locs, ARRAY_SIZE(locs), 0x100));
	KUNIT_EXPECT_TRUE(test, btf_func_is_sorted(locs, 0, 0));
	KUNIT_EXPECT_FALSE(test, btf_func_is_sorted(locs, ARRAY_SIZE(locs), 0xff));

#define EXPECT_BAD(field, value)							\
	do {										\
		memcpy(bad, locs, sizeof(locs));					\
		bad[2].field = value;							\
		KUNIT_EXPECT_FALSE(test, btf_func_is_sorted(bad, ARRAY_SIZE(bad), 0x100)); \
	} while (0)

	EXPECT_BAD(func, 3);
	EXPECT_BAD(func, 1);
	EXPECT_BAD(func, 8);
	EXPECT_BAD(offset, 0xf);
	EXPECT_BAD(offset, 0x100);
#undef EXPECT_BAD
}

#ifdef CONFIG_DEBUG_INFO_BTF_INLINE
static __always_inline unsigned long btf_func_inlined(unsigned long first, int second)
{
	return (first ^ btf_func_test_other()) + second;
}

static noinline __used unsigned long btf_func_inlines(unsigned long value)
{
	return btf_func_inlined(value, 200);
}

static noinline __used unsigned long btf_func_inlines_too(unsigned long *value)
{
	return btf_func_inlined(*value, -40000);
}

static bool is_in(unsigned long addr, unsigned long func)
{
	unsigned long size, offset;

	return kallsyms_lookup_size_offset(addr, &size, &offset) && addr - offset == func;
}

/* One place in each function, in any order */
static void test_sites(struct kunit *test)
{
	struct btf *btf = bpf_get_btf_vmlinux();
	const struct btf_loc_param *loc;
	struct btf_sites *sites;
	const struct btf_type *t;
	bool in_first;
	u32 i;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, btf);
	sites = btf_func_sites(btf, "btf_func_inlined");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, sites);
	KUNIT_ASSERT_EQ(test, sites->nr, 2);
	for (i = 0; i < 2; i++) {
		in_first = is_in(sites->sites[i].addr, (unsigned long)btf_func_inlines);
		KUNIT_EXPECT_NE(test, in_first, is_in(sites->sites[i].addr,
						      (unsigned long)btf_func_inlines_too));
		loc = btf_site_param(sites, &sites->sites[i], 1, &t);
		KUNIT_ASSERT_NOT_NULL(test, loc);
		KUNIT_EXPECT_EQ(test, loc->flags, BTF_LOC_PARAM_CONST);
		KUNIT_EXPECT_EQ(test, (int)btf_loc_value(loc->values, btf_type_vlen(t), false),
				in_first ? 200 : -40000);
		KUNIT_EXPECT_NULL(test, btf_site_param(sites, &sites->sites[i], 2, &t));
	}
	btf_sites_free(sites);
	KUNIT_EXPECT_EQ(test, PTR_ERR(btf_func_sites(btf, "no_such_function")), -ENOENT);
}

static void test_sites_sorted(struct kunit *test)
{
	static const struct btf_loc good[] = {
		{ .func = 2, .offset = 0x20 }, { .func = 7, .offset = 0 },
		{ .func = 7, .offset = 0x10 }, { .func = 7, .offset = 0x10 },
	};
	static const struct btf_loc bad[][2] = {
		{ { .func = 7 }, { .func = 2, .offset = 1 } },
		{ { .func = 7, .offset = 2 }, { .func = 7, .offset = 1 } },
		{ { .func = 7 }, { .func = 8, .offset = 0x30 } },
	};
	int i;

	KUNIT_EXPECT_TRUE(test, btf_sites_are_sorted(good, ARRAY_SIZE(good), 0x30));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_FALSE(test, btf_sites_are_sorted(bad[i], 2, 0x30));
}
#endif

static struct kunit_case btf_func_cases[] = {
	KUNIT_CASE(test_file),
	KUNIT_CASE(test_same_name),
	KUNIT_CASE(test_unique_name),
	KUNIT_CASE(test_not_described),
	KUNIT_CASE(test_sorted),
#ifdef CONFIG_DEBUG_INFO_BTF_INLINE
	KUNIT_CASE(test_sites),
	KUNIT_CASE(test_sites_sorted),
#endif
	{}
};

static struct kunit_suite btf_func_suite = {
	.name = "btf_func",
	.test_cases = btf_func_cases,
};

kunit_test_suite(btf_func_suite);

MODULE_DESCRIPTION("KUnit tests of BTF of functions by address");
MODULE_LICENSE("GPL");
