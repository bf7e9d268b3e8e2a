// SPDX-License-Identifier: GPL-2.0
/* Walks the types of a BTF file, whose sizes and offsets are checked first. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "btf_lookup.h"

void btf_lookup__close(struct btf_lookup *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

static int btf_lookup__read(struct btf_lookup *b, int fd, size_t size)
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

static int btf_lookup__init(struct btf_lookup *b, size_t size)
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

int btf_lookup__open(struct btf_lookup *b, const char *path)
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

/* Return: the bytes of @t and of its trailing data; 0 for an unknown kind. */
static size_t btf_lookup__type_size(const struct btf_type *t)
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

static bool btf_lookup__named(const struct btf_lookup *b, __u32 off,
			      const char *name)
{
	return off < b->strs_end - b->strs && !strcmp(b->strs + off, name);
}

int btf_lookup__find(const struct btf_lookup *b, const char *name, __u32 kind,
		     const struct btf_type **tp)
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

int btf_lookup__member(const struct btf_lookup *b, const struct btf_type *t,
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

int btf_vmlinux_id(const char *name, __u32 kind)
{
	struct btf_lookup btf;
	int id = btf_lookup__open(&btf, BTF_VMLINUX);

	if (!id)
		id = btf_lookup__find(&btf, name, kind, NULL);
	btf_lookup__close(&btf);
	return id;
}
