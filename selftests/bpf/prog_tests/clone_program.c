// SPDX-License-Identifier: GPL-2.0
/* What bpf_program__clone() shares with the program of the object, and what not. */

#include <test_progs.h>
#include "clone_program.skel.h"
#include "jump_table.skel.h"
#include "module_kfunc.skel.h"

/* Run a program of a kind that gets packets: its return value, or -1. */
static int run(int fd)
{
	char packet[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts,
		.data_in = packet,
		.data_size_in = sizeof(packet),
	);

	return bpf_prog_test_run_opts(fd, &opts) ? -1 : opts.retval;
}

/* A program that attaches by BTF and was not loaded with the object */
static void test_attach_target(void)
{
	struct clone_program *skel = clone_program__open();

	if (!ASSERT_OK_PTR(skel, "open"))
		goto out;
	bpf_program__set_autoload(skel->progs.bad, false);
	bpf_program__set_autoload(skel->progs.on_fentry, true);
	if (!ASSERT_OK(bpf_object__prepare(skel->obj), "prepare"))
		goto out;
	bpf_program__set_autoload(skel->progs.on_fentry, false);
	if (ASSERT_OK(bpf_object__load(skel->obj), "load"))
		ASSERT_EQ(bpf_program__clone(skel->progs.on_fentry, NULL), -EINVAL, "clone");
out:
	clone_program__destroy(skel);
}

static void clone_returns(struct bpf_program *prog, int value, const char *name)
{
	int fd = bpf_program__clone(prog, NULL);

	if (!ASSERT_GE(fd, 0, name))
		return;
	ASSERT_EQ(run(fd), value, name);
	close(fd);
}

/* The object's array of module BTFs has no fd at index 0, which 0 would be taken for. */
static void test_module_kfunc(void)
{
	struct module_kfunc *skel;
	int stdin_fd;

	if (!env.has_testmod) {
		test__skip();
		return;
	}
	skel = module_kfunc__open();
	if (!ASSERT_OK_PTR(skel, "open") || !ASSERT_OK(bpf_object__prepare(skel->obj), "prepare"))
		goto out;

	clone_returns(skel->progs.module_kfunc, 7, "clone");
	clone_returns(skel->progs.no_kfunc, 3, "clone of another program");

	stdin_fd = dup(STDIN_FILENO);
	close(STDIN_FILENO);
	clone_returns(skel->progs.module_kfunc, 7, "clone without stdin");
	if (stdin_fd >= 0) {
		dup2(stdin_fd, STDIN_FILENO);
		close(stdin_fd);
	}

	if (!ASSERT_OK(bpf_object__load(skel->obj), "load"))
		goto out;
	ASSERT_EQ(run(bpf_program__fd(skel->progs.module_kfunc)), 7, "the object's program");
	ASSERT_EQ(bpf_program__clone(skel->progs.module_kfunc, NULL), -EINVAL,
		  "clone after load");
	clone_returns(skel->progs.no_kfunc, 3, "clone of another program after load");
out:
	module_kfunc__destroy(skel);
}

static __maybe_unused void test_jump_table(void)
{
	struct jump_table *skel = jump_table__open();

	if (!ASSERT_OK_PTR(skel, "open") || !ASSERT_OK(bpf_object__prepare(skel->obj), "prepare"))
		goto out;

	clone_returns(skel->progs.jump_table, 7, "first clone");
	clone_returns(skel->progs.jump_table, 7, "second clone");
	if (!ASSERT_OK(bpf_object__load(skel->obj), "load"))
		goto out;
	ASSERT_EQ(run(bpf_program__fd(skel->progs.jump_table)), 7, "the object's program");
	clone_returns(skel->progs.jump_table, 7, "clone after load");
out:
	jump_table__destroy(skel);
}

static int nr_logs;

static int count_logs(enum libbpf_print_level level, const char *format, va_list args)
{
	char text[4096];

	vsnprintf(text, sizeof(text), format, args);
	if (level == LIBBPF_WARN && strstr(text, "R7 !read_ok"))
		nr_logs++;
	return 0;
}

/* A clone without log options shows the verifier's log, one with a buffer fills that. */
static void test_log(void)
{
	char log[4096] = {};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		.log_buf = log,
		.log_size = sizeof(log),
		.log_level = 1,
	);
	struct clone_program *skel = clone_program__open();
	libbpf_print_fn_t old_print;

	if (!ASSERT_OK_PTR(skel, "open") || !ASSERT_OK(bpf_object__prepare(skel->obj), "prepare"))
		goto out;

	old_print = libbpf_set_print(count_logs);
	nr_logs = 0;
	ASSERT_EQ(bpf_program__clone(skel->progs.bad, NULL), -EACCES, "clone");
	ASSERT_EQ(nr_logs, 1, "printed logs");
	nr_logs = 0;
	ASSERT_EQ(bpf_program__clone(skel->progs.bad, &opts), -EACCES, "clone with a buffer");
	ASSERT_EQ(nr_logs, 0, "printed logs with a buffer");
	libbpf_set_print(old_print);
	ASSERT_HAS_SUBSTR(log, "R7 !read_ok", "log");
out:
	clone_program__destroy(skel);
}

void test_clone_program(void)
{
	if (test__start_subtest("module_kfunc"))
		test_module_kfunc();
#if defined(__x86_64__) || defined(__aarch64__) || defined(__powerpc64__)
	/* where JITs know gotox */
	if (test__start_subtest("jump_table"))
		test_jump_table();
#endif
	if (test__start_subtest("attach_target"))
		test_attach_target();
	if (test__start_subtest("log"))
		test_log();
}
