// SPDX-License-Identifier: GPL-2.0
/*
 * Does PERF_RECORD_KSYMBOL have the right address and length for trampolines?
 *
 * The test creates trampolines of tracing programs and of a struct_ops map
 * while a ring buffer per CPU collects the records. For each of them:
 *
 *   length      it is not empty, is shorter than a page, and overlaps no other
 *               text that is registered; /proc/kallsyms has the name at the
 *               same address
 *   exact_end   its last byte ends its last instruction, and only filling
 *               follows (x86-64: other architectures do not mark the end)
 *   unregister  when it is freed, UNREGISTER has the name, address and length
 *               of REGISTER
 *
 * No record may be lost. The tests of struct_ops_reg check when the records
 * come: before the text can run, and in pairs.
 */
#define _GNU_SOURCE
#include <stdbool.h>

#include "kselftest_harness.h"
#include "lib/bpf_load.h"
#include "lib/ksym_check.h"
#include "lib/ksym_ring.h"
#include "lib/tcp_ops.h"
#include "lib/test_env.h"
#include "lib/text_end.h"

/* The checks of the comment on top, for the @nr trampolines in @recs. */
static void check_length(struct __test_metadata *_metadata,
			 struct ksym_rings *rings,
			 const struct ksym_rec *recs, int nr)
{
	const char *bad;
	int i;

	for (i = 0; i < nr; i++) {
		TH_LOG("%s 0x%llx+%u", recs[i].name, recs[i].k.addr,
		       recs[i].k.len);
		EXPECT_EQ(PERF_RECORD_KSYMBOL_TYPE_BPF, recs[i].k.ksym_type);
		EXPECT_GT(recs[i].k.len, 0);
		EXPECT_LT(recs[i].k.len, sysconf(_SC_PAGESIZE));
		EXPECT_EQ(1, kallsyms_has(recs[i].name, recs[i].k.addr));
	}
	ASSERT_EQ(0, ksym_rings__drain(rings));
	bad = records_wrong(rings);
	EXPECT_EQ(NULL, bad) TH_LOG("%s", bad);
	EXPECT_EQ(0, rings->lost);
}

static void check_exact_end(struct __test_metadata *_metadata,
			    const struct ksym_rec *recs, int nr)
{
	const char *bad;
	int i;

#ifndef __x86_64__
	SKIP(return, "only x86-64 code shows where it ends");
#endif
	for (i = 0; i < nr; i++) {
		bad = text_end_wrong(&recs[i]);
		EXPECT_EQ(NULL, bad)
			TH_LOG("%s 0x%llx+%u: %s", recs[i].name,
			       recs[i].k.addr, recs[i].k.len, bad);
	}
}

static void check_unregister(struct __test_metadata *_metadata,
			     struct ksym_rings *rings,
			     const struct ksym_rec *recs, int nr)
{
	const struct ksym_rec *rec;
	const char *bad;
	int i;

	for (i = 0; i < nr; i++) {
		rec = ksym_rings__wait(rings, recs[i].name, recs[i].k.addr,
				       true, WAIT_MS);
		ASSERT_NE(NULL, rec)
			TH_LOG("no UNREGISTER of %s in %d ms", recs[i].name,
			       WAIT_MS);
		EXPECT_STREQ(recs[i].name, rec->name);
		EXPECT_EQ(recs[i].k.len, rec->k.len);
		EXPECT_EQ(0, kallsyms_has(recs[i].name, recs[i].k.addr));
	}
	bad = records_wrong(rings);
	EXPECT_EQ(NULL, bad) TH_LOG("%s", bad);
	EXPECT_EQ(0, rings->lost);
}

/*
 * Trampolines: two functions, so that two trampolines lie side by side in a
 * page. fentry, fexit and fmod_ret make different code.
 */
#define NR_TRAMPS 2

struct tramps {
	struct ksym_rings rings;
	struct ksym_rec recs[NR_TRAMPS];
	int progs[NR_TRAMPS], links[NR_TRAMPS];
};

FIXTURE(trampoline) {
	struct tramps t;
};

FIXTURE_VARIANT(trampoline) {
	__u32 attach;
	const char *funcs[NR_TRAMPS];
};

FIXTURE_VARIANT_ADD(trampoline, fentry) {
	.attach = BPF_TRACE_FENTRY,
	.funcs = { "bpf_fentry_test1", "bpf_fentry_test2" },
};

FIXTURE_VARIANT_ADD(trampoline, fexit) {
	.attach = BPF_TRACE_FEXIT,
	.funcs = { "bpf_fentry_test1", "bpf_fentry_test2" },
};

FIXTURE_VARIANT_ADD(trampoline, fmod_ret) {
	.attach = BPF_MODIFY_RETURN,
	.funcs = { "bpf_modify_return_test", "bpf_modify_return_test2" },
};

/* The low half of the number in a trampoline's name is the BTF id of its function. */
static const struct ksym_rec *find_trampoline(const struct ksym_rings *rings,
					      __u32 btf_id)
{
	size_t i = rings->nr_recs;
	__u64 key;

	while (i--)
		if (ksym_rec__is(&rings->recs[i], false) &&
		    sscanf(rings->recs[i].name, "bpf_trampoline_%llu", &key) == 1 &&
		    (key & 0x7fffffff) == btf_id)
			return &rings->recs[i];
	return NULL;
}

static void trampoline_attach(struct __test_metadata *_metadata,
			      struct tramps *t, int i,
			      __u32 attach, int btf_id)
{
	const struct ksym_rec *rec;

	t->progs[i] = load_return(BPF_PROG_TYPE_TRACING, attach, btf_id, 0);
	ASSERT_LE(0, t->progs[i])
		TH_LOG("BPF_PROG_LOAD: %s", strerror(-t->progs[i]));
	t->links[i] = bpf_link_create(t->progs[i], 0, attach, NULL);
	ASSERT_LE(0, t->links[i])
		TH_LOG("BPF_LINK_CREATE: %s", strerror(-t->links[i]));

	ASSERT_EQ(0, ksym_rings__drain(&t->rings));
	rec = find_trampoline(&t->rings, btf_id);
	ASSERT_NE(NULL, rec)
		TH_LOG("no REGISTER of the trampoline of BTF id %d", btf_id);
	t->recs[i] = *rec;
}

FIXTURE_SETUP(trampoline)
{
	const char *reason = skip_reason();
	struct tramps *t = &self->t;
	int i, id;

	memset(t, 0, sizeof(*t));
	memset(t->progs, 0xff, sizeof(t->progs));
	memset(t->links, 0xff, sizeof(t->links));
	if (reason)
		SKIP(return, "%s", reason);

	ASSERT_EQ(0, ksym_rings__open_dummy(&t->rings));

	for (i = 0; i < NR_TRAMPS; i++) {
		id = vmlinux_btf_id(variant->funcs[i], BTF_KIND_FUNC);
		if (id == -ENOENT)
			SKIP(return, "no function %s: needs CONFIG_NET",
			     variant->funcs[i]);
		ASSERT_LT(0, id);
		trampoline_attach(_metadata, t, i, variant->attach, id);
	}
	/* Calls the functions, and so runs the trampolines. */
	ASSERT_EQ(0, bpf_prog_test_run_opts(t->progs[0], NULL));
}

FIXTURE_TEARDOWN(trampoline)
{
	int i;

	for (i = 0; i < NR_TRAMPS; i++) {
		close_fd(&self->t.links[i]);
		close_fd(&self->t.progs[i]);
	}
	ksym_rings__close(&self->t.rings);
}

TEST_F_TIMEOUT(trampoline, length, TEST_S)
{
	check_length(_metadata, &self->t.rings, self->t.recs, NR_TRAMPS);
}

TEST_F_TIMEOUT(trampoline, exact_end, TEST_S)
{
	check_exact_end(_metadata, self->t.recs, NR_TRAMPS);
}

TEST_F_TIMEOUT(trampoline, unregister, TEST_S)
{
	int i;

	for (i = 0; i < NR_TRAMPS; i++)
		close_fd(&self->t.links[i]);
	check_unregister(_metadata, &self->t.rings, self->t.recs, NR_TRAMPS);
}

/* struct_ops: the functions of a map share a page. */
FIXTURE(struct_ops) {
	struct ksym_rings rings;
	struct ksym_rec recs[NR_MEMBERS];
	struct tcp_ops ops;
};

FIXTURE_VARIANT(struct_ops) {
	__u32 flags;
};

FIXTURE_VARIANT_ADD(struct_ops, map) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(struct_ops, link) {
	.flags = BPF_F_LINK,
};

FIXTURE_SETUP(struct_ops)
{
	const char *reason = skip_reason();
	const struct ksym_rec *rec;
	char name[64];
	int err, i;

	memset(self, 0, sizeof(*self));
	tcp_ops__init(&self->ops);
	if (reason)
		SKIP(return, "%s", reason);

	ASSERT_EQ(0, ksym_rings__open_dummy(&self->rings));
	err = tcp_ops__create(&self->ops, variant->flags);
	if (err == -ENOENT)
		SKIP(return, "no struct_ops " OPS ": needs CONFIG_INET");
	ASSERT_EQ(0, err) TH_LOG("making the map: %s", strerror(-err));
	err = tcp_ops__register(&self->ops);
	ASSERT_EQ(0, err) TH_LOG("registering: %s", strerror(-err));

	ASSERT_EQ(0, ksym_rings__drain(&self->rings));
	for (i = 0; i < NR_MEMBERS; i++) {
		snprintf(name, sizeof(name), "bpf__" OPS "_%s", ops_members[i]);
		rec = ksym_rings__find(&self->rings, name, 0, false);
		if (!rec)	/* a setup that fails has no teardown */
			tcp_ops__close(&self->ops);
		ASSERT_NE(NULL, rec) TH_LOG("no REGISTER of %s", name);
		self->recs[i] = *rec;
	}
}

FIXTURE_TEARDOWN(struct_ops)
{
	tcp_ops__close(&self->ops);
	ksym_rings__close(&self->rings);
}

TEST_F_TIMEOUT(struct_ops, length, TEST_S)
{
	check_length(_metadata, &self->rings, self->recs, NR_MEMBERS);
}

TEST_F_TIMEOUT(struct_ops, exact_end, TEST_S)
{
	check_exact_end(_metadata, self->recs, NR_MEMBERS);
}

TEST_F_TIMEOUT(struct_ops, unregister, TEST_S)
{
	tcp_ops__close(&self->ops);
	check_unregister(_metadata, &self->rings, self->recs, NR_MEMBERS);
}

/*
 * When records come, relative to ->reg(): a kprobe on the function that ->reg()
 * calls leaves a SAMPLE between the KSYMBOL records.
 */
#define REG_FUNC "tcp_register_congestion_control"

FIXTURE(struct_ops_reg) {
	struct ksym_rings rings;
	struct tcp_ops ops, twin;
};

FIXTURE_SETUP(struct_ops_reg)
{
	struct perf_event_attr attr = {
		.sample_period = 1,
		.kprobe_func = (unsigned long)REG_FUNC,
	};
	const char *reason = skip_reason();
	long pmu = read_number(KPROBE_PMU);
	int err;

	memset(self, 0, sizeof(*self));
	tcp_ops__init(&self->ops);
	tcp_ops__init(&self->twin);
	if (reason)
		SKIP(return, "%s", reason);
	if (pmu < 0)
		SKIP(return, "no " KPROBE_PMU ": needs CONFIG_KPROBE_EVENTS");

	attr.type = pmu;
	err = ksym_rings__open(&self->rings, &attr);
	ASSERT_EQ(0, err) TH_LOG("kprobe on " REG_FUNC ": %s", strerror(-err));
	err = tcp_ops__create(&self->ops, 0);
	if (err == -ENOENT)
		SKIP(return, "no struct_ops " OPS ": needs CONFIG_INET");
	ASSERT_EQ(0, err) TH_LOG("making the map: %s", strerror(-err));
}

FIXTURE_TEARDOWN(struct_ops_reg)
{
	tcp_ops__close(&self->twin);
	tcp_ops__close(&self->ops);
	ksym_rings__close(&self->rings);
}

/* REGISTER of all members comes before the subsystem can call them. */
TEST_F_TIMEOUT(struct_ops_reg, registered_before_use, TEST_S)
{
	int before = 0, samples = 0, after = 0;
	const struct ksym_rec *rec;
	size_t i;

	ASSERT_EQ(0, tcp_ops__register(&self->ops));
	ASSERT_EQ(0, ksym_rings__drain(&self->rings));
	for (i = 0; i < self->rings.nr_recs; i++) {
		rec = &self->rings.recs[i];
		if (rec->type == PERF_RECORD_SAMPLE)
			samples++;
		else if (ksym_rec__is(rec, false) &&
			 !strncmp(rec->name, "bpf__" OPS, strlen("bpf__" OPS)))
			*(samples ? &after : &before) += 1;
	}
	EXPECT_EQ(1, samples);
	EXPECT_EQ(NR_MEMBERS, before);
	EXPECT_EQ(0, after);
	EXPECT_EQ(0, self->rings.lost);
}

/*
 * The second congestion control of a name is refused after its text was
 * registered: the text is unregistered again.
 */
TEST_F_TIMEOUT(struct_ops_reg, failure_leaves_nothing, TEST_S)
{
	const struct ksym_rec *rec;
	int balance = 0;
	const char *bad;
	size_t i, first;

	ASSERT_EQ(0, tcp_ops__register(&self->ops));
	ASSERT_EQ(0, tcp_ops__create(&self->twin, 0));
	ASSERT_EQ(0, ksym_rings__drain(&self->rings));
	first = self->rings.nr_recs;
	ASSERT_EQ(-EEXIST, tcp_ops__register(&self->twin));
	ASSERT_EQ(0, ksym_rings__drain(&self->rings));

	for (i = first; i < self->rings.nr_recs; i++) {
		rec = &self->rings.recs[i];
		if (rec->type == PERF_RECORD_KSYMBOL &&
		    !strncmp(rec->name, "bpf__" OPS, strlen("bpf__" OPS)))
			balance += ksym_rec__is(rec, false) ? 1 : -1;
	}
	EXPECT_EQ(0, balance);
	bad = records_wrong(&self->rings);
	EXPECT_EQ(NULL, bad) TH_LOG("%s", bad);
	EXPECT_EQ(0, self->rings.lost);
}

/* The owner is the kernel's to set: a value that has one is refused. */
TEST_F_TIMEOUT(struct_ops_reg, owner_is_refused, TEST_S)
{
	*self->ops.owner = 1;
	EXPECT_EQ(-EINVAL, tcp_ops__register(&self->ops));
	*self->ops.owner = 0;
	EXPECT_EQ(0, tcp_ops__register(&self->ops));
}

TEST_HARNESS_MAIN
