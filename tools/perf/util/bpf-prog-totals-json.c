// SPDX-License-Identifier: GPL-2.0
/* Print what the BPF programs of a recording cost as JSON. See bpf-prog-totals.h. */
#include "bpf-prog-totals.h"
#include "bpf-lines.h"
#include "bpf-prog.h"
#include "dso.h"
#include "evlist.h"
#include "evsel.h"
#include "hist.h"
#include "json-string.h"
#include "map.h"
#include "symbol_conf.h"

#include <inttypes.h>

static void number__fprintf_json(const char *name, u64 number, bool known, FILE *fp)
{
	if (known)
		fprintf(fp, ", \"%s\": %" PRIu64, name, number);
	else
		fprintf(fp, ", \"%s\": null", name);
}

static void bpf_prog_total__fprintf_json(const struct bpf_prog_total *prog, int event, FILE *fp)
{
	const struct bpf_hot_line *hot = bpf_prog_total__hot_line(prog, event);
	bool runs = bpf_prog_total__has_runs(prog);

	fprintf(fp, ", \"loads\": %u", prog->nr_loads);
	number__fprintf_json("loaded-ns", prog->loaded, prog->loaded && !prog->existed, fp);
	number__fprintf_json("ended-ns", prog->ended, prog->nr_ended == prog->nr_loads, fp);
	number__fprintf_json("run-count", prog->run_cnt, runs, fp);
	number__fprintf_json("run-time-ns", prog->run_time_ns, runs, fp);
	if (!hot || !hot->line)
		return;
	fputs(", \"hottest-line\": {\"file\": ", fp);
	fprintf_json_string(fp, hot->line->file);
	fprintf(fp, ", \"line\": %u, \"text\": ", hot->line->line);
	fprintf_json_string(fp, hot->line->text);
	fprintf(fp, ", \"period\": %" PRIu64 "}", hot->period);
}

static void hist_entry__fprintf_json(const struct hist_entry *he, int event, FILE *fp)
{
	u64 total = hists__total_period(he->hists);
	struct dso *dso = map__dso(he->ms.map);
	const struct bpf_prog_total *prog = dso__bpf_prog_total(dso);
	char name[BPF_PROG_NAME_SIZE], tag[BPF_PROG_TAG_SIZE];

	dso__get_bpf_name(dso, name);
	fputs("{\"name\": ", fp);
	fprintf_json_string(fp, name);
	fprintf(fp, ", \"type\": \"%s\"", dso__bpf_type(dso));
	if (prog) {
		dso__get_bpf_tag(dso, tag);
		fprintf(fp, ", \"tag\": \"%s\"", tag);
		bpf_prog_total__fprintf_json(prog, event, fp);
	}
	fprintf(fp, ", \"samples\": %u, \"period\": %" PRIu64 ", \"share\": %.6f",
		he->stat.nr_events, he->stat.period,
		total ? (double)he->stat.period / total : 0);
	if (symbol_conf.cumulate_callchain)
		fprintf(fp, ", \"total-period\": %" PRIu64 ", \"total-share\": %.6f",
			he->stat_acc->period, total ? (double)he->stat_acc->period / total : 0);
	fputc('}', fp);
}

static void evsel__fprintf_json(struct evsel *evsel, float min_percent, FILE *fp)
{
	struct hists *hists = evsel__hists(evsel);
	const char *separator = "";

	fputs("{\"event\": ", fp);
	fprintf_json_string(fp, evsel__name(evsel));
	fprintf(fp, ", \"samples\": %u, \"period\": %" PRIu64 ", \"programs\": [",
		symbol_conf.filter_relative ? hists->stats.nr_non_filtered_samples :
					      hists->stats.nr_samples,
		hists__total_period(hists));
	for (struct rb_node *nd = rb_first_cached(&hists->entries); nd; nd = rb_next(nd)) {
		struct hist_entry *he = rb_entry(nd, struct hist_entry, rb_node);

		if (he->filtered || hist_entry__get_percent_limit(he) < min_percent)
			continue;
		fprintf(fp, "%s\n    ", separator);
		hist_entry__fprintf_json(he, evsel->core.idx, fp);
		separator = ",";
	}
	fputs("]}", fp);
}

/**
 * bpf_prog_totals__fprintf_json - print the BPF programs of each event as one JSON object
 * @evlist: its hists are sorted by BPF program, and have no other entries
 * @min_percent: programs with less are left out, as in the table
 * @fp: where to
 */
void bpf_prog_totals__fprintf_json(struct evlist *evlist, float min_percent, FILE *fp)
{
	const char *separator = "";
	struct evsel *evsel;

	fputs("{\"events\": [", fp);
	evlist__for_each_entry(evlist, evsel) {
		if (!evsel__hists(evsel)->stats.nr_samples)
			continue;
		fprintf(fp, "%s\n  ", separator);
		evsel__fprintf_json(evsel, min_percent, fp);
		separator = ",";
	}
	fputs("\n]}\n", fp);
}
