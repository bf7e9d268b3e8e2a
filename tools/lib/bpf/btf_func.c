// SPDX-License-Identifier: (LGPL-2.1 OR BSD-2-Clause)
/*
 * Functions of the kernel by name and source file
 *
 * BTF of vmlinux and of modules has one FUNC of a name at most. .BTF.func has FUNCs of
 * those functions that are not found that way: several of one name, or clones as
 * foo.isra.0(). It is split BTF over that of its object, and the kernel takes its ids as
 * attach_btf_id, too. See Documentation/bpf/btf_func.rst.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "btf.h"
#include "libbpf_internal.h"

#define FILE_TAG	"file:"

/* Return the path of the source file of a function whose name is ambiguous, or NULL. */
static const char *func_file(const struct btf *btf, __u32 func_id)
{
	const struct btf_type *t;
	const char *tag;
	__u32 id;

	/* The tags of a function come right after it. */
	for (id = func_id + 1; id < btf__type_cnt(btf); id++) {
		t = btf__type_by_id(btf, id);
		if (!btf_is_decl_tag(t) || t->type != func_id)
			break;
		tag = btf__name_by_offset(btf, t->name_off);
		if (!strncmp(tag, FILE_TAG, strlen(FILE_TAG)))
			return tag + strlen(FILE_TAG);
	}
	return NULL;
}

/* Is @file the end of @path, from a directory or the file's name on? */
static bool path_ends_with(const char *path, const char *file)
{
	size_t len = strlen(path), end = strlen(file);

	return len >= end && !strcmp(path + len - end, file) &&
	       (len == end || path[len - end - 1] == '/' || *file == '/');
}

static bool is_named(const struct btf *btf, __u32 id, const char *name, size_t name_len)
{
	const struct btf_type *t = btf__type_by_id(btf, id);
	const char *func_name = btf__name_by_offset(btf, t->name_off);

	return btf_is_func(t) && !strncmp(func_name, name, name_len) && !func_name[name_len];
}

static bool is_from(const struct btf *btf, __u32 id, const char *file)
{
	const char *path = func_file(btf, id);

	return path && path_ends_with(path, file);
}

/*
 * The FUNC of this name in .BTF, which has no files, or 0. A module has none of its own if it
 * would be the same as that of vmlinux.
 */
static __u32 find_in_base(const struct btf *base, const char *name, size_t name_len)
{
	char *copy = strndup(name, name_len);
	int id = 0;

	if (copy) {
		id = btf__find_by_name_kind_own(base, copy, BTF_KIND_FUNC);
		if (id < 0)
			id = btf__find_by_name_kind(base, copy, BTF_KIND_FUNC);
	}
	free(copy);
	return id > 0 ? id : 0;
}

/* A function whose name is unique in @object: is it from that file? The kernel knows. */
static bool is_target(const char *object, const char *target)
{
	char name[512];
	int fd;

	snprintf(name, sizeof(name), "%s:%s", object, target);
	fd = libbpf_perf_kprobe_open(name);
	if (fd >= 0) {
		close(fd);
		return true;
	}
	pr_debug("the kernel does not find %s, or may not tell: %s\n", name, errstr(fd));
	return false;
}

/*
 * Find the FUNC of a function in .BTF.func of vmlinux or of a module.
 * @object: that object
 * @base: its BTF
 * @btf: its .BTF.func, or NULL
 * @target: NAME or NAME@FILE; FILE is the end of the source file's path
 *
 * Return the id; -ENOENT if there is no such function, or the kernel does not have
 * .BTF.func; -EINVAL if there are several.
 */
int libbpf_find_btf_func(const char *object, const struct btf *base, const struct btf *btf,
			 const char *target)
{
	const char *file = strchr(target, '@');
	size_t name_len = file ? file++ - target : strlen(target);
	__u32 id, found = 0, named = 0, only = 0;

	for (id = btf__type_cnt(base); btf && id < btf__type_cnt(btf); id++) {
		if (!is_named(btf, id, target, name_len))
			continue;
		named++;
		only = id;
		if (file && !is_from(btf, id, file))
			continue;
		if (found) {
			pr_warn("the kernel has several functions %.*s(), in %s, %s, ...: choose one as %.*s@FILE\n",
				(int)name_len, target, func_file(btf, found) ?: "?",
				func_file(btf, id) ?: "?", (int)name_len, target);
			return -EINVAL;
		}
		found = id;
	}
	if (!found && file && btf && named < 2) {
		only = only ?: find_in_base(base, target, name_len);
		if (only && is_target(object, target))
			found = only;
	}
	return found ? (int)found : -ENOENT;
}

/*
 * Load .BTF.func from @path, or return NULL. An older kernel does not have it, and neither
 * has one that was built without CONFIG_DEBUG_INFO_BTF_FUNC.
 */
struct btf *libbpf_load_btf_func(struct btf *base, const char *path)
{
	struct btf *btf;

	if (access(path, R_OK))
		return NULL;
	btf = btf__parse_split(path, base);
	if (!btf)
		pr_warn("failed to load BTF from %s: %s\n", path, errstr(errno));
	return btf;
}
