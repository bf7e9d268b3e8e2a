// SPDX-License-Identifier: GPL-2.0
/*
 * Which BPF program does a piece of kernel text belong to?
 *
 *	a function of a program, also a callback	the program: its info has the address
 *	a trampoline	the program that is attached to the function, if it is the only one
 *	anything else	none: a dispatcher, for example, has the code of many programs
 *
 * A trampoline is called "bpf_trampoline_<key>", and serves all programs of a function, one
 * after the other. The key is what the kernel attaches to: the id of a kernel's BTF and that of
 * a function in it, or the id of a BPF program and that of a function in its BTF. Each
 * program has the same two in attach_btf_obj_id and attach_btf_id, so there is an index
 * by these. A function that several programs of the recording are attached to has none
 * in the index: one of them would get the time of all.
 */
#include "bpf-prog.h"
#include "bpf-event.h"
#include "bpf-utils.h"
#include "dso.h"
#include "env.h"
#include "map.h"
#include "string2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>

/* What a BPF image is, in a word: instead of the type of a program. NULL: another image. */
static const char *dso__bpf_image_type(const struct dso *dso)
{
	static const char * const types[][2] = {
		{ "bpf_trampoline_", "trampoline" },
		{ "bpf_dispatcher_", "dispatcher" },
		{ "bpf__", "struct_ops" },
		{ "cbpf_prog_", "classic" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strstarts(dso__short_name(dso), types[i][0]))
			return types[i][1];
	}
	return NULL;
}

/**
 * dso__is_bpf_text - is it the code of a BPF function, a trampoline, or a classic filter?
 * @dso: any
 *
 * The kernel's thunks are images too, of no program.
 */
bool dso__is_bpf_text(const struct dso *dso)
{
	return dso__is_bpf_prog(dso) || (dso__binary_type(dso) == DSO_BINARY_TYPE__BPF_IMAGE &&
					 dso__bpf_image_type(dso));
}

/**
 * bpf_prog__get_tag - write a tag as bpftool does
 * @prog: the program
 * @buf: gets 16 digits and the end of the string
 */
void bpf_prog__get_tag(const struct bpf_prog *prog, char buf[BPF_PROG_TAG_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < BPF_TAG_SIZE; i++) {
		buf[2 * i] = digits[prog->tag[i] >> 4];
		buf[2 * i + 1] = digits[prog->tag[i] & 15];
	}
	buf[2 * BPF_TAG_SIZE] = '\0';
}

/**
 * dso__no_bpf_prog - what is shown instead of an id or a tag
 * @dso: whose program is not known, or NULL
 *
 * Return: "?" for a function of a program, "-" for other text.
 */
const char *dso__no_bpf_prog(const struct dso *dso)
{
	return dso && dso__is_bpf_prog(dso) ? "?" : "-";
}

/**
 * dso__get_bpf_label - write which program kernel text belongs to
 * @dso: of the text, or NULL
 * @buf: gets "name[id]", the name of BPF text whose program is not known, or "-"
 */
void dso__get_bpf_label(struct dso *dso, char buf[BPF_LABEL_SIZE])
{
	struct bpf_prog prog;
	size_t len;

	if (!dso || !dso__is_bpf_text(dso)) {
		strcpy(buf, "-");
	} else if (dso__find_bpf_prog(dso, &prog)) {
		dso__get_bpf_prog_name(dso, prog.id, buf, BPF_PROG_NAME_SIZE);
		len = strlen(buf);
		scnprintf(buf + len, BPF_LABEL_SIZE - len, "[%u]", prog.id);
	} else {
		scnprintf(buf, BPF_LABEL_SIZE, "%s", dso__short_name(dso));
	}
}

/**
 * dso__get_bpf_tag - write the tag of the program that kernel text belongs to
 * @dso: of the text, or NULL
 * @buf: gets the tag, or dso__no_bpf_prog()
 */
void dso__get_bpf_tag(struct dso *dso, char buf[BPF_PROG_TAG_SIZE])
{
	struct bpf_prog prog;

	if (dso && dso__find_bpf_prog(dso, &prog))
		bpf_prog__get_tag(&prog, buf);
	else
		strcpy(buf, dso__no_bpf_prog(dso));
}

/**
 * dso__bpf_type - the type of the program that kernel text belongs to
 * @dso: of the text, or NULL
 *
 * Return: the type as libbpf and bpftool write it, a word for other BPF text, "?" if it
 * is not known, "-" for no BPF text.
 */
const char *dso__bpf_type(struct dso *dso)
{
	struct bpf_prog prog;

	if (!dso || !dso__is_bpf_text(dso))
		return "-";
	if (dso__find_bpf_prog(dso, &prog))
		return bpf_prog__type_name(&prog);
	return dso__is_bpf_prog(dso) ? "?" : dso__bpf_image_type(dso);
}

#ifdef HAVE_LIBBPF_SUPPORT
#include <bpf/btf.h>
#include <bpf/libbpf.h>

/* In the key of a trampoline: the target is in the kernel or a module */
#define KEY_OF_KERNEL	0x80000000U

/**
 * struct bpf_target - what programs are attached to
 * @btf_id: id of a BTF
 * @func_id: id of a function in it
 * @prog_id: the program that is attached, 0 if there are several
 */
struct bpf_target {
	u32	btf_id;
	u32	func_id;
	u32	prog_id;
};

static int bpf_target__cmp(const void *a, const void *b)
{
	const struct bpf_target *l = a, *r = b;

	if (l->btf_id != r->btf_id)
		return l->btf_id < r->btf_id ? -1 : 1;
	return l->func_id < r->func_id ? -1 : l->func_id > r->func_id;
}

/* Programs of other types also have an attach_btf_id, but no trampoline. */
static bool bpf_prog_info__has_trampoline(const struct bpf_prog_info *info)
{
	return info->attach_btf_id &&
	       (info->type == BPF_PROG_TYPE_TRACING || info->type == BPF_PROG_TYPE_LSM);
}

/* Those with the same target become one. Return: how many are left. */
static u32 bpf_targets__merge(struct bpf_target *targets, u32 nr)
{
	u32 last = 0;

	qsort(targets, nr, sizeof(*targets), bpf_target__cmp);
	for (u32 i = 1; i < nr; i++) {
		if (bpf_target__cmp(&targets[last], &targets[i]))
			targets[++last] = targets[i];
		else
			targets[last].prog_id = 0;
	}
	return nr ? last + 1 : 0;
}

/* Called with env->bpf_progs.lock held. Programs that come or go free it. */
static void perf_env__index_bpf_targets(struct perf_env *env)
{
	struct bpf_target *targets = calloc(env->bpf_progs.infos_cnt + 1, sizeof(*targets));
	struct rb_node *n;
	u32 nr = 0;

	if (!targets)
		return;

	for (n = rb_first(&env->bpf_progs.infos); n; n = rb_next(n)) {
		const struct bpf_prog_info_node *node =
			rb_entry(n, struct bpf_prog_info_node, rb_node);
		const struct bpf_prog_info *info = &node->info_linear->info;

		if (bpf_prog_info__has_trampoline(info))
			targets[nr++] = (struct bpf_target){ info->attach_btf_obj_id,
							     info->attach_btf_id, info->id };
	}
	env->bpf_progs.targets = targets;
	env->bpf_progs.nr_targets = bpf_targets__merge(targets, nr);
}

/* Called with env->bpf_progs.lock held. Return: the info of a program, or NULL. */
static struct bpf_prog_info *perf_env__bpf_prog_info(struct perf_env *env, u32 id)
{
	struct bpf_prog_info_node *node = __perf_env__find_bpf_prog_info(env, id);

	return node && node->info_linear ? &node->info_linear->info : NULL;
}

/* Called with env->bpf_progs.lock held. Return: the only program with this trampoline, or NULL. */
static struct bpf_prog_info *perf_env__find_trampoline_prog(struct perf_env *env, u64 key)
{
	struct bpf_target target = { key >> 32, (u32)key & ~KEY_OF_KERNEL, 0 }, *found;
	struct bpf_prog_info *called;

	if (!(key & KEY_OF_KERNEL)) {
		called = perf_env__bpf_prog_info(env, target.btf_id);
		if (!called)
			return NULL;
		target.btf_id = called->btf_id;
	}
	if (!env->bpf_progs.targets)
		perf_env__index_bpf_targets(env);
	if (!env->bpf_progs.targets)
		return NULL;
	found = bsearch(&target, env->bpf_progs.targets, env->bpf_progs.nr_targets,
			sizeof(target), bpf_target__cmp);
	return found ? perf_env__bpf_prog_info(env, found->prog_id) : NULL;
}

static void bpf_prog__init(struct bpf_prog *prog, const struct bpf_prog_info *info)
{
	*prog = (struct bpf_prog){
		.id = info->id,
		.type = info->type,
		.load_time = info->load_time,
		.run_cnt = info->run_cnt,
		.run_time_ns = info->run_time_ns,
	};
	memcpy(prog->tag, info->tag, sizeof(prog->tag));
}

static bool perf_env__find_bpf_image_prog(struct perf_env *env, const char *name,
					  struct bpf_prog *prog)
{
	struct bpf_prog_info *info;
	char *end;
	u64 key;

	if (!strstarts(name, "bpf_trampoline_"))
		return false;
	key = strtoull(name + strlen("bpf_trampoline_"), &end, 10);
	if (*end)
		return false;

	mutex_lock(&env->bpf_progs.lock);
	info = perf_env__find_trampoline_prog(env, key);
	if (info)
		bpf_prog__init(prog, info);
	mutex_unlock(&env->bpf_progs.lock);
	return info;
}

/**
 * dso__find_bpf_prog - find the BPF program that kernel text belongs to
 * @dso: any
 * @prog: filled in
 *
 * Return: false if it is no BPF text, or if its program is not known.
 */
bool dso__find_bpf_prog(struct dso *dso, struct bpf_prog *prog)
{
	struct perf_env *env = dso__bpf_prog(dso)->env;

	if (dso__is_bpf_prog(dso)) {
		const struct bpf_prog_info_node *node = dso__bpf_prog(dso)->info;

		if (!node)
			return false;
		bpf_prog__init(prog, &node->info_linear->info);
		return true;
	}
	return env && dso__binary_type(dso) == DSO_BINARY_TYPE__BPF_IMAGE &&
	       perf_env__find_bpf_image_prog(env, dso__short_name(dso), prog);
}

/* Called with env->bpf_progs.lock held. Return: the name of the main function, or NULL. */
static const char *perf_env__bpf_func_name(struct perf_env *env, const struct bpf_prog_info *info)
{
	const struct bpf_func_info *func = (const void *)(uintptr_t)info->func_info;
	struct btf_node *node = __perf_env__find_btf(env, info->btf_id);
	struct btf *btf = node ? btf_node__btf(node) : NULL;
	const struct btf_type *type = NULL;

	if (btf && func && info->nr_func_info && info->func_info_rec_size >= sizeof(*func))
		type = btf__type_by_id(btf, func->type_id);
	return type ? btf__name_by_offset(btf, type->name_off) : NULL;
}

/**
 * dso__get_bpf_prog_name - copy the name of a BPF program
 * @dso: for which dso__find_bpf_prog() has found the program
 * @id: of the program
 * @buf: gets the name of its main function without control characters, "" if it has none
 * @size: size of @buf
 *
 * The name in the info has 15 characters, the one in the BTF is whole.
 */
void dso__get_bpf_prog_name(struct dso *dso, u32 id, char *buf, size_t size)
{
	struct perf_env *env = dso__bpf_prog(dso)->env;
	const struct bpf_prog_info *info;
	const char *name = NULL;

	mutex_lock(&env->bpf_progs.lock);
	info = perf_env__bpf_prog_info(env, id);
	if (info)
		name = perf_env__bpf_func_name(env, info);
	if (name && *name)
		scnprintf(buf, size, "%s", name);
	else
		scnprintf(buf, size, "%.*s", BPF_OBJ_NAME_LEN, info ? info->name : "");
	mutex_unlock(&env->bpf_progs.lock);
	strreplace_controls(buf);
}

/**
 * bpf_prog__type_name - the type of a program in words
 * @prog: the program
 *
 * Return: the name without BPF_PROG_TYPE_, in lower case, "?" if libbpf does not know it.
 */
const char *bpf_prog__type_name(const struct bpf_prog *prog)
{
	return libbpf_bpf_prog_type_str(prog->type) ?: "?";
}
#endif /* HAVE_LIBBPF_SUPPORT */
