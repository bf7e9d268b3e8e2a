// SPDX-License-Identifier: GPL-2.0
/*
 * Test bpf_prog_info of a program that can throw. The verifier adds a hidden
 * function to it, the exception callback.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "lib/bpf_info.h"
#include "lib/bpf_load.h"
#include "lib/test_env.h"

FIXTURE(info) {
	int prog;
	bool throws;		/* the verifier adds a function */
};

FIXTURE_SETUP(info)
{
	const char *reason = skip_reason();

	self->prog = -1;
	if (reason)
		SKIP(return, "%s", reason);
	self->prog = info_prog__load(&self->throws);
	ASSERT_LE(0, self->prog) TH_LOG("BPF_PROG_LOAD: %s", strerror(-self->prog));
}

FIXTURE_TEARDOWN(info)
{
	close_fd(&self->prog);
}

/*
 * The first line of each function has the address of the function. libbpf refuses all
 * line info of a program otherwise.
 */
TEST_F(info, lines_begin_with_their_function)
{
	struct info_copy c;

	if (!self->throws)
		SKIP(return, "the kernel has no BPF exceptions: no hidden function");
	ASSERT_EQ(0, info_copy__read(&c, self->prog, false));
	ASSERT_EQ(2, c.info.nr_jited_ksyms);
	ASSERT_EQ(4, c.info.nr_jited_line_info);
	EXPECT_EQ(c.ksyms[0], c.jited_lines[0]);
	EXPECT_EQ(c.ksyms[1], c.jited_lines[3]);
}

/* Tools that do not ask expect a func_info for each function in jited_ksyms. */
TEST_F(info, hidden_functions_when_asked)
{
	struct info_copy with, without;

	ASSERT_EQ(0, info_copy__read(&without, self->prog, false));
	ASSERT_EQ(2, without.info.nr_jited_ksyms);
	ASSERT_EQ(0, without.info.nr_hidden_funcs);
	/* The lines of a hidden function are not those of others. */
	ASSERT_EQ(without.ksyms[0], without.jited_lines[0]);
	ASSERT_EQ(without.ksyms[1], without.jited_lines[3]);
	if (!self->throws)
		SKIP(return, "the kernel has no BPF exceptions: no hidden function");

	ASSERT_EQ(0, info_copy__read(&with, self->prog, true));
	EXPECT_EQ(3, with.info.nr_jited_ksyms);
	EXPECT_EQ(3, with.info.nr_jited_func_lens);
	EXPECT_EQ(3, with.info.nr_prog_tags);
	EXPECT_EQ(2, with.info.nr_func_info);
	EXPECT_EQ(1, with.info.nr_hidden_funcs);
	EXPECT_EQ(without.info.jited_prog_len + with.lens[2], with.info.jited_prog_len);
	EXPECT_NE(0, with.ksyms[2]);
}

/* A kernel without the field returns the request, so it must not look like an answer. */
TEST_F(info, other_requests_are_refused)
{
	struct bpf_prog_info info = { .nr_hidden_funcs = 1 };
	__u32 len = sizeof(info);

	EXPECT_EQ(-EINVAL, bpf_prog_get_info_by_fd(self->prog, &info, &len));
	info = (struct bpf_prog_info){ .nr_hidden_funcs = BPF_PROG_INFO_HIDDEN_FUNCS };
	EXPECT_EQ(0, bpf_prog_get_info_by_fd(self->prog, &info, &len));
	EXPECT_EQ(0, info.nr_hidden_funcs & BPF_PROG_INFO_HIDDEN_FUNCS);
}

TEST_HARNESS_MAIN
