// SPDX-License-Identifier: (LGPL-2.1 OR BSD-2-Clause)
/*
 * Instances of a program: one program of an object, loaded as many times as the user
 * wants, each time with other instructions put before it (a prologue).
 *
 * The arguments of a probe, for instance, lie in other registers and stack slots at each
 * point. A program that gets them in r2 to r5 is written once, and the prologue of each
 * instance fetches them from where they are at its points.
 *
 * All callbacks run before the first load, as the names of all instances go to one BTF:
 * a BTF for each takes fifty times as long, and 45 KB. What describes the code (types,
 * source lines, CO-RE relocations, jump tables) is moved by the length of the prologue
 * where the program is loaded, in libbpf.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/err.h>

#include "bpf.h"
#include "btf.h"
#include "libbpf.h"
#include "libbpf_internal.h"

/* as in the kernel: the longest name of a type, with its end */
#define KSYM_NAME_LEN 512

/* More than there can be functions in one BTF, BTF_MAX_TYPE, are no use. */
#define MAX_INSTANCES 0xfffffU

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."

/* One of a set. @prog is NULL for one that was skipped, or failed with error code @err. */
struct instance {
	struct bpf_program *prog;
	int err;
	/* until it is loaded */
	struct bpf_variant variant;
};

struct bpf_instances {
	struct bpf_object *obj;
	struct bpf_instances *next;
	/* what was instantiated, and the number in the name of the first instance */
	const struct bpf_program *base;
	__u32 first;
	__u32 cnt;
	struct instance instances[];
};

static bool name_ok(const char *name)
{
	size_t len = strlen(name);

	return len && len < KSYM_NAME_LEN && len == strspn(name, NAME_CHARS) &&
	       !(*name >= '0' && *name <= '9');
}

/* Whether what the callback wrote to @code is an instance of the @insn_cnt instructions. */
static int check_code(const struct bpf_program *prog, __u32 idx, size_t insn_cnt,
		      const struct bpf_instance_code *code)
{
	const char *name = bpf_program__name(prog);

	if (!code->insns != !code->insn_cnt || (!code->insns && code->prologue_cnt)) {
		pr_warn("prog '%s': instance %u: has %zu instructions, %zu of them a prologue, and %s array of instructions\n",
			name, idx, code->insn_cnt, code->prologue_cnt, code->insns ? "an" : "no");
		return -EINVAL;
	}
	if (code->insns && (code->prologue_cnt > code->insn_cnt ||
			    code->insn_cnt - code->prologue_cnt != insn_cnt)) {
		pr_warn("prog '%s': instance %u: has %zu instructions, %zu of them a prologue, but the program has %zu\n",
			name, idx, code->insn_cnt, code->prologue_cnt, insn_cnt);
		return -EINVAL;
	}
	if (code->insn_cnt > INT_MAX) {
		pr_warn("prog '%s': instance %u: has %zu instructions\n", name, idx,
			code->insn_cnt);
		return -E2BIG;
	}
	if (code->name && !name_ok(code->name)) {
		pr_warn("prog '%s': instance %u: '%s' is no name: use letters, digits, '_' and '.', no digit first\n",
			name, idx, code->name);
		return -EINVAL;
	}
	return 0;
}

/* Keep what the callback wrote to @code, which may be gone at its next call. */
static int keep_code(struct bpf_variant *variant, const struct bpf_program *prog, __u32 number,
		     const struct bpf_instance_code *code)
{
	const struct bpf_insn *insns = code->insns ?: bpf_program__insns(prog);
	char *name, *target = NULL;
	struct bpf_insn *copy;

	variant->insn_cnt = code->insns ? code->insn_cnt : bpf_program__insn_cnt(prog);
	variant->prologue_cnt = code->prologue_cnt;

	copy = calloc(variant->insn_cnt, sizeof(*copy));
	if (copy)
		memcpy(copy, insns, variant->insn_cnt * sizeof(*copy));
	variant->insns = copy;

	if (code->name)
		name = strdup(code->name);
	else if (asprintf(&name, "%s_%u", bpf_program__name(prog), number) < 0)
		name = NULL;
	variant->name = name;

	if (code->attach_target)
		target = strdup(code->attach_target);
	variant->attach_target = target;

	return copy && name && (target || !code->attach_target) ? 0 : -ENOMEM;
}

static void drop_code(struct bpf_variant *variant)
{
	free((void *)variant->insns);
	free((void *)variant->name);
	free((void *)variant->attach_target);
	memset(variant, 0, sizeof(*variant));
}

/* Have the callback make the code of all instances. */
static int prepare_all(struct bpf_instances *set, struct bpf_program *prog,
		       const struct bpf_instances_opts *opts)
{
	bpf_instance_prep_fn prep = OPTS_GET(opts, prep, NULL);
	size_t insn_cnt = bpf_program__insn_cnt(prog);
	void *ctx = OPTS_GET(opts, ctx, NULL);
	int err;
	__u32 i;

	for (i = 0; i < set->cnt; i++) {
		struct bpf_instance_code code = { .sz = sizeof(code) };
		struct instance *inst = &set->instances[i];

		err = prep ? prep(prog, i, bpf_program__insns(prog), insn_cnt, &code, ctx) : 0;
		if (bpf_program__insn_cnt(prog) != insn_cnt) {
			pr_warn("prog '%s': instance %u: the callback has changed the program\n",
				bpf_program__name(prog), i);
			return -EINVAL;
		}
		if (err > 0) {
			inst->err = -ENOENT;
			continue;
		}
		if (err < 0) {
			pr_warn("prog '%s': instance %u: the callback failed: %s\n",
				bpf_program__name(prog), i, errstr(err));
			return err;
		}
		err = check_code(prog, i, insn_cnt, &code);
		err = err ?: keep_code(&inst->variant, prog, set->first + i, &code);
		if (err)
			return err;
	}
	return 0;
}

/* Add declaration tags to @func_id that say the same as the @nr_tags ones with ids @tags. */
static int copy_decl_tags(struct btf *btf, const __u32 *tags, __u32 nr_tags, __u32 func_id)
{
	const struct btf_type *t;
	char *value;
	int err;
	__u32 i;

	for (i = 0; i < nr_tags; i++) {
		t = btf__type_by_id(btf, tags[i]);
		/* the strings move where one is added */
		value = strdup(btf__str_by_offset(btf, t->name_off));
		if (!value)
			return -ENOMEM;
		err = btf_kflag(t) ?
		      btf__add_decl_attr(btf, value, func_id, btf_decl_tag(t)->component_idx) :
		      btf__add_decl_tag(btf, value, func_id, btf_decl_tag(t)->component_idx);
		free(value);
		if (err < 0)
			return err;
	}
	return 0;
}

/* Set *@tags to the ids of the declaration tags of type @id. Return how many there are. */
static int find_decl_tags(const struct btf *btf, __u32 id, __u32 **tags)
{
	__u32 i, nr = 0, cnt = btf__type_cnt(btf), *tmp;
	const struct btf_type *t;

	*tags = NULL;
	for (i = 1; i < cnt; i++) {
		t = btf__type_by_id(btf, i);
		if (!btf_is_decl_tag(t) || t->type != id)
			continue;
		tmp = libbpf_reallocarray(*tags, nr + 1, sizeof(*tmp));
		if (!tmp) {
			free(*tags);
			return -ENOMEM;
		}
		*tags = tmp;
		tmp[nr++] = i;
	}
	return nr;
}

/* Add the function of an instance to @btf, and the line that stands for its prologue. */
static int add_func(struct btf *btf, struct bpf_variant *variant, const char *base_name,
		    __u32 base_id, const __u32 *tags, __u32 nr_tags)
{
	const struct btf_type *base = btf__type_by_id(btf, base_id);
	char *line;
	int id, off;

	id = btf__add_func(btf, variant->name, btf_vlen(base), base->type);
	if (id < 0)
		return id;
	variant->func_id = id;
	variant->btf = btf;

	if (variant->prologue_cnt) {
		if (asprintf(&line, "[prologue of %s: %zu instruction%s]", base_name,
			     variant->prologue_cnt, variant->prologue_cnt > 1 ? "s" : "") < 0)
			return -ENOMEM;
		off = btf__add_str(btf, line);
		free(line);
		if (off < 0)
			return off;
		variant->line_off = off;
	}
	return copy_decl_tags(btf, tags, nr_tags, id);
}

/* Load the instances with the BTF of the object, in which they all have the same name. */
static void drop_btf(struct bpf_instances *set)
{
	__u32 i;

	for (i = 0; i < set->cnt; i++) {
		set->instances[i].variant.btf = NULL;
		set->instances[i].variant.func_id = 0;
		set->instances[i].variant.line_off = 0;
	}
}

/*
 * Can there be objects in the maps whose type is in the BTF that the maps were created with?
 * A program with another BTF has other types, although they look the same.
 */
static bool maps_have_objects(const struct btf *btf)
{
	__u32 i, cnt = btf__type_cnt(btf);

	for (i = 1; i < cnt; i++) {
		const struct btf_type *t = btf__type_by_id(btf, i);
		const char *tag = btf__name_by_offset(btf, t->name_off);

		/* kptr, kptr_untrusted, percpu_kptr and uptr; heads of lists and trees */
		if ((btf_is_type_tag(t) && (strstr(tag, "kptr") || !strcmp(tag, "uptr"))) ||
		    (btf_is_decl_tag(t) && !strncmp(tag, "contains:", strlen("contains:"))))
			return true;
	}
	return false;
}

/*
 * Make the BTF that names the functions of all instances, and load it into the kernel:
 * a kernel symbol has the name that BTF has for the function. Return NULL for a program
 * without BTF, whose symbol is the name that it is loaded with, for one that needs the
 * BTF of the object, and where the kernel refuses it: an older one takes no dot in the name
 * of a function.
 */
static struct btf *make_btf(struct bpf_instances *set, const struct bpf_program *prog)
{
	__u32 base_id = bpf_variant_func_id(prog), *tags, i;
	struct btf *btf;
	int err, nr_tags;

	if (!base_id || maps_have_objects(bpf_object__btf(set->obj)))
		return NULL;
	btf = bpf_variant_new_btf(set->obj);
	if (IS_ERR(btf))
		return btf;

	nr_tags = find_decl_tags(btf, base_id, &tags);
	if (nr_tags < 0) {
		err = nr_tags;
		goto err_free;
	}
	for (i = 0, err = 0; i < set->cnt && !err; i++) {
		if (set->instances[i].variant.insns)
			err = add_func(btf, &set->instances[i].variant,
				       bpf_program__name(prog), base_id, tags, nr_tags);
	}
	free(tags);
	if (err)
		goto err_free;
	err = bpf_variant_load_btf(set->obj, btf);
	if (!err)
		return btf;
	if (err == -ENOMEM)
		goto err_free;

	pr_warn("prog '%s': the kernel doesn't take the names of %u instances: in profiles, they have the program's\n",
		bpf_program__name(prog), set->cnt);
	drop_btf(set);
	btf__free(btf);
	return NULL;

err_free:
	pr_warn("prog '%s': can't make BTF for %u instances: %s\n", bpf_program__name(prog),
		set->cnt, errstr(err));
	btf__free(btf);
	return ERR_PTR(err);
}

/* Whether what made one instance fail makes the next ones fail, too. */
static bool is_fatal(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE;
}

static int load_all(struct bpf_instances *set, struct bpf_program *prog, bool keep_going)
{
	__u32 i, nr_failed = 0, nr_loaded = 0;
	struct bpf_program *loaded;
	int err = 0;

	for (i = 0; i < set->cnt; i++) {
		struct instance *inst = &set->instances[i];

		if (!inst->variant.insns)
			continue;
		loaded = bpf_variant_load(prog, &inst->variant);
		if (!IS_ERR(loaded)) {
			inst->prog = loaded;
			drop_code(&inst->variant);
			nr_loaded++;
			continue;
		}
		err = PTR_ERR(loaded);
		inst->err = err;
		pr_warn("prog '%s': instance %u of %u ('%s') failed to load: %s%s\n",
			bpf_program__name(prog), i, set->cnt, inst->variant.name, errstr(err),
			err == -EMFILE ? "; each instance is a file: see RLIMIT_NOFILE" : "");
		if (!keep_going || is_fatal(err))
			return err;
		nr_failed++;
		drop_code(&inst->variant);
	}
	if (nr_failed)
		pr_warn("prog '%s': %u of %u instances failed to load, %u are loaded\n",
			bpf_program__name(prog), nr_failed, set->cnt, nr_loaded);
	return nr_loaded ? 0 : err;
}

struct bpf_instances *bpf_program__instantiate(struct bpf_program *prog, __u32 cnt,
					       const struct bpf_instances_opts *opts)
{
	struct bpf_instances *set, *other, **head;
	struct btf *btf = NULL;
	int err;

	if (!prog || !OPTS_VALID(opts, bpf_instances_opts))
		return libbpf_err_ptr(-EINVAL);
	if (!cnt) {
		pr_warn("prog '%s': no instances: the number of them is 0\n",
			bpf_program__name(prog));
		return libbpf_err_ptr(-EINVAL);
	}
	err = bpf_variant_check(prog);
	if (err)
		return libbpf_err_ptr(err);

	if (cnt > MAX_INSTANCES) {
		pr_warn("prog '%s': no instances: %u are more than %u\n",
			bpf_program__name(prog), cnt, MAX_INSTANCES);
		return libbpf_err_ptr(-E2BIG);
	}
	set = calloc(1, sizeof(*set) + cnt * sizeof(set->instances[0]));
	if (!set)
		return libbpf_err_ptr(-ENOMEM);
	set->cnt = cnt;
	set->base = prog;
	set->obj = bpf_program_object(prog);
	head = bpf_object_instances(set->obj);
	/* the newest set comes first */
	for (other = *head; other && !set->first; other = other->next) {
		if (other->base == prog)
			set->first = other->first + other->cnt;
	}
	set->next = *head;
	*head = set;

	err = prepare_all(set, prog, opts);
	if (err)
		goto err_free;
	btf = make_btf(set, prog);
	if (IS_ERR(btf)) {
		err = PTR_ERR(btf);
		goto err_free;
	}
	err = load_all(set, prog, OPTS_GET(opts, keep_going, false));
	btf__free(btf);
	if (err)
		goto err_free;
	return set;

err_free:
	bpf_instances__free(set);
	return libbpf_err_ptr(err);
}

struct bpf_program *bpf_instances__program(const struct bpf_instances *set, __u32 idx)
{
	if (!set || idx >= set->cnt)
		return libbpf_err_ptr(-EINVAL);
	if (!set->instances[idx].prog)
		return libbpf_err_ptr(set->instances[idx].err);
	return set->instances[idx].prog;
}

__u32 bpf_instances__cnt(const struct bpf_instances *set)
{
	return set ? set->cnt : 0;
}

/* Close all instances of a list of sets, which keep them as programs that aren't loaded. */
void bpf_instances_unload(struct bpf_instances *first)
{
	struct bpf_instances *set;
	__u32 i;

	for (set = first; set; set = set->next) {
		for (i = 0; i < set->cnt; i++)
			bpf_program__unload(set->instances[i].prog);
	}
}

void bpf_instances__free(struct bpf_instances *set)
{
	struct bpf_instances **p;
	__u32 i;

	if (IS_ERR_OR_NULL(set))
		return;

	for (p = bpf_object_instances(set->obj); *p; p = &(*p)->next) {
		if (*p == set) {
			*p = set->next;
			break;
		}
	}
	for (i = 0; i < set->cnt; i++) {
		if (set->instances[i].prog)
			bpf_variant_free(set->instances[i].prog);
		drop_code(&set->instances[i].variant);
	}
	free(set);
}
