// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the search of FUNCs by address, and of the check of its index
 */
#include <kunit/test.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_func.h>
#include <linux/btf_func_index.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/string.h>

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

/* An index of two sections, which have two entries and one */
struct test_index {
	struct btf_func_index head;
	struct btf_func_section sections[2];
	struct btf_func_entry entries[3];
	char names[16];
} __packed;

static const struct test_index valid_index = {
	.head = {
		.magic = BTF_FUNC_INDEX_MAGIC,
		.version = BTF_FUNC_INDEX_VERSION,
		.nr_sections = 2,
		.nr_entries = 3,
		.str_len = 16,
	},
	.sections = {
		{ .name = 0, .size = 0x100, .first = 0, .nr = 2 },
		{ .name = 6, .size = 0x10, .first = 2, .nr = 1 },
	},
	.entries = { { .offset = 0x10, .id = 1 }, { .offset = 0xff, .id = 2 },
		     { .offset = 0, .id = 0 } },
	.names = ".text\0.exit.txt",
};

static void test_check(struct kunit *test)
{
	struct test_index *bad = kunit_kmalloc(test, sizeof(*bad), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bad);
	KUNIT_EXPECT_EQ(test, btf_func_index_check(&valid_index, sizeof(valid_index)), 0);

#define EXPECT_BAD(field, value, err)						\
	do {									\
		*bad = valid_index;						\
		bad->field = value;						\
		KUNIT_EXPECT_EQ(test, btf_func_index_check(bad, sizeof(*bad)), err); \
	} while (0)

	EXPECT_BAD(head.magic, 0xeb9e, -EINVAL);
	EXPECT_BAD(head.version, BTF_FUNC_INDEX_VERSION + 1, -EPROTO);
	EXPECT_BAD(head.flags, 1, -EPROTO);
	EXPECT_BAD(head.nr_sections, U32_MAX, -EINVAL);
	EXPECT_BAD(head.nr_entries, U32_MAX, -EINVAL);
	EXPECT_BAD(head.str_len, 15, -EINVAL);
	EXPECT_BAD(names[15], 'x', -EINVAL);
	EXPECT_BAD(sections[1].name, 16, -EINVAL);
	EXPECT_BAD(sections[1].first, 1, -EINVAL);
	EXPECT_BAD(sections[1].nr, 2, -EINVAL);
	EXPECT_BAD(sections[1].nr, 0, -EINVAL);
	EXPECT_BAD(sections[0].size, 0xff, -EINVAL);
	EXPECT_BAD(entries[0].offset, 0x100, -EINVAL);
	EXPECT_BAD(entries[1].offset, 0xf, -EINVAL);
#undef EXPECT_BAD
}

static void test_check_truncated(struct kunit *test)
{
	struct btf_func_index *head = kunit_kmalloc(test, sizeof(*head), GFP_KERNEL);
	size_t size;

	KUNIT_ASSERT_NOT_NULL(test, head);
	for (size = 0; size < sizeof(valid_index); size++)
		KUNIT_EXPECT_EQ(test, btf_func_index_check(&valid_index, size), -EINVAL);

	/* It may be empty. */
	*head = (struct btf_func_index){
		.magic = BTF_FUNC_INDEX_MAGIC,
		.version = BTF_FUNC_INDEX_VERSION,
	};
	KUNIT_EXPECT_EQ(test, btf_func_index_check(head, sizeof(*head)), 0);
	KUNIT_EXPECT_EQ(test, btf_func_index_check(head, sizeof(*head) - 1), -EINVAL);
}

static struct kunit_case btf_func_cases[] = {
	KUNIT_CASE(test_file),
	KUNIT_CASE(test_same_name),
	KUNIT_CASE(test_unique_name),
	KUNIT_CASE(test_not_described),
	KUNIT_CASE(test_check),
	KUNIT_CASE(test_check_truncated),
	{}
};

static struct kunit_suite btf_func_suite = {
	.name = "btf_func",
	.test_cases = btf_func_cases,
};

kunit_test_suite(btf_func_suite);

MODULE_DESCRIPTION("KUnit tests of BTF of functions by address");
MODULE_LICENSE("GPL");
