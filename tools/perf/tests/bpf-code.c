// SPDX-License-Identifier: GPL-2.0
/*
 * Test bpil__code() and bpil_offs_to_addr() with made-up program info, as it is in
 * perf.data: each function gets its own code, and invalid data is dropped.
 */
#include "tests.h"

#ifdef HAVE_LIBBPF_SUPPORT
#include "util/bpf-code.h"
#include "util/bpf-utils.h"

#include <byteswap.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>

#define NR_FUNCS 3

/* The data[] of a program with three functions, laid out as in a file. */
struct prog_data {
	u8			insns[64];
	u64			ksyms[NR_FUNCS];
	u32			lens[NR_FUNCS + 1];
	struct bpf_func_info	funcs[NR_FUNCS];
	u64			pad;
};

static const u32 func_lens[NR_FUNCS] = { 10, 33, 21 };

/* As get_bpf_prog_info_linear() and bpil_addr_to_offs() would leave it. */
static struct perf_bpil *prog__new(void)
{
	struct perf_bpil *bpil = zalloc(sizeof(*bpil) + sizeof(struct prog_data));
	struct prog_data *data;
	u32 pos = 0;

	if (!bpil)
		return NULL;

	data = (struct prog_data *)bpil->data;
	bpil->info_len = sizeof(bpil->info);
	bpil->data_len = sizeof(*data);
	bpil->arrays = (1UL << PERF_BPIL_JITED_INSNS) | (1UL << PERF_BPIL_JITED_KSYMS) |
		       (1UL << PERF_BPIL_JITED_FUNC_LENS) | (1UL << PERF_BPIL_FUNC_INFO);
	bpil->info = (struct bpf_prog_info) {
		.id			= 1,
		.jited_prog_insns	= offsetof(struct prog_data, insns),
		.jited_prog_len		= sizeof(data->insns),
		.jited_ksyms		= offsetof(struct prog_data, ksyms),
		.nr_jited_ksyms		= NR_FUNCS,
		.jited_func_lens	= offsetof(struct prog_data, lens),
		.nr_jited_func_lens	= NR_FUNCS,
		.func_info		= offsetof(struct prog_data, funcs),
		.nr_func_info		= NR_FUNCS,
		.func_info_rec_size	= sizeof(struct bpf_func_info),
	};

	/* each byte identifies its function */
	for (int i = 0; i < NR_FUNCS; i++) {
		memset(data->insns + pos, 'a' + i, func_lens[i]);
		data->ksyms[i] = 0xffffffffc0000000ULL + 0x1000 * i;
		data->lens[i] = func_lens[i];
		pos += func_lens[i];
	}
	return bpil;
}

static bool code__is_all(const struct bpf_code *code, u8 byte)
{
	for (u32 i = 0; i < code->len; i++) {
		if (code->insns[i] != byte)
			return false;
	}
	return code->len > 0;
}

static int check_slices(struct perf_bpil *bpil)
{
	struct bpf_code code;

	bpil_offs_to_addr(bpil);
	for (u32 i = 0; i < NR_FUNCS; i++) {
		TEST_ASSERT_VAL("function has no code", bpil__code(bpil, i, &code) == 0);
		TEST_ASSERT_EQUAL("wrong length", code.len, func_lens[i]);
		TEST_ASSERT_VAL("wrong address",
				code.addr == 0xffffffffc0000000ULL + 0x1000 * i);
		TEST_ASSERT_VAL("bytes of another function", code__is_all(&code, 'a' + i));
	}
	TEST_ASSERT_VAL("code for a function past the last",
			bpil__code(bpil, NR_FUNCS, &code) == -EINVAL);
	return TEST_OK;
}

static int test__slices(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct perf_bpil *bpil = prog__new();
	int ret;

	TEST_ASSERT_VAL("out of memory", bpil);
	ret = check_slices(bpil);
	free(bpil);
	return ret;
}

static void bits_clear(struct perf_bpil *bpil)
{
	bpil->arrays = 0;
}

static void offset_outside(struct perf_bpil *bpil)
{
	bpil->info.jited_prog_insns = bpil->data_len;
	bpil->info.func_info = -8ULL;
	bpil->info.jited_ksyms = 1ULL << 32;
	bpil->info.jited_func_lens = bpil->data_len + 8;
}

static void offset_unaligned(struct perf_bpil *bpil)
{
	bpil->info.jited_prog_insns++;
	bpil->info.func_info += 2;
	bpil->info.jited_ksyms += 4;
	bpil->info.jited_func_lens += 1;
}

static void count_oversize(struct perf_bpil *bpil)
{
	bpil->info.jited_prog_len = UINT32_MAX;
	bpil->info.nr_func_info = UINT32_MAX;
	bpil->info.nr_jited_ksyms = sizeof(struct prog_data) / sizeof(u64);
	bpil->info.nr_jited_func_lens = 0x40000001;
}

/* Each of these makes all arrays unusable, so that none of them may be kept. */
static const struct {
	const char *name;
	void (*damage)(struct perf_bpil *bpil);
} damages[] = {
	{ "bits cleared, pointers set",	bits_clear },
	{ "offsets outside of data",	offset_outside },
	{ "offsets not aligned",	offset_unaligned },
	{ "counts past the end",	count_oversize },
};

static int check_nothing_left(struct perf_bpil *bpil)
{
	const struct bpf_prog_info *info = &bpil->info;
	struct bpf_code code;

	bpil_offs_to_addr(bpil);
	TEST_ASSERT_VAL("code kept", !info->jited_prog_insns && !info->jited_prog_len);
	TEST_ASSERT_VAL("ksyms kept", !info->jited_ksyms && !info->nr_jited_ksyms);
	TEST_ASSERT_VAL("lengths kept",
			!info->jited_func_lens && !info->nr_jited_func_lens);
	TEST_ASSERT_VAL("func_info kept", !info->func_info && !info->nr_func_info);
	TEST_ASSERT_VAL("code found", bpil__code(bpil, 0, &code) == -ENODATA);
	return TEST_OK;
}

static int test__damaged(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		struct perf_bpil *bpil = prog__new();
		int ret;

		TEST_ASSERT_VAL("out of memory", bpil);
		pr_debug("%s\n", damages[i].name);
		damages[i].damage(bpil);
		ret = check_nothing_left(bpil);
		free(bpil);
		if (ret)
			return ret;
	}
	return TEST_OK;
}

/* All arrays are valid, but the function lengths do not add up to the code. */
static int check_lengths(struct perf_bpil *bpil, u32 sub_id, u32 len)
{
	struct prog_data *data = (struct prog_data *)bpil->data;
	struct bpf_code code;

	data->lens[sub_id] = len;
	bpil_offs_to_addr(bpil);
	TEST_ASSERT_VAL("code kept", !bpil->info.jited_prog_insns);
	for (u32 i = 0; i < NR_FUNCS; i++)
		TEST_ASSERT_VAL("code found", bpil__code(bpil, i, &code) == -ENODATA);
	return TEST_OK;
}

static int test__lengths(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	static const u32 lens[] = { 0, 11, 1000, UINT32_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		struct perf_bpil *bpil = prog__new();
		int ret;

		TEST_ASSERT_VAL("out of memory", bpil);
		ret = check_lengths(bpil, i % NR_FUNCS, lens[i]);
		free(bpil);
		if (ret)
			return ret;
	}
	return TEST_OK;
}

/* Records too short for their readers, and a name without a terminating NUL. */
static int check_records(struct perf_bpil *bpil)
{
	bpil->info.func_info_rec_size = sizeof(struct bpf_func_info) - 4;
	memset(bpil->info.name, 'x', sizeof(bpil->info.name));
	bpil_offs_to_addr(bpil);
	TEST_ASSERT_VAL("short records kept",
			!bpil->info.func_info && !bpil->info.nr_func_info);
	TEST_ASSERT_VAL("name not terminated", strnlen(bpil->info.name, sizeof(bpil->info.name)) ==
			  sizeof(bpil->info.name) - 1);
	TEST_ASSERT_VAL("valid arrays dropped",
			bpil->info.jited_prog_insns && bpil->info.jited_ksyms);
	return TEST_OK;
}

static int test__records(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct perf_bpil *bpil = prog__new();
	int ret;

	TEST_ASSERT_VAL("out of memory", bpil);
	ret = check_records(bpil);
	free(bpil);
	return ret;
}

/* Turn the info into what a machine of the other byte order writes. */
static void prog__to_other_order(struct perf_bpil *bpil)
{
	struct prog_data *data = (struct prog_data *)bpil->data;

	bpil->info = (struct bpf_prog_info) {
		.id			= bswap_32(bpil->info.id),
		.tag			= { 1, 2, 3, 4, 5, 6, 7, 8 },
		.load_time		= bswap_64(0x0102030405060708ULL),
		.name			= "prog",
		.ifindex		= bswap_32(0x01020304),
		.jited_prog_insns	= bswap_64(bpil->info.jited_prog_insns),
		.jited_prog_len		= bswap_32(bpil->info.jited_prog_len),
		.jited_ksyms		= bswap_64(bpil->info.jited_ksyms),
		.nr_jited_ksyms		= bswap_32(bpil->info.nr_jited_ksyms),
		.jited_func_lens	= bswap_64(bpil->info.jited_func_lens),
		.nr_jited_func_lens	= bswap_32(bpil->info.nr_jited_func_lens),
		.func_info		= bswap_64(bpil->info.func_info),
		.nr_func_info		= bswap_32(bpil->info.nr_func_info),
		.func_info_rec_size	= bswap_32(bpil->info.func_info_rec_size),
		.run_cnt		= bswap_64(0x1112131415161718ULL),
		.attach_btf_id		= bswap_32(0x21222324),
	};
	/* A bit field begins at the other end of the byte, whichever is this machine's. */
	*((u8 *)(&bpil->info.ifindex + 1)) = 0x81;

	for (u32 i = 0; i < NR_FUNCS; i++) {
		data->ksyms[i] = bswap_64(data->ksyms[i]);
		data->lens[i] = bswap_32(data->lens[i]);
		data->funcs[i].insn_off = bswap_32(i);
		data->funcs[i].type_id = bswap_32(i + 10);
	}
}

static int check_bswap(struct perf_bpil *bpil)
{
	static const u8 tag[BPF_TAG_SIZE] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	const struct prog_data *data = (struct prog_data *)bpil->data;
	const struct bpf_prog_info *info = &bpil->info;
	int ret;

	prog__to_other_order(bpil);
	bpil__bswap(bpil);
	ret = check_slices(bpil);
	if (ret)
		return ret;

	TEST_ASSERT_EQUAL("id", info->id, 1);
	TEST_ASSERT_VAL("tag", !memcmp(info->tag, tag, sizeof(tag)));
	TEST_ASSERT_VAL("load_time", info->load_time == 0x0102030405060708ULL);
	TEST_ASSERT_VAL("name", !strcmp(info->name, "prog"));
	TEST_ASSERT_VAL("ifindex", info->ifindex == 0x01020304);
	TEST_ASSERT_VAL("gpl_compatible", info->gpl_compatible);
	TEST_ASSERT_VAL("run_cnt", info->run_cnt == 0x1112131415161718ULL);
	TEST_ASSERT_VAL("attach_btf_id", info->attach_btf_id == 0x21222324);
	for (u32 i = 0; i < NR_FUNCS; i++) {
		TEST_ASSERT_EQUAL("func_info", data->funcs[i].insn_off, i);
		TEST_ASSERT_EQUAL("func_info", data->funcs[i].type_id, i + 10);
	}
	return TEST_OK;
}

static int test__bswap(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct perf_bpil *bpil = prog__new();
	int ret;

	TEST_ASSERT_VAL("out of memory", bpil);
	ret = check_bswap(bpil);
	free(bpil);
	return ret;
}

static struct test_case tests__bpf_code[] = {
	TEST_CASE("Each function has its own bytes", slices),
	TEST_CASE("Arrays that are missing or invalid", damaged),
	TEST_CASE("Function lengths that do not add up", lengths),
	TEST_CASE("Short records, unterminated name", records),
	TEST_CASE("Program info of another byte order", bswap),
	{	.name = NULL, }
};
#else /* !HAVE_LIBBPF_SUPPORT */
static int test__no_libbpf(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return TEST_SKIP;
}

static struct test_case tests__bpf_code[] = {
	TEST_CASE_REASON("BPF code", no_libbpf, "not linked with libbpf"),
	{	.name = NULL, }
};
#endif

struct test_suite suite__bpf_code = {
	.desc = "Code of BPF functions",
	.test_cases = tests__bpf_code,
};
