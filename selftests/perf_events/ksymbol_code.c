// SPDX-License-Identifier: GPL-2.0
/*
 * Does attr.ksymbol_code report the code of dynamic text, and is it right?
 *
 * For each source of text whose code no other record has, the TEXT_POKE records
 * must amount to what /proc/kcore has at that time: the records of text that is
 * created and patched while the event is open, and those of a snapshot.
 *
 * Who may not have the code gets none: see ksymbol_code(user).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fnmatch.h>
#include <grp.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "lib/bpf_load.h"
#include "lib/ksym_code.h"
#include "lib/ksym_play.h"
#include "lib/ksym_snapshot.h"
#include "lib/made.h"
#include "lib/test_env.h"
#include "lib/text_sources.h"

#define PATCH_MS	5000	/* optprobes are written with a delay */
#define RING_PAGES	64
#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"
#define TEST_UID	1000

/* The result is valid until the next call. */
static const char *no_code_reason(void)
{
	const char *reason = skip_reason();
	struct ksym_rings rings;
	int err;

	if (reason)
		return reason;
	err = ksym_rings__open_code(&rings, 1);
	if (err == -EINVAL)
		return "needs perf_event_attr.ksymbol_code";
	if (!err)
		ksym_rings__close(&rings);
	return NULL;
}

struct code_test {
	struct ksym_rings rings;
	struct ksym_play play;
	struct made made;
};

/* Begin with all text that exists, and its code. */
static void code_test__begin(struct __test_metadata *_metadata, struct code_test *t)
{
	int err;

	ASSERT_EQ(0, ksym_rings__open_code(&t->rings, RING_PAGES));
	err = ksym_snapshot(&t->rings);
	ASSERT_LE(0, err) TH_LOG("snapshot: %s", strerror(-err));
	ASSERT_EQ(0, ksym_play__drain(&t->play, &t->rings));
}

static void code_test__end(struct code_test *t)
{
	ksym_set__clear(&t->play.live);
	ksym_rings__close(&t->rings);
}

FIXTURE(source) {
	struct code_test t;
	int before;		/* texts of the source when the test began */
};

FIXTURE_VARIANT(source) {
	int index;
};

/* Indices of ksym_sources[] */
FIXTURE_VARIANT_ADD(source, trampoline) { .index = 3 };
FIXTURE_VARIANT_ADD(source, dispatcher) { .index = 4 };
FIXTURE_VARIANT_ADD(source, struct_ops) { .index = 5 };
FIXTURE_VARIANT_ADD(source, socket_filter) { .index = 7 };
FIXTURE_VARIANT_ADD(source, seccomp) { .index = 8 };
FIXTURE_VARIANT_ADD(source, ftrace) { .index = 9 };
FIXTURE_VARIANT_ADD(source, kprobe) { .index = 10 };
FIXTURE_VARIANT_ADD(source, optprobe) { .index = 11 };
FIXTURE_VARIANT_ADD(source, its) { .index = 13 };

FIXTURE_SETUP(source)
{
	const char *reason = no_code_reason();

	memset(self, 0, sizeof(*self));
	made__init(&self->t.made);
	if (reason)
		SKIP(return, "%s", reason);
	code_test__begin(_metadata, &self->t);
	self->before = live_of(&self->t.play, &ksym_sources[variant->index]);
}

/* The next test shall not find text that is about to end: it ends with a delay. */
FIXTURE_TEARDOWN(source)
{
	const struct ksym_source *src = &ksym_sources[variant->index];

	src->unmake(&self->t.made);
	if (src->ends == GOES)
		wait_for_end(&self->t.play, &self->t.rings, src, self->before);
	code_test__end(&self->t);
}

/* Return: how many texts of @src exist. Their code has to be right. */
static int check_code(struct __test_metadata *_metadata, struct ksym_rings *rings,
		      const struct ksym_set *live, const struct ksym_source *src,
		      const char *which)
{
	char why[KSYM_SAY_LEN];
	int nr = 0, bytes = 0;
	size_t i;

	for (i = 0; i < live->nr; i++) {
		const struct ksym_text *t = &live->texts[i];

		if (fnmatch(src->pattern, t->name, 0))
			continue;
		nr++;
		bytes += t->len;
		EXPECT_TRUE(ksym_code__is_right(rings, t, PATCH_MS, why))
			TH_LOG("%s: %s", which, why);
	}
	TH_LOG("%s: %d %s of %d bytes", which, nr, src->name, bytes);
	EXPECT_EQ(0, rings->lost);
	return nr;
}

/* A ring of one page makes the snapshot write the code in parts. */
TEST_F_TIMEOUT(source, code_is_that_in_kcore, TEST_S)
{
	const struct ksym_source *src = &ksym_sources[variant->index];
	struct code_test *t = &self->t;
	struct ksym_rings later;
	int err = src->make(&t->made);

	if (err == -ENOTSUP && t->made.why[0])
		SKIP(return, "%s", t->made.why);
	ASSERT_EQ(0, err) TH_LOG("making %s: %s", src->name, strerror(-err));
	ASSERT_EQ(0, ksym_play__drain(&t->play, &t->rings));
	EXPECT_LT(0, check_code(_metadata, &t->rings, &t->play.live, src, "live"));

	ASSERT_EQ(0, ksym_rings__open_code(&later, 1));
	err = ksym_snapshot(&later);
	EXPECT_LE(0, err) TH_LOG("snapshot: %s", strerror(-err));
	/* Text of others may have ended before the snapshot. */
	ASSERT_EQ(0, ksym_play__drain(&t->play, &t->rings));
	check_code(_metadata, &later, &t->play.live, src, "snapshot");
	ksym_rings__close(&later);
}

#define FILTER_LEN	4096	/* BPF_MAXINSNS: some 20 kB of x86 code */
#define RECORD_MAX	2048	/* bytes of code, PERF_TEXT_POKE_MAX of the kernel */

static int attach_long_filter(void)
{
	static struct sock_filter insns[FILTER_LEN];
	struct sock_fprog prog = { .len = FILTER_LEN, .filter = insns };
	int sk = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), i;

	for (i = 0; i < FILTER_LEN - 1; i++)
		insns[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_XOR | BPF_K,
							0x12345678 + i);
	insns[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	if (sk >= 0 && setsockopt(sk, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog))) {
		i = -errno;
		close(sk);
		return i;
	}
	return sk < 0 ? -errno : sk;
}

static const struct ksym_text *longest_filter(const struct ksym_set *set)
{
	const struct ksym_text *t = NULL;
	size_t i;

	for (i = 0; i < set->nr; i++)
		if (set->texts[i].type == PERF_RECORD_KSYMBOL_TYPE_CBPF &&
		    (!t || set->texts[i].len > t->len))
			t = &set->texts[i];
	return t;
}

/* Text of one kind, which the test needs in particular */
FIXTURE(code) {
	struct code_test t;
};

FIXTURE_SETUP(code)
{
	const char *reason = no_code_reason();

	memset(self, 0, sizeof(*self));
	made__init(&self->t.made);
	if (reason)
		SKIP(return, "%s", reason);
	code_test__begin(_metadata, &self->t);
}

FIXTURE_TEARDOWN(code)
{
	unmake_fds(&self->t.made);
	code_test__end(&self->t);
}

/* Neither a record nor a ring of one page has room for it. */
TEST_F_TIMEOUT(code, of_a_long_filter, TEST_S)
{
	struct code_test *t = &self->t;
	const struct ksym_text *text;
	struct ksym_rings later;
	char why[KSYM_SAY_LEN];
	int err, records;

	ASSERT_EQ(0, made__fd(&t->made, attach_long_filter()));
	ASSERT_EQ(0, ksym_play__drain(&t->play, &t->rings));
	text = longest_filter(&t->play.live);
	ASSERT_NE(NULL, text);
	ASSERT_LT(RECORD_MAX, text->len);
	EXPECT_TRUE(ksym_code__is_right(&t->rings, text, PATCH_MS, why)) TH_LOG("%s", why);
	records = (text->len + RECORD_MAX - 1) / RECORD_MAX;
	EXPECT_EQ(records, ksym_code__records(&t->rings, text));

	ASSERT_EQ(0, ksym_rings__open_code(&later, 1));
	err = ksym_snapshot(&later);
	EXPECT_LT(0, err) TH_LOG("snapshot: %s", strerror(-err));
	EXPECT_TRUE(ksym_code__is_right(&later, text, PATCH_MS, why)) TH_LOG("%s", why);
	EXPECT_EQ(records, ksym_code__records(&later, text));
	TH_LOG("%u bytes: %d records, for which a snapshot found the ring full %d times",
	       text->len, records, err);
	ksym_rings__close(&later);
}

/* Put kprobes into their page and remove them, until @end. Leave some there. */
static int patch_until(__u64 end, struct made *m)
{
	int err = 0;

	while (!err && now_ms() < end) {
		err = make_kprobes(m);
		unmake_fds(m);
	}
	return err;
}

/*
 * The record of a new slot comes before its bytes are written. A snapshot in
 * between must not undo it.
 */
TEST_F_TIMEOUT(code, patched_during_snapshots, TEST_S)
{
	const struct ksym_source *src = &ksym_sources[10];
	struct code_test *t = &self->t;
	__u64 end = now_ms() + 2000;
	int status, rounds = 0, err;
	pid_t pid;

	err = make_kprobes(&t->made);
	if (err == -ENOTSUP && t->made.why[0])
		SKIP(return, "%s", t->made.why);
	ASSERT_EQ(0, err);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(!!patch_until(end, &(struct made){ .child = -1 }));
	while (now_ms() < end) {
		ASSERT_LE(0, ksym_snapshot(&t->rings));
		ASSERT_EQ(0, ksym_play__drain(&t->play, &t->rings));
		rounds++;
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(0, ksym_play__drain(&t->play, &t->rings));
	check_code(_metadata, &t->rings, &t->play.live, src, "patched");
	TH_LOG("%d snapshots", rounds);
}

#define TAIL_NAME	"ksym_tail"

/* "return 0" after a tail call to the program that @array has, if any */
static int load_tail_call(int array)
{
	const struct bpf_insn insns[] = {
		BPF_LD_MAP_FD(BPF_REG_2, array),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_EMIT_CALL(BPF_FUNC_tail_call),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, TAIL_NAME, "GPL", insns,
			     ARRAY_SIZE(insns), NULL);
}

/* The kernel patches the program when its tail call gets a target. */
TEST_F_TIMEOUT(code, of_programs_is_not_reported, TEST_S)
{
	struct ksym_rings *rings = &self->t.rings;
	int array, prog, target, nr = 0;
	size_t i;

	array = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, NULL, sizeof(int), sizeof(int), 1, NULL);
	ASSERT_LE(0, array);
	target = load_filter("ksym_target");
	ASSERT_LE(0, target);
	prog = load_tail_call(array);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, bpf_map_update_elem(array, &zero, &target, BPF_ANY));
	ASSERT_EQ(0, ksym_rings__drain(rings));
	for (i = 0; i < rings->nr_recs; i++) {
		const struct ksym_rec *rec = &rings->recs[i];
		struct ksym_text t = { .addr = rec->k.addr, .len = rec->k.len };

		if (!ksym_rec__is(rec, false) || !strstr(rec->name, TAIL_NAME))
			continue;
		nr++;
		EXPECT_EQ(0, ksym_code__records(rings, &t)) TH_LOG("%s", rec->name);
	}
	EXPECT_EQ(1, nr);
	close_fd(&prog);
	close_fd(&target);
	close_fd(&array);
}

FIXTURE(user) {
	long paranoid;
};

FIXTURE_SETUP(user)
{
	const char *reason = geteuid() ? "needs root" : no_code_reason();

	self->paranoid = read_number(PARANOID);
	if (reason)
		SKIP(return, "%s", reason);
	ASSERT_EQ(0, write_number(PARANOID, -1));
}

FIXTURE_TEARDOWN(user)
{
	write_number(PARANOID, self->paranoid);
}

static int count_pokes(const struct ksym_rings *rings)
{
	int nr = 0;
	size_t i;

	for (i = 0; i < rings->nr_recs; i++)
		nr += rings->recs[i].type == PERF_RECORD_TEXT_POKE;
	return nr;
}

/* Return: 0 if there are names and no code, or what is wrong. */
static int run_without_perfmon(void)
{
	struct ksym_rings rings;
	struct made filters;
	int ret = 0;

	made__init(&filters);
	if (setgroups(0, NULL) || setresgid(TEST_UID, TEST_UID, TEST_UID) ||
	    setresuid(TEST_UID, TEST_UID, TEST_UID))
		return 1;
	if (ksym_rings__open_code(&rings, 16) != -EACCES || ksym_rings__open_all(&rings) < 0)
		return 2;
	if (make_socket_filters(&filters) || ksym_snapshot(&rings) < 0 ||
	    ksym_rings__drain(&rings))
		ret = 3;
	else if (!ksym_rings__find(&rings, "cbpf_prog_", 0, false))
		ret = 4;
	else if (count_pokes(&rings))
		ret = 5;
	unmake_fds(&filters);
	ksym_rings__close(&rings);
	return ret;
}

/* A user who may profile the kernel, but has no CAP_PERFMON, can get the names only. */
TEST_F_TIMEOUT(user, without_perfmon_gets_no_code, TEST_S)
{
	int status;
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid)
		_exit(run_without_perfmon());
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status)
		TH_LOG("1: uid, 2: open, 3: filters, snapshot, 4: no KSYMBOL, 5: TEXT_POKE; is %d",
		       WEXITSTATUS(status));
}

/* attr.text_poke is for all who may profile the kernel. */
TEST_F_TIMEOUT(user, text_poke_has_no_filters, TEST_S)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.ksymbol_all = 1,
		.text_poke = 1,
	};
	struct ksym_rings rings;
	struct made m;
	size_t i;

	made__init(&m);
	ASSERT_EQ(0, ksym_rings__open(&rings, &attr));
	ASSERT_EQ(0, make_socket_filters(&m));
	ASSERT_EQ(0, ksym_rings__drain(&rings));
	EXPECT_NE(NULL, ksym_rings__find(&rings, "cbpf_prog_", 0, false));
	for (i = 0; i < rings.nr_recs; i++) {
		const struct ksym_rec *rec = &rings.recs[i];
		struct ksym_text t = { .addr = rec->k.addr, .len = rec->k.len };

		if (rec->type == PERF_RECORD_KSYMBOL && !strncmp(rec->name, "cbpf_", 5))
			EXPECT_EQ(0, ksym_code__records(&rings, &t));
	}
	unmake_fds(&m);
	ksym_rings__close(&rings);
}

TEST_F_TIMEOUT(user, code_needs_the_symbols, TEST_S)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.ksymbol_code = 1,
	};
	struct ksym_rings rings;

	EXPECT_EQ(-EINVAL, ksym_rings__open(&rings, &attr));
}

TEST_HARNESS_MAIN
