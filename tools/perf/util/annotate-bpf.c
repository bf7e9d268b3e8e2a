// SPDX-License-Identifier: GPL-2.0
/*
 * Code of BPF programs, and other code that the kernel generates: it is in no file, and
 * its source lines are in the BTF of the program, not in DWARF.
 */
#include <errno.h>
#include <linux/list.h>
#include <linux/zalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "annotate.h"
#include "bpf-lines.h"
#include "disasm.h"
#include "dso.h"
#include "map.h"
#include "string2.h"
#include "symbol.h"

static int annotation__insert_line(struct annotation_line *before, const char *text,
				   const char *fileloc, int line_nr,
				   struct annotate_args *args)
{
	char *line = strreplace_controls(strdup(text)), *expanded = NULL;
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
		list_add_tail(&dl->al.node, &before->node);

	free(expanded);
	free(line);
	args->line = NULL;
	args->fileloc = NULL;
	return dl ? 0 : -ENOMEM;
}

/* Insert a source line, and above the first line of each file the location. */
static int annotation__insert_bpf_line(struct annotation_line *al,
				       const struct bpf_line *line, bool new_file,
				       struct annotate_args *args)
{
	const char *text = *line->text ? line->text : al->fileloc;
	int err = 0;

	if (new_file && *line->text)
		err = annotation__insert_line(al, al->fileloc, al->fileloc, 0, args);
	if (!err)
		err = annotation__insert_line(al, text, al->fileloc, line->line, args);
	return err;
}

/* Insert a source line before each run of instructions that belong to the same line. */
static int symbol__insert_bpf_lines(struct symbol *sym, struct annotate_args *args)
{
	struct annotation *notes = symbol__annotation(sym);
	struct map *map = args->ms->map;
	u64 start = map__rip_2objdump(map, sym->start);
	const struct bpf_line *prev = NULL;
	struct annotation_line *al;

	list_for_each_entry(al, &notes->src->source, node) {
		const struct bpf_line *line;
		bool new_file;

		if (al->offset < 0)
			continue;

		line = dso__bpf_line(map__dso(map), start + al->offset);
		if (!line)
			continue;

		zfree(&al->fileloc);
		al->line_nr = line->line;
		if (asprintf(&al->fileloc, "%s:%u", line->file, line->line) < 0) {
			al->fileloc = NULL;
			return -ENOMEM;
		}
		strreplace_controls(al->fileloc);

		new_file = !prev || strcmp(prev->file, line->file);
		if (!new_file && prev->line == line->line)
			continue;

		if (annotation__insert_bpf_line(al, line, new_file, args))
			return -ENOMEM;
		prev = line;
	}
	return 0;
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
	if (!err && args->options->annotate_src)
		err = symbol__insert_bpf_lines(sym, args);
	return err;
}
