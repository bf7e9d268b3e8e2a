// SPDX-License-Identifier: GPL-2.0
/*
 * Is kernel text that is not in vmlinux found by readers other than perf's records?
 *
 *   init_text   the functions of a module's freed init text, whose names ftrace
 *               keeps while something is traced: each is listed once, and not
 *               where there is other text now
 *   kallsyms    a slow reader sees each symbol that existed all the time once,
 *               although others are freed meanwhile
 *   callchain   callchains continue past a classic BPF filter and name it, and
 *               /proc/kallsyms lists it where it shows addresses
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "lib/bpf_load.h"
#include "lib/ksym_ring.h"
#include "lib/made.h"
#include "lib/sample_ring.h"
#include "lib/symbolize.h"
#include "lib/test_env.h"

#define AUTOFS		"kernel/fs/autofs", "autofs4", "CONFIG_AUTOFS_FS", ""
#define DUMMY		"kernel/drivers/net", "dummy", "CONFIG_DUMMY", "numdummies=0"
#define NR_LOADS	50

/* The init functions of autofs4 */
static const char *const functions[] = { "init_autofs_fs", "autofs_dev_ioctl_init" };

#define NR_FUNCTIONS	ARRAY_SIZE(functions)

/* What /proc/kallsyms lists */
struct listed {
	int lines[NR_FUNCTIONS];
	unsigned long addr[NR_FUNCTIONS];
	unsigned long dummy_first, dummy_last;	/* functions of dummy, but for init text */
};

FIXTURE(init_text) {
	struct made trace, module;
	bool loaded;
};

FIXTURE_SETUP(init_text)
{
	made__init(&self->trace);
	made__init(&self->module);
	self->loaded = false;
	if (geteuid())
		SKIP(return, "needs root");
}

FIXTURE_TEARDOWN(init_text)
{
	if (self->loaded)
		unload_module("autofs4");
	unmake_ftrace(&self->trace);
}

static void list_line(struct listed *l, unsigned long addr, char type, const char *name,
		      const char *module)
{
	unsigned int i;

	if (!strcmp(module, "[dummy]") && type == 't' && !strstr(name, "init")) {
		if (!l->dummy_first || addr < l->dummy_first)
			l->dummy_first = addr;
		if (addr > l->dummy_last)
			l->dummy_last = addr;
	}
	for (i = 0; i < NR_FUNCTIONS; i++) {
		if (strcmp(module, "[autofs4]") || strcmp(name, functions[i]))
			continue;
		l->lines[i]++;
		l->addr[i] = addr;
	}
}

static int read_kallsyms(struct listed *l)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[1024], name[512], module[64], type;
	unsigned long addr;

	memset(l, 0, sizeof(*l));
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx %c %511s %63s", &addr, &type, name, module) == 4)
			list_line(l, addr, type, name, module);
	}
	fclose(f);
	return 0;
}

/* It takes a module with two init functions. */
TEST_F_TIMEOUT(init_text, functions_once, TEST_S)
{
	struct listed l;
	unsigned int i;
	int err;

	err = make_ftrace(&self->trace);
	err = err ?: load_module(&self->module, AUTOFS);
	if (err == -ENOTSUP)
		SKIP(return, "%s%s", self->trace.why, self->module.why);
	ASSERT_EQ(0, err) TH_LOG("%s", strerror(-err));
	self->loaded = true;
	ASSERT_EQ(0, read_kallsyms(&l));
	for (i = 0; i < NR_FUNCTIONS; i++) {
		EXPECT_EQ(1, l.lines[i])
			TH_LOG("%s is listed %d times", functions[i], l.lines[i]);
	}
}

/* Return: the number of functions of freed init text that are inside of dummy's text. */
static int functions_in_dummy(const struct listed *before, const struct listed *l)
{
	unsigned int i;
	int nr = 0;

	for (i = 0; i < NR_FUNCTIONS; i++)
		nr += before->addr[i] >= l->dummy_first && before->addr[i] <= l->dummy_last;
	return nr;
}

/* Load another module until its text is where the init text was. */
TEST_F_TIMEOUT(init_text, not_over_other_text, TEST_S)
{
	struct listed before, l;
	int err, tries, seen = 0;
	unsigned int i;

	err = make_ftrace(&self->trace);
	err = err ?: load_module(&self->module, AUTOFS);
	if (err == -ENOTSUP)
		SKIP(return, "%s%s", self->trace.why, self->module.why);
	ASSERT_EQ(0, err) TH_LOG("%s", strerror(-err));
	self->loaded = true;
	ASSERT_EQ(0, read_kallsyms(&before));

	for (tries = 0; !seen && tries < NR_LOADS; tries++) {
		usleep(100000);		/* the memory is freed by a kernel worker */
		err = load_module(&self->module, DUMMY);
		if (err == -ENOTSUP)
			SKIP(return, "%s", self->module.why);
		ASSERT_EQ(0, err) TH_LOG("%s", strerror(-err));
		err = read_kallsyms(&l);
		unload_module("dummy");
		ASSERT_EQ(0, err);
		seen = functions_in_dummy(&before, &l);
	}
	if (!seen)
		SKIP(return, "dummy was not loaded where the init text was");
	for (i = 0; i < NR_FUNCTIONS; i++) {
		if (before.addr[i] < l.dummy_first || before.addr[i] > l.dummy_last)
			continue;
		EXPECT_EQ(0, l.lines[i])
			TH_LOG("%s is listed at %lx, in the text of dummy",
			       functions[i], l.addr[i]);
	}
}

#define NR_PROGS	300	/* their lines fill seq_file's buffer several times */
#define NR_GO		10	/* the first ones, which are closed meanwhile */
#define NAME		"ksym_walk_"

FIXTURE(kallsyms) {
	struct ksym_rings rings;
	int progs[NR_PROGS];
	int seen[NR_PROGS];	/* how often it was listed */
};

FIXTURE_SETUP(kallsyms)
{
	const char *reason = skip_reason();
	char name[16];
	int i;

	memset(self, 0, sizeof(*self));
	memset(self->progs, 0xff, sizeof(self->progs));
	if (reason)
		SKIP(return, "%s", reason);
	ASSERT_EQ(0, ksym_rings__open_dummy(&self->rings));
	for (i = 0; i < NR_PROGS; i++) {
		snprintf(name, sizeof(name), NAME "%03d", i);
		self->progs[i] = load_filter(name);
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

/* Reads a few bytes at a time: the kernel has read ahead by its buffer at most. */
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

static bool first_are_gone(struct ksym_rings *rings)
{
	char name[32];
	int i;

	for (i = 0; i < NR_GO; i++) {
		snprintf(name, sizeof(name), NAME "%03d", i);
		if (!ksym_rings__wait_unregister(rings, name))
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

#define POFF_FUNC	"skb_get_poff"
#define MAX_CHAIN	64

/* A filter that calls a helper, which puts the filter into the callchain. */
static struct sock_filter poff_insns[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_PAY_OFFSET),
	BPF_STMT(BPF_RET | BPF_K, 0xffff),
};

static struct sock_fprog poff_prog = { .len = 2, .filter = poff_insns };

FIXTURE(callchain) {
	int fds[2];
	struct ring ring;
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
	const char *reason = skip_reason();

	memset(self, 0xff, sizeof(*self));
	if (reason)
		SKIP(return, "%s", reason);
	if ((int)attr.type < 0)
		SKIP(return, "no " KPROBE_PMU ": needs CONFIG_KPROBE_EVENTS");
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, self->fds));
	ASSERT_EQ(0, setsockopt(self->fds[1], SOL_SOCKET, SO_ATTACH_FILTER,
				&poff_prog, sizeof(poff_prog)));
	ASSERT_EQ(0, ring__open(&self->ring, &attr)) TH_LOG("kprobe on " POFF_FUNC);
}

FIXTURE_TEARDOWN(callchain)
{
	ring__close(&self->ring);
	close_fd(&self->fds[0]);
	close_fd(&self->fds[1]);
}

/* The ring has one record: SAMPLE [ header | nr | ips[nr] ]. */
TEST_F_TIMEOUT(callchain, goes_past_a_filter, TEST_S)
{
	const char *data = (char *)self->ring.page + sysconf(_SC_PAGESIZE);
	const __u64 *body = (const void *)(data + 8);
	char name[KSYM_NAME_LEN + 64];
	bool filter = false, syscall = false;
	__u64 i;

	ASSERT_EQ(1, write(self->fds[0], "", 1));
	ASSERT_LT(0, __atomic_load_n(&self->ring.page->data_head, __ATOMIC_ACQUIRE));
	ASSERT_EQ(PERF_RECORD_SAMPLE, ((struct perf_event_header *)data)->type);
	ASSERT_GE(MAX_CHAIN, body[0]);
	for (i = 1; i <= body[0]; i++) {
		ASSERT_EQ(0, symbolize(body[i], name, sizeof(name)));
		TH_LOG("0x%llx %s", body[i], name);
		filter |= !strncmp(name, "cbpf_prog_", strlen("cbpf_prog_"));
		syscall |= !strncmp(name, "do_syscall_64", strlen("do_syscall_64"));
	}
	EXPECT_TRUE(filter) TH_LOG("no filter in the callchain");
#ifdef __x86_64__
	EXPECT_TRUE(syscall) TH_LOG("the callchain ends before the system call");
#endif
}

#define KPTR_RESTRICT	"/proc/sys/kernel/kptr_restrict"

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

/* A user could compare the name, a hash, with that of filters of other users. */
TEST_F_TIMEOUT(callchain, filter_is_not_for_all, TEST_S)
{
	bool shown = read_number(KPTR_RESTRICT) == 0;
	pid_t pid;
	int status;

	EXPECT_LT(0, count_filters());
	ASSERT_EQ(0, write_number(KPTR_RESTRICT, 1));
	pid = fork();
	if (!pid)
		_exit(setuid(1000) ? 255 : count_filters());
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, write_number(KPTR_RESTRICT, shown ? 0 : 1));
	ASSERT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status)) TH_LOG("uid 1000 sees %d", WEXITSTATUS(status));
}

TEST_HARNESS_MAIN
