/* SPDX-License-Identifier: GPL-2.0 */
/*
 * As much of a BTF reader as a test without libbpf needs: the id of a type by
 * its name, and the members of a struct, from /sys/kernel/btf/vmlinux.
 */
#ifndef SELFTESTS_PERF_EVENTS_BTF_LOOKUP_H
#define SELFTESTS_PERF_EVENTS_BTF_LOOKUP_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/btf.h>

#define BTF_VMLINUX	"/sys/kernel/btf/vmlinux"

struct btf_lookup {
	char *data;
	const char *types, *types_end;
	const char *strs, *strs_end;
};

static inline void btf_lookup__close(struct btf_lookup *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

static inline int btf_lookup__read(struct btf_lookup *b, int fd, size_t size)
{
	size_t done = 0;
	ssize_t n;

	b->data = malloc(size);
	if (!b->data)
		return -ENOMEM;

	while (done < size) {
		n = read(fd, b->data + done, size - done);
		if (n < 0)
			return -errno;
		if (!n)
			return -EIO;
		done += n;
	}
	return 0;
}

static inline int btf_lookup__init(struct btf_lookup *b, size_t size)
{
	const struct btf_header *hdr = (void *)b->data;
	const size_t min = offsetof(struct btf_header, str_len) + sizeof(__u32);

	if (size < min || hdr->magic != BTF_MAGIC || hdr->hdr_len < min ||
	    (__u64)hdr->hdr_len + hdr->type_off + hdr->type_len > size ||
	    (__u64)hdr->hdr_len + hdr->str_off + hdr->str_len > size ||
	    !hdr->str_len)
		return -EINVAL;

	b->types = b->data + hdr->hdr_len + hdr->type_off;
	b->types_end = b->types + hdr->type_len;
	b->strs = b->data + hdr->hdr_len + hdr->str_off;
	b->strs_end = b->strs + hdr->str_len;
	return b->strs_end[-1] ? -EINVAL : 0;
}

/* Return: 0 or -errno; in both cases btf_lookup__close() frees @b. */
static inline int btf_lookup__open(struct btf_lookup *b, const char *path)
{
	struct stat st;
	int fd, err;

	memset(b, 0, sizeof(*b));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;

	err = fstat(fd, &st) ? -errno : btf_lookup__read(b, fd, st.st_size);
	close(fd);
	return err ?: btf_lookup__init(b, st.st_size);
}

/* Bytes of @t and of what follows it, 0 for a kind that is not known here. */
static inline size_t btf_lookup__type_size(const struct btf_type *t)
{
	size_t vlen = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return sizeof(*t);
	case BTF_KIND_INT:
		return sizeof(*t) + sizeof(__u32);
	case BTF_KIND_ARRAY:
		return sizeof(*t) + sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return sizeof(*t) + vlen * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return sizeof(*t) + vlen * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return sizeof(*t) + vlen * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return sizeof(*t) + vlen * sizeof(struct btf_param);
	case BTF_KIND_VAR:
		return sizeof(*t) + sizeof(struct btf_var);
	case BTF_KIND_DATASEC:
		return sizeof(*t) + vlen * sizeof(struct btf_var_secinfo);
	case BTF_KIND_DECL_TAG:
		return sizeof(*t) + sizeof(struct btf_decl_tag);
	default:
		return 0;
	}
}

static inline bool btf_lookup__named(const struct btf_lookup *b, __u32 off,
				     const char *name)
{
	return off < b->strs_end - b->strs && !strcmp(b->strs + off, name);
}

/*
 * Return: the id of the first @kind named @name, with the type itself in @tp
 * unless that is NULL; -ENOENT without one; -EINVAL where the types cannot be
 * followed, a kind newer than this file for example.
 */
static inline int btf_lookup__find(const struct btf_lookup *b, const char *name,
				   __u32 kind, const struct btf_type **tp)
{
	const char *pos = b->types;
	int id;

	for (id = 1; pos < b->types_end; id++) {
		const struct btf_type *t = (const void *)pos;
		size_t left = b->types_end - pos, size;

		if (left < sizeof(*t))
			return -EINVAL;
		size = btf_lookup__type_size(t);
		if (!size || size > left)
			return -EINVAL;
		if (BTF_INFO_KIND(t->info) == kind &&
		    btf_lookup__named(b, t->name_off, name)) {
			if (tp)
				*tp = t;
			return id;
		}
		pos += size;
	}
	return -ENOENT;
}

/* Return: the index of struct @t's member @name, its byte in @off; -ENOENT. */
static inline int btf_lookup__member(const struct btf_lookup *b,
				     const struct btf_type *t,
				     const char *name, __u32 *off)
{
	const struct btf_member *m = (const void *)(t + 1);
	__u32 i, bits;

	for (i = 0; i < BTF_INFO_VLEN(t->info); i++, m++) {
		if (!btf_lookup__named(b, m->name_off, name))
			continue;
		bits = m->offset;
		if (BTF_INFO_KFLAG(t->info))
			bits = BTF_MEMBER_BIT_OFFSET(bits);
		*off = bits / 8;
		return i;
	}
	return -ENOENT;
}

#endif
