// SPDX-License-Identifier: GPL-2.0
/*
 * bpf_program__open_perf_event() on a kernel that attaches programs as it opens
 * events, and on one that does not: there it attaches afterwards where that is the
 * same, and says EOPNOTSUPP where it is not.
 *
 *	libbpf_open FILE.bpf.o
 *
 * Exit status: 0 as it should be, 1 not.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define COOKIE	0xabc
#define PAGES	16

struct counts {
	__u64 runs, cookie;
};

static struct bpf_program *prog;
static volatile struct counts *counts;
static int failed;

static const struct perf_event_attr faults = {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_PAGE_FAULTS,
	.size = sizeof(faults),
	.sample_period = 1,
};

static void expect(const char *what, bool is_so)
{
	printf("%s: %s\n", is_so ? "ok" : "not ok", what);
	failed |= !is_so;
}

static void fault_pages(void)
{
	size_t size = PAGES * sysconf(_SC_PAGESIZE);
	char *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return;
	madvise(mem, size, MADV_NOHUGEPAGE);
	memset(mem, 1, size);
	munmap(mem, size);
}

/* Does the kernel look for the program? */
static bool kernel_attaches(void)
{
	struct perf_event_attr attr = faults;
	int fd;

	attr.bpf_fd = -1;
	attr.bpf_flags = PERF_BPF_F_ATTACH;
	fd = syscall(__NR_perf_event_open, &attr, 0, -1, -1, 0);
	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == EBADF;
}

static int open_event(const struct perf_event_attr *attr, pid_t pid,
		      const struct bpf_perf_event_open_opts *opts)
{
	return bpf_program__open_perf_event(prog, attr, pid, -1, opts);
}

/* @want: an errno, 0 is an event. */
static void expect_open(const char *what, int fd, int want)
{
	char line[128];

	snprintf(line, sizeof(line), "%s: %s", what, fd < 0 ? strerror(-fd) : "opened");
	expect(line, want ? fd == -want && errno == want : fd >= 0);
	if (fd >= 0)
		close(fd);
}

/* The program runs from the beginning, and until the event is closed. */
static void own_events(void)
{
	struct perf_event_attr attr = faults;
	__u64 before = counts->runs;
	int fd = open_event(&attr, 0, NULL);

	fault_pages();
	expect("an own event runs the program", fd >= 0 && counts->runs >= before + PAGES);
	expect("its attr is as it was", !memcmp(&attr, &faults, sizeof(attr)));
	if (fd >= 0)
		close(fd);
	before = counts->runs;
	fault_pages();
	expect("not after it is closed", counts->runs == before);

	attr.disabled = 1;
	fd = open_event(&attr, 0, NULL);
	fault_pages();
	expect("nor while it is disabled", fd >= 0 && counts->runs == before);
	if (fd >= 0)
		close(fd);
}

static void options(bool attaches)
{
	LIBBPF_OPTS(bpf_perf_event_open_opts, cookie, .bpf_cookie = COOKIE);
	LIBBPF_OPTS(bpf_perf_event_open_opts, flags, .bpf_flags = PERF_BPF_F_PASS_ON_MISS);
	LIBBPF_OPTS(bpf_perf_event_open_opts, unknown, .bpf_flags = ~0U);
	int unsupported = attaches ? 0 : EOPNOTSUPP;
	int fd = open_event(&faults, 0, &cookie);

	if (fd >= 0) {
		fault_pages();
		expect("the program has its cookie", counts->cookie == COOKIE);
	}
	expect_open("a cookie", fd, unsupported);
	expect_open("a flag", open_event(&faults, 0, &flags), unsupported);
	expect_open("unknown flags", open_event(&faults, 0, &unknown),
		    attaches ? EINVAL : EOPNOTSUPP);
}

/* A child that waits to be killed */
static void other_tasks(bool attaches)
{
	LIBBPF_OPTS(bpf_perf_event_open_opts, stopped, .target_is_stopped = true);
	struct perf_event_attr attr = faults;
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	expect_open("another task", open_event(&attr, pid, NULL), 0);
	attr.inherit = 1;
	expect_open("another task that may fork", open_event(&attr, pid, NULL),
		    attaches ? 0 : EOPNOTSUPP);
	expect_open("one that is stopped", open_event(&attr, pid, &stopped), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The caller's headers may be older than libbpf, and newer. */
static void sizes(void)
{
	static const unsigned int known[] = {
		0, PERF_ATTR_SIZE_VER0, PERF_ATTR_SIZE_VER5, PERF_ATTR_SIZE_VER9,
		PERF_ATTR_SIZE_VER10, sizeof(faults) + 64,
	};
	union {
		struct perf_event_attr attr;
		char bytes[sizeof(faults) + 64];
	} u = { .attr = faults };
	char line[64];
	unsigned int i;

	for (i = 0; i < sizeof(known) / sizeof(*known); i++) {
		u.attr.size = known[i];
		/* What is behind the caller's attr is not looked at */
		u.attr.bpf_cookie = known[i] < sizeof(faults) ? COOKIE : 0;
		snprintf(line, sizeof(line), "an attr of %u bytes", known[i]);
		expect_open(line, open_event(&u.attr, 0, NULL), 0);
	}
	u.bytes[sizeof(u) - 1] = 1;
	expect_open("an attr with more than is known", open_event(&u.attr, 0, NULL), E2BIG);
	u.attr.size = 8;
	expect_open("an attr that is none", open_event(&u.attr, 0, NULL), EINVAL);
}

static void errors(void)
{
	struct perf_event_attr attr = faults;

	attr.sample_period = 0;
	expect_open("no samples", open_event(&attr, 0, NULL), EINVAL);
	attr = faults;
	attr.bpf_flags = PERF_BPF_F_ATTACH;
	expect_open("bpf_flags of the caller", open_event(&attr, 0, NULL), EINVAL);
}

int main(int argc, char **argv)
{
	struct bpf_object *obj = argc == 2 ? bpf_object__open_file(argv[1], NULL) : NULL;
	bool attaches = kernel_attaches();
	struct bpf_map *bss;
	size_t size;

	if (!obj || bpf_object__load(obj)) {
		fprintf(stderr, "libbpf_open: no program: %s\n", strerror(errno));
		return 1;
	}
	prog = bpf_object__find_program_by_name(obj, "count");
	bss = bpf_object__find_map_by_name(obj, ".bss");
	counts = bss ? bpf_map__initial_value(bss, &size) : NULL;
	if (!prog || !counts) {
		fprintf(stderr, "libbpf_open: %s is not libbpf_open.bpf.o\n", argv[1]);
		return 1;
	}
	printf("the kernel %s programs as it opens events\n",
	       attaches ? "attaches" : "does not attach");
	own_events();
	options(attaches);
	other_tasks(attaches);
	sizes();
	errors();
	return failed;
}
