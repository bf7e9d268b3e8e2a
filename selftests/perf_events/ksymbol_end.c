// SPDX-License-Identifier: GPL-2.0
/*
 * Does a program that is given up while it runs keep its symbols to its end?
 *
 * A child on CPU 1, in a cgroup of its own, makes a socket, and by that runs a
 * program that loops for a while. Meanwhile CPU 0 takes the program from the
 * cgroup and closes its last fd. The program leaves the time at which it is done
 * in a map: UNREGISTER, which is when it has no symbols any more, has to be later.
 *
 * In the second test it calls bpf_throw() after the loop, which finds its frame
 * by the symbols. A kernel that fails the first test would die of the second:
 * there it fails without that, unless KSYMBOL_END_THROW is in the environment.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mount.h>

#include "kselftest_harness.h"
#include "bpf_raw.h"
#include "ksym_env.h"
#include "ksym_ring.h"
#include "ksym_sources.h"

#define LOOPS		8388608		/* the most bpf_loop() does */
#define TRIES		10
#define MAIN_NAME	"ksym_end_main"

/* The value of the map. */
struct progress {
	__u64 started;
	__u64 ended;		/* CLOCK_MONOTONIC, ns */
};

struct given_up {
	struct ksym_rings rings;
	char root[64], group[80];
	bool mounted;
	int cgroup, map, btf;
	int go[2], done[2];
	pid_t child;
};

FIXTURE(end) {
	struct given_up g;
};

/* int; int (*)(void); the program, global; what it loops, static. */
static int load_btf(void)
{
	static struct {
		struct btf_header hdr;
		struct btf_type t_int;
		__u32 bits;
		struct btf_type proto, main, loop;
		char strs[32];
	} b = {
		.hdr = {
			.magic = BTF_MAGIC,
			.version = BTF_VERSION,
			.hdr_len = sizeof(b.hdr),
			.type_len = offsetof(typeof(b), strs) - sizeof(b.hdr),
			.str_off = offsetof(typeof(b), strs) - sizeof(b.hdr),
			.str_len = sizeof(b.strs),
		},
		.t_int = { 1, BTF_KIND_INT << 24, { 4 } },
		.bits = (BTF_INT_SIGNED << 24) | 32,
		.proto = { 0, BTF_KIND_FUNC_PROTO << 24, { 1 } },
		.main = { 5, (BTF_KIND_FUNC << 24) | BTF_FUNC_GLOBAL, { 2 } },
		.loop = { 19, (BTF_KIND_FUNC << 24) | BTF_FUNC_STATIC, { 2 } },
		.strs = "\0int\0" MAIN_NAME "\0loop",
	};
	union bpf_attr attr = {
		.btf = (unsigned long)&b,
		.btf_size = sizeof(b),
	};

	return bpf_raw(BPF_BTF_LOAD, &attr);
}

static int load_prog(int map, int btf, int throw_id)
{
	const struct bpf_insn nop = BPF_RAW_MOV_IMM(BPF_REG_0, 1);
	const struct bpf_insn throw = BPF_RAW_CALL_KFUNC(throw_id);
	const struct bpf_insn insns[] = {
		BPF_RAW_LD_IMM64_LO(BPF_REG_1, BPF_PSEUDO_MAP_VALUE, map),
		BPF_RAW_LD_IMM64_HI(0),
		BPF_RAW_INSN(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_1, 0,
			     offsetof(struct progress, started), 1),
		BPF_RAW_MOV_IMM(BPF_REG_1, LOOPS),
		BPF_RAW_LD_IMM64_LO(BPF_REG_2, BPF_PSEUDO_FUNC, 12),
		BPF_RAW_LD_IMM64_HI(0),
		BPF_RAW_MOV_IMM(BPF_REG_3, 0),
		BPF_RAW_MOV_IMM(BPF_REG_4, 0),
		BPF_RAW_CALL(BPF_FUNC_loop),
		BPF_RAW_CALL(BPF_FUNC_ktime_get_ns),
		BPF_RAW_LD_IMM64_LO(BPF_REG_1, BPF_PSEUDO_MAP_VALUE, map),
		BPF_RAW_LD_IMM64_HI(0),
		BPF_RAW_INSN(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_0,
			     offsetof(struct progress, ended), 0),
		BPF_RAW_MOV_IMM(BPF_REG_1, 0),
		throw_id ? throw : nop,
		BPF_RAW_MOV_IMM(BPF_REG_0, 1),
		BPF_RAW_EXIT(),
		/* 17 = 4 + 12 + 1: the loop's function */
		BPF_RAW_MOV_IMM(BPF_REG_0, 0),
		BPF_RAW_EXIT(),
	};
	const struct bpf_func_info funcs[] = { { 0, 3 }, { 17, 4 } };
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_CGROUP_SOCK,
		.expected_attach_type = BPF_CGROUP_INET_SOCK_CREATE,
		.prog_btf_fd = btf,
		.func_info = (unsigned long)funcs,
		.func_info_cnt = 2,
		.func_info_rec_size = sizeof(*funcs),
	};

	return bpf_raw_load(&attr, insns, sizeof(insns) / sizeof(*insns));
}

static int attach(int cgroup, int prog, enum bpf_cmd cmd)
{
	union bpf_attr attr = {
		.target_fd = cgroup,
		.attach_bpf_fd = prog,
		.attach_type = BPF_CGROUP_INET_SOCK_CREATE,
	};

	return bpf_raw(cmd, &attr);
}

static int pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

/* For each byte, a socket; its errno is the answer. */
static void child_run(const char *group, int go, int done)
{
	int fd, err;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pin(1) || write_file(group, "cgroup.procs", "0"))
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
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
	};
	const char *reason = cannot_run();
	struct given_up *g = &self->g;

	memset(g, 0, sizeof(*g));
	g->cgroup = -1;
	g->map = -1;
	g->btf = -1;
	if (reason)
		SKIP(return, "%s", reason);
	if (pin(1) || pin(0))
		SKIP(return, "needs CPUs 0 and 1");
	strcpy(g->root, "/tmp/ksymbol_end_XXXXXX");
	ASSERT_NE(NULL, mkdtemp(g->root));
	if (mount("none", g->root, "cgroup2", 0, NULL)) {
		rmdir(g->root);
		SKIP(return, "cgroup2 cannot be mounted: needs CONFIG_CGROUPS");
	}
	g->mounted = true;
	sprintf(g->group, "%s/ksym_%d", g->root, getpid());
	ASSERT_EQ(0, mkdir(g->group, 0700));
	g->cgroup = open(g->group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_LE(0, g->cgroup);
	g->map = bpf_raw_value_map(sizeof(struct progress), NULL);
	ASSERT_LE(0, g->map);
	g->btf = load_btf();
	ASSERT_LE(0, g->btf);
	ASSERT_EQ(0, ksym_rings__open(&g->rings, &attr));

	ASSERT_EQ(0, pipe(g->go));
	ASSERT_EQ(0, pipe(g->done));
	g->child = fork();
	ASSERT_LE(0, g->child);
	if (!g->child) {
		close(g->go[1]);
		child_run(g->group, g->go[0], g->done[1]);
	}
	close(g->done[1]);
}

FIXTURE_TEARDOWN(end)
{
	struct given_up *g = &self->g;

	if (g->child > 0) {
		kill(g->child, SIGKILL);
		waitpid(g->child, NULL, 0);
	}
	close_fd(&g->btf);
	close_fd(&g->map);
	close_fd(&g->cgroup);
	if (g->mounted) {
		rmdir(g->group);
		umount(g->root);
		rmdir(g->root);
	}
	ksym_rings__close(&g->rings);
}

static __u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* How one run went. */
struct run {
	__u64 given_up;		/* CLOCK_MONOTONIC, ns */
	struct progress progress;
	__u64 unregistered;	/* 0: never */
	int child_err;
};

/* Return: 0, and the program was given up while it ran; -EAGAIN; -errno. */
static int give_up_once(struct given_up *g, int prog, struct run *run)
{
	__u64 end = ksym_now_ms() + WAIT_MS;
	int err;

	memset(run, 0, sizeof(*run));
	err = bpf_raw_map_update(g->map, &run->progress) ?:
	      attach(g->cgroup, prog, BPF_PROG_ATTACH);
	if (!err && write(g->go[1], "", 1) != 1)
		err = -EPIPE;
	while (!err && !run->progress.started) {
		err = bpf_raw_map_lookup(g->map, &run->progress);
		if (ksym_now_ms() > end)
			err = -ETIMEDOUT;
	}
	attach(g->cgroup, prog, BPF_PROG_DETACH);
	close(prog);
	run->given_up = now_ns();
	if (!err && read(g->done[0], &run->child_err, sizeof(int)) != sizeof(int))
		err = -EPIPE;
	err = err ?: bpf_raw_map_lookup(g->map, &run->progress);
	if (err)
		return err;
	return run->progress.ended < run->given_up ? -EAGAIN : 0;
}

static __u64 unregister_time(struct ksym_rings *rings)
{
	__u64 end = ksym_now_ms() + WAIT_MS, now;
	size_t i;

	while (!ksym_rings__read(rings)) {
		for (i = 0; i < rings->nr_recs; i++)
			if (ksym_rec__is(&rings->recs[i], true) &&
			    strstr(rings->recs[i].name, MAIN_NAME))
				return rings->recs[i].time;
		now = ksym_now_ms();
		if (now >= end)
			break;
		poll(rings->fds, rings->nr, end - now);
	}
	return 0;
}

/* Return: 0 or -errno; -EAGAIN if the program always ended too early. */
static int give_up(struct given_up *g, int throw_id, struct run *run)
{
	int tries = TRIES, prog, err;

	do {
		g->rings.nr_recs = 0;
		prog = load_prog(g->map, g->btf, throw_id);
		if (prog < 0)
			return prog;
		err = give_up_once(g, prog, run);
		run->unregistered = unregister_time(&g->rings);
	} while (err == -EAGAIN && --tries);
	return err;
}

TEST_F_TIMEOUT(end, unregister_is_later, TEST_S)
{
	struct run run;
	int err = give_up(&self->g, 0, &run);

	ASSERT_EQ(0, err) TH_LOG("running: %s", strerror(-err));
	EXPECT_NE(0, run.unregistered);
	EXPECT_LE(run.progress.ended, run.unregistered)
		TH_LOG("it ran for %lld us after UNREGISTER",
		       (run.progress.ended - run.unregistered) / 1000);
}

TEST_F_TIMEOUT(end, throws, TEST_S)
{
	int id = vmlinux_id("bpf_throw", BTF_KIND_FUNC), err;
	struct run run;

	if (id < 0)
		SKIP(return, "no kfunc bpf_throw() in " BTF_VMLINUX);
	err = give_up(&self->g, 0, &run);
	ASSERT_EQ(0, err) TH_LOG("running: %s", strerror(-err));
	if (!getenv("KSYMBOL_END_THROW"))
		ASSERT_LE(run.progress.ended, run.unregistered)
			TH_LOG("this kernel would die: KSYMBOL_END_THROW=1 tries");
	err = give_up(&self->g, id, &run);
	if (err == -ENOTSUPP_KERNEL)
		SKIP(return, "no BPF exceptions: x86-64 needs CONFIG_UNWINDER_ORC");
	ASSERT_EQ(0, err) TH_LOG("running: %s", strerror(-err));
	/* It threw 0, which denies the socket. */
	EXPECT_EQ(EPERM, run.child_err);
	EXPECT_LE(run.progress.ended, run.unregistered);
}

TEST_HARNESS_MAIN
