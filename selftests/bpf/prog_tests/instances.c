// SPDX-License-Identifier: GPL-2.0
/*
 * bpf_program__instantiate(): instances of one program differ in what their prologues
 * pass to it. Attach them in all ways, and compare what they count, how they are called
 * and what is refused.
 */

#include <dirent.h>
#include <sys/resource.h>
#include <bpf/btf.h>
#include <test_progs.h>
#include "../../../include/linux/filter.h"
#include "instances.skel.h"
#include "instances_own.skel.h"
#include "instances_refused.skel.h"
#include "jump_table.skel.h"
#include "module_kfunc.skel.h"

#define NR 3
#define FACTOR 10
#define MAX_PROLOGUE 16

/* What the prologue of an instance passes, and the cookie that it is attached with. */
static __u64 value_of(__u32 idx)
{
	return 5 + 7 * idx;
}

static __u64 cookie_of(__u32 idx)
{
	return 100 + idx;
}

/* Number of instructions of its prologue: the instances differ in that, too. */
static __u32 prologue_cnt(__u32 idx)
{
	return 2 + idx % (MAX_PROLOGUE - 2);
}

/* A bpf_instance_prep_fn. @ctx is a buffer with room for MAX_PROLOGUE more instructions. */
static int pass_values(const struct bpf_program *prog, __u32 idx, const struct bpf_insn *insns,
		       size_t insn_cnt, struct bpf_instance_code *code, void *ctx)
{
	struct bpf_insn *buf = ctx;
	__u32 i, cnt = prologue_cnt(idx);

	for (i = 0; i < cnt - 2; i++)
		buf[i] = BPF_MOV64_IMM(BPF_REG_0, i);
	buf[i++] = BPF_MOV64_IMM(BPF_REG_2, idx);
	buf[i++] = BPF_MOV64_IMM(BPF_REG_3, value_of(idx));
	memcpy(buf + cnt, insns, insn_cnt * sizeof(*insns));
	code->insns = buf;
	code->insn_cnt = cnt + insn_cnt;
	code->prologue_cnt = cnt;
	return 0;
}

static struct bpf_insn insn_buf[4096];

static struct bpf_instances *instantiate(struct bpf_program *prog, __u32 cnt,
					 bpf_instance_prep_fn prep)
{
	LIBBPF_OPTS(bpf_instances_opts, opts,
		.prep = prep,
		.ctx = insn_buf,
	);

	return bpf_program__instantiate(prog, cnt, &opts);
}

static struct instances *open_and_prepare(void)
{
	struct instances *skel = instances__open();

	if (!ASSERT_OK_PTR(skel, "open"))
		return NULL;
	skel->rodata->factor = FACTOR;
	skel->bss->pid = getpid();
	if (!ASSERT_OK(bpf_object__prepare(skel->obj), "prepare")) {
		instances__destroy(skel);
		return NULL;
	}
	return skel;
}

/* Without prologues, none of the programs is complete. */
static int load_no_others(struct instances *skel)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, skel->obj)
		bpf_program__set_autoload(prog, false);
	return bpf_object__load(skel->obj);
}

static void check_results(struct instances *skel, __u32 cnt, bool has_cookies)
{
	int fd = bpf_map__fd(skel->maps.results);
	struct { __u64 hits, sum, cookie; } result;
	__u32 i;

	for (i = 0; i < cnt; i++) {
		if (!ASSERT_OK(bpf_map_lookup_elem(fd, &i, &result), "result") ||
		    !ASSERT_GT(result.hits, 0, "hits"))
			return;
		ASSERT_EQ(result.sum, result.hits * 3 * FACTOR * value_of(i), "sum");
		if (has_cookies)
			ASSERT_EQ(result.cookie, cookie_of(i), "cookie");
	}
}

static void check_func(const struct bpf_prog_info *info, const struct bpf_func_info *funcs,
		       __u32 idx, const char *expected)
{
	const struct btf_type *t;
	struct btf *btf;

	btf = btf__load_from_kernel_by_id(info->btf_id);
	if (!ASSERT_OK_PTR(btf, "btf"))
		return;
	t = btf__type_by_id(btf, funcs[0].type_id);
	ASSERT_STREQ(btf__name_by_offset(btf, t->name_off), expected, "name of function");
	/* the subprogram and the callback have moved */
	ASSERT_EQ(funcs[0].insn_off, 0, "function's offset");
	ASSERT_GT(funcs[1].insn_off, prologue_cnt(idx), "subprogram's offset");
	btf__free(btf);
}

static void check_line(const struct bpf_prog_info *info, const struct bpf_line_info *lines,
		       __u32 idx, const char *base_name)
{
	char expected[64], line[64];
	struct btf *btf;

	btf = btf__load_from_kernel_by_id(info->btf_id);
	if (!ASSERT_OK_PTR(btf, "btf"))
		return;
	snprintf(expected, sizeof(expected), "[prologue of %s: %u instructions]", base_name,
		 prologue_cnt(idx));
	snprintf(line, sizeof(line), "%s", btf__str_by_offset(btf, lines[0].line_off));
	ASSERT_STREQ(line, expected, "line of prologue");
	ASSERT_EQ(lines[0].insn_off, 0, "prologue's offset");
	ASSERT_EQ(lines[1].insn_off, prologue_cnt(idx), "program's first line");
	btf__free(btf);
}

static bool has_symbol(const __u8 *tag, const char *name)
{
	char sym[BPF_TAG_SIZE * 2 + 256] = "bpf_prog_";
	unsigned long long addr;
	int i, len = strlen(sym);

	for (i = 0; i < BPF_TAG_SIZE; i++)
		len += sprintf(sym + len, "%02x", tag[i]);
	sprintf(sym + len, "_%s", name);
	return !kallsyms_find(sym, &addr);
}

/* Instances have tags, names and symbols of their own, and say what their prologue is. */
static void check_infos(struct bpf_instances *set, const char *base_name)
{
	__u8 tags[NR][BPF_TAG_SIZE];
	__u32 i, j;

	for (i = 0; i < NR; i++) {
		struct bpf_program *prog = bpf_instances__program(set, i);
		struct bpf_line_info lines[2] = {};
		struct bpf_func_info funcs[2] = {};
		struct bpf_prog_info info = {
			.func_info = ptr_to_u64(funcs),
			.func_info_rec_size = sizeof(funcs[0]),
			.nr_func_info = 2,
			.line_info = ptr_to_u64(lines),
			.line_info_rec_size = sizeof(lines[0]),
			.nr_line_info = 2,
		};
		__u32 len = sizeof(info);
		char name[64], *end;

		if (!ASSERT_OK_PTR(prog, "instance"))
			return;
		snprintf(name, sizeof(name), "%s_%u", base_name, i);
		ASSERT_STREQ(bpf_program__name(prog), name, "name");
		if (!ASSERT_OK(bpf_prog_get_info_by_fd(bpf_program__fd(prog), &info, &len), "info"))
			return;
		end = strrchr(info.name, '_');
		if (ASSERT_OK_PTR(end, "number in the kernel's name"))
			ASSERT_STREQ(end + 1, name + strlen(base_name) + 1, "number");
		check_func(&info, funcs, i, name);
		check_line(&info, lines, i, base_name);
		ASSERT_TRUE(has_symbol(info.tag, name), "symbol");
		memcpy(tags[i], info.tag, sizeof(info.tag));
		for (j = 0; j < i; j++)
			ASSERT_NEQ(memcmp(tags[i], tags[j], sizeof(tags[i])), 0, "tags");
	}
}

typedef struct bpf_link *(*attach_fn)(const struct bpf_program *prog, __u32 idx);

static struct bpf_link *attach_kprobe(const struct bpf_program *prog, __u32 idx)
{
	LIBBPF_OPTS(bpf_kprobe_opts, opts, .bpf_cookie = cookie_of(idx));

	return bpf_program__attach_kprobe_opts(prog, SYS_NANOSLEEP_KPROBE_NAME, &opts);
}

static struct bpf_link *attach_kprobe_multi(const struct bpf_program *prog, __u32 idx)
{
	const char *sym = SYS_NANOSLEEP_KPROBE_NAME;
	__u64 cookie = cookie_of(idx);
	LIBBPF_OPTS(bpf_kprobe_multi_opts, opts,
		.syms = &sym,
		.cookies = &cookie,
		.cnt = 1,
	);

	return bpf_program__attach_kprobe_multi_opts(prog, NULL, &opts);
}

static noinline void probed(void)
{
	asm volatile ("");
}

static struct bpf_link *attach_uprobe(const struct bpf_program *prog, __u32 idx)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = cookie_of(idx));

	return bpf_program__attach_uprobe_opts(prog, 0, "/proc/self/exe",
					       get_uprobe_offset(&probed), &opts);
}

static struct bpf_link *attach_perf_event(const struct bpf_program *prog, __u32 idx)
{
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = cookie_of(idx));
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(attr),
		.sample_period = 100000,
	};
	struct bpf_link *link;
	int fd;

	fd = syscall(__NR_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (!ASSERT_GE(fd, 0, "perf_event_open"))
		return NULL;
	link = bpf_program__attach_perf_event_opts(prog, fd, &opts);
	if (!link)
		close(fd);
	return link;
}

static struct bpf_link *attach_tracepoint(const struct bpf_program *prog, __u32 idx)
{
	LIBBPF_OPTS(bpf_tracepoint_opts, opts, .bpf_cookie = cookie_of(idx));

	return bpf_program__attach_tracepoint_opts(prog, "syscalls", "sys_enter_nanosleep", &opts);
}

static struct bpf_link *attach_fentry(const struct bpf_program *prog, __u32 idx)
{
	LIBBPF_OPTS(bpf_trace_opts, opts, .cookie = cookie_of(idx));

	return bpf_program__attach_trace_opts(prog, &opts);
}

static void hit(struct bpf_instances *set)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	volatile __u64 i;

	syscall(__NR_nanosleep, &(struct timespec){}, NULL);
	probed();
	/* for cpu-clock, some milliseconds on a slow machine, too */
	for (i = 0; i < 50000000; i++)
		;
	/* calls all bpf_fentry_test*() */
	bpf_prog_test_run_opts(bpf_program__fd(bpf_instances__program(set, 0)), &opts);
}

/* @prog: a program of @skel. Attach three instances in the way of @attach. */
static void test_attach(struct instances *skel, struct bpf_program *prog,
			bpf_instance_prep_fn prep, attach_fn attach)
{
	struct bpf_link *links[NR] = {};
	struct bpf_instances *set;
	__u32 i;

	if (!skel)
		return;
	set = instantiate(prog, NR, prep);
	if (!ASSERT_OK_PTR(set, "instantiate") || !ASSERT_EQ(bpf_instances__cnt(set), NR, "cnt"))
		return;
	if (!ASSERT_OK(load_no_others(skel), "load"))
		return;
	check_infos(set, bpf_program__name(prog));

	for (i = 0; i < NR; i++) {
		links[i] = attach(bpf_instances__program(set, i), i);
		if (!ASSERT_OK_PTR(links[i], "attach"))
			goto out;
	}
	hit(set);
	check_results(skel, NR, true);
out:
	for (i = 0; i < NR; i++)
		bpf_link__destroy(links[i]);
}

/* fentry's target is part of what is loaded, so the callback tells it. */
static int pass_values_fentry(const struct bpf_program *prog, __u32 idx,
			      const struct bpf_insn *insns, size_t insn_cnt,
			      struct bpf_instance_code *code, void *ctx)
{
	static char target[32];

	snprintf(target, sizeof(target), "bpf_fentry_test%u", idx + 1);
	code->attach_target = target;
	return pass_values(prog, idx, insns, insn_cnt, code, ctx);
}

/* Run instances of a program that gets packets, and the program itself. */
static void test_run(struct bpf_object *obj, struct bpf_program *prog, int value)
{
	char packet[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts,
		.data_in = packet,
		.data_size_in = sizeof(packet),
	);
	struct bpf_instances *set;
	__u32 i;

	if (!ASSERT_OK(bpf_object__prepare(obj), "prepare"))
		return;
	set = instantiate(prog, NR, pass_values);
	if (!ASSERT_OK_PTR(set, "instantiate"))
		return;
	if (!ASSERT_OK(bpf_object__load(obj), "load"))
		return;
	for (i = 0; i < NR; i++) {
		ASSERT_OK(bpf_prog_test_run_opts(bpf_program__fd(bpf_instances__program(set, i)),
						 &opts), "run instance");
		ASSERT_EQ(opts.retval, value, "instance");
	}
	ASSERT_OK(bpf_prog_test_run_opts(bpf_program__fd(prog), &opts), "run program");
	ASSERT_EQ(opts.retval, value, "program");
}

/* A jump table has offsets of instructions, and serves one program. */
static __maybe_unused void test_jump_table(void)
{
	struct jump_table *skel = jump_table__open();

	if (ASSERT_OK_PTR(skel, "open"))
		test_run(skel->obj, skel->progs.jump_table, 7);
	jump_table__destroy(skel);
}

/* Objects of types of the program itself go into maps, which have the object's BTF. */
static void test_own_types(const char *name)
{
	struct instances_own *skel = instances_own__open();
	struct bpf_program *prog;

	if (!ASSERT_OK_PTR(skel, "open"))
		return;
	/* clang has no tags of types before version 15 */
	if (!strcmp(name, "own_kptr") &&
	    btf__find_by_name_kind(bpf_object__btf(skel->obj), "kptr", BTF_KIND_TYPE_TAG) < 0) {
		instances_own__destroy(skel);
		test__skip();
		return;
	}
	bpf_object__for_each_program(prog, skel->obj)
		bpf_program__set_autoload(prog, !strcmp(bpf_program__name(prog), name));
	test_run(skel->obj, bpf_object__find_program_by_name(skel->obj, name), 7);
	instances_own__destroy(skel);
}

static void test_module_kfunc(void)
{
	struct module_kfunc *skel;

	if (!env.has_testmod) {
		test__skip();
		return;
	}
	skel = module_kfunc__open();
	if (ASSERT_OK_PTR(skel, "open"))
		test_run(skel->obj, skel->progs.module_kfunc, 7);
	module_kfunc__destroy(skel);
}

/* What libbpf printed last, and all of it. */
static char printed[65536];

static int keep_print(enum libbpf_print_level level, const char *format, va_list args)
{
	size_t len = strlen(printed);

	if (level == LIBBPF_WARN)
		vsnprintf(printed + len, sizeof(printed) - len, format, args);
	return 0;
}

/* @set is NULL, with this errno, and what libbpf printed says why. */
static void refused(struct bpf_instances *set, int error, const char *why)
{
	int saved = errno;

	ASSERT_ERR_PTR(set, why);
	ASSERT_EQ(saved, error, why);
	ASSERT_HAS_SUBSTR(printed, why, "message");
	printed[0] = '\0';
}

static void test_order(void)
{
	struct instances *skel = instances__open();
	struct bpf_program *prog, *instance;
	struct bpf_instances *set;

	if (!ASSERT_OK_PTR(skel, "open"))
		return;
	prog = skel->progs.on_kprobe;
	refused(instantiate(prog, 1, pass_values), EINVAL, "is not prepared yet");
	bpf_program__set_autoload(skel->progs.on_uprobe, false);
	if (!ASSERT_OK(bpf_object__prepare(skel->obj), "prepare"))
		goto out;
	refused(instantiate(skel->progs.on_uprobe, 1, pass_values), EINVAL,
		"autoload was off in bpf_object__prepare()");
	refused(instantiate(prog, 0, pass_values), EINVAL, "number of them is 0");
	refused(instantiate(prog, UINT_MAX, pass_values), E2BIG, "4294967295 are more than");

	set = instantiate(prog, 1, pass_values);
	instance = bpf_instances__program(set, 0);
	if (!ASSERT_OK_PTR(instance, "instance"))
		goto out;
	ASSERT_TRUE(bpf_program__autoload(prog), "autoload");
	ASSERT_EQ(bpf_program__set_insns(instance, insn_buf, 1), -EBUSY, "set_insns");
	ASSERT_EQ(bpf_program__set_flags(instance, 0), -EBUSY, "set_flags");
	ASSERT_NULL(bpf_program__func_info(instance), "function information");
	ASSERT_EQ(bpf_program__line_info_cnt(instance), 0, "line information");
	refused(instantiate(instance, 1, pass_values), EINVAL, "no instances of an instance");
	ASSERT_EQ(bpf_program__clone(instance, NULL), -EOPNOTSUPP, "clone of an instance");
	ASSERT_NULL(bpf_object__next_program(skel->obj, instance), "next program");
	ASSERT_NULL(bpf_object__prev_program(skel->obj, instance), "previous program");
	ASSERT_NULL(bpf_instances__program(set, 1), "no such index");
	ASSERT_EQ(errno, EINVAL, "no such index");

	if (ASSERT_OK(load_no_others(skel), "load"))
		refused(instantiate(prog, 1, pass_values), EINVAL, "loaded, or failed to, already");
out:
	instances__destroy(skel);
}

/* A callback that does as *@ctx says with instance 1, and returns the others as they are. */
enum {
	SKIP, FAIL, NO_INSNS, TOO_FEW, TOO_MANY, ONLY_PROLOGUE, BAD_NAME, NO_PROGRAM, OWN_NAME,
	ALL_FAIL, CHANGE,
};

static int do_wrong(const struct bpf_program *prog, __u32 idx, const struct bpf_insn *insns,
		    size_t insn_cnt, struct bpf_instance_code *code, void *ctx)
{
	if (idx != 1 && *(int *)ctx != ALL_FAIL)
		return 0;
	code->insns = insns;
	code->insn_cnt = insn_cnt;
	switch (*(int *)ctx) {
	case SKIP:
		return 1;
	case FAIL:
		return -EXDEV;
	case NO_INSNS:
		code->insns = NULL;
		return 0;
	case TOO_FEW:
		code->insn_cnt--;
		return 0;
	case TOO_MANY:
		code->insn_cnt++;
		return 0;
	case ONLY_PROLOGUE:
		code->prologue_cnt = insn_cnt + 1;
		return 0;
	case BAD_NAME:
		code->name = "a b";
		return 0;
	case OWN_NAME:
		code->name = "own_name";
		return 0;
	case CHANGE:
		insn_buf[0] = BPF_MOV64_IMM(BPF_REG_0, 0);
		memcpy(insn_buf + 1, insns, insn_cnt * sizeof(*insns));
		bpf_program__set_insns((struct bpf_program *)prog, insn_buf, insn_cnt + 1);
		return 0;
	case NO_PROGRAM:
	case ALL_FAIL:
		/* no register but r1 and r10 is set at the start */
		insn_buf[0] = BPF_MOV64_REG(BPF_REG_0, BPF_REG_6);
		memcpy(insn_buf + 1, insns, insn_cnt * sizeof(*insns));
		code->insns = insn_buf;
		code->insn_cnt = insn_cnt + 1;
		code->prologue_cnt = 1;
		return 0;
	}
	return -EINVAL;
}

static int nr_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	while (dir && readdir(dir))
		nr++;
	if (dir)
		closedir(dir);
	return nr;
}

static void test_callback(void)
{
	static const struct {
		int what, error;
		const char *why;
	} wrong[] = {
		{ FAIL,		 EXDEV,	 "instance 1: the callback failed" },
		{ NO_INSNS,	 EINVAL, "no array of instructions" },
		{ TOO_FEW,	 EINVAL, "but the program has" },
		{ TOO_MANY,	 EINVAL, "but the program has" },
		{ ONLY_PROLOGUE, EINVAL, "but the program has" },
		{ BAD_NAME,	 EINVAL, "'a b' is no name" },
		{ NO_PROGRAM,	 EACCES, "R6 !read_ok" },
	};
	LIBBPF_OPTS(bpf_instances_opts, opts, .prep = do_wrong);
	struct instances *skel;
	struct bpf_instances *set;
	struct bpf_program *prog;
	int i, fds, what, before;

	before = nr_fds();
	skel = instances__open();
	if (!ASSERT_OK_PTR(skel, "open") || !ASSERT_OK(bpf_object__prepare(skel->obj), "prepare"))
		goto out;
	prog = skel->progs.plain;
	opts.ctx = &what;
	fds = nr_fds();
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		what = wrong[i].what;
		refused(bpf_program__instantiate(prog, 3, &opts), wrong[i].error, wrong[i].why);
		ASSERT_EQ(nr_fds(), fds, "open files");
		ASSERT_TRUE(bpf_program__autoload(prog), "autoload");
	}

	what = SKIP;
	set = bpf_program__instantiate(prog, 3, &opts);
	ASSERT_OK_PTR(bpf_instances__program(set, 0), "before the one that is skipped");
	ASSERT_NULL(bpf_instances__program(set, 1), "skipped");
	ASSERT_EQ(errno, ENOENT, "skipped");
	ASSERT_OK_PTR(bpf_instances__program(set, 2), "after the one that is skipped");
	bpf_instances__free(set);
	ASSERT_EQ(nr_fds(), fds, "open files");

	what = OWN_NAME;
	set = bpf_program__instantiate(prog, 3, &opts);
	ASSERT_STREQ(bpf_program__name(bpf_instances__program(set, 1)), "own_name", "name");

	/* several sets at a time */
	what = NO_PROGRAM;
	opts.keep_going = true;
	set = bpf_program__instantiate(prog, 3, &opts);
	ASSERT_OK_PTR(bpf_instances__program(set, 0), "before the one that fails");
	ASSERT_NULL(bpf_instances__program(set, 1), "failed");
	ASSERT_EQ(errno, EACCES, "failed");
	ASSERT_OK_PTR(bpf_instances__program(set, 2), "after the one that fails");
	what = ALL_FAIL;
	refused(bpf_program__instantiate(prog, 3, &opts), EACCES, "R6 !read_ok");
	what = CHANGE;
	refused(bpf_program__instantiate(prog, 3, &opts), EINVAL,
		"callback has changed the program");

	/* one that is unloaded has no types, and its instances have numbers that go on */
	bpf_program__unload(prog);
	set = bpf_program__instantiate(prog, 2, NULL);
	ASSERT_STREQ(bpf_program__name(bpf_instances__program(set, 1)), "plain_7", "name");
	ASSERT_GE(nr_fds() - fds, 7, "files of the instances");
out:
	instances__destroy(skel);
	ASSERT_EQ(nr_fds(), before, "open files after bpf_object__close()");
}

/* If the object's load fails, instances are gone, too. */
static void test_load_fails(void)
{
	struct instances *skel = instances__open();
	struct bpf_instances *set;
	int fds;

	if (!ASSERT_OK_PTR(skel, "open"))
		return;
	bpf_program__set_autoload(skel->progs.bad_core, true);
	if (!ASSERT_OK(bpf_object__prepare(skel->obj), "prepare"))
		goto out;
	fds = nr_fds();
	set = bpf_program__instantiate(skel->progs.plain, 3, NULL);
	ASSERT_EQ(nr_fds(), fds + 3, "open files");
	ASSERT_ERR(bpf_object__load(skel->obj), "load");
	ASSERT_LT(nr_fds(), fds + 1, "open files after the load");
	ASSERT_LT(bpf_program__fd(bpf_instances__program(set, 0)), 0, "fd");
	bpf_instances__free(set);
out:
	instances__destroy(skel);
}

static void test_refused(void)
{
	struct instances_refused *skel = instances_refused__open();

	if (!ASSERT_OK_PTR(skel, "open"))
		return;
	ASSERT_OK(bpf_map__set_exclusive_program(skel->maps.own, skel->progs.exclusive),
		  "set_exclusive_program");
	if (!ASSERT_OK(bpf_object__prepare(skel->obj), "prepare"))
		goto out;
	refused(instantiate(skel->progs.exclusive, 1, NULL), EOPNOTSUPP,
		"map 'own' is exclusive to the program");
	refused(instantiate(skel->progs.called, 1, NULL), EOPNOTSUPP, "slot 1 of map 'slots'");
	refused(instantiate(skel->progs.member, 1, NULL), EOPNOTSUPP, "struct_ops map");
	ASSERT_OK_PTR(instantiate(skel->progs.caller, 1, NULL), "a program that has the map");
out:
	instances_refused__destroy(skel);
}

/* The log names the type that CO-RE did not find, though its instruction has moved. */
static void test_core_log(void)
{
	struct instances *skel = instances__open();

	if (!ASSERT_OK_PTR(skel, "open"))
		return;
	bpf_program__set_autoload(skel->progs.bad_core, true);
	if (!ASSERT_OK(bpf_object__prepare(skel->obj), "prepare"))
		goto out;
	refused(instantiate(skel->progs.bad_core, 1, pass_values), EINVAL,
		"failed to resolve CO-RE relocation <byte_off> [");
out:
	instances__destroy(skel);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* A thousand instances, and one attached at a thousand functions: quick to load and stop. */
static void test_many(void)
{
	const __u32 nr = 1000;
	struct rlimit old, more = { .rlim_cur = 4 * nr, .rlim_max = 4 * nr };
	LIBBPF_OPTS(bpf_kprobe_multi_opts, opts);
	struct bpf_instances *set = NULL;
	struct instances *skel = NULL;
	struct bpf_link *link;
	struct ksyms *ksyms = NULL;
	__u64 *cookies;
	double start;
	int fds;
	__u32 i;

	getrlimit(RLIMIT_NOFILE, &old);
	if (!ASSERT_OK(setrlimit(RLIMIT_NOFILE, &more), "setrlimit"))
		return;
	skel = open_and_prepare();
	if (!skel)
		goto out;
	fds = nr_fds();
	start = seconds();
	set = instantiate(skel->progs.on_kprobe_multi, nr, pass_values);
	if (!ASSERT_OK_PTR(set, "instantiate"))
		goto out;
	printf("# %u instances in %.3f s\n", nr, seconds() - start);
	ASSERT_EQ(nr_fds(), fds + nr, "a file each");
	if (!ASSERT_OK(load_no_others(skel), "load"))
		goto out;

	if (!ASSERT_OK(bpf_get_ksyms(&ksyms, true), "ksyms") ||
	    !ASSERT_GE(ksyms->filtered_cnt, nr, "functions"))
		goto out;
	cookies = calloc(nr, sizeof(*cookies));
	for (i = 0; i < nr; i++)
		cookies[i] = cookie_of(i);
	opts.syms = (const char **)ksyms->filtered_syms + (ksyms->filtered_cnt - nr) / 2;
	opts.cookies = cookies;
	opts.cnt = nr;
	start = seconds();
	link = bpf_program__attach_kprobe_multi_opts(bpf_instances__program(set, 0), NULL, &opts);
	printf("# attached at %u functions in %.3f s\n", nr, seconds() - start);
	if (ASSERT_OK_PTR(link, "attach")) {
		start = seconds();
		bpf_link__destroy(link);
		printf("# detached in %.3f s\n", seconds() - start);
		ASSERT_LT(seconds() - start, 1.0, "seconds to detach");
	}
	free(cookies);
	start = seconds();
	bpf_instances__free(set);
	printf("# freed in %.3f s\n", seconds() - start);
	ASSERT_LT(nr_fds(), fds + 1, "files");
out:
	free_kallsyms_local(ksyms);
	instances__destroy(skel);
	setrlimit(RLIMIT_NOFILE, &old);
}

static void test_attach_all(void)
{
	static const struct {
		const char *name;
		attach_fn attach;
	} ways[] = {
		{ "kprobe",	  attach_kprobe },
		{ "kprobe_multi", attach_kprobe_multi },
		{ "uprobe",	  attach_uprobe },
		{ "perf_event",	  attach_perf_event },
		{ "tracepoint",	  attach_tracepoint },
		{ "fentry",	  attach_fentry },
	};
	struct instances *skel;
	char name[32];
	int i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		if (!test__start_subtest(ways[i].name))
			continue;
		skel = open_and_prepare();
		snprintf(name, sizeof(name), "on_%s", ways[i].name);
		if (skel)
			test_attach(skel, bpf_object__find_program_by_name(skel->obj, name),
				    ways[i].attach == attach_fentry ? pass_values_fentry :
				    pass_values, ways[i].attach);
		instances__destroy(skel);
	}
}

/* not parallel: counts the files of the process and raises its limit */
void serial_test_instances(void)
{
	static const char * const own_types[] = { "own_kptr", "own_list", "own_tree" };
	libbpf_print_fn_t old_print;

	test_attach_all();
#if defined(__x86_64__) || defined(__aarch64__) || defined(__powerpc64__)
	/* where JITs know gotox */
	if (test__start_subtest("jump_table"))
		test_jump_table();
#endif
	for (size_t i = 0; i < ARRAY_SIZE(own_types); i++) {
		if (test__start_subtest(own_types[i]))
			test_own_types(own_types[i]);
	}
	if (test__start_subtest("module_kfunc"))
		test_module_kfunc();
	if (test__start_subtest("many"))
		test_many();

	old_print = libbpf_set_print(keep_print);
	if (test__start_subtest("order"))
		test_order();
	if (test__start_subtest("callback"))
		test_callback();
	if (test__start_subtest("refused"))
		test_refused();
	if (test__start_subtest("load_fails"))
		test_load_fails();
	if (test__start_subtest("core_log"))
		test_core_log();
	libbpf_set_print(old_print);
}
