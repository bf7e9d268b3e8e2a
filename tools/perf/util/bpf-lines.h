/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Find the source line of an instruction of a BPF program.
 *
 * Each program comes with its own line info. line_info maps an instruction of the
 * bytecode to a file, a line number and the text of that line, as offsets into
 * the strings of the program's BTF. jited_line_info has the addresses of the same
 * instructions in the machine code. perf.data has both, so that neither the ELF
 * file nor the source file is needed to annotate a recording.
 */
#ifndef __PERF_BPF_LINES_H
#define __PERF_BPF_LINES_H

#include <linux/compiler.h>
#include <linux/types.h>
#include <stddef.h>

struct dso;

/**
 * struct bpf_line - a source line, from the address where its code begins
 * @addr: memory address of the first instruction, in the recorded kernel
 * @file: name of the source file, as passed to the compiler
 * @text: text of the line; empty if the compiler could not read it
 * @line: number of the line in @file, from 1
 * @insn_off: number of its first BPF instruction in the program, from 0
 *
 * The strings come from the BTF in a file, which may be crafted: pass them through
 * strreplace_controls() before printing them.
 */
struct bpf_line {
	u64		addr;
	const char	*file;
	const char	*text;
	u32		line;
	u32		insn_off;
};

#ifdef HAVE_LIBBPF_SUPPORT
const struct bpf_line *dso__bpf_line(struct dso *dso, u64 addr);
u32 dso__bpf_lines(struct dso *dso, u64 start, u64 end, const struct bpf_line **first);
int dso__bpf_addr2line(struct dso *dso, u64 addr, char **file, unsigned int *line);
#else
static inline const struct bpf_line *dso__bpf_line(struct dso *dso __maybe_unused,
						   u64 addr __maybe_unused)
{
	return NULL;
}

static inline u32 dso__bpf_lines(struct dso *dso __maybe_unused, u64 start __maybe_unused,
				 u64 end __maybe_unused, const struct bpf_line **first)
{
	*first = NULL;
	return 0;
}

static inline int dso__bpf_addr2line(struct dso *dso __maybe_unused,
				     u64 addr __maybe_unused,
				     char **file __maybe_unused,
				     unsigned int *line __maybe_unused)
{
	return 0;
}
#endif

#endif /* __PERF_BPF_LINES_H */
