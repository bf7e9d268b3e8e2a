// SPDX-License-Identifier: GPL-2.0
/*
 * Test get_bpf_prog_info_linear() with the answers of a made-up kernel: one that hides
 * addresses from perf, that binds maps between the queries, that has no array to
 * return or that fails.
 */
#include "tests.h"

#ifdef HAVE_LIBBPF_SUPPORT
#include "util/bpf-code.h"
#include "util/bpf-event.h"
#include "util/bpf-print.h"
#include "util/bpf-utils.h"
#include "util/debug.h"
#include "util/env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/err.h>
#include <linux/kernel.h>

#define NR_FUNCS	2
#define NR_LINES	3
#define MAX_MAPS	200
#define ALL_ARRAYS	((1UL << PERF_BPIL_LAST_ARRAY) - 1)
#define HIDDEN_ARRAYS	((1UL << PERF_BPIL_JITED_INSNS) | (1UL << PERF_BPIL_JITED_KSYMS) | \
			 (1UL << PERF_BPIL_JITED_FUNC_LENS) | \
			 (1UL << PERF_BPIL_JITED_LINE_INFO))

/* What the kernel has of the program, and how it answers */
static struct {
	bool	hide_addrs;
	/* only an id: as of a program without code, BTF and maps */
	bool	empty;
	/* so many maps are bound, one before each query after the first */
	int	nr_binds;
	int	err;
	int	nr_queries;
} kernel;

static const u8 insns[] = "function 0, function 1.";
static const u64 ksyms[NR_FUNCS] = { 0xffffffffc0000000ULL, 0xffffffffc0001000ULL };
static const u32 lens[NR_FUNCS] = { 12, 12 };
static const struct bpf_func_info funcs[NR_FUNCS] = { { .insn_off = 0 }, { .insn_off = 7 } };
static const struct bpf_line_info lines[NR_LINES] = { { .line_col = 1024 } };
static const u64 jited_lines[NR_LINES] = { 0xffffffffc0000000ULL };
static const u8 tags[NR_FUNCS][BPF_TAG_SIZE] = { { 0xaa }, { 0xbb } };
static const u32 map_ids[MAX_MAPS] = { 1, 2, 3 };

/* As the kernel: copy not more than @count records, and return how many there are. */
static void copy_array(__u64 *ptr, __u32 *count, const void *from, __u32 nr, size_t size,
		       bool hide)
{
	if (*count && nr && hide)
		*ptr = 0;
	else if (*count && nr)
		memcpy((void *)(uintptr_t)*ptr, from, min(*count, nr) * size);
	*count = nr;
}

static int kernel__query(int fd __maybe_unused, void *data, __u32 *len __maybe_unused)
{
	struct bpf_prog_info *info = data;
	bool hide = kernel.hide_addrs;
	u32 nr_maps;

	nr_maps = 2 + min(kernel.nr_queries, kernel.nr_binds);
	kernel.nr_queries++;
	if (kernel.err) {
		errno = -kernel.err;
		return kernel.err;
	}
	info->id = 5;
	memcpy(info->tag, tags[0], sizeof(info->tag));
	if (kernel.empty)
		return 0;

	info->func_info_rec_size = sizeof(funcs[0]);
	info->line_info_rec_size = sizeof(lines[0]);
	info->jited_line_info_rec_size = sizeof(jited_lines[0]);
	copy_array(&info->jited_prog_insns, &info->jited_prog_len, insns, sizeof(insns), 1, hide);
	copy_array(&info->map_ids, &info->nr_map_ids, map_ids, nr_maps, sizeof(u32), false);
	copy_array(&info->jited_ksyms, &info->nr_jited_ksyms, ksyms, NR_FUNCS, sizeof(u64), hide);
	copy_array(&info->jited_func_lens, &info->nr_jited_func_lens, lens, NR_FUNCS,
		   sizeof(u32), hide);
	copy_array(&info->func_info, &info->nr_func_info, funcs, NR_FUNCS,
		   sizeof(funcs[0]), false);
	copy_array(&info->line_info, &info->nr_line_info, lines, NR_LINES,
		   sizeof(lines[0]), false);
	copy_array(&info->jited_line_info, &info->nr_jited_line_info, jited_lines, NR_LINES,
		   sizeof(u64), hide);
	copy_array(&info->prog_tags, &info->nr_prog_tags, tags, NR_FUNCS, sizeof(tags[0]), false);
	return 0;
}

/* Return: the info, or ERR_PTR(-errno). */
static struct perf_bpil *kernel__read(void)
{
	kernel.nr_queries = 0;
	return query_bpf_prog_info_linear(kernel__query, /*fd=*/-1, ALL_ARRAYS);
}

#define same_array(ptr, array) (!memcmp((void *)(uintptr_t)(ptr), array, sizeof(array)))

/* The arrays that the kernel never hides */
static int check_names(const struct perf_bpil *bpil, u32 nr_maps)
{
	const struct bpf_prog_info *info = &bpil->info;

	TEST_ASSERT_EQUAL("tags missing", info->nr_prog_tags, NR_FUNCS);
	TEST_ASSERT_VAL("wrong tags", same_array(info->prog_tags, tags));
	TEST_ASSERT_EQUAL("functions missing", info->nr_func_info, NR_FUNCS);
	TEST_ASSERT_VAL("wrong functions", same_array(info->func_info, funcs));
	TEST_ASSERT_EQUAL("lines missing", info->nr_line_info, NR_LINES);
	TEST_ASSERT_VAL("wrong lines", same_array(info->line_info, lines));
	TEST_ASSERT_EQUAL("wrong number of maps", info->nr_map_ids, nr_maps);
	TEST_ASSERT_VAL("wrong maps", !memcmp((void *)(uintptr_t)info->map_ids, map_ids,
					      nr_maps * sizeof(map_ids[0])));
	return TEST_OK;
}

static int check_all(struct perf_bpil *bpil)
{
	struct bpf_code code;

	TEST_ASSERT_EQUAL("queries", kernel.nr_queries, 2);
	TEST_ASSERT_VAL("an array is missing", bpil->arrays == ALL_ARRAYS);
	TEST_ASSERT_VAL("addresses reported as hidden", !bpil__addrs_hidden(bpil));
	TEST_ASSERT_VAL("no code", !bpil__code(bpil, 1, &code));
	TEST_ASSERT_VAL("wrong code", !memcmp(code.insns, insns + 12, 12));
	TEST_ASSERT_VAL("wrong address", code.addr == ksyms[1]);
	return check_names(bpil, 2);
}

static int test__all(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct perf_bpil *bpil = kernel__read();
	int ret;

	TEST_ASSERT_VAL("not read", !IS_ERR(bpil));
	ret = check_all(bpil);
	free(bpil);
	return ret;
}

/* perf report --header lists each function by its tag. */
static int check_hidden_print(struct perf_bpil *bpil)
{
	struct perf_env env = {};
	char *text = NULL;
	size_t size = 0;
	FILE *fp = open_memstream(&text, &size);
	bool ok;

	TEST_ASSERT_VAL("out of memory", fp);
	__bpf_event__print_bpf_prog_info(bpil, &env, fp);
	fclose(fp);
	ok = strstr(text, "bpf_prog_aa00000000000000_F addr hidden by the kernel\n") &&
	     strstr(text, "bpf_prog_bb00000000000000_F addr hidden by the kernel\n");
	pr_debug("%s", text);
	free(text);
	TEST_ASSERT_VAL("functions not printed", ok);
	return TEST_OK;
}

static int check_hidden(struct perf_bpil *bpil)
{
	const struct bpf_prog_info *info = &bpil->info;
	struct bpf_code code;

	TEST_ASSERT_EQUAL("queries", kernel.nr_queries, 2);
	TEST_ASSERT_VAL("addresses not reported as hidden", bpil__addrs_hidden(bpil));
	TEST_ASSERT_VAL("wrong arrays", bpil->arrays == (ALL_ARRAYS & ~HIDDEN_ARRAYS));
	TEST_ASSERT_VAL("code kept", !info->jited_prog_insns && !info->jited_prog_len);
	TEST_ASSERT_VAL("ksyms kept", !info->jited_ksyms && !info->nr_jited_ksyms);
	TEST_ASSERT_VAL("lengths kept", !info->jited_func_lens && !info->nr_jited_func_lens);
	TEST_ASSERT_VAL("addresses of lines kept",
			!info->jited_line_info && !info->nr_jited_line_info);
	TEST_ASSERT_VAL("code found", bpil__code(bpil, 0, &code) == -ENODATA);
	if (check_names(bpil, 2))
		return TEST_FAIL;
	return check_hidden_print(bpil);
}

static int test__hidden(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct perf_bpil *bpil;
	int ret;

	kernel.hide_addrs = true;
	bpil = kernel__read();
	kernel.hide_addrs = false;
	TEST_ASSERT_VAL("not read", !IS_ERR(bpil));
	ret = check_hidden(bpil);
	/* as in perf.data */
	bpil_addr_to_offs(bpil);
	bpil_offs_to_addr(bpil);
	ret = ret ?: check_hidden(bpil);
	free(bpil);
	return ret;
}

/* 2 and 3 maps: query again */
static int test__map_bound(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct perf_bpil *bpil;
	int ret;

	kernel.nr_binds = 1;
	bpil = kernel__read();
	kernel.nr_binds = 0;
	TEST_ASSERT_VAL("not read", !IS_ERR(bpil));
	ret = check_names(bpil, 3);
	free(bpil);
	TEST_ASSERT_EQUAL("queries", kernel.nr_queries, 4);
	return ret;
}

/* No endless loop if the number of maps differs each time, or if the kernel fails */
static int test__errors(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct perf_bpil *bpil;

	kernel.nr_binds = MAX_MAPS;
	bpil = kernel__read();
	kernel.nr_binds = 0;
	TEST_ASSERT_VAL("read", IS_ERR(bpil));
	TEST_ASSERT_EQUAL("wrong error", (int)PTR_ERR(bpil), -EAGAIN);
	TEST_ASSERT_EQUAL("queries", kernel.nr_queries, 128);

	kernel.err = -EPERM;
	bpil = kernel__read();
	kernel.err = 0;
	TEST_ASSERT_VAL("read", IS_ERR(bpil));
	TEST_ASSERT_EQUAL("wrong error", (int)PTR_ERR(bpil), -EPERM);
	TEST_ASSERT_EQUAL("queries", kernel.nr_queries, 1);
	return TEST_OK;
}

static int test__empty(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct perf_bpil *bpil;
	struct bpf_code code;
	int ret;

	kernel.empty = true;
	bpil = kernel__read();
	kernel.empty = false;
	TEST_ASSERT_VAL("not read", !IS_ERR(bpil));
	ret = bpil__addrs_hidden(bpil) || bpil__code(bpil, 0, &code) != -ENODATA;
	free(bpil);
	return ret ? TEST_FAIL : TEST_OK;
}

static struct test_case tests__bpf_info[] = {
	TEST_CASE("All arrays", all),
	TEST_CASE("Addresses hidden by kernel.kptr_restrict", hidden),
	TEST_CASE("A map that is bound between the queries", map_bound),
	TEST_CASE("Queries that fail", errors),
	TEST_CASE("No arrays", empty),
	{	.name = NULL, }
};
#else /* !HAVE_LIBBPF_SUPPORT */
static int test__no_libbpf(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return TEST_SKIP;
}

static struct test_case tests__bpf_info[] = {
	TEST_CASE_REASON("bpf_prog_info", no_libbpf, "not linked with libbpf"),
	{	.name = NULL, }
};
#endif

struct test_suite suite__bpf_info = {
	.desc = "Read bpf_prog_info from the kernel",
	.test_cases = tests__bpf_info,
};
