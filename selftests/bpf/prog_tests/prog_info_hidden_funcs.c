// SPDX-License-Identifier: GPL-2.0
/* bpf_prog_info of a program to which the verifier adds an exception callback */
#include <test_progs.h>
#include "exceptions.skel.h"

static int get_info(int fd, struct bpf_prog_info *info)
{
	__u32 len = sizeof(*info);

	return bpf_prog_get_info_by_fd(fd, info, &len);
}

static void check_info(int fd)
{
	struct bpf_prog_info plain = {}, all = {
		.nr_hidden_funcs = BPF_PROG_INFO_HIDDEN_FUNCS,
	}, invalid = {
		.nr_hidden_funcs = 1,
	};

	if (!ASSERT_OK(get_info(fd, &plain), "info"))
		return;
	ASSERT_EQ(plain.nr_hidden_funcs, 0, "hidden functions, not asked for");

	if (!ASSERT_OK(get_info(fd, &all), "info with hidden functions"))
		return;
	ASSERT_EQ(all.nr_hidden_funcs, 1, "hidden functions");
	ASSERT_EQ(all.nr_func_info, plain.nr_func_info, "func_info");
	if (plain.nr_jited_ksyms)
		ASSERT_EQ(all.nr_jited_ksyms, plain.nr_jited_ksyms + 1, "jited_ksyms");

	ASSERT_EQ(get_info(fd, &invalid), -EINVAL, "other request");
}

void test_prog_info_hidden_funcs(void)
{
	struct bpf_program *prog;
	struct exceptions *skel;
	int err;

	skel = exceptions__open();
	if (!ASSERT_OK_PTR(skel, "exceptions__open"))
		return;

	bpf_object__for_each_program(prog, skel->obj)
		bpf_program__set_autoload(prog, prog == skel->progs.exception_throw_always_1);

	err = exceptions__load(skel);
	if (err == -ENOTSUPP)
		test__skip();	/* a JIT without exceptions */
	else if (ASSERT_OK(err, "exceptions__load"))
		check_info(bpf_program__fd(skel->progs.exception_throw_always_1));
	exceptions__destroy(skel);
}
