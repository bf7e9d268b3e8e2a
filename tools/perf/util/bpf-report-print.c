// SPDX-License-Identifier: GPL-2.0
/* Print what the BPF programs of a recording cost, as a table or as JSON. See bpf-report.h. */
#include "bpf-report.h"
#include "bpf-lines.h"
#include "evsel.h"
#include "json-string.h"
#include "string2.h"
#include "symbol_conf.h"
#include "time-utils.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>

enum column {
	COL_SHARE,
	COL_SAMPLES,
	COL_PROG,
	COL_ID,
	COL_TYPE,
	COL_TAG,
	COL_LOADED,
	COL_ENDED,
	COL_RUNS,
	COL_RUN_TIME,
	COL_LINE,
	NR_COLS,
};

static const char * const headers[NR_COLS] = {
	[COL_SHARE]	= "Overhead",
	[COL_SAMPLES]	= "Samples",
	[COL_PROG]	= "BPF program",
	[COL_ID]	= "BPF id",
	[COL_TYPE]	= "BPF type",
	[COL_TAG]	= "BPF tag",
	[COL_LOADED]	= "Loaded",
	[COL_ENDED]	= "Ended",
	[COL_RUNS]	= "Runs",
	[COL_RUN_TIME]	= "Run time ms",
	[COL_LINE]	= "Hottest line",
};

#define CELL_SIZE	512

struct cell {
	char	text[CELL_SIZE];
};

static bool column__is_number(enum column col)
{
	return col == COL_SHARE || col == COL_SAMPLES || col == COL_ID || col == COL_RUNS ||
	       col == COL_RUN_TIME;
}

/* There are none without kernel.bpf_stats_enabled. */
static bool bpf_report_event__has_runs(const struct bpf_report_event *event)
{
	for (size_t i = 0; i < event->nr_rows; i++) {
		if (event->rows[i].prog.run_cnt)
			return true;
	}
	return false;
}

static double bpf_report_event__share(const struct bpf_report_event *event,
				      const struct bpf_report_row *row)
{
	return event->period ? (double)row->period / event->period : 0;
}

/*
 * The record of a program that existed already has the time when perf record asked for it,
 * or none.
 */
static bool bpf_report_row__existed(const struct bpf_report_row *row, u64 first_sample)
{
	return row->loaded <= first_sample;
}

/* Like "# 32 of 41 samples (78.05% of event 'cpu-clock') are in BPF code" */
static void bpf_report_event__fprintf_sum(const struct bpf_report_event *event, FILE *fp)
{
	u64 samples = 0, period = 0;

	for (size_t i = 0; i < event->nr_rows; i++) {
		samples += event->rows[i].samples;
		period += event->rows[i].period;
	}
	fprintf(fp, "# %" PRIu64 " of %" PRIu64 " samples ", samples, event->samples);
	fprintf(fp, "(%.2f%% of event '%s') are in BPF code:\n",
		event->period ? 100.0 * period / event->period : 0, evsel__name(event->evsel));
}

static void line__scnprintf(const struct bpf_line *line, char *buf, size_t size)
{
	scnprintf(buf, size, "%s:%u  %s", line->file, line->line, skip_spaces(line->text));
	strreplace_controls(buf);
}

static void bpf_report_row__get_cells(const struct bpf_report_row *row, double share,
				      u64 first_sample, struct cell cells[NR_COLS])
{
	const struct bpf_prog *prog = &row->prog;

	for (int col = 0; col < NR_COLS; col++)
		strcpy(cells[col].text, "-");
	scnprintf(cells[COL_SHARE].text, CELL_SIZE, "%.2f%%", 100 * share);
	scnprintf(cells[COL_SAMPLES].text, CELL_SIZE, "%" PRIu64, row->samples);
	scnprintf(cells[COL_PROG].text, CELL_SIZE, "%s", row->name);
	scnprintf(cells[COL_TYPE].text, CELL_SIZE, "%s", row->type);
	if (!row->known)
		return;
	scnprintf(cells[COL_ID].text, CELL_SIZE, "%u", prog->id);
	bpf_prog__get_tag(prog, cells[COL_TAG].text);
	if (first_sample && bpf_report_row__existed(row, first_sample))
		strcpy(cells[COL_LOADED].text, "before");
	else if (first_sample)
		timestamp__scnprintf_usec(row->loaded, cells[COL_LOADED].text, CELL_SIZE);
	if (row->ended)
		timestamp__scnprintf_usec(row->ended, cells[COL_ENDED].text, CELL_SIZE);
	scnprintf(cells[COL_RUNS].text, CELL_SIZE, "%" PRIu64, prog->run_cnt);
	scnprintf(cells[COL_RUN_TIME].text, CELL_SIZE, "%.3f",
		  (double)prog->run_time_ns / NSEC_PER_MSEC);
	if (row->line)
		line__scnprintf(row->line, cells[COL_LINE].text, CELL_SIZE);
}

/* As in perf report -t: the separator is in no field. */
static void cell__fprintf_separated(char *cell, bool first, FILE *fp)
{
	const char separator = *symbol_conf.field_sep;

	for (char *c = strchr(cell, separator); c; c = strchr(c, separator))
		*c = '.';
	fprintf(fp, "%s%s", first ? "" : symbol_conf.field_sep, cell);
}

static void cells__fprintf(struct cell cells[NR_COLS], const int width[NR_COLS], bool runs,
			   FILE *fp)
{
	for (int col = 0; col < NR_COLS; col++) {
		if ((col == COL_RUNS || col == COL_RUN_TIME) && !runs)
			continue;
		if (symbol_conf.field_sep)
			cell__fprintf_separated(cells[col].text, !col, fp);
		else if (col == NR_COLS - 1)
			fprintf(fp, "  %s", cells[col].text);
		else
			fprintf(fp, column__is_number(col) ? "  %*s" : "  %-*s", width[col],
				cells[col].text);
	}
	fputc('\n', fp);
}

static void cells__widen(struct cell cells[NR_COLS], int width[NR_COLS])
{
	for (int col = 0; col < NR_COLS; col++)
		width[col] = max_t(int, width[col], strlen(cells[col].text));
}

static int bpf_report_event__fprintf(const struct bpf_report_event *event, u64 first_sample,
				     FILE *fp)
{
	struct cell *cells = calloc((event->nr_rows + 1) * NR_COLS, sizeof(*cells));
	bool runs = bpf_report_event__has_runs(event);
	int width[NR_COLS] = {};

	if (!cells)
		return -ENOMEM;
	for (int col = 0; col < NR_COLS; col++)
		strcpy(cells[col].text, headers[col]);
	cells__widen(cells, width);
	for (size_t i = 0; i < event->nr_rows; i++) {
		const struct bpf_report_row *row = &event->rows[i];
		struct cell *of_row = cells + (i + 1) * NR_COLS;

		bpf_report_row__get_cells(row, bpf_report_event__share(event, row), first_sample,
					  of_row);
		cells__widen(of_row, width);
	}

	bpf_report_event__fprintf_sum(event, fp);
	fputs("#\n#", fp);
	for (size_t i = 0; i <= event->nr_rows; i++) {
		if (i && !symbol_conf.field_sep)
			fputc(' ', fp);
		cells__fprintf(cells + i * NR_COLS, width, runs, fp);
	}
	fputc('\n', fp);
	free(cells);
	return 0;
}

/**
 * bpf_report__fprintf - print a table for each event
 * @report: after bpf_report__finish()
 * @fp: where to
 *
 * Return: 0 or -ENOMEM.
 */
int bpf_report__fprintf(const struct bpf_report *report, FILE *fp)
{
	const struct bpf_report_event *event;
	int err = 0;

	for (size_t i = 0; !err && (event = bpf_report__event(report, i)); i++)
		err = bpf_report_event__fprintf(event, bpf_report__first_sample(report), fp);
	return err;
}

static void json_time__fprintf(const char *name, u64 time, FILE *fp)
{
	if (time)
		fprintf(fp, ", \"%s\": %" PRIu64, name, time);
	else
		fprintf(fp, ", \"%s\": null", name);
}

static void bpf_prog__fprintf_json(const struct bpf_report_row *row, u64 first_sample, FILE *fp)
{
	char tag[BPF_PROG_TAG_SIZE];

	bpf_prog__get_tag(&row->prog, tag);
	fprintf(fp, ", \"id\": %u, \"tag\": \"%s\"", row->prog.id, tag);
	fprintf(fp, ", \"load-time-ns-since-boot\": %" PRIu64, row->prog.load_time);
	json_time__fprintf("loaded-ns",
			   bpf_report_row__existed(row, first_sample) ? 0 : row->loaded, fp);
	json_time__fprintf("ended-ns", row->ended, fp);
	fprintf(fp, ", \"run-count\": %" PRIu64 ", \"run-time-ns\": %" PRIu64, row->prog.run_cnt,
		row->prog.run_time_ns);
}

static void bpf_report_row__fprintf_json(const struct bpf_report_row *row, double share,
					 u64 first_sample, FILE *fp)
{
	fputs("{\"name\": ", fp);
	fprintf_json_string(fp, row->name);
	fputs(", \"type\": ", fp);
	fprintf_json_string(fp, row->type);
	if (row->known)
		bpf_prog__fprintf_json(row, first_sample, fp);
	fprintf(fp, ", \"samples\": %" PRIu64 ", \"period\": %" PRIu64 ", \"share\": %.6f",
		row->samples, row->period, share);
	if (row->line) {
		fputs(", \"hottest-line\": {\"file\": ", fp);
		fprintf_json_string(fp, row->line->file);
		fprintf(fp, ", \"line\": %u, \"text\": ", row->line->line);
		fprintf_json_string(fp, row->line->text);
		fprintf(fp, ", \"period\": %" PRIu64 "}", row->line_period);
	}
	fputc('}', fp);
}

static void bpf_report_event__fprintf_json(const struct bpf_report_event *event, u64 first_sample,
					   FILE *fp)
{
	fputs("{\"event\": ", fp);
	fprintf_json_string(fp, evsel__name(event->evsel));
	fprintf(fp, ", \"samples\": %" PRIu64 ", \"period\": %" PRIu64 ", \"programs\": [",
		event->samples, event->period);
	for (size_t i = 0; i < event->nr_rows; i++) {
		const struct bpf_report_row *row = &event->rows[i];

		fprintf(fp, "%s\n    ", i ? "," : "");
		bpf_report_row__fprintf_json(row, bpf_report_event__share(event, row), first_sample,
					     fp);
	}
	fputs("]}", fp);
}

/**
 * bpf_report__fprintf_json - print all events and their programs as one JSON object
 * @report: after bpf_report__finish()
 * @fp: where to
 *
 * Return: 0.
 */
int bpf_report__fprintf_json(const struct bpf_report *report, FILE *fp)
{
	const struct bpf_report_event *event;

	fputs("{\"events\": [", fp);
	for (size_t i = 0; (event = bpf_report__event(report, i)); i++) {
		fputs(i ? ",\n  " : "\n  ", fp);
		bpf_report_event__fprintf_json(event, bpf_report__first_sample(report), fp);
	}
	fputs("\n]}\n", fp);
	return 0;
}
