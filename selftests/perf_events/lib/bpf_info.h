/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program with two functions, BTF, line info and a map, and a copy of what
 * BPF_OBJ_GET_INFO_BY_FD returns for it.
 */
#ifndef SELFTESTS_PERF_EVENTS_BPF_INFO_H
#define SELFTESTS_PERF_EVENTS_BPF_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>

#define INFO_PROG_NAME	"told_main"
#define INFO_MAX	8	/* functions, lines, maps: more than the program has */
#define INFO_MAX_CODE	4096

struct info_copy {
	struct bpf_prog_info info;
	__u8 code[INFO_MAX_CODE];
	__u64 ksyms[INFO_MAX];
	__u32 lens[INFO_MAX];
	__u8 tags[INFO_MAX][BPF_TAG_SIZE];
	struct bpf_func_info funcs[INFO_MAX];
	struct bpf_line_info lines[INFO_MAX];
	__u64 jited_lines[INFO_MAX];
	__u32 maps[INFO_MAX];
};

/*
 * Read the information of @fd, including functions that the verifier added if @hidden.
 * Return: 0 or -errno.
 */
int info_copy__read(struct info_copy *c, int fd, bool hidden);

/* Is a kernel address in any of it? */
bool info_copy__has_address(const struct info_copy *c);

/*
 * Load the program: two functions with BTF and lines, a map, and, if this kernel has BPF
 * exceptions, which is stored in @throws, a callback that the verifier adds.
 * Return: an fd or -errno.
 */
int info_prog__load(bool *throws);

/* With the callback if @bpf_throw, the BTF id of that kfunc, is not 0. */
int info_prog__load_with(int bpf_throw);

/* A program of @nr instructions, with a line each. Return: an fd, or -errno. */
int info_prog__load_lines(int nr);

#endif
