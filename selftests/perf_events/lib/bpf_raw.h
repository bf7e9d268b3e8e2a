/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The few bpf() calls that the tests of this directory make, without libbpf.
 * A function that returns int returns an fd or 0, or -errno.
 */
#ifndef SELFTESTS_PERF_EVENTS_BPF_RAW_H
#define SELFTESTS_PERF_EVENTS_BPF_RAW_H

#include <linux/bpf.h>

#define ENOTSUPP_KERNEL	524	/* ENOTSUPP, which is in no uapi header */

#define BPF_RAW_INSN(CODE, DST, SRC, OFF, IMM)				\
	((struct bpf_insn){ .code = CODE, .dst_reg = DST, .src_reg = SRC,	\
			    .off = OFF, .imm = IMM })
#define BPF_RAW_MOV_IMM(DST, IMM)					\
	BPF_RAW_INSN(BPF_ALU64 | BPF_MOV | BPF_K, DST, 0, 0, IMM)
/* A 64-bit immediate takes two instructions, _LO and then _HI. */
#define BPF_RAW_LD_IMM64_LO(DST, SRC, IMM)				\
	BPF_RAW_INSN(BPF_LD | BPF_DW | BPF_IMM, DST, SRC, 0, (__u32)(IMM))
#define BPF_RAW_LD_IMM64_HI(IMM)					\
	BPF_RAW_INSN(0, 0, 0, 0, (__u64)(IMM) >> 32)
#define BPF_RAW_CALL(HELPER)						\
	BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, HELPER)
#define BPF_RAW_MOV_REG(DST, SRC)					\
	BPF_RAW_INSN(BPF_ALU64 | BPF_MOV | BPF_X, DST, SRC, 0, 0)
#define BPF_RAW_CALL_SUBPROG(OFF)					\
	BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, OFF)
#define BPF_RAW_CALL_KFUNC(BTF_ID)					\
	BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, BTF_ID)
#define BPF_RAW_EXIT()							\
	BPF_RAW_INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

int bpf_raw(enum bpf_cmd cmd, union bpf_attr *attr);

/* Closes *@fd unless it is negative, and makes it -1. */
void close_fd(int *fd);

/* @attr has prog_type and what this type needs; the rest is filled in here. */
int bpf_raw_load(union bpf_attr *attr, const struct bpf_insn *insns, __u32 cnt);

/* A program of @type with the name @name. */
int bpf_raw_load_named(enum bpf_prog_type type, const char *name,
		       const struct bpf_insn *insns, __u32 cnt);

/* "return @val" for the BTF type @btf_id of vmlinux, a function or a struct. */
int bpf_raw_load_return(enum bpf_prog_type type, __u32 attach, __u32 btf_id, int val);

/* A socket filter, "return 0", with the name @name. */
int bpf_raw_load_filter(const char *name);

/* Attach a program, or a struct_ops map, by a link. */
int bpf_raw_link(int fd, __u32 attach);

/* Return: what the program returned, or -errno. */
int bpf_raw_test_run(int prog_fd);

/* An array map with one value of @size bytes. */
int bpf_raw_value_map(__u32 size);

/* These write and read the value with the key 0. */
int bpf_raw_map_update(int fd, const void *value);
int bpf_raw_map_lookup(int fd, void *value);

#endif
