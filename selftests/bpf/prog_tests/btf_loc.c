// SPDX-License-Identifier: GPL-2.0
/*
 * The kinds for locations: what libbpf writes, reads, copies and swaps, what bpftool prints of
 * it, and what the kernel takes and refuses.
 */
#include <test_progs.h>
#include <bpftool_helpers.h>
#include <bpf/btf.h>
#include "btf_helpers.h"

#define REG	BTF_LOC_PARAM_REG
#define CONST	BTF_LOC_PARAM_CONST
#define ADDR	BTF_LOC_PARAM_ADDR
#define DEREF	BTF_LOC_PARAM_DEREF
#define OFFSET	BTF_LOC_PARAM_OFFSET
#define SIGNED	BTF_LOC_PARAM_SIGNED

struct param {
	__u32 size;
	__u32 flags;
	int nr;
	__u32 values[4];
	const char *printed;	/* by bpftool */
};

static const struct param params[] = {
	{ 4, REG, 1, { 5 }, "reg5" },
	{ 16, REG, 2, { 5, 4 }, "reg5, reg4" },
	{ 8, REG | OFFSET, 2, { 7, 0x10 }, "reg7 + 0x10" },
	{ 8, REG | DEREF, 1, { 2 }, "*(reg2)" },
	{ 8, REG | DEREF | OFFSET, 2, { BTF_LOC_PARAM_FBREG, -0x20 }, "*(fbreg - 0x20)" },
	{ 8, REG | OFFSET, 3, { 3, 0, 1 }, "reg3 + 0x100000000" },
	{ 4, CONST, 1, { 0xffffffff }, "0xffffffff" },
	{ 4, CONST | SIGNED, 1, { 0xfffffffe }, "-0x2" },
	{ 8, CONST, 2, { 0xfeedface, 0xdeadbeef }, "0xdeadbeeffeedface" },
	{ 8, CONST | ADDR, 2, { 0x9abcdef0, 0x12345678 }, "0x123456789abcdef0 (addr)" },
};

#define NR	((int)ARRAY_SIZE(params))
#define FUNC	3		/* ids: int, its prototype, foo(), then the parameters */
#define FIRST	4
#define PROTO	(FIRST + NR)

static int add_param(struct btf *btf, const struct param *p)
{
	int id = btf__add_loc_param(btf, p->size, p->flags), i, err = 0;

	for (i = 0; id > 0 && !err && i < p->nr; i++)
		err = btf__add_loc_param_value(btf, p->values[i]);
	return err ?: id;
}

/* int foo(int arg0, ...), of which each argument is in another kind of place */
static struct btf *func_btf(void)
{
	struct btf *btf = btf__new_empty();
	char name[16];
	int i;

	if (!ASSERT_OK_PTR(btf, "new_empty"))
		return NULL;
	btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	btf__add_func_proto(btf, 1);
	for (i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), "arg%d", i);
		btf__add_func_param(btf, name, 1);
	}
	ASSERT_EQ(btf__add_func(btf, "foo", BTF_FUNC_STATIC, 2), FUNC, "func");
	return btf;
}

static struct btf *loc_btf(void)
{
	struct btf *btf = func_btf();
	int i;

	if (!btf)
		return NULL;
	for (i = 0; i < NR; i++)
		ASSERT_EQ(add_param(btf, &params[i]), FIRST + i, "loc_param");
	ASSERT_EQ(btf__add_loc_proto(btf), PROTO, "loc_proto");
	for (i = 0; i < NR; i++)
		ASSERT_OK(btf__add_loc_proto_param(btf, i == 1 ? 0 : FIRST + i),
			  "loc_proto_param");
	ASSERT_EQ(btf__add_locsec(btf, "inline.text"), PROTO + 1, "locsec");
	ASSERT_OK(btf__add_locsec_loc(btf, FUNC, PROTO, 64), "locsec_loc");
	ASSERT_OK(btf__add_locsec_loc(btf, FUNC, 0, 128), "locsec_loc");
	return btf;
}

static void check_locs(struct btf *btf, int shift)
{
	const struct btf_type *t;
	const struct btf_loc *loc;
	int i, j;

	for (i = 0; i < NR; i++) {
		t = btf__type_by_id(btf, FIRST + shift + i);
		if (!ASSERT_TRUE(t && btf_is_loc_param(t), "loc_param"))
			return;
		ASSERT_EQ(t->size, params[i].size, "size");
		ASSERT_EQ(btf_loc_param(t)->flags, params[i].flags, "flags");
		ASSERT_EQ(btf_vlen(t), params[i].nr, "vlen");
		for (j = 0; j < params[i].nr; j++)
			ASSERT_EQ(btf_loc_param(t)->values[j], params[i].values[j], "value");
	}
	t = btf__type_by_id(btf, PROTO + shift);
	if (!ASSERT_TRUE(t && btf_is_loc_proto(t), "loc_proto"))
		return;
	for (i = 0; i < NR; i++)
		ASSERT_EQ(btf_loc_proto_params(t)[i], i == 1 ? 0 : FIRST + shift + i, "param");
	t = btf__type_by_id(btf, PROTO + shift + 1);
	if (!ASSERT_TRUE(t && btf_is_locsec(t), "locsec"))
		return;
	ASSERT_STREQ(btf__name_by_offset(btf, t->name_off), "inline.text", "section");
	loc = btf_locsec_locs(t);
	ASSERT_EQ(btf_vlen(t), 2, "vlen");
	ASSERT_EQ(loc[0].func, FUNC + shift, "func");
	ASSERT_EQ(loc[0].loc_proto, PROTO + shift, "loc_proto");
	ASSERT_EQ(loc[0].offset, 64, "offset");
	ASSERT_EQ(loc[1].loc_proto, 0, "no loc_proto");
	ASSERT_EQ(loc[1].offset, 128, "offset");
}

static void test_read(enum btf_endianness endian)
{
	struct btf *btf = loc_btf(), *copy;
	const void *raw;
	__u32 size;

	if (!btf)
		return;
	ASSERT_OK(btf__set_endianness(btf, endian), "set_endianness");
	raw = btf__raw_data(btf, &size);
	if (ASSERT_OK_PTR(raw, "raw_data")) {
		copy = btf__new(raw, size);
		if (ASSERT_OK_PTR(copy, "new")) {
			ASSERT_EQ(btf__endianness(copy), endian, "endianness");
			check_locs(copy, 0);
		}
		btf__free(copy);
	}
	btf__free(btf);
}

/* What is appended or deduplicated has other ids, and refers to these. */
static void test_ids(void)
{
	struct btf *btf = btf__new_empty(), *locs = loc_btf();

	if (!ASSERT_OK_PTR(btf, "new_empty") || !locs)
		goto out;
	btf__add_int(btf, "long", 8, BTF_INT_SIGNED);
	btf__add_int(btf, "long", 8, BTF_INT_SIGNED);
	btf__add_ptr(btf, 2);
	ASSERT_EQ(btf__add_btf(btf, locs), 4, "add_btf");
	check_locs(btf, 3);
	ASSERT_OK(btf__dedup(btf, NULL), "dedup");
	check_locs(btf, 2);
out:
	btf__free(locs);
	btf__free(btf);
}

/* Split BTF with places of functions that are in the base, and what is left of both */
static void test_distill(void)
{
	struct btf *base = loc_btf(), *split, *new_base = NULL, *new_split = NULL;
	const struct btf_type *t;
	int id;

	split = base ? btf__new_empty_split(base) : NULL;
	if (!ASSERT_OK_PTR(split, "new_empty_split"))
		goto out;
	btf__add_locsec(split, "inline.text");
	btf__add_locsec_loc(split, FUNC, PROTO, 256);
	if (!ASSERT_OK(btf__distill_base(split, &new_base, &new_split), "distill_base"))
		goto out;
	id = btf__find_by_name_kind(new_split, "inline.text", BTF_KIND_LOCSEC);
	if (!ASSERT_GT(id, 0, "locsec"))
		goto out;
	t = btf__type_by_id(new_split, btf_locsec_locs(btf__type_by_id(new_split, id))->func);
	ASSERT_TRUE(btf_is_func(t), "func");
	ASSERT_STREQ(btf__name_by_offset(new_split, t->name_off), "foo", "name");
	t = btf__type_by_id(new_split, btf_locsec_locs(btf__type_by_id(new_split, id))->loc_proto);
	ASSERT_TRUE(btf_is_loc_proto(t), "loc_proto");
	ASSERT_EQ(btf_vlen(t), NR, "vlen");
	t = btf__type_by_id(new_split, btf_loc_proto_params(t)[0]);
	ASSERT_TRUE(btf_is_loc_param(t), "loc_param");
out:
	btf__free(new_split);
	btf__free(new_base);
	btf__free(split);
	btf__free(base);
}

static void test_errors(void)
{
	struct btf *btf = func_btf();

	if (!btf)
		return;
	ASSERT_EQ(btf__add_loc_param_value(btf, 1), -EINVAL, "value of no LOC_PARAM");
	ASSERT_EQ(btf__add_loc_proto_param(btf, 1), -EINVAL, "param of no LOC_PROTO");
	ASSERT_EQ(btf__add_locsec_loc(btf, FUNC, 0, 0), -EINVAL, "loc of no LOCSEC");
	ASSERT_EQ(btf__add_locsec(btf, ""), -EINVAL, "no name");
	ASSERT_EQ(btf__add_locsec(btf, NULL), -EINVAL, "no name");
	ASSERT_GT(btf__add_locsec(btf, "inline.text"), 0, "locsec");
	ASSERT_EQ(btf__add_locsec_loc(btf, -1, 0, 0), -EINVAL, "id");
	btf__free(btf);
}

static void test_bpftool(void)
{
	char path[] = "/tmp/btf_loc.XXXXXX", args[MAX_BPFTOOL_CMD_LEN], want[256];
	struct btf *btf = loc_btf();
	static char out[16384];
	const void *raw;
	__u32 size;
	int fd, i;

	fd = mkstemp(path);
	if (!ASSERT_OK_FD(fd, "mkstemp") || !btf)
		goto out;
	raw = btf__raw_data(btf, &size);
	if (!ASSERT_OK_PTR(raw, "raw_data") || !ASSERT_EQ(write(fd, raw, size), size, "write"))
		goto out;
	snprintf(args, sizeof(args), "btf dump file %s", path);
	if (!ASSERT_OK(get_bpftool_command_output(args, out, sizeof(out)), "bpftool"))
		goto out;
	for (i = 0; i < NR; i++) {
		snprintf(want, sizeof(want), "[%d] LOC_PARAM '(anon)' %s=%u %s=%#x %s=%d %s='%s'\n",
			 FIRST + i, "size", params[i].size, "flags", params[i].flags,
			 "vlen", params[i].nr, "values", params[i].printed);
		ASSERT_HAS_SUBSTR(out, want, "loc_param");
	}
	snprintf(want, sizeof(want), "[%d] LOC_PROTO '(anon)' vlen=%d\n\t%s=%d %s\n\t%s=%d %s\n",
		 PROTO, NR, "type_id", FIRST, "value='reg5'", "type_id", 0, "value='(none)'");
	ASSERT_HAS_SUBSTR(out, want, "loc_proto");
	snprintf(want, sizeof(want), "[%d] LOCSEC 'inline.text' vlen=2\n\t%s %s=%d %s=%d %s\n",
		 PROTO + 1, "name='foo'", "func_type_id", FUNC, "loc_proto_type_id", PROTO,
		 "offset=64");
	ASSERT_HAS_SUBSTR(out, want, "locsec");
	snprintf(args, sizeof(args), "btf dump -j file %s", path);
	ASSERT_OK(get_bpftool_command_output(args, out, sizeof(out)), "json");
	ASSERT_HAS_SUBSTR(out, "\"value\":\"*(fbreg - 0x20)\"", "json");
	snprintf(args, sizeof(args), "btf dump file %s format c", path);
	ASSERT_OK(get_bpftool_command_output(args, out, sizeof(out)), "C");
out:
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	btf__free(btf);
}

static int load(struct btf *btf)
{
	int fd, err;
	const void *raw;
	__u32 size;

	raw = btf__raw_data(btf, &size);
	if (!raw)
		return -ENOMEM;
	fd = bpf_btf_load(raw, size, NULL);
	err = fd < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return err;
}

/* Add a type that refers to another one. */
static void refer(struct btf *btf, int how, int id)
{
	switch (how) {
	case 0:
		btf__add_ptr(btf, id);
		break;
	case 1:
		btf__add_const(btf, id);
		break;
	case 2:
		btf__add_typedef(btf, "name", id);
		break;
	case 3:
		btf__add_array(btf, 1, id, 2);
		break;
	case 4:
		btf__add_struct(btf, "name", 8);
		btf__add_field(btf, "member", id, 0, 0);
		break;
	case 5:
		btf__add_func_proto(btf, 0);
		btf__add_func_param(btf, "param", id);
		break;
	}
}

static void test_kernel(void)
{
	static const struct param wrong[] = {
		{ 4, 0, 1, { 1 } },
		{ 4, REG, 0 },
		{ 4, REG, 3, { 1, 2, 3 } },
		{ 4, REG | CONST, 1, { 1 } },
		{ 4, ADDR, 1, { 1 } },
		{ 4, REG | ADDR, 1, { 1 } },
		{ 4, CONST | DEREF, 1, { 1 } },
		{ 4, REG | DEREF, 2, { 1, 2 } },
		{ 4, REG | OFFSET, 1, { 1 } },
		{ 4, REG | DEREF | OFFSET, 4, { 1, 2, 3, 4 } },
		{ 4, REG | 0x40, 1, { 1 } },
	};
	struct btf *btf = loc_btf();
	struct btf_type *t;
	int i, j, id;

	if (!btf)
		return;
	ASSERT_OK(load(btf), "right");
	btf__free(btf);

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		btf = func_btf();
		if (!btf)
			return;
		ASSERT_GT(add_param(btf, &wrong[i]), 0, "loc_param");
		if (!ASSERT_EQ(load(btf), -EINVAL, "refused"))
			printf("wrong[%d]\n", i);
		btf__free(btf);
	}

	/* A place of what is no function, or of no locations; a parameter that is no location */
	for (i = 0; i < 4; i++) {
		btf = loc_btf();
		if (!btf)
			return;
		if (i < 2) {
			btf__add_locsec(btf, "inline.init.text");
			btf__add_locsec_loc(btf, i == 0 ? 1 : FUNC, i == 0 ? PROTO : FIRST, 0);
		} else {
			id = btf__add_loc_proto(btf);
			btf__add_loc_proto_param(btf, i == 2 ? PROTO : id + 1);
		}
		ASSERT_EQ(load(btf), -EINVAL, "wrong id");
		btf__free(btf);
	}

	/* Nothing is of such a type. */
	for (i = 0; i < 3; i++)
		for (j = 0; j < 6; j++) {
			btf = loc_btf();
			if (!btf)
				return;
			refer(btf, j, i == 0 ? FIRST : PROTO + i - 1);
			if (!ASSERT_EQ(load(btf), -EINVAL, "type that refers to a location"))
				printf("type %d\n", j);
			btf__free(btf);
		}

	/* A name, a flag, a size where there may be none */
	for (i = 0; i < 5; i++) {
		btf = loc_btf();
		if (!btf)
			return;
		t = (struct btf_type *)btf__type_by_id(btf, i < 2 ? FIRST : PROTO + (i == 4));
		if (i == 0 || i == 2)
			t->name_off = 1;
		else if (i == 1)
			t->info |= 1U << 31;
		else
			t->size = 8;
		ASSERT_EQ(load(btf), -EINVAL, "name, flag or size");
		btf__free(btf);
	}
}

void test_btf_loc(void)
{
	if (test__start_subtest("read"))
		test_read(BTF_LITTLE_ENDIAN);
	if (test__start_subtest("read_swapped"))
		test_read(BTF_BIG_ENDIAN);
	if (test__start_subtest("ids"))
		test_ids();
	if (test__start_subtest("distill"))
		test_distill();
	if (test__start_subtest("errors"))
		test_errors();
	if (test__start_subtest("bpftool"))
		test_bpftool();
	if (test__start_subtest("kernel"))
		test_kernel();
}
