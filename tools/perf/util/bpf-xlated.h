/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_XLATED_H
#define __PERF_BPF_XLATED_H

#include <linux/compiler.h>
#include <linux/types.h>
#include <stddef.h>
#include <symbol/kallsyms.h>

struct bpf_insn;
struct bpf_prog_info;
struct map;

/* Enough for an instruction and the name of a function that it calls */
#define BPF_XLATED_TEXT_SIZE	(KSYM_NAME_LEN + 64)

/**
 * struct bpf_xlated - the BPF instructions of a program
 * @map: map of one of its functions
 * @info: of the program
 * @insns: the instructions, which live as long as the dso of @map
 * @nr: number of 8-byte instructions; some take two
 */
struct bpf_xlated {
	struct map			*map;
	const struct bpf_prog_info	*info;
	const struct bpf_insn		*insns;
	u32				nr;
};

#ifdef HAVE_LIBBPF_SUPPORT
int map__bpf_xlated(struct map *map, struct bpf_xlated *xlated);
u32 bpf_xlated__scnprintf(const struct bpf_xlated *xlated, u32 i, char *buf, size_t size);
#else
#include <errno.h>

static inline int map__bpf_xlated(struct map *map __maybe_unused,
				  struct bpf_xlated *xlated __maybe_unused)
{
	return -ENODATA;
}

static inline u32 bpf_xlated__scnprintf(const struct bpf_xlated *xlated __maybe_unused,
					u32 i __maybe_unused, char *buf __maybe_unused,
					size_t size __maybe_unused)
{
	return 1;
}
#endif

#endif /* __PERF_BPF_XLATED_H */
