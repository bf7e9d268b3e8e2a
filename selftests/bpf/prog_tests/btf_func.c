// SPDX-License-Identifier: GPL-2.0
/* Attach tracing programs to functions by address, which .BTF.func describes. */
#include <test_progs.h>
#include <bpf/btf.h>
#include <linux/filter.h>
#include "btf_func.skel.h"

#define FUNCS "/sys/kernel/btf/vmlinux.func"
#define PERF_TYPE "/sys/bus/event_source/devices/software/type"
#define NET_TYPE "/sys/class/net/lo/type"
#define ANY (~0ULL)	/* hits, at least one */
#define ANY_OR_NONE (~1ULL)

static int read_file(const char *path)
{
	char text[16];
	int fd = open(path, O_RDONLY), len;

	if (!ASSERT_GE(fd, 0, path))
		return -1;
	len = read(fd, text, sizeof(text));
	close(fd);
	return len;
}

static void test_same_name(void)
{
	struct btf_func *skel = btf_func__open_and_load();
	int len;

	if (!ASSERT_OK_PTR(skel, "load"))
		return;
	skel->bss->pid = getpid();
	if (!ASSERT_OK(btf_func__attach(skel), "attach"))
		goto out;
	len = read_file(PERF_TYPE);
	ASSERT_EQ(skel->bss->perf_entries, 1, "perf, entered");
	ASSERT_EQ(skel->bss->perf_exits, 1, "perf, left");
	ASSERT_EQ(skel->bss->perf_ret, len, "perf, returned");
	ASSERT_STREQ(skel->bss->perf_name, "software", "perf, device");
	ASSERT_EQ(skel->bss->net_entries, 0, "net, not entered");
	read_file(NET_TYPE);
	ASSERT_EQ(skel->bss->perf_entries, 1, "perf, not entered");
	ASSERT_EQ(skel->bss->net_entries, 1, "net, entered");
	ASSERT_STREQ(skel->bss->net_name, "lo", "net, device");
out:
	btf_func__destroy(skel);
}

/* Load just the program of that name. If that fails, errno is set. */
static struct btf_func *load_one(const char *name, const char *target)
{
	struct btf_func *skel = btf_func__open();
	struct bpf_program *prog;
	int err = 0;

	if (!ASSERT_OK_PTR(skel, "open"))
		return NULL;
	bpf_object__for_each_program(prog, skel->obj)
		bpf_program__set_autoload(prog, !strcmp(bpf_program__name(prog), name));
	prog = bpf_object__find_program_by_name(skel->obj, name);
	if (target)
		err = bpf_program__set_attach_target(prog, 0, target);
	err = err ?: btf_func__load(skel);
	if (!err)
		return skel;
	btf_func__destroy(skel);
	errno = -err;
	return NULL;
}

static void test_refused(const char *name, const char *target, int expected)
{
	struct btf_func *skel = load_one(name, target);

	if (ASSERT_NULL(skel, target ?: name))
		ASSERT_EQ(-errno, expected, target ?: name);
	btf_func__destroy(skel);
}

static struct btf *load_funcs(struct btf *base)
{
	struct btf *btf = btf__parse_split(FUNCS, base);

	return ASSERT_OK_PTR(btf, FUNCS) ? btf : NULL;
}

static const char *func_name(const struct btf *btf, __u32 id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	return btf_is_func(t) ? btf__name_by_offset(btf, t->name_off) : "";
}

static const char *file_of(const struct btf *btf, __u32 id)
{
	const struct btf_type *t = btf__type_by_id(btf, id + 1);
	const char *tag = t && btf_is_decl_tag(t) && t->type == id ?
			  btf__name_by_offset(btf, t->name_off) : "";

	return strncmp(tag, "file:", 5) ? NULL : tag + 5;
}

static void attach_multi(const char *prog_name, const __u32 *ids, int nr, int expected,
			 __u64 hits)
{
	LIBBPF_OPTS(bpf_tracing_multi_opts, opts, .ids = ids, .cnt = nr);
	struct btf_func *skel = load_one(prog_name, NULL);
	struct bpf_link *link;

	if (!ASSERT_OK_PTR(skel, prog_name))
		return;
	skel->bss->pid = getpid();
	link = bpf_program__attach_tracing_multi(bpf_object__find_program_by_name(skel->obj,
										  prog_name),
						 NULL, &opts);
	ASSERT_EQ(link ? 0 : -errno, expected, prog_name);
	read_file(PERF_TYPE);
	read_file(NET_TYPE);
	if (hits == ANY)
		ASSERT_GT(skel->bss->multi_hits, 0, "hits");
	else if (hits != ANY_OR_NONE)
		ASSERT_EQ(skel->bss->multi_hits, hits, "hits");
	bpf_link__destroy(link);
	btf_func__destroy(skel);
}

/* Two programs on one function, and then one with a list of both ids */
static void attach_both(const __u32 *ids)
{
	struct btf_func *skel = load_one("multi_entry", NULL);
	LIBBPF_OPTS(bpf_tracing_multi_opts, opts, .ids = ids, .cnt = 1);
	struct bpf_link *link;

	if (!ASSERT_OK_PTR(skel, "load"))
		return;
	link = bpf_program__attach_tracing_multi(skel->progs.multi_entry, NULL, &opts);
	if (ASSERT_OK_PTR(link, "by name"))
		attach_multi("multi_entry", ids + 1, 1, 0, ANY_OR_NONE);
	bpf_link__destroy(link);
	btf_func__destroy(skel);
	attach_multi("multi_entry", ids, 2, -EINVAL, 0);
}

/* Load a program that does nothing. Return its fd, or -1: it cannot be attached there. */
static int load_on(__u32 id)
{
	const struct bpf_insn insns[] = { BPF_MOV64_IMM(BPF_REG_0, 0), BPF_EXIT_INSN() };
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .attach_btf_id = id,
		    .expected_attach_type = BPF_TRACE_FENTRY);

	return bpf_prog_load(BPF_PROG_TYPE_TRACING, "nothing", "GPL", insns,
			     ARRAY_SIZE(insns), &opts);
}

static bool can_attach(__u32 id)
{
	int fd = load_on(id);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/*
 * Attach a program. Return the id that its trampoline is known by: that of another FUNC of
 * the same function, if it has several. 0: it cannot be attached.
 */
static __u32 trampoline_id(__u32 id)
{
	struct bpf_link_info info = {};
	__u32 len = sizeof(info);
	int fd = load_on(id), link;

	if (fd < 0)
		return 0;
	link = bpf_raw_tracepoint_open(NULL, fd);
	close(fd);
	if (!ASSERT_GE(link, 0, "attach"))
		return 0;
	ASSERT_OK(bpf_link_get_info_by_fd(link, &info, &len), "info of the link");
	close(link);
	return info.tracing.target_btf_id;
}

/* Find the next FUNC of a name, from @id on, or return 0. */
static __u32 next_of_name(const struct btf *btf, __u32 id, const char *name)
{
	for (; id < btf__type_cnt(btf); id++) {
		if (!strcmp(func_name(btf, id), name))
			return id;
	}
	return 0;
}

/*
 * Several functions have the name, and vmlinux has a FUNC for one of them, if @in_base, or
 * for none. It depends on pahole whether there are such names.
 */
static const char *find_ambiguous(const struct btf *base, const struct btf *btf, bool in_base)
{
	const char *name;
	__u32 id;

	for (id = btf__type_cnt(base); id < btf__type_cnt(btf); id++) {
		name = func_name(btf, id);
		if (*name && next_of_name(btf, id + 1, name) &&
		    (btf__find_by_name_kind(base, name, BTF_KIND_FUNC) > 0) == in_base &&
		    (!in_base || can_attach(id)))
			return name;
	}
	return NULL;
}

/*
 * A program by name and one by address may be on the same function. It has one trampoline, so
 * the second one can be attached, too. A list with both has one function twice.
 */
static void test_shared(void)
{
	struct btf *base = btf__load_vmlinux_btf(), *btf = load_funcs(base);
	const char *name = btf ? find_ambiguous(base, btf, true) : NULL;
	__u32 ids[2] = {}, id = 0, key;
	int nr = 0;

	if (!btf)
		goto out;
	if (!name) {
		printf("%s:SKIP: no FUNC of an ambiguous name in vmlinux\n", __func__);
		test__skip();
		goto out;
	}
	ids[0] = btf__find_by_name_kind(base, name, BTF_KIND_FUNC);
	for (id = btf__type_cnt(base); (id = next_of_name(btf, id, name)); id++) {
		key = trampoline_id(id);
		if (key == ids[0])
			ids[1] = id;
		nr += key == ids[0];
	}
	if (ASSERT_EQ(nr, 1, name))
		attach_both(ids);
out:
	btf__free(btf);
	btf__free(base);
}

static __u32 find_clone(const struct btf *base, const struct btf *btf)
{
	const char *name;
	__u32 id;

	for (id = btf__type_cnt(base); id < btf__type_cnt(btf); id++) {
		name = func_name(btf, id);
		if (!file_of(btf, id) && (strstr(name, ".isra.") || strstr(name, ".constprop.")) &&
		    can_attach(id))
			return id;
	}
	return 0;
}

/* fentry is on a clone, and what would call it is refused. */
static void test_clone(void)
{
	struct btf *base = btf__load_vmlinux_btf(), *btf = load_funcs(base);
	__u32 id = btf ? find_clone(base, btf) : 0;
	struct btf_func *skel = NULL;
	const char *clone;

	if (!btf)
		goto out;
	if (!id) {
		printf("%s:SKIP: no clones, as Clang makes none\n", __func__);
		test__skip();
		goto out;
	}
	clone = func_name(btf, id);
	skel = load_one("clone_entry", clone);
	if (ASSERT_OK_PTR(skel, clone))
		ASSERT_OK(btf_func__attach(skel), clone);
	test_refused("clone_exit", clone, -EOPNOTSUPP);
	test_refused("clone_session", clone, -EOPNOTSUPP);
	attach_multi("multi_exit", &id, 1, -EOPNOTSUPP, 0);
out:
	btf_func__destroy(skel);
	btf__free(btf);
	btf__free(base);
}

static void test_ambiguous(void)
{
	struct btf *base = btf__load_vmlinux_btf(), *btf = load_funcs(base);
	const char *name = btf ? find_ambiguous(base, btf, false) : NULL;

	if (!btf)
		goto out;
	if (name) {
		test_refused("clone_entry", name, -EINVAL);
	} else {
		printf("%s:SKIP: no such name\n", __func__);
		test__skip();
	}
out:
	btf__free(btf);
	btf__free(base);
}

static __u32 find_file(const struct btf *base, const struct btf *btf, const char *name,
		       const char *file)
{
	__u32 id;

	for (id = btf__type_cnt(base); (id = next_of_name(btf, id, name)); id++) {
		if (!strcmp(file_of(btf, id) ?: "", file))
			return id;
	}
	return 0;
}

/* One link on two functions of a name */
static void test_multi(void)
{
	struct btf *base = btf__load_vmlinux_btf(), *btf = load_funcs(base);
	__u32 ids[2];

	if (!btf)
		goto out;
	ids[0] = find_file(base, btf, "type_show", "kernel/events/core.c");
	ids[1] = find_file(base, btf, "type_show", "net/core/net-sysfs.c");
	if (ASSERT_GT(ids[0], 0, "perf's") && ASSERT_GT(ids[1], 0, "the network's"))
		attach_multi("multi_entry", ids, 2, 0, 2);
out:
	btf__free(btf);
	btf__free(base);
}

/* Is there a function that two of them are of? The compiler folds those that are the same. */
static bool is_folded(const __u32 *ids, __u32 nr)
{
	LIBBPF_OPTS(bpf_tracing_multi_opts, opts, .ids = ids, .cnt = nr);
	struct btf_func *skel = load_one("multi_entry", NULL);
	struct bpf_link *link;
	int err;

	if (!ASSERT_OK_PTR(skel, "load"))
		return false;
	link = bpf_program__attach_tracing_multi(skel->progs.multi_entry, NULL, &opts);
	err = link ? 0 : -errno;
	bpf_link__destroy(link);
	btf_func__destroy(skel);
	return err == -EINVAL;
}

static __u32 remove_folded(__u32 *ids, __u32 nr, __u32 first)
{
	__u32 i, key, left = 0;

	for (i = 0; i < nr; i++) {
		key = trampoline_id(ids[i]);
		if (key == ids[i] || (key && key < first))
			ids[left++] = ids[i];
	}
	return left;
}

/* Read a text file, with a newline before it, to be freed. */
static char *read_all(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;
	FILE *copy;
	int c;

	if (!file)
		return NULL;
	copy = open_memstream(&text, &size);
	if (copy) {
		fputc('\n', copy);
		while ((c = fgetc(file)) != EOF)
			fputc(c, copy);
		fclose(copy);
	}
	fclose(file);
	return text;
}

static bool has_line(const char *text, const char *line)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "\n%s\n", line);
	return strstr(text, whole);
}

/* Programs take 12 arguments at most (MAX_BPF_FUNC_ARGS), and no "...". */
static bool has_too_many(const struct btf *btf, __u32 id)
{
	const struct btf_type *proto = btf__type_by_id(btf, btf__type_by_id(btf, id)->type);
	__u32 nr = btf_vlen(proto);

	return nr > 12 || (nr && !btf_params(proto)[nr - 1].type);
}

/* A link on all functions at a time: their arguments have to stay what they are. */
static void test_all(void)
{
	struct btf *base = btf__load_vmlinux_btf(), *btf = load_funcs(base);
	char *traced = read_all("/sys/kernel/tracing/available_filter_functions");
	__u32 *ids = NULL, id, nr = 0, all = 0, missing = 0;
	int i;

	if (!btf || !ASSERT_OK_PTR(traced, "functions that ftrace knows"))
		goto out;
	ids = calloc(btf__type_cnt(btf) - btf__type_cnt(base), sizeof(*ids));
	if (!ASSERT_OK_PTR(ids, "memory"))
		goto out;
	for (id = btf__type_cnt(base); id < btf__type_cnt(btf); id++) {
		if (!*func_name(btf, id))
			continue;
		all++;
		if (can_attach(id)) {
			ids[nr++] = id;
		} else if (!file_of(btf, id) && has_line(traced, func_name(btf, id)) &&
			   !has_too_many(btf, id)) {
			missing++;
			printf("no program on %s()\n", func_name(btf, id));
		}
	}
	ASSERT_EQ(missing, 0, "functions that ftrace knows by this name");
	if (is_folded(ids, nr))
		nr = remove_folded(ids, nr, btf__type_cnt(base));
	printf("%u of %u functions can be attached to\n", nr, all);
	if (!ASSERT_GT(nr, 0, "functions"))
		goto out;
	for (i = 0; i < 3; i++)
		attach_multi("multi_entry", ids, nr, 0, ANY);
out:
	free(traced);
	free(ids);
	btf__free(btf);
	btf__free(base);
}

/* The id that user space sees is that of the object's BTF. */
static void test_info(void)
{
	struct btf_func *skel = load_one("perf_entry", NULL);
	struct bpf_prog_info info = {};
	struct btf *base = btf__load_vmlinux_btf();
	struct bpf_btf_info btf_info = {};
	__u32 len = sizeof(info);
	char name[16] = "";
	int fd;

	if (!ASSERT_OK_PTR(skel, "load") || !ASSERT_OK_PTR(base, "vmlinux"))
		goto out;
	fd = bpf_program__fd(skel->progs.perf_entry);
	if (!ASSERT_OK(bpf_prog_get_info_by_fd(fd, &info, &len), "info"))
		goto out;
	ASSERT_GE(info.attach_btf_id, btf__type_cnt(base), "attach_btf_id");
	fd = bpf_btf_get_fd_by_id(info.attach_btf_obj_id);
	btf_info.name = ptr_to_u64(name);
	btf_info.name_len = sizeof(name);
	len = sizeof(btf_info);
	if (ASSERT_OK(bpf_btf_get_info_by_fd(fd, &btf_info, &len), "info of the BTF"))
		ASSERT_STREQ(name, "vmlinux", "object");
	close(fd);
out:
	btf__free(base);
	btf_func__destroy(skel);
}

/* A file is accepted for a name that is unique here, too, if it is right. */
static void test_unique(void)
{
	struct btf_func *skel = load_one("clone_entry", "vfs_read@fs/read_write.c");

	ASSERT_OK_PTR(skel, "the right file");
	btf_func__destroy(skel);
	skel = load_one("clone_entry", "vmlinux:vfs_read@read_write.c");
	ASSERT_OK_PTR(skel, "its end");
	btf_func__destroy(skel);
	test_refused("clone_entry", "vfs_read@fs/open.c", -ESRCH);
	test_refused("clone_entry", "vfs_read@write.c", -ESRCH);
}

/* What a trampoline would take for a register is on the stack. */
static void test_packed(void)
{
	if (access("/sys/module/probe_sample_a/btf_func", R_OK)) {
		printf("%s:SKIP: load probe_sample_a, of CONFIG_SAMPLE_PROBE_EVENTS=m\n", __func__);
		test__skip();
		return;
	}
	test_refused("clone_entry", "probe_sample_a:sample_packed", -EINVAL);
}

/* Some attach to many functions. */
void serial_test_btf_func(void)
{
	if (access(FUNCS, R_OK)) {
		printf("%s:SKIP: no %s: build the kernel with CONFIG_DEBUG_INFO_BTF_FUNC\n",
		       __func__, FUNCS);
		test__skip();
		return;
	}
	if (test__start_subtest("same_name"))
		test_same_name();
	if (test__start_subtest("shared"))
		test_shared();
	if (test__start_subtest("clone"))
		test_clone();
	if (test__start_subtest("multi"))
		test_multi();
	if (test__start_subtest("all"))
		test_all();
	if (test__start_subtest("info"))
		test_info();
	if (test__start_subtest("nowhere"))
		test_refused("nowhere", NULL, -ESRCH);
	if (test__start_subtest("unique"))
		test_unique();
	if (test__start_subtest("packed"))
		test_packed();
	if (test__start_subtest("ambiguous"))
		test_ambiguous();
}
