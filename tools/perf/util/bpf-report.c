// SPDX-License-Identifier: GPL-2.0
/*
 * Count the samples in each BPF program of a recording. See bpf-report.h.
 *
 * Samples are counted by dso and offset first: in a pipe, the info of a program comes after
 * them, and only then it is known which program a function belongs to and where its lines are.
 */
#include "bpf-report.h"
#include "addr_location.h"
#include "bpf-lines.h"
#include "dso.h"
#include "event.h"
#include "evlist.h"
#include "evsel.h"
#include "hashmap.h"
#include "map.h"
#include "sample.h"
#include "symbol_conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>

/* The samples at one offset in a function */
struct bpf_hits {
	u64	period;
};

/**
 * struct bpf_text - a function or an image with samples
 * @dso: of the text
 * @start: its address in the recorded kernel
 * @samples: how many are in it
 * @period: the sum of their periods
 * @hits: struct bpf_hits by offset
 */
struct bpf_text {
	struct dso	*dso;
	u64		start;
	u64		samples;
	u64		period;
	struct hashmap	*hits;
};

struct bpf_prog_times {
	u64	loaded;
	u64	ended;
};

/**
 * struct bpf_report - what was counted
 * @events: one for each event with samples
 * @nr_events: number of @events
 * @times: struct bpf_prog_times by the id of the program
 * @first_sample: time of the first sample, in nanoseconds; 0 before it and without times
 */
struct bpf_report {
	struct bpf_report_event	*events;
	size_t			nr_events;
	struct hashmap		*times;
	u64			first_sample;
};

static size_t hash_long(long key, void *ctx __maybe_unused)
{
	return key;
}

static bool equal_longs(long key1, long key2, void *ctx __maybe_unused)
{
	return key1 == key2;
}

/* What is in the map at a key, all bytes 0 if it is new. NULL: no memory. */
static void *hashmap__findnew(struct hashmap **map, long key, size_t size)
{
	void *value;

	if (!*map) {
		struct hashmap *new = hashmap__new(hash_long, equal_longs, NULL);

		if (IS_ERR(new))
			return NULL;
		*map = new;
	}
	if (hashmap__find(*map, key, &value))
		return value;
	value = zalloc(size);
	if (value && hashmap__add(*map, key, value))
		zfree(&value);
	return value;
}

static void hashmap__free_values(struct hashmap *map)
{
	struct hashmap_entry *cur;
	size_t bkt;

	if (!map)
		return;
	hashmap__for_each_entry(map, cur, bkt)
		free(cur->pvalue);
	hashmap__free(map);
}

/**
 * bpf_report__new - begin to count
 *
 * Return: the report, which bpf_report__delete() frees, or NULL if there is no memory.
 */
struct bpf_report *bpf_report__new(void)
{
	return zalloc(sizeof(struct bpf_report));
}

static void bpf_report_event__exit(struct bpf_report_event *event)
{
	struct hashmap_entry *cur;
	size_t bkt;

	if (event->texts) {
		hashmap__for_each_entry(event->texts, cur, bkt) {
			struct bpf_text *text = cur->pvalue;

			hashmap__free_values(text->hits);
			dso__put(text->dso);
		}
	}
	hashmap__free_values(event->texts);
	free(event->rows);
}

/**
 * bpf_report__delete - free a report
 * @report: may be NULL
 */
void bpf_report__delete(struct bpf_report *report)
{
	if (!report)
		return;
	for (size_t i = 0; i < report->nr_events; i++)
		bpf_report_event__exit(&report->events[i]);
	free(report->events);
	hashmap__free_values(report->times);
	free(report);
}

/* 0 in a recording without times */
static u64 sample_time(const struct perf_sample *sample)
{
	return sample->time == (u64)-1 ? 0 : sample->time;
}

static struct bpf_report_event *bpf_report__findnew_event(struct bpf_report *report,
							  struct evsel *evsel)
{
	struct bpf_report_event *events;

	for (size_t i = 0; i < report->nr_events; i++) {
		if (report->events[i].evsel == evsel)
			return &report->events[i];
	}
	events = reallocarray(report->events, report->nr_events + 1, sizeof(*events));
	if (!events)
		return NULL;
	report->events = events;
	events[report->nr_events] = (struct bpf_report_event){ .evsel = evsel };
	return &events[report->nr_events++];
}

static int bpf_report_event__add(struct bpf_report_event *event, struct map *map,
				 const struct perf_sample *sample)
{
	struct dso *dso = map__dso(map);
	struct bpf_text *text = hashmap__findnew(&event->texts, (long)RC_CHK_ACCESS(dso),
						 sizeof(*text));
	struct bpf_hits *hits;

	if (!text)
		return -ENOMEM;
	if (!text->dso) {
		text->dso = dso__get(dso);
		text->start = map__start(map);
	}
	hits = hashmap__findnew(&text->hits, sample->ip - text->start, sizeof(*hits));
	if (!hits)
		return -ENOMEM;
	hits->period += sample->period;
	text->period += sample->period;
	text->samples++;
	return 0;
}

/**
 * bpf_report__add_sample - count a sample
 * @report: what was counted
 * @al: where it is
 * @sample: the sample, in BPF or other code
 *
 * Return: 0 or -ENOMEM.
 */
int bpf_report__add_sample(struct bpf_report *report, const struct addr_location *al,
			   const struct perf_sample *sample)
{
	struct bpf_report_event *event;

	if (!report->first_sample)
		report->first_sample = sample_time(sample);
	/* as in perf report, see --percentage */
	if (al->filtered && symbol_conf.filter_relative)
		return 0;
	event = bpf_report__findnew_event(report, sample->evsel);
	if (!event)
		return -ENOMEM;
	event->samples++;
	event->period += sample->period;
	if (al->filtered || !al->map || !dso__is_bpf_text(map__dso(al->map)))
		return 0;
	return bpf_report_event__add(event, al->map, sample);
}

/**
 * bpf_report__add_bpf_event - note when a program is loaded, and when it ends
 * @report: what was counted
 * @event: PERF_RECORD_BPF_EVENT
 * @sample: its time
 *
 * Return: 0 or -ENOMEM.
 */
int bpf_report__add_bpf_event(struct bpf_report *report, const union perf_event *event,
			      const struct perf_sample *sample)
{
	struct bpf_prog_times *times = hashmap__findnew(&report->times, event->bpf.id,
							sizeof(*times));

	if (!times)
		return -ENOMEM;
	if (event->bpf.type == PERF_BPF_EVENT_PROG_LOAD && !times->loaded)
		times->loaded = sample_time(sample);
	else if (event->bpf.type == PERF_BPF_EVENT_PROG_UNLOAD)
		times->ended = sample_time(sample);
	return 0;
}

/* Text with samples, and the program that it belongs to */
struct bpf_owned {
	struct bpf_text		*text;
	struct bpf_prog		prog;
	bool			known;
};

/* The text of a program is one behind the other. */
static int bpf_owned__cmp(const void *a, const void *b)
{
	const struct bpf_owned *l = a, *r = b;

	if (l->known != r->known)
		return l->known ? -1 : 1;
	if (l->known)
		return l->prog.id < r->prog.id ? -1 : l->prog.id > r->prog.id;
	return strcmp(dso__short_name(l->text->dso), dso__short_name(r->text->dso));
}

struct line_period {
	const struct bpf_line	*line;
	u64			period;
};

static int line_period__cmp(const void *a, const void *b)
{
	const struct line_period *l = a, *r = b;
	int cmp = strcmp(l->line->file, r->line->file);

	if (cmp)
		return cmp;
	return l->line->line < r->line->line ? -1 : l->line->line > r->line->line;
}

static size_t bpf_text__nr_hits(const struct bpf_text *text)
{
	return text->hits ? hashmap__size(text->hits) : 0;
}

static size_t bpf_text__get_lines(const struct bpf_text *text, struct line_period *lines)
{
	struct hashmap_entry *cur;
	size_t bkt, nr = 0;

	if (!dso__is_bpf_prog(text->dso))
		return 0;
	hashmap__for_each_entry(text->hits, cur, bkt) {
		const struct bpf_line *line = dso__bpf_line(text->dso, text->start + cur->key);
		const struct bpf_hits *hits = cur->pvalue;

		if (line)
			lines[nr++] = (struct line_period){ line, hits->period };
	}
	return nr;
}

/* Instructions of one line may be in several places, and functions. */
static int bpf_report_row__find_line(struct bpf_report_row *row, const struct bpf_owned *owned,
				     size_t nr_owned)
{
	struct line_period *lines;
	size_t nr = 0, nr_lines = 0;
	u64 period = 0;

	for (size_t i = 0; i < nr_owned; i++)
		nr += bpf_text__nr_hits(owned[i].text);
	lines = calloc(nr + 1, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	for (size_t i = 0; i < nr_owned; i++)
		nr_lines += bpf_text__get_lines(owned[i].text, lines + nr_lines);
	qsort(lines, nr_lines, sizeof(*lines), line_period__cmp);
	for (size_t i = 0; i < nr_lines; i++) {
		period += lines[i].period;
		if (i + 1 < nr_lines && !line_period__cmp(&lines[i], &lines[i + 1]))
			continue;
		if (period > row->line_period) {
			row->line = lines[i].line;
			row->line_period = period;
		}
		period = 0;
	}
	free(lines);
	return 0;
}

static void bpf_report_row__init(struct bpf_report_row *row, const struct bpf_report *report,
				 const struct bpf_owned *owned)
{
	struct dso *dso = owned->text->dso;
	struct bpf_prog_times *times;

	*row = (struct bpf_report_row){
		.known = owned->known,
		.prog = owned->prog,
		.type = dso__bpf_type(dso),
	};
	if (!row->known) {
		scnprintf(row->name, sizeof(row->name), "%s", dso__short_name(dso));
		return;
	}
	dso__get_bpf_prog_name(dso, row->name, sizeof(row->name));
	if (report->times && hashmap__find(report->times, row->prog.id, &times)) {
		row->loaded = times->loaded;
		row->ended = times->ended;
	}
}

/* The largest first, equal ones in the order of their ids. */
static int bpf_report_row__cmp(const void *a, const void *b)
{
	const struct bpf_report_row *l = a, *r = b;

	if (l->period != r->period)
		return l->period > r->period ? -1 : 1;
	if (l->prog.id != r->prog.id)
		return l->prog.id < r->prog.id ? -1 : 1;
	return strcmp(l->name, r->name);
}

static int bpf_report_event__add_rows(struct bpf_report_event *event,
				      const struct bpf_report *report,
				      const struct bpf_owned *owned, size_t nr)
{
	size_t first = 0;

	event->rows = calloc(nr + 1, sizeof(*event->rows));
	if (!event->rows)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		struct bpf_report_row *row = &event->rows[event->nr_rows];

		if (i == first)
			bpf_report_row__init(row, report, &owned[i]);
		row->samples += owned[i].text->samples;
		row->period += owned[i].text->period;
		if (i + 1 < nr && !bpf_owned__cmp(&owned[i], &owned[i + 1]))
			continue;
		if (bpf_report_row__find_line(row, owned + first, i + 1 - first))
			return -ENOMEM;
		event->nr_rows++;
		first = i + 1;
	}
	qsort(event->rows, event->nr_rows, sizeof(*event->rows), bpf_report_row__cmp);
	return 0;
}

static int bpf_report_event__finish(struct bpf_report_event *event,
				    const struct bpf_report *report)
{
	size_t bkt, nr = event->texts ? hashmap__size(event->texts) : 0;
	struct bpf_owned *owned = calloc(nr + 1, sizeof(*owned));
	struct hashmap_entry *cur;
	int err;

	if (!owned)
		return -ENOMEM;
	nr = 0;
	if (event->texts) {
		hashmap__for_each_entry(event->texts, cur, bkt) {
			owned[nr].text = cur->pvalue;
			owned[nr].known = dso__find_bpf_prog(owned[nr].text->dso,
							     &owned[nr].prog);
			nr++;
		}
	}
	qsort(owned, nr, sizeof(*owned), bpf_owned__cmp);
	err = bpf_report_event__add_rows(event, report, owned, nr);
	free(owned);
	return err;
}

/**
 * bpf_report__finish - all samples have been counted: find their programs and lines
 * @report: what was counted; its events have rows afterwards
 *
 * Return: 0 or -ENOMEM.
 */
int bpf_report__finish(struct bpf_report *report)
{
	int err = 0;

	for (size_t i = 0; i < report->nr_events && !err; i++)
		err = bpf_report_event__finish(&report->events[i], report);
	return err;
}

/**
 * bpf_report__event - the programs of an event
 * @report: after bpf_report__finish()
 * @index: number of the event, in the order of their first samples
 *
 * Return: the event, or NULL behind the last one.
 */
const struct bpf_report_event *bpf_report__event(const struct bpf_report *report, size_t index)
{
	return index < report->nr_events ? &report->events[index] : NULL;
}

/**
 * bpf_report__first_sample - when the samples begin
 * @report: what was counted
 *
 * Return: nanoseconds of the recording's clock, 0 if there is no sample or no time.
 */
u64 bpf_report__first_sample(const struct bpf_report *report)
{
	return report->first_sample;
}
