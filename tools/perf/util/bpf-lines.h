/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which source line is an instruction of a BPF program from?
 *
 * A program carries its own answer: line_info names, for an instruction of the
 * bytecode, a file, a line, and the text of that line, as offsets into the
 * strings of the program's BTF; jited_line_info has the addresses that the
 * same instructions came to have. Both are in perf.data, so that neither an ELF
 * file nor the source has to be there when a recording is looked at.
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
 * @file: name of the source file, as the compiler was given it
 * @text: the line itself; empty if the compiler could not read it
 * @line: number of the line in @file, from 1
 *
 * The strings are the BTF's, which a file may have made up: who prints them
 * passes them through strreplace_controls().
 */
struct bpf_line {
	u64		addr;
	const char	*file;
	const char	*text;
	u32		line;
};

#ifdef HAVE_LIBBPF_SUPPORT
const struct bpf_line *dso__bpf_line(struct dso *dso, u64 addr);
int dso__bpf_addr2line(struct dso *dso, u64 addr, char **file, unsigned int *line);
#else
static inline const struct bpf_line *dso__bpf_line(struct dso *dso __maybe_unused,
						   u64 addr __maybe_unused)
{
	return NULL;
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
