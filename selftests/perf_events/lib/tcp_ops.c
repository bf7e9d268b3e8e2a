// SPDX-License-Identifier: GPL-2.0
/* The value of the map is laid out by what vmlinux's BTF says of the struct. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>

#include "bpf_raw.h"
#include "btf_lookup.h"
#include "tcp_ops.h"

const char *const ops_members[NR_MEMBERS] = { "ssthresh", "cong_avoid", "undo_cwnd" };

void tcp_ops__init(struct tcp_ops *ops)
{
	memset(ops, 0, sizeof(*ops));
	memset(ops->progs, 0xff, sizeof(ops->progs));
	ops->btf = -1;
	ops->map = -1;
	ops->link = -1;
}

/* BTF of one int: a struct_ops map needs BTF, and no type of it. */
static int load_btf(void)
{
	const struct {
		struct btf_header hdr;
		struct btf_type type;
		__u32 bits;
		char strs[8];
	} btf = {
		.hdr = {
			.magic = BTF_MAGIC,
			.version = BTF_VERSION,
			.hdr_len = sizeof(btf.hdr),
			.type_len = sizeof(btf.type) + sizeof(btf.bits),
			.str_off = sizeof(btf.type) + sizeof(btf.bits),
			.str_len = sizeof(btf.strs),
		},
		.type = { .name_off = 1, .info = BTF_KIND_INT << 24, .size = 4 },
		.bits = 32,
		.strs = "\0int",
	};
	union bpf_attr attr = {
		.btf = (unsigned long)&btf,
		.btf_size = sizeof(btf),
	};

	return bpf_raw(BPF_BTF_LOAD, &attr);
}

static int load_progs(struct tcp_ops *ops, const struct btf_lookup *btf, __u32 data_off)
{
	const struct btf_type *t;
	int i, id, member;
	__u32 off;

	id = btf_lookup__find(btf, OPS, BTF_KIND_STRUCT, &t);
	if (id < 0)
		return id;

	for (i = 0; i < NR_MEMBERS; i++) {
		member = btf_lookup__member(btf, t, ops_members[i], &off);
		if (member < 0)
			return member;
		ops->progs[i] = bpf_raw_load_return(BPF_PROG_TYPE_STRUCT_OPS,
						    member, id, 0);
		if (ops->progs[i] < 0)
			return ops->progs[i];
		*(unsigned long *)(ops->value + data_off + off) = ops->progs[i];
	}

	id = btf_lookup__member(btf, t, "name", &off);
	if (id < 0)
		return id;
	snprintf(ops->value + data_off + off, 16, "ksym_%d", getpid());

	id = btf_lookup__member(btf, t, "owner", &off);
	if (id < 0)
		return id;
	ops->owner_off = data_off + off;
	return 0;
}

static int create_map(struct tcp_ops *ops, __u32 value_id)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_STRUCT_OPS,
		.key_size = sizeof(__u32),
		.value_size = ops->value_size,
		.max_entries = 1,
		.map_flags = ops->flags,
		.btf_fd = ops->btf,
		.btf_vmlinux_value_type_id = value_id,
	};

	ops->map = bpf_raw(BPF_MAP_CREATE, &attr);
	return ops->map < 0 ? ops->map : 0;
}

int tcp_ops__create(struct tcp_ops *ops, __u32 flags)
{
	const struct btf_type *vt;
	struct btf_lookup btf;
	__u32 data_off;
	int err, id;

	err = btf_lookup__open(&btf, BTF_VMLINUX);
	if (err)
		goto out;
	id = btf_lookup__find(&btf, "bpf_struct_ops_" OPS, BTF_KIND_STRUCT, &vt);
	err = id < 0 ? id : btf_lookup__member(&btf, vt, "data", &data_off);
	if (err < 0)
		goto out;

	ops->flags = flags;
	ops->value_size = vt->size;
	ops->value = calloc(1, vt->size);
	err = ops->value ? load_progs(ops, &btf, data_off) : -ENOMEM;
	if (err)
		goto out;
	ops->btf = load_btf();
	err = ops->btf < 0 ? ops->btf : create_map(ops, id);
out:
	btf_lookup__close(&btf);
	return err;
}

void tcp_ops__close(struct tcp_ops *ops)
{
	int i;

	close_fd(&ops->link);
	if (ops->map >= 0 && !(ops->flags & BPF_F_LINK))
		tcp_ops__unregister(ops);	/* -ENOENT: was not registered */
	close_fd(&ops->map);
	close_fd(&ops->btf);
	for (i = 0; i < NR_MEMBERS; i++)
		close_fd(&ops->progs[i]);
	free(ops->value);
	ops->value = NULL;
}

void tcp_ops__set_owner(struct tcp_ops *ops, unsigned long owner)
{
	memcpy(ops->value + ops->owner_off, &owner, sizeof(owner));
}

int tcp_ops__register(struct tcp_ops *ops)
{
	int err = bpf_raw_map_update(ops->map, ops->value);

	if (err || !(ops->flags & BPF_F_LINK))
		return err;
	ops->link = bpf_raw_link(ops->map, BPF_STRUCT_OPS);
	return ops->link < 0 ? ops->link : 0;
}

int tcp_ops__unregister(struct tcp_ops *ops)
{
	__u32 key = 0;
	union bpf_attr attr = { .map_fd = ops->map, .key = (unsigned long)&key };

	return bpf_raw(BPF_MAP_DELETE_ELEM, &attr);
}
