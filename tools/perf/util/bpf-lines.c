// SPDX-License-Identifier: GPL-2.0
/*
 * Find the source line of an instruction of a BPF program. See bpf-lines.h.
 *
 * The lines of a program are stored in a table sorted by address. It is built on
 * first use and belongs to the bpf_prog_info_node. libbpf's bpf_prog_linfo is not
 * used: it expects the records in the order of the functions, and refuses all records
 * of a program if one is out of order. bpf-code.c has the bounds of the functions.
 */
#include "bpf-lines.h"
#include "bpf-code.h"
#include "bpf-event.h"
#include "bpf-utils.h"
#include "debug.h"
#include "dso.h"
#include "env.h"
#include "string2.h"

#include <stdlib.h>
#include <string.h>
#include <bpf/btf.h>
#include <linux/zalloc.h>

struct bpf_lines {
	u32		nr;
	struct bpf_line	line[];
};

/* Return: false, and line 0, if the BTF does not have the names. */
static bool bpf_line__init(struct bpf_line *line, const struct btf *btf,
			   const struct bpf_line_info *linfo, u64 addr)
{
	const char *file = btf ? btf__name_by_offset(btf, linfo->file_name_off) : NULL;
	const char *text = btf ? btf__name_by_offset(btf, linfo->line_off) : NULL;
	bool known = file && *file && text;

	line->addr = addr;
	line->insn_off = linfo->insn_off;
	line->file = known ? file : "";
	line->text = known ? text : "";
	line->line = known ? BPF_LINE_INFO_LINE_NUM(linfo->line_col) : 0;
	return known;
}

static int bpf_line__cmp(const void *a, const void *b)
{
	const struct bpf_line *l = a, *r = b;

	if (l->addr != r->addr)
		return l->addr < r->addr ? -1 : 1;
	/* An instruction for which the JIT emits no code has the next one's address. */
	return l->insn_off < r->insn_off ? -1 : l->insn_off > r->insn_off;
}

static struct bpf_lines *bpf_lines__new(const struct bpf_prog_info *info,
					const struct btf *btf)
{
	const void *linfo = (const void *)(uintptr_t)info->line_info;
	const void *jited = (const void *)(uintptr_t)info->jited_line_info;
	u32 nr = 0, unknown = 0;
	struct bpf_lines *lines;

	if (linfo && jited)
		nr = min(info->nr_line_info, info->nr_jited_line_info);

	lines = zalloc(sizeof(*lines) + nr * sizeof(lines->line[0]));
	if (!lines)
		return NULL;

	for (u32 i = 0; i < nr; i++) {
		u64 addr = *(const u64 *)(jited + (size_t)i * info->jited_line_info_rec_size);

		if (!bpf_line__init(&lines->line[i], btf,
				    linfo + (size_t)i * info->line_info_rec_size, addr))
			unknown++;
	}
	lines->nr = nr;
	if (unknown)
		pr_debug("BPF program %u: %u of %u source lines have no file name or text in its BTF\n",
			 info->id, unknown, nr);

	qsort(lines->line, lines->nr, sizeof(lines->line[0]), bpf_line__cmp);
	return lines;
}

/* Return the last line that begins at or before @addr, or NULL. */
static const struct bpf_line *bpf_lines__find(const struct bpf_lines *lines, u64 addr)
{
	u32 lo = 0, hi = lines->nr;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (lines->line[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &lines->line[lo - 1] : NULL;
}

/* Called with env->bpf_progs.lock held. */
static struct bpf_lines *env__load_bpf_lines(struct perf_env *env,
					     const struct bpf_prog_info *info)
{
	struct btf_node *node = __perf_env__find_btf(env, info->btf_id);

	/* In a pipe and in perf top the BTF may arrive after the program: retry later. */
	if (!node && info->btf_id)
		return NULL;

	return bpf_lines__new(info, node ? btf_node__btf(node) : NULL);
}

static struct bpf_lines *bpf_prog__lines(struct dso_bpf_prog *prog)
{
	struct bpf_prog_info_node *node = prog->info;
	struct bpf_lines *lines;

	mutex_lock(&prog->env->bpf_progs.lock);
	if (!node->lines)
		node->lines = env__load_bpf_lines(prog->env, &node->info_linear->info);
	lines = node->lines;
	mutex_unlock(&prog->env->bpf_progs.lock);
	return lines;
}

/**
 * dso__bpf_line - find the source line of an instruction
 * @dso: a BPF function, of type DSO_BINARY_TYPE__BPF_PROG_INFO
 * @addr: memory address of the instruction, in the recorded kernel
 *
 * Return: the line, which lives as long as the dso has its program; the one before for an
 * instruction without a line. NULL if the program has none for @addr or @addr is not in
 * the function.
 */
const struct bpf_line *dso__bpf_line(struct dso *dso, u64 addr)
{
	struct dso_bpf_prog *prog = dso__bpf_prog(dso);
	const struct bpf_line *line = NULL;
	struct bpf_lines *lines;
	struct bpf_code code;

	if (dso__binary_type(dso) != DSO_BINARY_TYPE__BPF_PROG_INFO ||
	    dso__bpf_code(dso, &code) ||
	    addr < code.addr || addr - code.addr >= code.len)
		return NULL;

	lines = bpf_prog__lines(prog);
	if (lines)
		line = bpf_lines__find(lines, addr);

	/*
	 * Line 0: the compiler assigned the instruction to no line, so that it belongs to the
	 * one before. Without a file, BTF lacks the name. Lines of other functions precede.
	 */
	while (line && !line->line && *line->file)
		line = line == lines->line ? NULL : line - 1;
	return line && line->line && line->addr >= code.addr ? line : NULL;
}

/**
 * dso__bpf_lines - get the lines whose code begins in a part of a function
 * @dso: a BPF function, of type DSO_BINARY_TYPE__BPF_PROG_INFO
 * @start: memory address, in the recorded kernel
 * @end: memory address after the part
 * @first: set to the first line; the others follow it, in the order of addresses
 *
 * Unlike those of dso__bpf_line(), the lines may have the number 0: the compiler assigned
 * the instructions to no line.
 *
 * Return: the number of lines.
 */
u32 dso__bpf_lines(struct dso *dso, u64 start, u64 end, const struct bpf_line **first)
{
	struct dso_bpf_prog *prog = dso__bpf_prog(dso);
	const struct bpf_line *line, *after;
	struct bpf_lines *lines;

	if (dso__binary_type(dso) != DSO_BINARY_TYPE__BPF_PROG_INFO || !prog->info ||
	    start >= end)
		return 0;

	lines = bpf_prog__lines(prog);
	if (!lines)
		return 0;

	after = bpf_lines__find(lines, end - 1);
	after = after ? after + 1 : lines->line;
	line = start ? bpf_lines__find(lines, start - 1) : NULL;
	line = line ? line + 1 : lines->line;
	*first = line;
	return after - line;
}

/**
 * dso__bpf_addr2line - addr2line() for BPF programs
 * @dso: a BPF function, of type DSO_BINARY_TYPE__BPF_PROG_INFO
 * @addr: memory address of an instruction, in the recorded kernel
 * @file: set to the name of the source file, which the caller frees; may be NULL
 * @line: set to the number of the line; may be NULL
 *
 * Return: 1, or 0 if the line is not known.
 */
int dso__bpf_addr2line(struct dso *dso, u64 addr, char **file, unsigned int *line)
{
	const struct bpf_line *found = dso__bpf_line(dso, addr);

	if (!found)
		return 0;

	if (file) {
		*file = strreplace_controls(strdup(found->file));
		if (!*file)
			return 0;
	}
	if (line)
		*line = found->line;
	return 1;
}
