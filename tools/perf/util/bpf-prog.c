// SPDX-License-Identifier: GPL-2.0
/*
 * Which BPF program does a piece of kernel text belong to?
 *
 *	a function of a program, also a callback	the program: its info has the address
 *	anything else	none: a trampoline or a dispatcher has the code of many programs
 *
 * A trampoline serves all programs that are attached to a function, one after the other, and
 * neither its name nor the info of the programs tells which these are: a program that is
 * attached to several functions or to another program has no target in its info.
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
#ifdef HAVE_LIBBPF_SUPPORT
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#endif

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
	scnprintf_hex(buf, BPF_PROG_TAG_SIZE, prog->tag, BPF_TAG_SIZE);
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
 * dso__get_bpf_name - write which program kernel text belongs to
 * @dso: of the text, or NULL
 * @buf: gets the name of the program, that of BPF text whose program is not known, or "-"
 */
void dso__get_bpf_name(struct dso *dso, char buf[BPF_PROG_NAME_SIZE])
{
	struct bpf_prog prog;

	if (!dso || !dso__is_bpf_text(dso))
		strcpy(buf, "-");
	else if (dso__find_bpf_prog(dso, &prog))
		bpf_prog_info_node__get_name(dso__bpf_prog(dso)->info, dso__bpf_prog(dso)->env,
					     buf, BPF_PROG_NAME_SIZE);
	else
		scnprintf(buf, BPF_PROG_NAME_SIZE, "%s", dso__short_name(dso));
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

/**
 * dso__cmp_bpf_prog - is it text of the same BPF program?
 * @left: of any text, or NULL
 * @right: of another one
 *
 * All loads of a program are one, and so is all text that is no BPF text. BPF text whose
 * program is not known is told apart by its name.
 *
 * Return: 0 if it is; if not, the order.
 */
int dso__cmp_bpf_prog(struct dso *left, struct dso *right)
{
	bool bpf_l = left && dso__is_bpf_text(left), bpf_r = right && dso__is_bpf_text(right);
	struct dso_bpf_prog *l, *r;

	if (RC_CHK_EQUAL(left, right))
		return 0;
	if (!bpf_l || !bpf_r)
		return bpf_r - bpf_l;
	l = dso__bpf_prog(left);
	r = dso__bpf_prog(right);
	if (l->info && r->info)
		return bpf_prog_info_node__cmp(l->info, l->env, r->info, r->env);
	if (l->info || r->info)
		return l->info ? -1 : 1;
	return strcmp(dso__short_name(left), dso__short_name(right));
}

#ifdef HAVE_LIBBPF_SUPPORT
/**
 * dso__find_bpf_prog - find the BPF program that kernel text belongs to
 * @dso: any
 * @prog: filled in
 *
 * Return: false if it is no function of a BPF program, or if the program is not known.
 */
bool dso__find_bpf_prog(struct dso *dso, struct bpf_prog *prog)
{
	const struct bpf_prog_info_node *node = dso__bpf_prog(dso)->info;
	const struct bpf_prog_info *info;

	if (!dso__is_bpf_prog(dso) || !node)
		return false;
	info = &node->info_linear->info;
	*prog = (struct bpf_prog){
		.id = info->id,
		.type = info->type,
	};
	memcpy(prog->tag, info->tag, sizeof(prog->tag));
	return true;
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

/*
 * The name in the info has 15 characters, the one in the BTF is whole. Called with
 * env->bpf_progs.lock held. Return: the name of the main function, "" if it has none.
 */
static const char *bpf_prog_info_node__name(const struct bpf_prog_info_node *node,
					    struct perf_env *env)
{
	const struct bpf_prog_info *info = &node->info_linear->info;
	const char *name = perf_env__bpf_func_name(env, info);

	return name && *name ? name : info->name;
}

/**
 * bpf_prog_info_node__get_name - copy the name of a BPF program
 * @node: its info
 * @env: of the info
 * @buf: gets the name of its main function without control characters, "" if it has none
 * @size: size of @buf
 */
void bpf_prog_info_node__get_name(const struct bpf_prog_info_node *node, struct perf_env *env,
				  char *buf, size_t size)
{
	mutex_lock(&env->bpf_progs.lock);
	scnprintf(buf, size, "%s", bpf_prog_info_node__name(node, env));
	mutex_unlock(&env->bpf_progs.lock);
	strreplace_controls(buf);
}

/**
 * bpf_prog_info_node__cmp - are these loads of the same program?
 * @left: info of a load
 * @env_left: of @left
 * @right: info of another one
 * @env_right: of @right, perhaps that of another recording
 *
 * Return: 0 if they have the same tag and name; if not, their order.
 */
int bpf_prog_info_node__cmp(const struct bpf_prog_info_node *left, struct perf_env *env_left,
			    const struct bpf_prog_info_node *right, struct perf_env *env_right)
{
	const struct bpf_prog_info *l = &left->info_linear->info, *r = &right->info_linear->info;
	int cmp;

	if (l == r)
		return 0;
	cmp = memcmp(l->tag, r->tag, sizeof(l->tag)) ?: strncmp(l->name, r->name, sizeof(l->name));
	/* the kernel cuts longer names */
	if (cmp || strnlen(l->name, sizeof(l->name)) < sizeof(l->name) - 1)
		return cmp;
	if (env_left != env_right) {
		char name_l[BPF_PROG_NAME_SIZE], name_r[BPF_PROG_NAME_SIZE];

		bpf_prog_info_node__get_name(left, env_left, name_l, sizeof(name_l));
		bpf_prog_info_node__get_name(right, env_right, name_r, sizeof(name_r));
		return strcmp(name_l, name_r);
	}
	mutex_lock(&env_left->bpf_progs.lock);
	cmp = strcmp(bpf_prog_info_node__name(left, env_left),
		     bpf_prog_info_node__name(right, env_right));
	mutex_unlock(&env_left->bpf_progs.lock);
	return cmp;
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
