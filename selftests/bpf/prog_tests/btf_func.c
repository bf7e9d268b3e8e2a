// SPDX-License-Identifier: GPL-2.0
/* Attach tracing programs to functions by address, which .BTF.func describes. */
#include <test_progs.h>
#include <bpf/btf.h>
#include "btf_func.skel.h"

#define FUNCS "/sys/kernel/btf/vmlinux.func"
#define PERF_TYPE "/sys/bus/event_source/devices/software/type"
#define NET_TYPE "/sys/class/net/lo/type"

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

/*
 * A program by name and one by file may be on the same function. It has one trampoline,
 * so the second one can be attached, too.
 */
static void test_shared(void)
{
	struct btf *base = btf__load_vmlinux_btf(), *btf = load_funcs(base);
	struct btf_func *skel = NULL, *other = NULL;
	char target[300];
	int shared = 0;
	__u32 id;

	if (!btf)
		goto out;
	skel = load_one("name_entry", NULL);
	if (!ASSERT_OK_PTR(skel, "load by name") || !ASSERT_OK(btf_func__attach(skel), "attach by name"))
		goto out;
	for (id = btf__type_cnt(base); id < btf__type_cnt(btf); id++) {
		if (strcmp(func_name(btf, id), "type_show") || !file_of(btf, id))
			continue;
		snprintf(target, sizeof(target), "type_show@%s", file_of(btf, id));
		other = load_one("clone_entry", target);
		if (ASSERT_OK_PTR(other, target))
			ASSERT_OK(btf_func__attach(other), target);
		btf_func__destroy(other);
		shared++;
	}
	ASSERT_GT(shared, 1, "functions type_show()");
out:
	btf_func__destroy(skel);
	btf__free(btf);
	btf__free(base);
}

static bool is_clone(const struct btf *btf, __u32 id)
{
	const char *name = func_name(btf, id);

	return !file_of(btf, id) &&
	       (strstr(name, ".isra.") || strstr(name, ".constprop."));
}

/* fentry is on a clone, and what would call it is refused. */
static void test_clone(void)
{
	struct btf *base = btf__load_vmlinux_btf(), *btf = load_funcs(base);
	struct btf_func *skel = NULL;
	const char *clone = NULL;
	__u32 id;

	if (!btf)
		goto out;
	/* Some cannot be traced. */
	for (id = btf__type_cnt(base); id < btf__type_cnt(btf) && !skel; id++) {
		if (!is_clone(btf, id))
			continue;
		clone = func_name(btf, id);
		skel = load_one("clone_entry", clone);
	}
	if (!ASSERT_OK_PTR(skel, "a clone that can be traced"))
		goto out;
	ASSERT_OK(btf_func__attach(skel), clone);
	test_refused("clone_exit", clone, -EOPNOTSUPP);
	test_refused("clone_session", clone, -EOPNOTSUPP);
out:
	btf_func__destroy(skel);
	btf__free(btf);
	btf__free(base);
}

/* Several functions have the name, and vmlinux has a FUNC for none of them. */
static void test_ambiguous(void)
{
	struct btf *base = btf__load_vmlinux_btf(), *btf = load_funcs(base);
	const char *name, *ambiguous = NULL;
	__u32 id, other;

	if (!btf)
		goto out;
	for (id = btf__type_cnt(base); id < btf__type_cnt(btf) && !ambiguous; id++) {
		name = func_name(btf, id);
		if (!*name || btf__find_by_name_kind(base, name, BTF_KIND_FUNC) > 0)
			continue;
		for (other = id + 1; other < btf__type_cnt(btf); other++) {
			if (!strcmp(func_name(btf, other), name))
				ambiguous = name;
		}
	}
	if (ASSERT_OK_PTR(ambiguous, "an ambiguous name"))
		test_refused("clone_entry", ambiguous, -EINVAL);
out:
	btf__free(btf);
	btf__free(base);
}

static __u32 find_id(const struct btf *base, const struct btf *btf, const char *name,
		     const char *file)
{
	__u32 id;

	for (id = btf__type_cnt(base); id < btf__type_cnt(btf); id++) {
		if (!strcmp(func_name(btf, id), name) &&
		    !strcmp(file_of(btf, id) ?: "", file ?: ""))
			return id;
	}
	return 0;
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
	ASSERT_EQ(skel->bss->multi_hits, hits, "hits");
	bpf_link__destroy(link);
	btf_func__destroy(skel);
}

/*
 * One link on two of the functions. That by name is one of all, so a list with it and with all
 * has one function twice, which is refused. So is a clone, for fexit.
 */
static void test_multi(void)
{
	struct btf *base = btf__load_vmlinux_btf(), *btf = load_funcs(base);
	__u32 ids[64], clone;
	int nr = 0;

	if (!btf)
		goto out;
	ids[0] = find_id(base, btf, "type_show", "kernel/events/core.c");
	ids[1] = find_id(base, btf, "type_show", "net/core/net-sysfs.c");
	if (!ASSERT_GT(ids[0], 0, "perf's") || !ASSERT_GT(ids[1], 0, "the network's"))
		goto out;
	attach_multi("multi_entry", ids, 2, 0, 2);

	ids[nr++] = btf__find_by_name_kind(base, "type_show", BTF_KIND_FUNC);
	for (clone = btf__type_cnt(base); clone < btf__type_cnt(btf) && nr < 64; clone++) {
		if (!strcmp(func_name(btf, clone), "type_show"))
			ids[nr++] = clone;
	}
	if ((int)ids[0] > 0)
		attach_multi("multi_entry", ids, nr, -EINVAL, 0);
	if (ASSERT_GT(nr, 2, "functions type_show()"))
		attach_multi("multi_entry", ids + 1, nr - 1, 0, 2);

	for (clone = btf__type_cnt(base); clone < btf__type_cnt(btf); clone++) {
		if (!is_clone(btf, clone))
			continue;
		ids[0] = clone;
		attach_multi("multi_exit", ids, 1, -EOPNOTSUPP, 0);
		break;
	}
out:
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

void test_btf_func(void)
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
	if (test__start_subtest("info"))
		test_info();
	if (test__start_subtest("nowhere"))
		test_refused("nowhere", NULL, -ESRCH);
	if (test__start_subtest("ambiguous"))
		test_ambiguous();
}
