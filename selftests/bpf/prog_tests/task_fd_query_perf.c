// SPDX-License-Identifier: GPL-2.0
/* BPF_TASK_FD_QUERY of a perf event with a program of BPF_PROG_TYPE_PERF_EVENT */
#include <test_progs.h>
#include "test_perf_link.skel.h"

#define COOKIE	0xabcdULL

static void check_query(int pfd, struct test_perf_link *skel)
{
	__u32 len = 64, prog_id = 0, fd_type = 0, info_len = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = {};
	__u64 offset = 0, addr = 0;
	char buf[64] = "none";
	int err;

	err = bpf_prog_get_info_by_fd(bpf_program__fd(skel->progs.handler), &info, &info_len);
	ASSERT_OK(err, "prog_info");
	err = bpf_task_fd_query(getpid(), pfd, 0, buf, &len, &prog_id, &fd_type,
				&offset, &addr);
	if (!ASSERT_OK(err, "task_fd_query"))
		return;

	ASSERT_EQ(fd_type, BPF_FD_TYPE_PERF_EVENT, "fd_type");
	ASSERT_EQ(prog_id, info.id, "prog_id");
	ASSERT_STREQ(buf, "", "name");
}

static void check_opts(int pfd)
{
	LIBBPF_OPTS(bpf_task_fd_query_opts, no_buf);
	LIBBPF_OPTS(bpf_task_fd_query_opts, opts);
	char buf[64] = "none";

	opts.buf = buf;
	opts.buf_len = sizeof(buf);

	if (!ASSERT_OK(bpf_task_fd_query_opts(getpid(), pfd, &opts), "task_fd_query_opts"))
		return;

	ASSERT_EQ(opts.fd_type, BPF_FD_TYPE_PERF_EVENT, "opts.fd_type");
	ASSERT_GT(opts.prog_id, 0, "opts.prog_id");
	ASSERT_STREQ(buf, "", "opts.buf");
	ASSERT_EQ(opts.buf_len, 0, "opts.buf_len");
	ASSERT_EQ(opts.cookie, COOKIE, "opts.cookie");

	ASSERT_OK(bpf_task_fd_query_opts(getpid(), pfd, &no_buf), "no buffer");
	ASSERT_EQ(no_buf.cookie, COOKIE, "cookie without buffer");
	ASSERT_EQ(bpf_task_fd_query_opts(getpid(), -1, &no_buf), -EBADF, "bad fd");
}

static void check_cookie(int pfd)
{
	union bpf_attr attr = {
		.task_fd_query = {
			.pid = getpid(),
			.fd = pfd,
		},
	};
	int err = syscall(__NR_bpf, BPF_TASK_FD_QUERY, &attr, sizeof(attr));

	if (ASSERT_OK(err, "raw task_fd_query"))
		ASSERT_EQ(attr.task_fd_query.cookie, COOKIE, "cookie");
}

void test_task_fd_query_perf(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
	};
	DECLARE_LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = COOKIE);
	struct test_perf_link *skel;
	struct bpf_link *link = NULL;
	int pfd;

	skel = test_perf_link__open_and_load();
	if (!ASSERT_OK_PTR(skel, "skel_load"))
		return;

	pfd = syscall(__NR_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (!ASSERT_GE(pfd, 0, "perf_event_open"))
		goto cleanup;

	link = bpf_program__attach_perf_event_opts(skel->progs.handler, pfd, &opts);
	if (!ASSERT_OK_PTR(link, "attach_perf_event")) {
		close(pfd);
		goto cleanup;
	}

	check_query(pfd, skel);
	check_cookie(pfd);
	check_opts(pfd);
cleanup:
	bpf_link__destroy(link);	/* closes pfd */
	test_perf_link__destroy(skel);
}
