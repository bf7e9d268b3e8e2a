/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What does each BPF program of a recording cost?
 *
 *	bpf-report.c		counts samples by program and source line
 *	bpf-report-print.c	prints a table or JSON
 */
#ifndef __PERF_BPF_REPORT_H
#define __PERF_BPF_REPORT_H

#include <stdbool.h>
#include <stdio.h>
#include <linux/types.h>
#include "bpf-prog.h"

struct addr_location;
struct bpf_line;
struct bpf_report;
struct evsel;
struct perf_sample;
struct perf_session;
union perf_event;

/**
 * struct bpf_report_row - a program, or BPF text that belongs to none
 * @known: there is info of a program; if not, only @name, @type, @samples and @period are valid
 * @prog: the program
 * @name: of the program, or of the function or image
 * @type: of the program or image, in words
 * @loaded: time of the record of its load, in nanoseconds of the recording's clock; 0: none
 * @ended: of its end; 0: none
 * @samples: how many are in it
 * @period: the sum of their periods
 * @line: the source line with most, NULL if none is known
 * @line_period: the sum of the periods there
 */
struct bpf_report_row {
	bool			known;
	struct bpf_prog		prog;
	char			name[BPF_PROG_NAME_SIZE];
	const char		*type;
	u64			loaded;
	u64			ended;
	u64			samples;
	u64			period;
	const struct bpf_line	*line;
	u64			line_period;
};

/**
 * struct bpf_report_event - the programs in which an event has samples
 * @evsel: the event
 * @samples: how many it has, in all code; filters reduce them only with --percentage relative
 * @period: the sum of their periods
 * @rows: the programs, the one with the largest period first
 * @nr_rows: number of @rows
 */
struct bpf_report_event {
	struct evsel		*evsel;
	u64			samples;
	u64			period;
	struct bpf_report_row	*rows;
	size_t			nr_rows;
	/* internal: struct bpf_text by dso */
	struct hashmap		*texts;
};

struct bpf_report *bpf_report__new(void);
void bpf_report__delete(struct bpf_report *report);
int bpf_report__add_sample(struct bpf_report *report, const struct addr_location *al,
			   const struct perf_sample *sample);
int bpf_report__add_bpf_event(struct bpf_report *report, const union perf_event *event,
			      const struct perf_sample *sample);
int bpf_report__finish(struct bpf_report *report);
const struct bpf_report_event *bpf_report__event(const struct bpf_report *report, size_t index);
u64 bpf_report__first_sample(const struct bpf_report *report);

int bpf_report__fprintf(const struct bpf_report *report, FILE *fp);
int bpf_report__fprintf_json(const struct bpf_report *report, FILE *fp);

#endif /* __PERF_BPF_REPORT_H */
