/* SPDX-License-Identifier: GPL-2.0 */
/*
 * As much of a BTF reader as a test without libbpf needs: the id of a type by
 * its name, and the members of a struct.
 */
#ifndef SELFTESTS_PERF_EVENTS_BTF_LOOKUP_H
#define SELFTESTS_PERF_EVENTS_BTF_LOOKUP_H

#include <linux/btf.h>

#define BTF_VMLINUX	"/sys/kernel/btf/vmlinux"

struct btf_lookup {
	char *data;
	const char *types, *types_end;
	const char *strs, *strs_end;
};

/* Return: 0 or -errno; in both cases btf_lookup__close() frees @b. */
int btf_lookup__open(struct btf_lookup *b, const char *path);
void btf_lookup__close(struct btf_lookup *b);

/*
 * Return: the id of the first @kind named @name, with the type itself in @tp
 * unless that is NULL; -ENOENT without one; -EINVAL where the types cannot be
 * followed, a kind newer than this library for example.
 */
int btf_lookup__find(const struct btf_lookup *b, const char *name, __u32 kind,
		     const struct btf_type **tp);

/* Return: the index of struct @t's member @name, its byte in @off; -ENOENT. */
int btf_lookup__member(const struct btf_lookup *b, const struct btf_type *t,
		       const char *name, __u32 *off);

/* Return: the id of the @kind named @name in BTF_VMLINUX, or -errno. */
int btf_vmlinux_id(const char *name, __u32 kind);

#endif
