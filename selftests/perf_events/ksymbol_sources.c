// SPDX-License-Identifier: GPL-2.0
/*
 * Does the kernel report each kind of dynamic text, and the same everywhere?
 *
 * One test for each source in lib/text_sources.c. With an event on each CPU that
 * reports all text, the test creates some text and frees it again, and each time
 * three sets must be equal (see lib/ksym_play.h): the text in the records, in
 * /proc/kallsyms, and in a snapshot. In addition:
 *
 *   - %pS finds each text from its first to its last byte, with the length of
 *     the record, and bpf_prog_info has the same lengths of programs
 *   - no two texts that exist at the same time overlap, each REGISTER is followed
 *     by its UNREGISTER, and no record is lost
 *
 * The tests "snapshot" are about PERF_EVENT_IOC_KSYM_SNAPSHOT itself.
 */
#define _GNU_SOURCE
#include <fnmatch.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "lib/bpf_event.h"
#include "lib/ksym_play.h"
#include "lib/ksym_ring.h"
#include "lib/ksym_snapshot.h"
#include "lib/made.h"
#include "lib/symbolize.h"
#include "lib/test_env.h"
#include "lib/text_sources.h"

FIXTURE(source) {
	struct ksym_rings rings;
	struct ksym_play play;
	struct made made;
	int all;		/* 1: the kernel has attr.ksymbol_all */
};

FIXTURE_VARIANT(source) {
	int index;
};

/* Indices of ksym_sources[] */
FIXTURE_VARIANT_ADD(source, prog) { .index = 0 };
FIXTURE_VARIANT_ADD(source, subprog) { .index = 1 };
FIXTURE_VARIANT_ADD(source, exception_callback) { .index = 2 };
FIXTURE_VARIANT_ADD(source, trampoline) { .index = 3 };
FIXTURE_VARIANT_ADD(source, dispatcher) { .index = 4 };
FIXTURE_VARIANT_ADD(source, struct_ops) { .index = 5 };
FIXTURE_VARIANT_ADD(source, dummy_struct_ops) { .index = 6 };
FIXTURE_VARIANT_ADD(source, socket_filter) { .index = 7 };
FIXTURE_VARIANT_ADD(source, seccomp) { .index = 8 };
FIXTURE_VARIANT_ADD(source, ftrace) { .index = 9 };
FIXTURE_VARIANT_ADD(source, kprobe) { .index = 10 };
FIXTURE_VARIANT_ADD(source, optprobe) { .index = 11 };
FIXTURE_VARIANT_ADD(source, module) { .index = 12 };
FIXTURE_VARIANT_ADD(source, its) { .index = 13 };

FIXTURE_SETUP(source)
{
	const char *reason = skip_reason();

	memset(self, 0, sizeof(*self));
	made__init(&self->made);
	if (reason)
		SKIP(return, "%s", reason);
	self->all = ksym_play__begin(&self->play, &self->rings);
	ASSERT_LE(0, self->all) TH_LOG("beginning: %s", strerror(-self->all));
}

FIXTURE_TEARDOWN(source)
{
	ksym_sources[variant->index].unmake(&self->made);
	ksym_set__clear(&self->play.live);
	ksym_rings__close(&self->rings);
}

static void check_sets(struct __test_metadata *_metadata, struct ksym_play *play,
		       struct ksym_rings *rings, const char *when)
{
	char why[KSYM_WHY_LEN];

	EXPECT_TRUE(ksym_play__agrees(play, rings, why)) TH_LOG("%s: %s", when, why);
}

static void check_symbol(struct __test_metadata *_metadata,
			 const struct ksym_text *t, __u32 off)
{
	char want[KSYM_NAME_LEN + 64], got[KSYM_NAME_LEN + 64] = "";

	snprintf(want, sizeof(want), "%s+0x%x/0x%x", t->name, off, t->len);
	ASSERT_EQ(0, symbolize(t->addr + off, got, sizeof(got)));
	got[strcspn(got, " ")] = '\0';		/* " [bpf]" */
	EXPECT_STREQ(want, got)
		TH_LOG("%%pS of 0x%llx is %s", t->addr + off, got);
}

/* The first NR_SAME texts of the source are enough. */
static void check_symbols(struct __test_metadata *_metadata,
			  const struct ksym_set *live,
			  const struct ksym_source *src)
{
	struct ksym_set texts = {};
	int nr = 0;
	size_t i;

	ASSERT_EQ(0, ksym_set__copy(&texts, live,
				    PERF_RECORD_KSYMBOL_TYPE_MODULE));
	for (i = 0; i < texts.nr && nr < NR_SAME; i++) {
		if (!texts.texts[i].len ||
		    fnmatch(src->pattern, texts.texts[i].name, 0))
			continue;
		nr++;
		check_symbol(_metadata, &texts.texts[i], 0);
		check_symbol(_metadata, &texts.texts[i], texts.texts[i].len - 1);
	}
	ksym_set__clear(&texts);
}

#define MAX_FUNCS 8

/* Each function in bpf_prog_info exists, and has the same length in its record. */
static void check_prog_info(struct __test_metadata *_metadata, int fd,
			    const struct ksym_set *live)
{
	__u64 addrs[MAX_FUNCS] = {};
	__u32 lens[MAX_FUNCS] = {}, i, len;
	struct bpf_prog_info info = {
		.nr_jited_ksyms = MAX_FUNCS,
		.jited_ksyms = (unsigned long)addrs,
		.nr_jited_func_lens = MAX_FUNCS,
		.jited_func_lens = (unsigned long)lens,
	};
	__u32 info_len = sizeof(info);
	size_t j;

	ASSERT_EQ(0, bpf_prog_get_info_by_fd(fd, &info, &info_len));
	for (i = 0; i < info.nr_jited_ksyms && i < MAX_FUNCS; i++) {
		len = 0;
		for (j = 0; j < live->nr; j++)
			if (live->texts[j].addr == addrs[i])
				len = live->texts[j].len;
		EXPECT_EQ(lens[i], len)
			TH_LOG("function %u at 0x%llx", i, addrs[i]);
	}
}

TEST_F_TIMEOUT(source, sets, TEST_S)
{
	const struct ksym_source *src = &ksym_sources[variant->index];
	struct ksym_rings *rings = &self->rings;
	struct ksym_play *play = &self->play;
	struct made *m = &self->made;
	int before, made, err, i;
	size_t from;

	if (src->all && !self->all)
		SKIP(return, "%s need perf_event_attr.ksymbol_all", src->name);
	before = live_of(play, src);
	from = rings->nr_recs;
	err = src->make(m);
	if (err == -ENOTSUP && m->why[0])
		SKIP(return, "%s", m->why);
	ASSERT_EQ(0, err) TH_LOG("making %s: %s", src->name, strerror(-err));

	check_sets(_metadata, play, rings, "while they exist");
	made = src->ends == AT_ONCE ? records_of(rings, from, src, false) :
	       live_of(play, src) - (src->ends == GOES ? before : 0);
	EXPECT_LE(m->want, made)
		TH_LOG("%d of %d %s are known", made, m->want, src->name);
	check_symbols(_metadata, &play->live, src);
	if (!strncmp(src->pattern, "bpf_prog_", 9))
		for (i = 0; i < m->nr_fds; i++)
			check_prog_info(_metadata, m->fds[i], &play->live);

	src->unmake(m);
	if (src->ends != STAYS) {
		wait_for_end(play, rings, src, before);
		EXPECT_GE(before, live_of(play, src))
			TH_LOG("%s without UNREGISTER", src->name);
	}
	check_sets(_metadata, play, rings, "after their end");
	TH_LOG("%s: %d made, %d %s, %d UNREGISTER, %d live", src->name, made,
	       records_of(rings, from, src, false),
	       src->make == make_module ? "MMAP2, with replays" : "REGISTER",
	       records_of(rings, from, src, true), live_of(play, src));
}

FIXTURE(snapshot) {
	struct ksym_rings rings;
	int *progs, nr_progs;
};

#define NR_PROGS 200

static bool kallsyms_names(const char *part)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[KSYM_NAME_LEN + 128];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, part);
	if (f)
		fclose(f);
	return found;
}

FIXTURE_SETUP(snapshot)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.bpf_event = 1,
	};
	const char *reason = skip_reason();
	int err;

	memset(self, 0, sizeof(*self));
	if (reason)
		SKIP(return, "%s", reason);
	self->progs = calloc(NR_PROGS, sizeof(int));
	ASSERT_NE(NULL, self->progs);
	for (; self->nr_progs < NR_PROGS; self->nr_progs++) {
		err = load_filter("ksym_snap");
		ASSERT_LE(0, err);
		self->progs[self->nr_progs] = err;
	}
	ASSERT_EQ(0, ksym_rings__open_size(&self->rings, &attr, 1));
	err = ksym_snapshot(&self->rings);
	if (err == -ENOTTY)
		SKIP(return, "this kernel has no PERF_EVENT_IOC_KSYM_SNAPSHOT");
	ASSERT_LE(0, err) TH_LOG("snapshot: %s", strerror(-err));
	/* 200 programs do not fit a page. */
	EXPECT_LT(0, err) TH_LOG("the ring was never full");
	ASSERT_EQ(0, ksym_rings__drain(&self->rings));
}

FIXTURE_TEARDOWN(snapshot)
{
	__u64 end = now_ms() + WAIT_MS;

	while (self->nr_progs)
		close(self->progs[--self->nr_progs]);
	free(self->progs);
	ksym_rings__close(&self->rings);
	/*
	 * Their UNREGISTER would fill the ring of the next test. The tab ends the name:
	 * functions of the kernel have that part in theirs.
	 */
	while (kallsyms_names("_ksym_snap\t") && now_ms() < end)
		usleep(10000);
}

/* A ring that is smaller than the snapshot gets each text once, in several calls. */
TEST_F_TIMEOUT(snapshot, goes_on_where_the_ring_was_full, TEST_S)
{
	int ksymbols = 0, loads = 0;
	const struct ksym_rec *rec;
	size_t i;

	for (i = 0; i < self->rings.nr_recs; i++) {
		rec = &self->rings.recs[i];
		if (ksym_rec__is(rec, false) && strstr(rec->name, "_ksym_snap"))
			ksymbols += !rec->k.flags &&
				    rec->misc & PERF_RECORD_MISC_KSYMBOL_SNAPSHOT;
		if (rec->type == PERF_RECORD_BPF_EVENT &&
		    rec->k.ksym_type == PERF_BPF_EVENT_PROG_LOAD)
			loads++;
	}
	EXPECT_EQ(NR_PROGS, ksymbols);
	EXPECT_LE(NR_PROGS, loads);
	EXPECT_EQ(0, self->rings.lost);
}

/* Without attr.ksymbol_all an event gets no other types than before. */
TEST_F_TIMEOUT(snapshot, keeps_to_what_was_asked_for, TEST_S)
{
	size_t i;

	for (i = 0; i < self->rings.nr_recs; i++) {
		EXPECT_GT(PERF_RECORD_KSYMBOL_TYPE_MODULE,
			  self->rings.recs[i].k.ksym_type)
			TH_LOG("%s", self->rings.recs[i].name);
	}
}

/* Snapshot with an argument of @size. Return: 0 or -errno. */
static int snapshot_of_size(int fd, size_t size, void *arg)
{
	return event_ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, '$',
				    _IOC_NR(PERF_EVENT_IOC_KSYM_SNAPSHOT), size), (long)arg);
}

/* The argument of user space that is older or newer than the kernel */
TEST_F_TIMEOUT(snapshot, argument_grows, TEST_S)
{
	struct {
		struct perf_event_ksym_snapshot snap;
		__u64 newer;
	} big = {};
	int fd = self->rings.fds[0].fd;

	ASSERT_EQ(0, run_on_cpu(0));
	ASSERT_EQ(PERF_KSYM_SNAPSHOT_SIZE_VER0, sizeof(big.snap));
	EXPECT_EQ(-ENOSPC, snapshot_of_size(fd, sizeof(big), &big));
	EXPECT_LT(0, big.snap.emitted);
	big.newer = 1;
	EXPECT_EQ(-E2BIG, snapshot_of_size(fd, sizeof(big), &big));
	EXPECT_EQ(-EINVAL, snapshot_of_size(fd, sizeof(big.snap) - 4, &big));
}

static int snapshot_once(int fd)
{
	struct perf_event_ksym_snapshot snap = {};

	return event_ioctl(fd, PERF_EVENT_IOC_KSYM_SNAPSHOT, (long)&snap);
}

/* The same to a new event */
static int snapshot_of(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = open_event_on(attr, pid, cpu), err;

	if (fd < 0)
		return fd;
	err = snapshot_once(fd);
	close(fd);
	return err;
}

TEST_F_TIMEOUT(snapshot, refuses_what_it_does_not_know, TEST_S)
{
	struct perf_event_ksym_snapshot flags = { .flags = 1 };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.ksymbol = 1,
	};
	int fd = self->rings.fds[0].fd;

	EXPECT_EQ(-EINVAL, event_ioctl(fd, PERF_EVENT_IOC_KSYM_SNAPSHOT, (long)&flags));
	EXPECT_EQ(-EFAULT, event_ioctl(fd, PERF_EVENT_IOC_KSYM_SNAPSHOT, 0));

	/* An event without a ring, two that follow a task, one without KSYMBOL. */
	EXPECT_EQ(-ENOBUFS, snapshot_of(&attr, -1, 0));
	EXPECT_EQ(-ENXIO, snapshot_of(&attr, 0, -1));
	EXPECT_EQ(-ENXIO, snapshot_of(&attr, 0, 0));
	attr.ksymbol = 0;
	EXPECT_EQ(-EOPNOTSUPP, snapshot_of(&attr, -1, 0));
}

/* In both, records of the snapshot could be lost. */
TEST_F_TIMEOUT(snapshot, refuses_rings_that_discard, TEST_S)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.ksymbol = 1,
	};
	size_t size = 2 * getpagesize();
	int fd = self->rings.fds[0].fd;
	void *ring;

	ASSERT_EQ(0, run_on_cpu(0));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	EXPECT_EQ(-EBUSY, snapshot_once(fd));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
	EXPECT_EQ(-ENOSPC, snapshot_once(fd));

	fd = open_event_on(&attr, -1, 0);
	ASSERT_LE(0, fd);
	/* Not writable: the kernel overwrites what nobody may mark as read. */
	ring = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, ring);
	EXPECT_EQ(-EBUSY, snapshot_once(fd));
	munmap(ring, size);
	close(fd);
}

#define CPU1_ONLINE	"/sys/devices/system/cpu/cpu1/online"

TEST_F_TIMEOUT(snapshot, needs_the_cpu_of_the_event, TEST_S)
{
	int err = self->rings.nr > 1 ? write_number(CPU1_ONLINE, 0) : -ENOENT;

	if (err == -ENOENT || err == -EACCES)
		SKIP(return, "no CPU 1 that can go offline");
	ASSERT_EQ(0, err);
	EXPECT_EQ(-ENODEV, snapshot_once(self->rings.fds[1].fd));
	ASSERT_EQ(0, write_number(CPU1_ONLINE, 1));
}

/* A ring is only written on its CPU. The caller goes there and continues. */
TEST_F_TIMEOUT(snapshot, needs_the_caller_on_that_cpu, TEST_S)
{
	struct perf_event_ksym_snapshot snap = {};
	int fd;

	if (self->rings.nr < 2)
		SKIP(return, "needs two CPUs");
	fd = self->rings.fds[1].fd;
	ASSERT_EQ(0, run_on_cpu(0));
	EXPECT_EQ(-EAGAIN, snapshot_of_size(fd, sizeof(snap), &snap));
	EXPECT_EQ(0, snap.cursor);
	EXPECT_EQ(0, snap.emitted);

	ASSERT_EQ(0, run_on_cpu(1));
	EXPECT_EQ(-ENOSPC, snapshot_of_size(fd, sizeof(snap), &snap));
	EXPECT_NE(0, snap.cursor);
	EXPECT_LT(0, snap.emitted);
}

TEST_HARNESS_MAIN
