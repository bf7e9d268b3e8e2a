// SPDX-License-Identifier: GPL-2.0
/*
 * Which records of BPF programs does an event of one task get, or of one cgroup?
 *
 * perf record without -a opens such events. A task that loads and closes a program
 * must get the begin and the end, each once, and the end when it closes the
 * program: what happens after that, in an arbitrary task, is in no record of this
 * event. Otherwise perf keeps a program that is gone, and gives its name to the
 * next one that is loaded at this address.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "lib/bpf_load.h"
#include "lib/ksym_ring.h"
#include "lib/made.h"
#include "lib/test_env.h"

#define NAME		"ksym_task"
#define NR_PROGS	20

FIXTURE(task) {
	struct ksym_rings own;	/* the event of this task */
	struct ksym_rings all;	/* events of all CPUs */
};

FIXTURE_VARIANT(task) {
	bool ksymbol_all;
};

FIXTURE_VARIANT_ADD(task, ksymbol) {
	.ksymbol_all = false,
};

FIXTURE_VARIANT_ADD(task, ksymbol_all) {
	.ksymbol_all = true,
};

FIXTURE_SETUP(task)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.bpf_event = 1,
		.ksymbol_all = variant->ksymbol_all,
	}, cpu_attr = attr;
	const char *reason = skip_reason();
	int err;

	memset(self, 0, sizeof(*self));
	if (reason)
		SKIP(return, "%s", reason);
	err = ksym_rings__open_task(&self->own, &attr);
	if (err == -EINVAL && variant->ksymbol_all)
		SKIP(return, "needs perf_event_attr.ksymbol_all");
	ASSERT_EQ(0, err);
	ASSERT_EQ(0, ksym_rings__open(&self->all, &cpu_attr));
}

FIXTURE_TEARDOWN(task)
{
	ksym_rings__close(&self->own);
	ksym_rings__close(&self->all);
}

/* Load and close a program: a function, and one that it calls. Return: 0 or -errno. */
static int load_and_close(void)
{
	const struct bpf_insn insns[] = {
		BPF_CALL_REL(1),
		BPF_EXIT_INSN(),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};
	int prog = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, NAME, "GPL", insns,
				 ARRAY_SIZE(insns), NULL);
	int err = prog < 0 ? prog : 0;

	close_fd(&prog);
	return err;
}

struct counts {
	int registers, unregisters, loads, unloads;
};

/* The end of an earlier test's program, freed late, has no begin. */
static bool has_begin(const struct ksym_rings *r, const struct ksym_rec *end)
{
	const bool bpf_event = end->type == PERF_RECORD_BPF_EVENT;
	size_t i;

	for (i = 0; i < r->nr_recs; i++) {
		const struct ksym_rec *rec = &r->recs[i];

		if (rec->type != end->type || rec->k.addr != end->k.addr ||
		    rec->time > end->time)
			continue;
		if (bpf_event ? rec->k.ksym_type == PERF_BPF_EVENT_PROG_LOAD :
				ksym_rec__is(rec, false))
			return true;
	}
	return false;
}

/* Return: how many records of each kind the ring buffers have so far. */
static struct counts count(const struct ksym_rings *r)
{
	struct counts c = { 0 };
	size_t i;

	for (i = 0; i < r->nr_recs; i++) {
		const struct ksym_rec *rec = &r->recs[i];

		if (rec->type == PERF_RECORD_BPF_EVENT) {
			c.loads += rec->k.ksym_type == PERF_BPF_EVENT_PROG_LOAD;
			c.unloads += rec->k.ksym_type == PERF_BPF_EVENT_PROG_UNLOAD &&
				     has_begin(r, rec);
		} else if (rec->type == PERF_RECORD_KSYMBOL) {
			c.registers += ksym_rec__is(rec, false);
			c.unregisters += ksym_rec__is(rec, true) && has_begin(r, rec);
		}
	}
	return c;
}

/* After each close() the records of the program are complete. */
static void expect_end_on_close(struct __test_metadata *_metadata, struct ksym_rings *own)
{
	struct counts c;
	int i;

	for (i = 1; i <= NR_PROGS; i++) {
		ASSERT_EQ(0, load_and_close());
		ASSERT_EQ(0, ksym_rings__drain(own));
		c = count(own);
		ASSERT_EQ(2 * i, c.registers);
		ASSERT_EQ(2 * i, c.unregisters) TH_LOG("after program %d", i);
		ASSERT_EQ(i, c.loads);
		ASSERT_EQ(i, c.unloads) TH_LOG("after program %d", i);
	}
}

TEST_F_TIMEOUT(task, gets_end_on_close, TEST_S)
{
	expect_end_on_close(_metadata, &self->own);
}

/* Once the programs are freed, no event has got a record twice. */
TEST_F_TIMEOUT(task, gets_end_once, TEST_S)
{
	__u64 end = now_ms() + WAIT_MS;
	struct counts own, all;
	int i;

	for (i = 0; i < NR_PROGS; i++)
		ASSERT_EQ(0, load_and_close());
	do {
		ASSERT_EQ(0, ksym_rings__drain(&self->all));
		all = count(&self->all);
	} while (all.unloads < NR_PROGS && now_ms() < end);
	ASSERT_EQ(0, ksym_rings__drain(&self->own));
	own = count(&self->own);
	EXPECT_EQ(NR_PROGS, own.unloads);
	EXPECT_EQ(2 * NR_PROGS, own.unregisters);
	EXPECT_EQ(all.loads, all.unloads);
	EXPECT_EQ(all.registers, all.unregisters);
	EXPECT_EQ(0, self->own.lost + self->all.lost);
}

/* A socket frees its filter after a grace period, like a program. */
TEST_F_TIMEOUT(task, gets_end_of_filter_on_close, TEST_S)
{
	const int nr = variant->ksymbol_all;	/* which has classic BPF */
	struct made filters;
	struct counts c;
	int i;

	for (i = 1; i <= NR_PROGS; i++) {
		made__init(&filters);
		ASSERT_EQ(0, make_socket_filters(&filters));
		unmake_fds(&filters);
		ASSERT_EQ(0, ksym_rings__drain(&self->own));
		c = count(&self->own);
		ASSERT_EQ(i * nr * filters.want, c.registers);
		ASSERT_EQ(i * nr * filters.want, c.unregisters) TH_LOG("after socket %d", i);
	}
}

/* Listen on a free port of 127.0.0.1. Return: the socket, or -errno. */
static int listen_locally(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*addr = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	if (sock < 0 || bind(sock, (struct sockaddr *)addr, len) || listen(sock, 1) ||
	    getsockname(sock, (struct sockaddr *)addr, &len))
		return -errno;
	return sock;
}

/*
 * In another task: connect a socket with a filter and close it. The kernel keeps the
 * socket until the other end is closed too, for 40 seconds: those above the 60 seconds
 * after which it would keep less than a socket. Return: the exit status, 0 if all was done.
 */
static int connect_and_close(const struct sockaddr_in *addr)
{
	const int linger = 100;
	int sock, status;
	pid_t pid = fork();

	if (!pid) {
		sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (sock < 0 || attach_filter(sock))
			_exit(1);
		if (setsockopt(sock, IPPROTO_TCP, TCP_LINGER2, &linger, sizeof(linger)))
			_exit(2);
		_exit(connect(sock, (struct sockaddr *)addr, sizeof(*addr)) ? 3 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 4;
	return WEXITSTATUS(status);
}

/* The softirq that frees a socket runs in any task, here in the one with the event. */
TEST_F_TIMEOUT(task, gets_no_end_of_filter_of_another_task, TEST_S)
{
	struct sockaddr_in addr;
	int listener, sock, ret;

	listener = listen_locally(&addr);
	if (listener < 0)
		SKIP(return, "no TCP on 127.0.0.1: %s", strerror(-listener));
	ret = connect_and_close(&addr);
	if (ret == 3)
		SKIP(return, "cannot connect to 127.0.0.1");
	ASSERT_EQ(0, ret);
	sock = accept(listener, NULL, NULL);
	ASSERT_LE(0, sock);
	close_fd(&sock);
	close_fd(&listener);

	if (variant->ksymbol_all)
		EXPECT_NE(NULL, ksym_rings__wait_unregister(&self->all, "cbpf_prog_"));
	ASSERT_EQ(0, ksym_rings__drain(&self->own));
	EXPECT_EQ(NULL, ksym_rings__find(&self->own, "cbpf_prog_", 0, true));
}

FIXTURE(cgroup) {
	struct ksym_rings own;	/* the event of the root cgroup, on CPU 0 */
};

/* Return: a file descriptor of the root cgroup, or -errno. */
static int open_root_cgroup(void)
{
	char root[] = "/tmp/ksym_task_XXXXXX";
	int fd;

	if (!mkdtemp(root))
		return -errno;
	if (mount("none", root, "cgroup2", 0, NULL)) {
		fd = -errno;
	} else {
		fd = open(root, O_RDONLY | O_CLOEXEC);
		umount2(root, MNT_DETACH);
	}
	rmdir(root);
	return fd;
}

FIXTURE_SETUP(cgroup)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.bpf_event = 1,
	};
	const char *reason = skip_reason();
	int fd, err;

	memset(self, 0, sizeof(*self));
	if (reason)
		SKIP(return, "%s", reason);
	ASSERT_EQ(0, run_on_cpu(0));
	fd = open_root_cgroup();
	if (fd < 0)
		SKIP(return, "no cgroup2: needs CONFIG_CGROUPS");
	err = ksym_rings__open_cgroup(&self->own, &attr, fd, 0);
	close_fd(&fd);
	if (err == -EINVAL || err == -EBADF)
		SKIP(return, "no event of a cgroup: needs CONFIG_CGROUP_PERF");
	ASSERT_EQ(0, err) TH_LOG("an event of a cgroup: %s", strerror(-err));
}

FIXTURE_TEARDOWN(cgroup)
{
	ksym_rings__close(&self->own);
}

TEST_F_TIMEOUT(cgroup, gets_end_on_close, TEST_S)
{
	expect_end_on_close(_metadata, &self->own);
}

/*
 * The event does not get the end of text that tasks outside of the cgroup free, so it
 * would keep what a snapshot wrote.
 */
TEST_F_TIMEOUT(cgroup, gets_no_snapshot, TEST_S)
{
	struct perf_event_ksym_snapshot snap = {};
	int ret = ioctl(self->own.fds[0].fd, PERF_EVENT_IOC_KSYM_SNAPSHOT, &snap);

	if (ret && errno == ENOTTY)
		SKIP(return, "this kernel has no PERF_EVENT_IOC_KSYM_SNAPSHOT");
	EXPECT_EQ(-1, ret);
	EXPECT_EQ(ENXIO, errno);
}

TEST_HARNESS_MAIN
