// SPDX-License-Identifier: GPL-2.0
/*
 * Code of BPF programs, and other code that the kernel generates: it is in no file, and
 * its source lines are in the BTF of the program, not in DWARF.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/zalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "annotate.h"
#include "bpf-code.h"
#include "bpf-lines.h"
#include "bpf-xlated.h"
#include "disasm.h"
#include "dso.h"
#include "map.h"
#include "string2.h"
#include "symbol.h"

/* What is inserted above the machine code of a function */
struct bpf_view {
	struct annotate_args	*args;
	/* NULL: no BPF instructions */
	const struct bpf_xlated	*xlated;
	bool			show_source;
	/* the source line that was inserted last */
	const struct bpf_line	*prev;
	/* the instruction after the last; a crafted file may have an instruction in many lines */
	u32			next_insn;
};

static struct annotation_line *
bpf_view__insert_line(struct bpf_view *view, struct list_head *before, const char *text,
		      const char *fileloc, int line_nr)
{
	char *line = strreplace_controls(strdup(text)), *expanded = NULL;
	struct annotate_args *args = view->args;
	struct disasm_line *dl = NULL;
	size_t expanded_len;

	if (line) {
		args->offset = -1;
		args->line = expand_tabs(line, &expanded, &expanded_len);
		args->line_nr = line_nr;
		args->fileloc = (char *)fileloc;
		dl = args->line ? disasm_line__new(args) : NULL;
	}
	if (dl)
		list_add_tail(&dl->al.node, before);

	free(expanded);
	free(line);
	args->line = NULL;
	args->fileloc = NULL;
	return dl ? &dl->al : NULL;
}

/* Insert a BPF instruction, or why there is none: not source, which can be hidden. */
static int bpf_view__insert_text(struct bpf_view *view, struct list_head *before,
				 const char *text)
{
	struct annotation_line *al = bpf_view__insert_line(view, before, text, /*fileloc=*/NULL,
							   /*line_nr=*/0);

	if (!al)
		return -ENOMEM;
	al->is_bpf_insn = true;
	return 0;
}

/* Return: "file:line", to be freed, or NULL on ENOMEM. */
static char *bpf_line__fileloc(const struct bpf_line *line)
{
	char *fileloc;

	return asprintf(&fileloc, "%s:%u", line->file, line->line) < 0 ? NULL :
	       strreplace_controls(fileloc);
}

/*
 * Insert a source line unless it is the same as before, and above the first line of each
 * file the location.
 */
static int bpf_view__insert_source(struct bpf_view *view, struct list_head *before,
				   const struct bpf_line *line)
{
	bool new_file = !view->prev || strcmp(view->prev->file, line->file);
	char *fileloc;
	bool done;

	if (!new_file && view->prev->line == line->line)
		return 0;

	fileloc = bpf_line__fileloc(line);
	if (!fileloc)
		return -ENOMEM;
	done = (!new_file || !*line->text ||
		bpf_view__insert_line(view, before, fileloc, fileloc, 0)) &&
	       bpf_view__insert_line(view, before, *line->text ? line->text : fileloc, fileloc,
				     line->line);
	free(fileloc);
	view->prev = line;
	return done ? 0 : -ENOMEM;
}

/*
 * Behind the last line of a program are the instructions of functions that the verifier
 * added, which have no line. The last function ends with its first exit, as far as is known.
 */
static bool bpf_xlated__ends(const struct bpf_xlated *xlated, u32 i, u32 end)
{
	return xlated->info->nr_hidden_funcs && end == xlated->nr &&
	       xlated->insns[i].code == (BPF_JMP | BPF_EXIT);
}

static int bpf_view__insert_insns(struct bpf_view *view, struct list_head *before,
				  u32 start, u32 end)
{
	u32 i = max(start, view->next_insn);
	char buf[BPF_XLATED_TEXT_SIZE];
	bool ends = false;
	int err = 0;

	end = min(end, view->xlated->nr);
	if (i >= end)
		return 0;

	while (!err && !ends && i < end) {
		ends = bpf_xlated__ends(view->xlated, i, end);
		i += bpf_xlated__scnprintf(view->xlated, i, buf, sizeof(buf));
		err = bpf_view__insert_text(view, before, buf);
	}
	view->next_insn = i;
	return err;
}

/* A line has the BPF instructions up to those of the next one, or to the end of the program. */
static u32 bpf_view__line_end(const struct bpf_view *view, const struct bpf_line *line)
{
	u32 nr, end = view->xlated->nr;
	const struct bpf_line *lines;

	if (!end)
		return 0;
	nr = dso__bpf_lines(map__dso(view->args->ms->map), 0, ULLONG_MAX, &lines);
	for (u32 i = 0; i < nr; i++) {
		if (lines[i].insn_off > line->insn_off)
			end = min(end, lines[i].insn_off);
	}
	return end;
}

/*
 * Insert the lines whose code begins in [start, end), with their BPF instructions. Some
 * instructions have no code: their line begins where the next one does.
 */
static int bpf_view__insert_lines(struct bpf_view *view, struct list_head *before,
				  u64 start, u64 end)
{
	const struct bpf_line *lines;
	u32 nr = dso__bpf_lines(map__dso(view->args->ms->map), start, end, &lines);
	int err = 0;

	for (u32 i = 0; !err && i < nr; i++) {
		const struct bpf_line *line = &lines[i];

		/* what belongs to no line stays below the one before */
		if (view->show_source && line->line)
			err = bpf_view__insert_source(view, before, line);
		if (!err)
			err = bpf_view__insert_insns(view, before, line->insn_off,
						     bpf_view__line_end(view, line));
	}
	return err;
}

/* Insert what belongs above the instruction at @addr, which is the first after @start. */
static int bpf_view__insert(struct bpf_view *view, struct annotation_line *al, u64 start,
			    u64 addr)
{
	const struct bpf_line *line = dso__bpf_line(map__dso(view->args->ms->map), addr);

	if (line) {
		zfree(&al->fileloc);
		al->line_nr = line->line;
		al->fileloc = bpf_line__fileloc(line);
		if (!al->fileloc)
			return -ENOMEM;
	}
	if (view->xlated)
		return bpf_view__insert_lines(view, &al->node, start, addr + 1);
	return line && view->show_source ? bpf_view__insert_source(view, &al->node, line) : 0;
}

/* Without lines, only a program of one function has its instructions in one place. */
static int bpf_view__insert_all(struct bpf_view *view, struct list_head *before)
{
	int err = bpf_view__insert_text(view, before,
		"No line info: perf does not know where the code of each BPF instruction begins.");

	if (!err && view->xlated->info->nr_jited_ksyms == 1)
		err = bpf_view__insert_insns(view, before, 0, view->xlated->nr);
	return err;
}

/* Look for the BPF instructions, and tell the user if they are not there. */
static int bpf_view__init_xlated(struct bpf_view *view, struct bpf_xlated *xlated,
				 struct list_head *before)
{
	struct map *map = view->args->ms->map;
	struct dso *dso = map__dso(map);
	const struct bpf_line *lines;
	struct bpf_code code;

	if (!view->args->options->bpf_xlated ||
	    dso__binary_type(dso) != DSO_BINARY_TYPE__BPF_PROG_INFO || dso__bpf_code(dso, &code))
		return 0;
	if (map__bpf_xlated(map, xlated))
		return bpf_view__insert_text(view, before,
			"No BPF instructions of this program in perf.data, see --bpf-xlated in perf-record(1).");
	view->xlated = xlated;
	if (!dso__bpf_lines(dso, code.addr, code.addr + code.len, &lines))
		return bpf_view__insert_all(view, before);
	return 0;
}

/*
 * Insert a source line before each run of instructions that belong to the same line, and
 * the BPF instructions that the code was made of.
 */
static int symbol__insert_bpf_lines(struct symbol *sym, struct annotate_args *args)
{
	struct list_head *source = &symbol__annotation(sym)->src->source;
	u64 addr, start = map__rip_2objdump(args->ms->map, sym->start);
	struct bpf_view view = {
		.args		= args,
		.show_source	= args->options->annotate_src,
	};
	struct bpf_xlated xlated;
	struct annotation_line *al;
	u64 next = start;
	int err;

	err = bpf_view__init_xlated(&view, &xlated, source->next);

	list_for_each_entry(al, source, node) {
		if (err)
			return err;
		if (al->offset < 0)
			continue;

		addr = start + al->offset;
		err = bpf_view__insert(&view, al, next, addr);
		next = addr + 1;
	}
	/* the disassembler may have stopped within the last instruction */
	if (!err && view.xlated)
		err = bpf_view__insert_lines(&view, source, next, start + symbol__size(sym));
	return err;
}

/*
 * The map ends where later text begins, see machine__ksymbol_end(). The symbol may
 * reach further, but there is no code of it.
 */
static void symbol__end_with_map(struct symbol *sym, const struct map *map)
{
	u64 end = map__pgoff(map) + map__size(map);

	if (sym->start < end && sym->end > end)
		sym->end = end;
}

/**
 * symbol__disassemble_bpf - disassemble code that the kernel generated
 * @sym: the symbol
 * @args: as for symbol__disassemble()
 *
 * Return: 0, or an error for symbol__strerror_disassemble().
 */
int symbol__disassemble_bpf(struct symbol *sym, struct annotate_args *args)
{
	const char *name = dso__long_name(map__dso(args->ms->map));
	int err;

	if (dso__binary_type(map__dso(args->ms->map)) != DSO_BINARY_TYPE__BPF_PROG_INFO)
		symbol__end_with_map(sym, args->ms->map);

	err = symbol__disassemble_any(name, sym, args);
	if (!err && (args->options->annotate_src || args->options->bpf_xlated))
		err = symbol__insert_bpf_lines(sym, args);
	return err;
}
