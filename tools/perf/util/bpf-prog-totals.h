/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What does a recording tell of a BPF program, over all of its loads?
 *
 * How often it was loaded, from when to when, and how often it ran is in the info of its loads
 * and in PERF_RECORD_BPF_EVENT. Its hottest source line is known when all samples have been
 * read.
 */
#ifndef __PERF_BPF_PROG_TOTALS_H
#define __PERF_BPF_PROG_TOTALS_H

#include <stdbool.h>
#include <stdio.h>
#include <linux/rbtree.h>
#include <linux/types.h>

struct addr_location;
struct bpf_line;
struct bpf_prog_info_node;
struct dso;
struct evlist;
struct perf_env;
struct perf_sample;
union perf_event;

/**
 * struct bpf_hot_line - the source line with most of an event's samples in a program
 * @line: NULL if no line is known
 * @period: the sum of the periods there
 */
struct bpf_hot_line {
	const struct bpf_line	*line;
	u64			period;
};

/**
 * struct bpf_prog_total - a program: the loads with one tag and name
 * @node: in the programs of the perf_env
 * @info: of one load; holds a reference
 * @nr_loads: number of loads whose info is recorded
 * @nr_ended: how many of them ended
 * @nr_counted: how many of them tell how often they ran
 * @existed: one of them was loaded before the first sample
 * @loaded: when the first one was loaded, in nanoseconds of the recording's clock; 0: unknown
 * @ended: when the last one ended
 * @run_cnt: how often it had run when perf record read the info last
 * @run_time_ns: how long, in nanoseconds
 * @hot_lines: by the index of the event, NULL if there is none
 */
struct bpf_prog_total {
	struct rb_node			node;
	struct bpf_prog_info_node	*info;
	u32				nr_loads;
	u32				nr_ended;
	u32				nr_counted;
	bool				existed;
	u64				loaded;
	u64				ended;
	u64				run_cnt;
	u64				run_time_ns;
	struct bpf_hot_line		*hot_lines;
};

#ifdef HAVE_LIBBPF_SUPPORT
int bpf_prog_totals__add_sample(struct perf_env *env, const struct addr_location *al,
				const struct perf_sample *sample);
int bpf_prog_totals__add_bpf_event(struct perf_env *env, const union perf_event *event,
				   const struct perf_sample *sample);
int bpf_prog_totals__find_hot_lines(struct perf_env *env, int nr_events);
bool bpf_prog_totals__have_runs(struct perf_env *env);
void perf_env__exit_bpf_prog_totals(struct perf_env *env);

const struct bpf_prog_total *dso__bpf_prog_total(struct dso *dso);
#else
static inline int bpf_prog_totals__add_sample(struct perf_env *env __maybe_unused,
					      const struct addr_location *al __maybe_unused,
					      const struct perf_sample *sample __maybe_unused)
{
	return 0;
}

static inline int bpf_prog_totals__add_bpf_event(struct perf_env *env __maybe_unused,
						 const union perf_event *event __maybe_unused,
						 const struct perf_sample *sample __maybe_unused)
{
	return 0;
}

static inline int bpf_prog_totals__find_hot_lines(struct perf_env *env __maybe_unused,
						  int nr_events __maybe_unused)
{
	return 0;
}

static inline bool bpf_prog_totals__have_runs(struct perf_env *env __maybe_unused)
{
	return false;
}

static inline const struct bpf_prog_total *dso__bpf_prog_total(struct dso *dso __maybe_unused)
{
	return NULL;
}
#endif

/* The kernel did not count, or perf record could not read it of a load that ended. */
static inline bool bpf_prog_total__has_runs(const struct bpf_prog_total *prog)
{
	return prog->nr_counted == prog->nr_loads;
}

/* NULL, or without a line, if none is known. @event: index of the event */
static inline const struct bpf_hot_line *bpf_prog_total__hot_line(const struct bpf_prog_total *prog,
								  int event)
{
	return prog->hot_lines ? &prog->hot_lines[event] : NULL;
}

void bpf_prog_totals__fprintf_json(struct evlist *evlist, float min_percent, FILE *fp);

#endif /* __PERF_BPF_PROG_TOTALS_H */
