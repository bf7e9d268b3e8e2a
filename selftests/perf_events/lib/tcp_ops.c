// SPDX-License-Identifier: GPL-2.0
/* The value of the map is laid out by what vmlinux's BTF says of the struct. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>

#include "bpf_load.h"
#include "tcp_ops.h"

#define VALUE	"bpf_struct_ops_" OPS

const char *const ops_members[NR_MEMBERS] = { "ssthresh", "cong_avoid", "undo_cwnd" };

void tcp_ops__init(struct tcp_ops *ops)
{
	memset(ops, 0, sizeof(*ops));
	memset(ops->progs, 0xff, sizeof(ops->progs));
	ops->map = -1;
	ops->link = -1;
}

static int load_progs(struct tcp_ops *ops, char *data)
{
	int i, off, member, id = vmlinux_btf_id(OPS, BTF_KIND_STRUCT);

	for (i = 0; i < NR_MEMBERS; i++) {
		off = vmlinux_offset_of(OPS, ops_members[i], &member);
		if (off < 0)
			return off;
		ops->progs[i] = load_return(BPF_PROG_TYPE_STRUCT_OPS, member, id, 0);
		if (ops->progs[i] < 0)
			return ops->progs[i];
		*(unsigned long *)(data + off) = ops->progs[i];
	}
	snprintf(data + vmlinux_offset_of(OPS, "name", NULL), 16, "ksym_%d", getpid());
	ops->owner = (unsigned long *)(data + vmlinux_offset_of(OPS, "owner", NULL));
	return 0;
}

/* The map needs BTF, and no type of it. */
static int create_map(struct tcp_ops *ops, __u32 value_id, __u32 size)
{
	struct prog_btf btf = load_btf("main", "sub", "file", "line");

	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = ops->flags, .btf_fd = btf.fd,
		    .btf_vmlinux_value_type_id = value_id);

	ops->map = bpf_map_create(BPF_MAP_TYPE_STRUCT_OPS, NULL, sizeof(int), size, 1, &opts);
	close_fd(&btf.fd);
	return ops->map < 0 ? ops->map : 0;
}

int tcp_ops__create(struct tcp_ops *ops, __u32 flags)
{
	int id = vmlinux_btf_id(VALUE, BTF_KIND_STRUCT), size, err;

	if (id < 0)
		return id;
	size = btf__type_by_id(vmlinux_btf, id)->size;
	ops->flags = flags;
	ops->value = calloc(1, size);
	if (!ops->value)
		return -ENOMEM;
	err = load_progs(ops, ops->value + vmlinux_offset_of(VALUE, "data", NULL));
	return err ?: create_map(ops, id, size);
}

void tcp_ops__close(struct tcp_ops *ops)
{
	int i;

	close_fd(&ops->link);
	if (ops->map >= 0 && !(ops->flags & BPF_F_LINK))
		tcp_ops__unregister(ops);	/* -ENOENT: was not registered */
	close_fd(&ops->map);
	for (i = 0; i < NR_MEMBERS; i++)
		close_fd(&ops->progs[i]);
	free(ops->value);
	ops->value = NULL;
}

int tcp_ops__register(struct tcp_ops *ops)
{
	int err = bpf_map_update_elem(ops->map, &zero, ops->value, BPF_ANY);

	if (err || !(ops->flags & BPF_F_LINK))
		return err;
	ops->link = bpf_link_create(ops->map, 0, BPF_STRUCT_OPS, NULL);
	return ops->link < 0 ? ops->link : 0;
}

int tcp_ops__unregister(struct tcp_ops *ops)
{
	return bpf_map_delete_elem(ops->map, &zero);
}
