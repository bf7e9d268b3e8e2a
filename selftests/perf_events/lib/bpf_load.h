/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BPF programs of a few instructions, and types, in addition to libbpf. A function that
 * returns int returns an fd or 0, or -errno, unless it says otherwise.
 */
#ifndef SELFTESTS_PERF_EVENTS_BPF_LOAD_H
#define SELFTESTS_PERF_EVENTS_BPF_LOAD_H

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/filter.h>

#include "kselftest.h"

#define ENOTSUPP_KERNEL	524	/* ENOTSUPP, which is in no uapi header */

#define BPF_CALL_KFUNC(BTF_ID)						\
	BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, BTF_ID)

static const int zero;		/* the key of the first value of a map */

/* Closes *@fd unless it is negative, and makes it -1. */
void close_fd(int *fd);

/* "return @val" for the BTF type @btf_id of vmlinux, a function or a struct. */
int load_return(enum bpf_prog_type type, __u32 attach, __u32 btf_id, int val);

/* A socket filter, "return 0", with the name @name. */
int load_filter(const char *name);

/* An array map with one value of @size bytes. */
int value_map(__u32 size);

/*
 * Run a program of @insns once, and read the value of @map, which it writes.
 * Return: 0, -errno, or what it returned, unless that is 0.
 */
int run_once(const struct bpf_insn *insns, size_t cnt, int map, void *value);

/* Run @prog @repeat times on a packet of zeros. */
int run_on_packet(int prog, unsigned int repeat);

/* The BTF of the kernel, or NULL */
extern struct btf *vmlinux_btf;

/* Return: the id of the @kind with the name @name in the BTF of the kernel; -ENOENT. */
int vmlinux_btf_id(const char *name, __u32 kind);

/* Return: the byte of @member in its struct @type, with the index in @i if not NULL; -ENOENT. */
int vmlinux_offset_of(const char *type, const char *member, int *i);

/* BTF in the kernel, and the offsets of two of its strings, for line info */
struct prog_btf {
	int fd;			/* or -errno */
	__u32 file, line;
};

/* The types of two functions, int (*)(void): @main has the id 3, and @sub 4. */
struct prog_btf load_btf(const char *main, const char *sub, const char *file, const char *line);

#endif
