// SPDX-License-Identifier: GPL-2.0
/*
 * Test that perf byte-swaps and prints the fields of perf_event_attr for a BPF program
 * (attr.bpf_fd). If the attr of a file ends before them, other data follows there,
 * which must not be touched.
 */
#include <byteswap.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include "tests.h"
#include "util/debug.h"
#include "util/evsel_fprintf.h"
#include "util/session.h"

#define COOKIE 0x0123456789abcdefULL

static u8 reverse_bits(u8 byte)
{
	u8 reversed = 0;

	for (int bit = 0; bit < 8; bit++) {
		if (byte & (1 << bit))
			reversed |= 0x80 >> bit;
	}
	return reversed;
}

/* Build the attr that a machine of the other byte order writes. */
static void foreign_attr(struct perf_event_attr *attr, u32 size)
{
	u8 *bits = (u8 *)(&attr->read_format + 1);

	memset(attr, 0, sizeof(*attr));
	attr->size = bswap_32(size);
	attr->exclude_kernel = 1;
	attr->bpf_fd = bswap_32(7);
	attr->bpf_flags = bswap_32(PERF_BPF_F_ATTACH);
	attr->bpf_cookie = bswap_64(COOKIE);

	for (size_t i = 0; i < sizeof(u64); i++)
		bits[i] = reverse_bits(bits[i]);
}

static int test_swap(void)
{
	struct perf_event_attr attr;

	foreign_attr(&attr, PERF_ATTR_SIZE_VER10);
	perf_event__attr_swap(&attr);
	TEST_ASSERT_EQUAL("size", attr.size, PERF_ATTR_SIZE_VER10);
	TEST_ASSERT_EQUAL("exclude_kernel", attr.exclude_kernel, 1);
	TEST_ASSERT_EQUAL("bpf_fd", attr.bpf_fd, 7);
	TEST_ASSERT_EQUAL("bpf_flags", attr.bpf_flags, PERF_BPF_F_ATTACH);
	TEST_ASSERT_VAL("bpf_cookie", attr.bpf_cookie == COOKIE);

	foreign_attr(&attr, PERF_ATTR_SIZE_VER9);
	perf_event__attr_swap(&attr);
	TEST_ASSERT_EQUAL("size of VER9", attr.size, PERF_ATTR_SIZE_VER9);
	TEST_ASSERT_VAL("bpf_fd after VER9", attr.bpf_fd == (s32)bswap_32(7));
	TEST_ASSERT_VAL("bpf_cookie after VER9", attr.bpf_cookie == bswap_64(COOKIE));
	return TEST_OK;
}

struct printed {
	char bpf_fd[32], bpf_flags[32], bpf_cookie[32];
};

static int save_printed(FILE *fp __maybe_unused, const char *name, const char *val, void *priv)
{
	struct printed *printed = priv;

	if (!strcmp(name, "bpf_fd"))
		scnprintf(printed->bpf_fd, sizeof(printed->bpf_fd), "%s", val);
	else if (!strcmp(name, "bpf_flags"))
		scnprintf(printed->bpf_flags, sizeof(printed->bpf_flags), "%s", val);
	else if (!strcmp(name, "bpf_cookie"))
		scnprintf(printed->bpf_cookie, sizeof(printed->bpf_cookie), "%s", val);
	return 0;
}

static int test_print(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = PERF_ATTR_SIZE_VER10,
		.bpf_flags = PERF_BPF_F_ATTACH,
		.bpf_cookie = COOKIE,
	};
	struct printed printed = {};

	/* bpf_fd is printed even if it is 0 */
	perf_event_attr__fprintf(/*fp=*/NULL, &attr, save_printed, &printed);
	TEST_ASSERT_VAL("bpf_fd printed", !strcmp(printed.bpf_fd, "0"));
	TEST_ASSERT_VAL("bpf_flags printed", !strcmp(printed.bpf_flags, "0x1"));
	TEST_ASSERT_VAL("bpf_cookie printed", !strcmp(printed.bpf_cookie, "0x123456789abcdef"));

	memset(&printed, 0, sizeof(printed));
	attr.size = PERF_ATTR_SIZE_VER9;
	perf_event_attr__fprintf(/*fp=*/NULL, &attr, save_printed, &printed);
	TEST_ASSERT_VAL("nothing printed after VER9", !printed.bpf_fd[0] && !printed.bpf_cookie[0]);

	memset(&printed, 0, sizeof(printed));
	memset(&attr, 0, sizeof(attr));
	attr.size = PERF_ATTR_SIZE_VER10;
	perf_event_attr__fprintf(/*fp=*/NULL, &attr, save_printed, &printed);
	TEST_ASSERT_VAL("nothing printed without bpf_flags",
			!printed.bpf_fd[0] && !printed.bpf_flags[0]);
	return TEST_OK;
}

static int test__attr_fields(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	int err = test_swap();

	return err ?: test_print();
}

DEFINE_SUITE("Fields of perf_event_attr for BPF programs", attr_fields);
