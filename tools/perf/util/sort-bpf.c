// SPDX-License-Identifier: GPL-2.0
/*
 * Sort keys that tell which BPF program a sample is in, bpf_prog, bpf_id, bpf_tag and bpf_type,
 * and what is known of the program.
 *
 * A program has several functions, and a program that was loaded several times has several
 * ids. All of them are one, but for bpf_id. Which program a function belongs to may be known
 * late, as samples may come between its KSYMBOL and its BPF_EVENT. So the entries of samples
 * are kept by dso, and those of a program are collapsed into one when all has been read.
 */
#include "sort-bpf.h"
#include "bpf-lines.h"
#include "bpf-prog.h"
#include "bpf-prog-totals.h"
#include "dso.h"
#include "hist.h"
#include "map.h"
#include "sort.h"
#include "srcline.h"
#include "string2.h"
#include "time-utils.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>

/* longer source lines are cut */
#define BPF_CELL_SIZE	512

static struct dso *hist_entry__bpf_dso(const struct hist_entry *he)
{
	struct dso *dso = he->ms.map ? map__dso(he->ms.map) : NULL;

	return dso && dso__is_bpf_text(dso) ? dso : NULL;
}

/* What is no BPF text is one. */
static int64_t sort__bpf_dso_cmp(struct hist_entry *left, struct hist_entry *right)
{
	struct dso *dso_l = hist_entry__bpf_dso(left), *dso_r = hist_entry__bpf_dso(right);

	if (RC_CHK_EQUAL(dso_l, dso_r))
		return 0;
	if (!dso_l || !dso_r)
		return dso_l ? 1 : -1;
	return RC_CHK_ACCESS(dso_l) < RC_CHK_ACCESS(dso_r) ? -1 : 1;
}

static int64_t sort__bpf_prog_collapse(struct hist_entry *left, struct hist_entry *right)
{
	return dso__cmp_bpf_prog(hist_entry__bpf_dso(left), hist_entry__bpf_dso(right));
}

/* 0 if it is no BPF program, or an unknown one. Ids begin with 1. */
static u32 hist_entry__bpf_id(const struct hist_entry *he)
{
	struct dso *dso = hist_entry__bpf_dso(he);
	struct bpf_prog prog;

	return dso && dso__find_bpf_prog(dso, &prog) ? prog.id : 0;
}

static int64_t sort__bpf_id_collapse(struct hist_entry *left, struct hist_entry *right)
{
	u32 id_l = hist_entry__bpf_id(left), id_r = hist_entry__bpf_id(right);

	if (id_l || id_r)
		return (int64_t)id_r - id_l;
	return strcmp(dso__no_bpf_prog(hist_entry__bpf_dso(left)),
		      dso__no_bpf_prog(hist_entry__bpf_dso(right)));
}

static int64_t sort__bpf_tag_collapse(struct hist_entry *left, struct hist_entry *right)
{
	char tag_l[BPF_PROG_TAG_SIZE], tag_r[BPF_PROG_TAG_SIZE];

	dso__get_bpf_tag(hist_entry__bpf_dso(left), tag_l);
	dso__get_bpf_tag(hist_entry__bpf_dso(right), tag_r);
	return strcmp(tag_l, tag_r);
}

static int64_t sort__bpf_type_collapse(struct hist_entry *left, struct hist_entry *right)
{
	return strcmp(dso__bpf_type(hist_entry__bpf_dso(left)),
		      dso__bpf_type(hist_entry__bpf_dso(right)));
}

/* The reverse of the order in a report, as the order of entries is descending */
static int64_t sort__bpf_prog_sort(struct hist_entry *left, struct hist_entry *right)
{
	char name_l[BPF_PROG_NAME_SIZE], name_r[BPF_PROG_NAME_SIZE];

	dso__get_bpf_name(hist_entry__bpf_dso(left), name_l);
	dso__get_bpf_name(hist_entry__bpf_dso(right), name_r);
	return strcmp(name_r, name_l) ?: sort__bpf_prog_collapse(left, right);
}

/* What all loads of a program have in common, or add up to */
static void bpf_prog_total__scnprintf(const struct bpf_prog_total *prog,
				      const struct hist_entry *he, int column, char *buf,
				      size_t size)
{
	const struct bpf_hot_line *hot;
	const char *file;

	switch (column) {
	case HISTC_BPF_LOADS:
		scnprintf(buf, size, "%u", prog->nr_loads);
		break;
	case HISTC_BPF_LOADED:
		if (prog->existed)
			scnprintf(buf, size, "before");
		else if (prog->loaded)
			timestamp__scnprintf_usec(prog->loaded, buf, size);
		break;
	case HISTC_BPF_ENDED:
		if (prog->nr_ended == prog->nr_loads)
			timestamp__scnprintf_usec(prog->ended, buf, size);
		break;
	case HISTC_BPF_RUNS:
		if (bpf_prog_total__has_runs(prog))
			scnprintf(buf, size, "%" PRIu64, prog->run_cnt);
		break;
	case HISTC_BPF_RUN_TIME:
		if (bpf_prog_total__has_runs(prog))
			scnprintf(buf, size, "%.3f", (double)prog->run_time_ns / NSEC_PER_MSEC);
		break;
	case HISTC_BPF_HOT_LINE:
		hot = bpf_prog_total__hot_line(prog, hists_to_evsel(he->hists)->core.idx);
		if (!hot || !hot->line)
			break;
		file = srcline_full_filename ? NULL : strrchr(hot->line->file, '/');
		scnprintf(buf, size, "%s:%u  %s", file ? file + 1 : hot->line->file,
			  hot->line->line, skip_spaces(hot->line->text));
		strreplace_controls(buf);
		break;
	default:
		break;
	}
}

/* NULL if it is no BPF program, or an unknown one */
static const struct bpf_prog_total *hist_entry__bpf_total(const struct hist_entry *he)
{
	struct dso *dso = hist_entry__bpf_dso(he);

	return dso ? dso__bpf_prog_total(dso) : NULL;
}

static void hist_entry__bpf_scnprintf(const struct hist_entry *he, int column, char *buf,
				      size_t size)
{
	struct dso *dso = hist_entry__bpf_dso(he);
	const struct bpf_prog_total *prog;
	u32 id;

	switch (column) {
	case HISTC_BPF_ID:
		id = hist_entry__bpf_id(he);
		if (id)
			scnprintf(buf, size, "%u", id);
		else
			scnprintf(buf, size, "%s", dso__no_bpf_prog(dso));
		break;
	case HISTC_BPF_PROG:
		dso__get_bpf_name(dso, buf);
		break;
	case HISTC_BPF_TAG:
		dso__get_bpf_tag(dso, buf);
		break;
	case HISTC_BPF_TYPE:
		scnprintf(buf, size, "%s", dso__bpf_type(dso));
		break;
	default:
		scnprintf(buf, size, "-");
		prog = hist_entry__bpf_total(he);
		if (prog)
			bpf_prog_total__scnprintf(prog, he, column, buf, size);
	}
}

#define BPF_TOTAL_SORT(field)								\
static int64_t sort__bpf_##field##_sort(struct hist_entry *left, struct hist_entry *right)	\
{											\
	const struct bpf_prog_total *l = hist_entry__bpf_total(left);			\
	const struct bpf_prog_total *r = hist_entry__bpf_total(right);			\
	u64 value_l = l ? l->field : 0, value_r = r ? r->field : 0;			\
											\
	if (value_l != value_r)								\
		return value_l < value_r ? -1 : 1;					\
	return sort__bpf_prog_sort(left, right);					\
}

BPF_TOTAL_SORT(nr_loads)
BPF_TOTAL_SORT(loaded)
BPF_TOTAL_SORT(ended)
BPF_TOTAL_SORT(run_cnt)
BPF_TOTAL_SORT(run_time_ns)

/* @minus: "-" for text, which begins at the left; "" for numbers */
#define BPF_SORT_ENTRY(name, header, column, minus, collapse, sort)			\
static int hist_entry__##name##_snprintf(struct hist_entry *he, char *bf, size_t size,	\
					 unsigned int width)				\
{											\
	char cell[BPF_CELL_SIZE];							\
											\
	hist_entry__bpf_scnprintf(he, column, cell, sizeof(cell));			\
	return repsep_snprintf(bf, size, "%" minus "*s", width, cell);			\
}											\
											\
struct sort_entry sort_##name = {							\
	.se_header	= header,							\
	.se_cmp		= sort__bpf_dso_cmp,						\
	.se_collapse	= sort__bpf_##collapse##_collapse,				\
	.se_sort	= sort__bpf_##sort,						\
	.se_snprintf	= hist_entry__##name##_snprintf,				\
	.se_width_idx	= column,							\
}

BPF_SORT_ENTRY(bpf_id, "BPF id", HISTC_BPF_ID, "", id, id_collapse);
BPF_SORT_ENTRY(bpf_prog, "BPF program", HISTC_BPF_PROG, "-", prog, prog_sort);
BPF_SORT_ENTRY(bpf_tag, "BPF tag", HISTC_BPF_TAG, "-", tag, tag_collapse);
BPF_SORT_ENTRY(bpf_type, "BPF type", HISTC_BPF_TYPE, "-", type, type_collapse);
BPF_SORT_ENTRY(bpf_loads, "Loads", HISTC_BPF_LOADS, "", prog, nr_loads_sort);
BPF_SORT_ENTRY(bpf_loaded, "Loaded", HISTC_BPF_LOADED, "-", prog, loaded_sort);
BPF_SORT_ENTRY(bpf_ended, "Ended", HISTC_BPF_ENDED, "-", prog, ended_sort);
BPF_SORT_ENTRY(bpf_runs, "Runs", HISTC_BPF_RUNS, "", prog, run_cnt_sort);
BPF_SORT_ENTRY(bpf_run_time, "Run time ms", HISTC_BPF_RUN_TIME, "", prog, run_time_ns_sort);
BPF_SORT_ENTRY(bpf_hot_line, "Hottest line", HISTC_BPF_HOT_LINE, "-", prog, prog_sort);

/**
 * sort_entry__bpf_column - which column has a sort key by BPF program?
 * @entry: any sort key
 *
 * Return: a bit for hists__calc_bpf_col_len(), 0 for another sort key.
 */
unsigned int sort_entry__bpf_column(const struct sort_entry *entry)
{
	unsigned int column = entry->se_width_idx - HISTC_BPF_ID;

	return column <= HISTC_BPF_HOT_LINE - HISTC_BPF_ID ? BIT(column) : 0;
}

/**
 * bpf_columns__need_totals - does a sort key show what is known of a program?
 * @columns: bits of sort_entry__bpf_column()
 */
bool bpf_columns__need_totals(unsigned int columns)
{
	return columns >= BIT(HISTC_BPF_LOADS - HISTC_BPF_ID);
}

/**
 * hists__calc_bpf_col_len - widen the columns of BPF programs for an entry
 * @hists: any
 * @he: the entry
 */
void hists__calc_bpf_col_len(struct hists *hists, const struct hist_entry *he)
{
	unsigned int columns = hists->hpp_list->bpf;
	char cell[BPF_CELL_SIZE];

	for (int column = HISTC_BPF_ID; column <= HISTC_BPF_HOT_LINE; column++) {
		if (!(columns & BIT(column - HISTC_BPF_ID)))
			continue;
		hist_entry__bpf_scnprintf(he, column, cell, sizeof(cell));
		hists__new_col_len(hists, column, strlen(cell));
	}
}
