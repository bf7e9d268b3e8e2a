/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A struct_ops map: a TCP congestion control of three functions that return 0,
 * which is what the kernel asks for at least.
 */
#ifndef SELFTESTS_PERF_EVENTS_TCP_OPS_H
#define SELFTESTS_PERF_EVENTS_TCP_OPS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf_raw.h"
#include "btf_lookup.h"

#define OPS "tcp_congestion_ops"

static const char *const ops_members[] = { "ssthresh", "cong_avoid", "undo_cwnd" };

#define NR_MEMBERS ((int)(sizeof(ops_members) / sizeof(*ops_members)))

struct tcp_ops {
	int progs[NR_MEMBERS], btf, map, link;
	__u32 flags;
	__u32 value_size;
	char *value;
};

static inline void tcp_ops__init(struct tcp_ops *ops)
{
	memset(ops, 0, sizeof(*ops));
	memset(ops->progs, 0xff, sizeof(ops->progs));
	ops->btf = -1;
	ops->map = -1;
	ops->link = -1;
}

static inline void tcp_ops__close(struct tcp_ops *ops)
{
	int i;

	close_fd(&ops->link);
	if (ops->map >= 0 && !(ops->flags & BPF_F_LINK))
		bpf_raw_map_delete(ops->map);	/* -ENOENT: was not registered */
	close_fd(&ops->map);
	close_fd(&ops->btf);
	for (i = 0; i < NR_MEMBERS; i++)
		close_fd(&ops->progs[i]);
	free(ops->value);
	ops->value = NULL;
}

static inline int tcp_ops__load_progs(struct tcp_ops *ops,
				      const struct btf_lookup *btf,
				      __u32 data_off)
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
		ops->progs[i] = bpf_raw_load_return0(BPF_PROG_TYPE_STRUCT_OPS,
						     member, id);
		if (ops->progs[i] < 0)
			return ops->progs[i];
		*(unsigned long *)(ops->value + data_off + off) = ops->progs[i];
	}

	id = btf_lookup__member(btf, t, "name", &off);
	if (id < 0)
		return id;
	snprintf(ops->value + data_off + off, 16, "ksym_%d", getpid());
	return 0;
}

static inline int tcp_ops__create_map(struct tcp_ops *ops, __u32 value_id)
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

/* Return: 0; -ENOENT where the kernel has no such struct_ops; -errno. */
static inline int tcp_ops__create(struct tcp_ops *ops, __u32 flags)
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
	err = ops->value ? tcp_ops__load_progs(ops, &btf, data_off) : -ENOMEM;
	if (err)
		goto out;
	ops->btf = bpf_raw_btf();
	err = ops->btf < 0 ? ops->btf : tcp_ops__create_map(ops, id);
out:
	btf_lookup__close(&btf);
	return err;
}

static inline int tcp_ops__register(struct tcp_ops *ops)
{
	int err = bpf_raw_map_update(ops->map, ops->value);

	if (err || !(ops->flags & BPF_F_LINK))
		return err;
	ops->link = bpf_raw_link(ops->map, BPF_STRUCT_OPS);
	return ops->link < 0 ? ops->link : 0;
}

#endif
