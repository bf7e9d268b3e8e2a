// SPDX-License-Identifier: GPL-2.0
/*
 * Does BPF text that is closed while it runs keep its symbols until it returns?
 *
 * A child on CPU 1, in a cgroup of its own, creates a socket, which runs a
 * program that loops for a while. Meanwhile CPU 0 detaches the program from the
 * cgroup and closes its last fd. The program stores the time at which it returns
 * in a map. UNREGISTER, the time at which its symbols are gone, must be later.
 *
 * In the test "throws" it calls bpf_throw() after the loop, which looks for the
 * frame of the program by its symbols. A kernel that fails unregister_is_later
 * would crash there, so on such a kernel the test fails without calling it,
 * unless KSYMBOL_END_THROW is set in the environment. In "prints_its_stack" it
 * prints its stack, with the lines of its source.
 *
 * The last test frees a struct_ops map while the program runs.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "lib/bpf_load.h"
#include "lib/ksym_ring.h"
#include "lib/tcp_ops.h"
#include "lib/test_env.h"

#define LOOPS		8388608		/* the most bpf_loop() does */
#define TRIES		10
#define MAIN_NAME	"ksym_end_main"

/* The value of the map, written by the program. */
struct progress {
	__u64 started;
	__u64 ended;		/* CLOCK_MONOTONIC, ns */
};

struct runner {
	struct ksym_rings rings;
	char root[64], group[80];
	bool mounted;
	struct prog_btf btf;
	int cgroup, map;
	int go[2], done[2];
	pid_t child;
};

FIXTURE(end) {
	struct runner r;
	struct tcp_ops ops;
};

/* The kfunc that the program calls after the loop, with its argument; 0: none */
struct call {
	int kfunc, arg;
};

static int load_prog(const struct runner *r, struct call c)
{
	const struct bpf_insn insns[] = {
		BPF_LD_MAP_VALUE(BPF_REG_1, r->map, 0),
		BPF_ST_MEM(BPF_DW, BPF_REG_1, offsetof(struct progress, started), 1),
		BPF_MOV64_IMM(BPF_REG_1, LOOPS),
		BPF_LD_IMM64_RAW(BPF_REG_2, BPF_PSEUDO_FUNC, 12),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_EMIT_CALL(BPF_FUNC_loop),
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_LD_MAP_VALUE(BPF_REG_1, r->map, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, offsetof(struct progress, ended)),
		BPF_MOV64_IMM(BPF_REG_1, c.arg),
		c.kfunc ? BPF_CALL_KFUNC(c.kfunc) : BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
		/* 17 = 4 + 12 + 1: the loop's callback */
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	const struct bpf_func_info funcs[] = { { 0, 3 }, { 17, 4 } };
	const struct bpf_line_info lines[] = {
		{ 0, r->btf.file, r->btf.line, 1 << 10 }, { 17, r->btf.file, r->btf.line, 2 << 10 },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_btf_fd = r->btf.fd,
		    .expected_attach_type = BPF_CGROUP_INET_SOCK_CREATE,
		    .func_info = funcs, .func_info_cnt = ARRAY_SIZE(funcs),
		    .func_info_rec_size = sizeof(*funcs),
		    .line_info = lines, .line_info_cnt = ARRAY_SIZE(lines),
		    .line_info_rec_size = sizeof(*lines));

	return bpf_prog_load(BPF_PROG_TYPE_CGROUP_SOCK, NULL, "GPL", insns,
			     ARRAY_SIZE(insns), &opts);
}

/* Create a socket for each byte that is read, and write back its errno. */
static void child_run(const char *group, int go, int done)
{
	int fd, err;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (run_on_cpu(1) || write_file(group, "cgroup.procs", "0"))
		_exit(1);
	while (read(go, &c, 1) == 1) {
		fd = socket(AF_INET, SOCK_DGRAM, 0);
		err = fd < 0 ? errno : 0;
		close(fd);
		if (write(done, &err, sizeof(err)) != sizeof(err))
			_exit(1);
	}
	_exit(0);
}

FIXTURE_SETUP(end)
{
	const char *reason = skip_reason();
	struct runner *r = &self->r;

	memset(r, 0, sizeof(*r));
	tcp_ops__init(&self->ops);
	r->cgroup = -1;
	r->map = -1;
	r->btf.fd = -1;
	if (reason)
		SKIP(return, "%s", reason);
	if (run_on_cpu(1) || run_on_cpu(0))
		SKIP(return, "needs CPUs 0 and 1");
	strcpy(r->root, "/tmp/ksymbol_end_XXXXXX");
	ASSERT_NE(NULL, mkdtemp(r->root));
	if (mount("none", r->root, "cgroup2", 0, NULL)) {
		rmdir(r->root);
		SKIP(return, "cgroup2 cannot be mounted: needs CONFIG_CGROUPS");
	}
	r->mounted = true;
	sprintf(r->group, "%s/ksym_%d", r->root, getpid());
	ASSERT_EQ(0, mkdir(r->group, 0700));
	r->cgroup = open(r->group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_LE(0, r->cgroup);
	r->map = value_map(sizeof(struct progress));
	ASSERT_LE(0, r->map);
	r->btf = load_btf(MAIN_NAME, "loop", "end.c", "a line");
	ASSERT_LE(0, r->btf.fd);
	ASSERT_EQ(0, ksym_rings__open_dummy(&r->rings));

	ASSERT_EQ(0, pipe(r->go));
	ASSERT_EQ(0, pipe(r->done));
	r->child = fork();
	ASSERT_LE(0, r->child);
	if (!r->child) {
		close(r->go[1]);
		child_run(r->group, r->go[0], r->done[1]);
	}
	close(r->done[1]);
}

FIXTURE_TEARDOWN(end)
{
	struct runner *r = &self->r;

	if (r->child > 0) {
		kill(r->child, SIGKILL);
		waitpid(r->child, NULL, 0);
	}
	tcp_ops__close(&self->ops);
	close_fd(&r->btf.fd);
	close_fd(&r->map);
	close_fd(&r->cgroup);
	if (r->mounted) {
		rmdir(r->group);
		umount(r->root);
		rmdir(r->root);
	}
	ksym_rings__close(&r->rings);
}

/* The times of one run, and what socket() said in the child. */
struct run {
	__u64 closed;		/* CLOCK_MONOTONIC, ns: after the last close() */
	struct progress progress;
	__u64 unregistered;	/* 0: never */
	int child_err;
};

/* Run @prog on CPU 1. Return: 0 when it has started, or -errno. */
static int start_program(struct runner *r, int prog, struct run *run)
{
	__u64 end = now_ms() + WAIT_MS;
	int err;

	memset(run, 0, sizeof(*run));
	err = bpf_map_update_elem(r->map, &zero, &run->progress, BPF_ANY) ?:
	      bpf_prog_attach(prog, r->cgroup, BPF_CGROUP_INET_SOCK_CREATE, 0);
	if (!err && write(r->go[1], "", 1) != 1)
		err = -EPIPE;
	while (!err && !run->progress.started) {
		err = bpf_map_lookup_elem(r->map, &zero, &run->progress);
		if (now_ms() > end)
			err = -ETIMEDOUT;
	}
	return err;
}

/*
 * Wait until the program has returned. Return: 0; -EAGAIN if it did so before
 * this was called, and so before what it runs was closed; -errno.
 */
static int wait_for_return(struct runner *r, struct run *run)
{
	int err;

	run->closed = now_ns();
	if (read(r->done[0], &run->child_err, sizeof(int)) != sizeof(int))
		return -EPIPE;
	err = bpf_map_lookup_elem(r->map, &zero, &run->progress);
	if (err)
		return err;
	return run->progress.ended < run->closed ? -EAGAIN : 0;
}

/*
 * Close a program while it runs. Return: 0; -EAGAIN if it always returned too
 * early; -errno.
 */
static int close_running(struct runner *r, struct call c, struct run *run)
{
	const struct ksym_rec *rec;
	int tries = TRIES, prog, err;

	do {
		r->rings.nr_recs = 0;
		prog = load_prog(r, c);
		if (prog < 0)
			return prog;
		err = start_program(r, prog, run);
		bpf_prog_detach2(prog, r->cgroup, BPF_CGROUP_INET_SOCK_CREATE);
		close(prog);
		err = err ?: wait_for_return(r, run);
		rec = ksym_rings__wait_unregister(&r->rings, MAIN_NAME);
		run->unregistered = rec ? rec->time : 0;
	} while (err == -EAGAIN && --tries);
	return err;
}

TEST_F_TIMEOUT(end, unregister_is_later, TEST_S)
{
	struct run run;
	int err = close_running(&self->r, (struct call){}, &run);

	ASSERT_EQ(0, err) TH_LOG("running: %s", strerror(-err));
	EXPECT_NE(0, run.unregistered);
	EXPECT_LE(run.progress.ended, run.unregistered)
		TH_LOG("it ran for %lld us after UNREGISTER",
		       (run.progress.ended - run.unregistered) / 1000);
}

TEST_F_TIMEOUT(end, throws, TEST_S)
{
	int id = vmlinux_btf_id("bpf_throw", BTF_KIND_FUNC), err;
	struct run run;

	if (id < 0)
		SKIP(return, "no kfunc bpf_throw() in the kernel's BTF");
	err = close_running(&self->r, (struct call){}, &run);
	ASSERT_EQ(0, err) TH_LOG("running: %s", strerror(-err));
	if (!getenv("KSYMBOL_END_THROW"))
		ASSERT_LE(run.progress.ended, run.unregistered)
			TH_LOG("this kernel would crash: KSYMBOL_END_THROW=1 tries");
	err = close_running(&self->r, (struct call){ id, 0 }, &run);
	if (err == -ENOTSUPP_KERNEL)
		SKIP(return, "no BPF exceptions: x86-64 needs CONFIG_UNWINDER_ORC");
	ASSERT_EQ(0, err) TH_LOG("running: %s", strerror(-err));
	/* It threw 0, which denies the socket. */
	EXPECT_EQ(EPERM, run.child_err);
	EXPECT_LE(run.progress.ended, run.unregistered);
}

/* Its line info may not be freed when it is closed. With slub_debug=P the kernel crashes. */
TEST_F_TIMEOUT(end, prints_its_stack, TEST_S)
{
	int id = vmlinux_btf_id("bpf_stream_print_stack", BTF_KIND_FUNC), err;
	struct run run;

	if (id < 0)
		SKIP(return, "no kfunc bpf_stream_print_stack() in the kernel's BTF");
	err = close_running(&self->r, (struct call){ id, BPF_STREAM_STDERR }, &run);
	ASSERT_EQ(0, err) TH_LOG("running: %s", strerror(-err));
	EXPECT_EQ(0, run.child_err);
}

/*
 * Free a struct_ops map, which is no longer registered, while a program runs.
 * Return: as close_running(), with the first UNREGISTER of a trampoline in @run.
 */
static int free_map_while_running(struct runner *r, struct tcp_ops *ops, struct run *run)
{
	const struct ksym_rec *rec;
	int tries = TRIES, prog, err;

	do {
		r->rings.nr_recs = 0;
		err = tcp_ops__create(ops, 0) ?: tcp_ops__register(ops);
		/* This waits for readers of RCU, so do it before the program runs. */
		err = err ?: tcp_ops__unregister(ops);
		if (err)
			return err;
		prog = load_prog(r, (struct call){});
		if (prog < 0)
			return prog;
		err = start_program(r, prog, run);
		close_fd(&ops->map);
		err = err ?: wait_for_return(r, run);
		bpf_prog_detach2(prog, r->cgroup, BPF_CGROUP_INET_SOCK_CREATE);
		close(prog);
		tcp_ops__close(ops);
		rec = ksym_rings__wait_unregister(&r->rings, "bpf__" OPS);
		run->unregistered = rec ? rec->time : 0;
	} while (err == -EAGAIN && --tries);
	return err;
}

/*
 * A program that runs holds up the grace periods after which no task can be in a
 * trampoline of the map any more. The trampolines keep their symbols until then.
 */
TEST_F_TIMEOUT(end, struct_ops_unregister_is_later, TEST_S)
{
	struct run run;
	int err = free_map_while_running(&self->r, &self->ops, &run);

	if (err == -ENOENT)
		SKIP(return, "no struct_ops " OPS ": needs CONFIG_INET");
	ASSERT_EQ(0, err) TH_LOG("running: %s", strerror(-err));
	EXPECT_NE(0, run.unregistered);
	EXPECT_LE(run.progress.ended, run.unregistered)
		TH_LOG("UNREGISTER came %lld us before the grace period can end",
		       (run.progress.ended - run.unregistered) / 1000);
}

TEST_HARNESS_MAIN
