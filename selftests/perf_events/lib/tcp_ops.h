/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A struct_ops map: a TCP congestion control of three functions that return 0,
 * the least that the kernel accepts.
 */
#ifndef SELFTESTS_PERF_EVENTS_TCP_OPS_H
#define SELFTESTS_PERF_EVENTS_TCP_OPS_H

#include <linux/types.h>

#define OPS		"tcp_congestion_ops"
#define NR_MEMBERS	3

extern const char *const ops_members[NR_MEMBERS];

struct tcp_ops {
	int progs[NR_MEMBERS], map, link;
	__u32 flags;
	char *value;		/* that tcp_ops__register() writes */
	unsigned long *owner;	/* the struct's member "owner", in the value */
};

void tcp_ops__init(struct tcp_ops *ops);

/*
 * Load the programs and create the map, with BPF_F_LINK or 0 in @flags.
 * Return: 0; -ENOENT where the kernel has no such struct_ops; -errno.
 */
int tcp_ops__create(struct tcp_ops *ops, __u32 flags);

/* Unregister it if it is registered, and free all of it. */
void tcp_ops__close(struct tcp_ops *ops);

/* Return: 0 or -errno. */
int tcp_ops__register(struct tcp_ops *ops);

/* Without BPF_F_LINK only: delete the value. Return: 0 or -errno. */
int tcp_ops__unregister(struct tcp_ops *ops);

#endif
