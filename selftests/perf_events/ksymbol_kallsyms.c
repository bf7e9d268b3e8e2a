// SPDX-License-Identifier: GPL-2.0
/*
 * Is kernel text that lives found by those who ask the kernel for it, beside
 * perf's records?
 *
 *   /proc/kallsyms   a reader that is slow sees each symbol that was there all
 *                    the time, once, though others go meanwhile; the functions
 *                    of a module's init text, which ftrace keeps, too
 *   callchains       go on past a classic BPF filter, and name it; its name is for
 *                    those who see addresses
 */
#define _GNU_SOURCE
#include <stdbool.h>

#include "kselftest_harness.h"
#include "bpf_raw.h"
#include "ksym_env.h"
#include "ksym_ring.h"
#include "ksym_sets.h"
#include "ksym_sources.h"

#define NR_PROGS	300	/* some buffers of seq_file full of symbols */
#define NR_GO		10	/* of them, the first ones, go meanwhile */
#define NAME		"ksym_walk_"

FIXTURE(kallsyms) {
	struct ksym_rings rings;
	int progs[NR_PROGS];
	int seen[NR_PROGS];	/* how often it was listed */
};

FIXTURE_SETUP(kallsyms)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
	};
	const char *reason = cannot_run();
	char name[16];
	int i;

	memset(self, 0, sizeof(*self));
	memset(self->progs, 0xff, sizeof(self->progs));
	if (reason)
		SKIP(return, "%s", reason);
	ASSERT_EQ(0, ksym_rings__open(&self->rings, &attr));
	for (i = 0; i < NR_PROGS; i++) {
		snprintf(name, sizeof(name), NAME "%03d", i);
		self->progs[i] = bpf_raw_load_filter(name);
		ASSERT_LE(0, self->progs[i]);
	}
}

FIXTURE_TEARDOWN(kallsyms)
{
	int i;

	for (i = 0; i < NR_PROGS; i++)
		close_fd(&self->progs[i]);
	ksym_rings__close(&self->rings);
}

/* Return: the number of the program that @line lists, or -1. */
static int number_of(const char *line)
{
	const char *name = strstr(line, NAME);
	int number;

	return name && sscanf(name, NAME "%d", &number) == 1 ? number : -1;
}

/* Few bytes at a time: the kernel reads ahead no further than its buffer. */
struct slow_reader {
	int fd;
	ssize_t pos, len;
	char buf[128];
};

static bool slow_reader__line(struct slow_reader *r, char *line, size_t size)
{
	size_t len = 0;

	while (len + 1 < size) {
		if (r->pos == r->len) {
			r->pos = 0;
			r->len = read(r->fd, r->buf, sizeof(r->buf));
			if (r->len <= 0)
				break;
		}
		line[len++] = r->buf[r->pos++];
		if (line[len - 1] == '\n')
			break;
	}
	if (r->len < 0)
		r->len = 0;
	line[len] = '\0';
	return len;
}

static bool slow_reader__find_first(struct slow_reader *r, char *line,
				    size_t size)
{
	while (slow_reader__line(r, line, size))
		if (number_of(line) == 0)
			return true;
	return false;
}

static bool unregistered(const struct ksym_rings *rings, const char *name)
{
	size_t i;

	for (i = 0; i < rings->nr_recs; i++)
		if (ksym_rec__is(&rings->recs[i], true) &&
		    strstr(rings->recs[i].name, name))
			return true;
	return false;
}

static bool wait_unregister(struct ksym_rings *rings, const char *name)
{
	__u64 end = ksym_now_ms() + WAIT_MS, now;

	while (!ksym_rings__read(rings)) {
		if (unregistered(rings, name))
			return true;
		now = ksym_now_ms();
		if (now >= end)
			break;
		poll(rings->fds, rings->nr, end - now);
	}
	return false;
}

static bool first_are_gone(struct ksym_rings *rings)
{
	char name[32];
	int i;

	for (i = 0; i < NR_GO; i++) {
		snprintf(name, sizeof(name), NAME "%03d", i);
		if (!wait_unregister(rings, name))
			return false;
	}
	return true;
}

TEST_F_TIMEOUT(kallsyms, slow_reader_skips_nothing, TEST_S)
{
	struct slow_reader reader = {
		.fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC),
	};
	int i, number, skipped = 0, twice = 0;
	char line[2 * KSYM_NAME_LEN];

	ASSERT_LE(0, reader.fd);
	ASSERT_TRUE(slow_reader__find_first(&reader, line, sizeof(line)));
	self->seen[0]++;
	for (i = 0; i < NR_GO; i++)
		close_fd(&self->progs[i]);
	ASSERT_TRUE(first_are_gone(&self->rings));

	while (slow_reader__line(&reader, line, sizeof(line))) {
		number = number_of(line);
		if (number >= 0 && number < NR_PROGS)
			self->seen[number]++;
	}
	close(reader.fd);
	for (i = 0; i < NR_PROGS; i++) {
		skipped += i >= NR_GO && !self->seen[i];
		twice += self->seen[i] > 1;
	}
	EXPECT_EQ(0, skipped)
		TH_LOG("%d of %d programs that were there all the time are missing",
		       skipped, NR_PROGS - NR_GO);
	EXPECT_EQ(0, twice);
}

/* How often /proc/kallsyms lists each function of the module autofs4. */
static int count_lines(const char *const *functions, int *seen, int nr)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[2 * KSYM_NAME_LEN], want[64];
	int i;

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		for (i = 0; i < nr; i++) {
			snprintf(want, sizeof(want), " %s\t[autofs4]\n",
				 functions[i]);
			seen[i] += !!strstr(line, want);
		}
	}
	fclose(f);
	return 0;
}

/*
 * While something is traced, ftrace keeps the names of a module's init functions.
 * It takes a module with two of them.
 */
TEST_F_TIMEOUT(kallsyms, init_functions_once, TEST_S)
{
	const char *const functions[] = {
		"init_autofs_fs", "autofs_dev_ioctl_init",
	};
	struct made trace, module;
	int seen[2] = {}, err, i;

	made__init(&trace);
	made__init(&module);
	err = make_ftrace(&trace);
	err = err ?: load_module(&module, "kernel/fs/autofs", "autofs4",
				 "CONFIG_AUTOFS_FS", "");
	if (!err) {
		err = count_lines(functions, seen, 2);
		unload_module("autofs4");
	}
	unmake_ftrace(&trace);
	if (err == -ENOTSUP)
		SKIP(return, "%s%s", trace.why, module.why);
	ASSERT_EQ(0, err) TH_LOG("%s", strerror(-err));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(1, seen[i])
			TH_LOG("%s is listed %d times", functions[i], seen[i]);
	}
}

/* Callchains */

#define POFF_FUNC	"skb_get_poff"
#define MAX_CHAIN	64

/* A filter that calls a helper: only then is a filter inside of a callchain. */
static struct sock_filter poff_insns[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_PAY_OFFSET),
	BPF_STMT(BPF_RET | BPF_K, 0xffff),
};

static struct sock_fprog poff_prog = { .len = 2, .filter = poff_insns };

FIXTURE(callchain) {
	int fds[2], event;
	struct perf_event_mmap_page *map;
};

FIXTURE_SETUP(callchain)
{
	struct perf_event_attr attr = {
		.type = read_number(KPROBE_PMU),
		.size = sizeof(attr),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_CALLCHAIN,
		.exclude_callchain_user = 1,
		.kprobe_func = (unsigned long)POFF_FUNC,
	};
	const char *reason = cannot_run();

	memset(self, 0xff, sizeof(*self));
	if (reason)
		SKIP(return, "%s", reason);
	if ((int)attr.type < 0)
		SKIP(return, "no " KPROBE_PMU ": needs CONFIG_KPROBE_EVENTS");
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, self->fds));
	ASSERT_EQ(0, setsockopt(self->fds[1], SOL_SOCKET, SO_ATTACH_FILTER,
				&poff_prog, sizeof(poff_prog)));
	self->event = syscall(__NR_perf_event_open, &attr, 0, -1, -1, 0);
	ASSERT_LE(0, self->event) TH_LOG("kprobe on " POFF_FUNC);
	self->map = mmap(NULL, 9 * sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
			 MAP_SHARED, self->event, 0);
	ASSERT_NE(MAP_FAILED, self->map);
}

FIXTURE_TEARDOWN(callchain)
{
	close_fd(&self->event);
	close_fd(&self->fds[0]);
	close_fd(&self->fds[1]);
}

/* SAMPLE [ header | nr | ips[nr] ] is the only record there can be. */
TEST_F_TIMEOUT(callchain, goes_past_a_filter, TEST_S)
{
	const char *data = (char *)self->map + sysconf(_SC_PAGESIZE);
	const __u64 *body = (const void *)(data + 8);
	char name[KSYM_NAME_LEN + 64];
	bool filter = false, syscall = false;
	__u64 i;

	ASSERT_EQ(1, write(self->fds[0], "", 1));
	ASSERT_LT(0, __atomic_load_n(&self->map->data_head, __ATOMIC_ACQUIRE));
	ASSERT_EQ(PERF_RECORD_SAMPLE, ((struct perf_event_header *)data)->type);
	ASSERT_GE(MAX_CHAIN, body[0]);
	for (i = 1; i <= body[0]; i++) {
		ASSERT_EQ(0, bpf_raw_symbolize(body[i], name, sizeof(name)));
		TH_LOG("0x%llx %s", body[i], name);
		filter |= !strncmp(name, "cbpf_prog_", strlen("cbpf_prog_"));
		syscall |= !strncmp(name, "do_syscall_64", strlen("do_syscall_64"));
	}
	EXPECT_TRUE(filter) TH_LOG("no filter in the callchain");
#ifdef __x86_64__
	EXPECT_TRUE(syscall) TH_LOG("the callchain ends before the system call");
#endif
}

#define SYSCTL_KERNEL	"/proc/sys/kernel"

/* Return: how many filters /proc/kallsyms lists, or -errno. */
static int count_filters(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512];
	int nr = 0;

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f))
		nr += !!strstr(line, " cbpf_prog_");
	fclose(f);
	return nr;
}

/* Who sees no addresses would learn from the name who else has the same filter. */
TEST_F_TIMEOUT(callchain, filter_is_not_for_all, TEST_S)
{
	bool shown = read_number(SYSCTL_KERNEL "/kptr_restrict") == 0;
	pid_t pid;
	int status;

	EXPECT_LT(0, count_filters());
	ASSERT_EQ(0, write_file(SYSCTL_KERNEL, "kptr_restrict", "1"));
	pid = fork();
	if (!pid)
		_exit(setuid(1000) ? 255 : count_filters());
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, write_file(SYSCTL_KERNEL, "kptr_restrict", shown ? "0" : "1"));
	ASSERT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status)) TH_LOG("uid 1000 sees %d", WEXITSTATUS(status));
}

TEST_HARNESS_MAIN
