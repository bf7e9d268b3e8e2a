// SPDX-License-Identifier: GPL-2.0
/*
 * Sort keys that tell which BPF program a sample is in: bpf_prog, bpf_id, bpf_tag, bpf_type.
 *
 * A program has several functions, each with its dso. Which program a dso belongs to may be
 * known late: in a pipe the info comes after the samples. So the entries of samples are kept
 * by dso, and those of a program are collapsed into one when all has been read.
 */
#include "sort-bpf.h"
#include "bpf-prog.h"
#include "dso.h"
#include "hist.h"
#include "map.h"
#include "sort.h"

#include <stdio.h>
#include <string.h>
#include <linux/kernel.h>

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

/* As dso__get_bpf_label(), but in another recording the same program has another id. */
static void hist_entry__get_bpf_label(const struct hist_entry *he, char buf[BPF_LABEL_SIZE])
{
	struct dso *dso = hist_entry__bpf_dso(he);
	struct bpf_prog prog;
	size_t len;

	if (sort__mode != SORT_MODE__DIFF || !dso || !dso__find_bpf_prog(dso, &prog)) {
		dso__get_bpf_label(dso, buf);
		return;
	}
	dso__get_bpf_prog_name(dso, buf, BPF_PROG_NAME_SIZE);
	len = strlen(buf);
	buf[len] = ':';
	bpf_prog__get_tag(&prog, buf + len + 1);
}

/* 0 if it is no BPF program, or an unknown one. Ids begin with 1. */
static u32 hist_entry__bpf_id(const struct hist_entry *he)
{
	struct dso *dso = hist_entry__bpf_dso(he);
	struct bpf_prog prog;

	return dso && dso__find_bpf_prog(dso, &prog) ? prog.id : 0;
}

/* --sort bpf_id */

static int64_t sort__bpf_id_collapse(struct hist_entry *left, struct hist_entry *right)
{
	u32 id_l = hist_entry__bpf_id(left), id_r = hist_entry__bpf_id(right);

	if (id_l || id_r)
		return (int64_t)id_r - id_l;
	return strcmp(dso__no_bpf_prog(hist_entry__bpf_dso(left)),
		      dso__no_bpf_prog(hist_entry__bpf_dso(right)));
}

static int hist_entry__bpf_id_snprintf(struct hist_entry *he, char *bf, size_t size,
				       unsigned int width)
{
	u32 id = hist_entry__bpf_id(he);

	if (id)
		return repsep_snprintf(bf, size, "%*u", width, id);
	return repsep_snprintf(bf, size, "%*s", width, dso__no_bpf_prog(hist_entry__bpf_dso(he)));
}

struct sort_entry sort_bpf_id = {
	.se_header	= "BPF id",
	.se_cmp		= sort__bpf_dso_cmp,
	.se_collapse	= sort__bpf_id_collapse,
	.se_sort	= sort__bpf_id_collapse,
	.se_snprintf	= hist_entry__bpf_id_snprintf,
	.se_width_idx	= HISTC_BPF_ID,
};

/* --sort bpf_prog */

static int64_t sort__bpf_prog_collapse(struct hist_entry *left, struct hist_entry *right)
{
	char label_l[BPF_LABEL_SIZE], label_r[BPF_LABEL_SIZE];

	if (sort__mode != SORT_MODE__DIFF) {
		u32 id_l = hist_entry__bpf_id(left), id_r = hist_entry__bpf_id(right);

		if (id_l || id_r)
			return (int64_t)id_r - id_l;
	}
	hist_entry__get_bpf_label(left, label_l);
	hist_entry__get_bpf_label(right, label_r);
	return strcmp(label_l, label_r);
}

static int hist_entry__bpf_prog_snprintf(struct hist_entry *he, char *bf, size_t size,
					 unsigned int width)
{
	char label[BPF_LABEL_SIZE];

	hist_entry__get_bpf_label(he, label);
	return repsep_snprintf(bf, size, "%-*s", width, label);
}

struct sort_entry sort_bpf_prog = {
	.se_header	= "BPF program",
	.se_cmp		= sort__bpf_dso_cmp,
	.se_collapse	= sort__bpf_prog_collapse,
	.se_sort	= sort__bpf_prog_collapse,
	.se_snprintf	= hist_entry__bpf_prog_snprintf,
	.se_width_idx	= HISTC_BPF_PROG,
};

/* --sort bpf_tag */

static int64_t sort__bpf_tag_collapse(struct hist_entry *left, struct hist_entry *right)
{
	char tag_l[BPF_PROG_TAG_SIZE], tag_r[BPF_PROG_TAG_SIZE];

	dso__get_bpf_tag(hist_entry__bpf_dso(left), tag_l);
	dso__get_bpf_tag(hist_entry__bpf_dso(right), tag_r);
	return strcmp(tag_l, tag_r);
}

static int hist_entry__bpf_tag_snprintf(struct hist_entry *he, char *bf, size_t size,
					unsigned int width)
{
	char tag[BPF_PROG_TAG_SIZE];

	dso__get_bpf_tag(hist_entry__bpf_dso(he), tag);
	return repsep_snprintf(bf, size, "%-*s", width, tag);
}

struct sort_entry sort_bpf_tag = {
	.se_header	= "BPF tag",
	.se_cmp		= sort__bpf_dso_cmp,
	.se_collapse	= sort__bpf_tag_collapse,
	.se_sort	= sort__bpf_tag_collapse,
	.se_snprintf	= hist_entry__bpf_tag_snprintf,
	.se_width_idx	= HISTC_BPF_TAG,
};

/* --sort bpf_type */

static int64_t sort__bpf_type_collapse(struct hist_entry *left, struct hist_entry *right)
{
	return strcmp(dso__bpf_type(hist_entry__bpf_dso(left)),
		      dso__bpf_type(hist_entry__bpf_dso(right)));
}

static int hist_entry__bpf_type_snprintf(struct hist_entry *he, char *bf, size_t size,
					 unsigned int width)
{
	return repsep_snprintf(bf, size, "%-*s", width,
			       dso__bpf_type(hist_entry__bpf_dso(he)));
}

struct sort_entry sort_bpf_type = {
	.se_header	= "BPF type",
	.se_cmp		= sort__bpf_dso_cmp,
	.se_collapse	= sort__bpf_type_collapse,
	.se_sort	= sort__bpf_type_collapse,
	.se_snprintf	= hist_entry__bpf_type_snprintf,
	.se_width_idx	= HISTC_BPF_TYPE,
};

/**
 * sort_entry__is_bpf - is it a sort key by BPF program?
 * @entry: any
 */
bool sort_entry__is_bpf(const struct sort_entry *entry)
{
	return entry->se_cmp == sort__bpf_dso_cmp;
}

/**
 * sort_entry__separates_bpf_loads - do the loads of a program differ in this sort key?
 * @entry: any
 */
bool sort_entry__separates_bpf_loads(const struct sort_entry *entry)
{
	return entry == &sort_bpf_id || entry == &sort_bpf_prog;
}

/**
 * hists__calc_bpf_col_len - widen the columns of BPF programs for an entry
 * @hists: with any of the sort keys above
 * @he: the entry
 */
void hists__calc_bpf_col_len(struct hists *hists, struct hist_entry *he)
{
	char label[BPF_LABEL_SIZE];

	hist_entry__get_bpf_label(he, label);
	hists__new_col_len(hists, HISTC_BPF_PROG, max_t(u16, strlen(label), 11));
	hists__new_col_len(hists, HISTC_BPF_ID, 6);
	hists__new_col_len(hists, HISTC_BPF_TAG, BPF_PROG_TAG_SIZE - 1);
	hists__new_col_len(hists, HISTC_BPF_TYPE,
			   max_t(u16, strlen(dso__bpf_type(hist_entry__bpf_dso(he))), 8));
}
