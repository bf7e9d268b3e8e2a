// SPDX-License-Identifier: GPL-2.0
/* Add up what a recording tells of the loads of a BPF program. See bpf-prog-totals.h. */
#include "bpf-prog-totals.h"
#include "addr_location.h"
#include "bpf-event.h"
#include "bpf-lines.h"
#include "bpf-prog.h"
#include "bpf-utils.h"
#include "dso.h"
#include "env.h"
#include "event.h"
#include "evsel.h"
#include "hashmap.h"
#include "map.h"
#include "sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/zalloc.h>

/* The samples of an event at an address */
struct bpf_hit {
	struct dso	*dso;
	u64		addr;
	int		event;
	u64		period;
};

struct bpf_load_times {
	u64	loaded;
	u64	ended;
};

/**
 * struct bpf_prog_totals - the programs of a recording
 * @tree: of struct bpf_prog_total
 * @added: bpf_progs.added of the perf_env when @tree was built
 * @times: struct bpf_load_times by the id of the load
 * @hits: struct bpf_hit, of all events
 * @nr_events: size of the hot_lines of each program
 * @first_sample: its time, in nanoseconds; 0: there is none, or it has no time
 */
struct bpf_prog_totals {
	struct rb_root	tree;
	u32		added;
	struct hashmap	*times;
	struct hashmap	*hits;
	int		nr_events;
	u64		first_sample;
};

static size_t hash_id(long key, void *ctx __maybe_unused)
{
	return key;
}

static bool equal_ids(long key1, long key2, void *ctx __maybe_unused)
{
	return key1 == key2;
}

static size_t hash_hit(long key, void *ctx __maybe_unused)
{
	const struct bpf_hit *hit = (void *)key;

	return hit->addr + hit->event;
}

static bool equal_hits(long key1, long key2, void *ctx __maybe_unused)
{
	const struct bpf_hit *l = (void *)key1, *r = (void *)key2;

	return l->addr == r->addr && l->event == r->event && RC_CHK_EQUAL(l->dso, r->dso);
}

static void bpf_prog_totals__free_tree(struct bpf_prog_totals *progs)
{
	struct bpf_prog_total *prog, *next;

	rbtree_postorder_for_each_entry_safe(prog, next, &progs->tree, node) {
		bpf_prog_info_node__put(prog->info);
		free(prog->hot_lines);
		free(prog);
	}
	progs->tree = RB_ROOT;
}

static void bpf_prog_totals__free_hits(struct bpf_prog_totals *progs)
{
	struct hashmap_entry *cur;
	size_t bkt;

	hashmap__for_each_entry(progs->hits, cur, bkt) {
		struct bpf_hit *hit = cur->pvalue;

		dso__put(hit->dso);
		free(hit);
	}
	hashmap__clear(progs->hits);
}

/**
 * perf_env__exit_bpf_prog_totals - free the programs
 * @env: may have none
 */
void perf_env__exit_bpf_prog_totals(struct perf_env *env)
{
	struct bpf_prog_totals *progs = env->bpf_progs.totals;
	struct hashmap_entry *cur;
	size_t bkt;

	if (!progs)
		return;
	bpf_prog_totals__free_tree(progs);
	if (!IS_ERR(progs->hits)) {
		bpf_prog_totals__free_hits(progs);
		hashmap__free(progs->hits);
	}
	if (!IS_ERR(progs->times)) {
		hashmap__for_each_entry(progs->times, cur, bkt)
			free(cur->pvalue);
		hashmap__free(progs->times);
	}
	zfree(&env->bpf_progs.totals);
}

/* Return: the programs of @env, without any at first, or NULL if there is no memory. */
static struct bpf_prog_totals *perf_env__bpf_prog_totals(struct perf_env *env)
{
	struct bpf_prog_totals *progs = env->bpf_progs.totals;

	if (progs)
		return progs;
	progs = zalloc(sizeof(*progs));
	if (!progs)
		return NULL;
	env->bpf_progs.totals = progs;
	progs->hits = hashmap__new(hash_hit, equal_hits, NULL);
	progs->times = hashmap__new(hash_id, equal_ids, NULL);
	if (IS_ERR(progs->hits) || IS_ERR(progs->times)) {
		perf_env__exit_bpf_prog_totals(env);
		return NULL;
	}
	return progs;
}

/* 0 in a recording without times */
static u64 sample_time(const struct perf_sample *sample)
{
	return sample->time == (u64)-1 ? 0 : sample->time;
}

static struct bpf_hit *bpf_prog_totals__findnew_hit(struct bpf_prog_totals *progs,
						    struct bpf_hit key)
{
	struct bpf_hit *hit;

	if (hashmap__find(progs->hits, &key, &hit))
		return hit;
	hit = memdup(&key, sizeof(key));
	if (!hit || hashmap__add(progs->hits, hit, hit)) {
		free(hit);
		return NULL;
	}
	hit->dso = dso__get(key.dso);
	return hit;
}

/**
 * bpf_prog_totals__add_sample - count a sample for bpf_prog_totals__find_hot_lines()
 * @env: of the machine where the sample was taken
 * @al: where it is
 * @sample: the sample, in BPF or other code
 *
 * Return: 0 or -ENOMEM.
 */
int bpf_prog_totals__add_sample(struct perf_env *env, const struct addr_location *al,
				const struct perf_sample *sample)
{
	struct bpf_prog_totals *progs;
	struct bpf_hit *hit;

	/* that of a guest is not known */
	if (!env)
		return 0;
	progs = perf_env__bpf_prog_totals(env);
	if (!progs)
		return -ENOMEM;
	if (!progs->first_sample)
		progs->first_sample = sample_time(sample);
	if (al->filtered || !al->map || !dso__is_bpf_prog(map__dso(al->map)))
		return 0;
	hit = bpf_prog_totals__findnew_hit(progs, (struct bpf_hit){
		.dso = map__dso(al->map),
		.addr = map__unmap_ip(al->map, al->addr),
		.event = sample->evsel->core.idx,
	});
	if (!hit)
		return -ENOMEM;
	hit->period += sample->period;
	return 0;
}

/**
 * bpf_prog_totals__add_bpf_event - note when a program was loaded, or ended
 * @env: of the machine
 * @event: PERF_RECORD_BPF_EVENT
 * @sample: its time
 *
 * Return: 0 or -ENOMEM.
 */
int bpf_prog_totals__add_bpf_event(struct perf_env *env, const union perf_event *event,
				   const struct perf_sample *sample)
{
	struct bpf_prog_totals *progs;
	struct bpf_load_times *times;

	if (!env)
		return 0;
	progs = perf_env__bpf_prog_totals(env);
	if (!progs)
		return -ENOMEM;
	if (!hashmap__find(progs->times, event->bpf.id, &times)) {
		times = zalloc(sizeof(*times));
		if (!times || hashmap__add(progs->times, event->bpf.id, times)) {
			free(times);
			return -ENOMEM;
		}
	}
	if (event->bpf.type == PERF_BPF_EVENT_PROG_LOAD && !times->loaded)
		times->loaded = sample_time(sample);
	else if (event->bpf.type == PERF_BPF_EVENT_PROG_UNLOAD)
		times->ended = sample_time(sample);
	return 0;
}

static struct bpf_prog_total *bpf_prog_totals__find(struct bpf_prog_totals *progs,
						    struct perf_env *env,
						    struct bpf_prog_info_node *info, bool create)
{
	struct rb_node **p = &progs->tree.rb_node, *parent = NULL;
	struct bpf_prog_total *prog;

	while (*p) {
		int cmp;

		parent = *p;
		prog = rb_entry(parent, struct bpf_prog_total, node);
		cmp = bpf_prog_info_node__cmp(info, env, prog->info, env);
		if (!cmp)
			return prog;
		p = cmp < 0 ? &parent->rb_left : &parent->rb_right;
	}
	prog = create ? zalloc(sizeof(*prog)) : NULL;
	if (!prog)
		return NULL;
	prog->info = bpf_prog_info_node__get(info);
	rb_link_node(&prog->node, parent, p);
	rb_insert_color(&prog->node, &progs->tree);
	return prog;
}

/*
 * The record of a program that existed already is older than the samples, or has no time.
 */
static void bpf_prog_total__add_load(struct bpf_prog_total *prog,
				     const struct bpf_prog_totals *progs,
				     const struct bpf_prog_info *info)
{
	static const struct bpf_load_times unknown = {};
	const struct bpf_load_times *times = &unknown;

	hashmap__find(progs->times, info->id, &times);
	prog->nr_loads++;
	prog->nr_counted += info->run_cnt > 0;
	prog->run_cnt += info->run_cnt;
	prog->run_time_ns += info->run_time_ns;
	if (!progs->first_sample)
		return;
	if (times->loaded <= progs->first_sample)
		prog->existed = true;
	else if (!prog->loaded || times->loaded < prog->loaded)
		prog->loaded = times->loaded;
	if (times->ended) {
		prog->nr_ended++;
		prog->ended = max(prog->ended, times->ended);
	}
}

struct info_nodes {
	struct bpf_prog_info_node	**nodes;
	u32				nr;
	u32				max;
};

/* Called with env->bpf_progs.lock held. */
static void info_nodes__add(struct bpf_prog_info_node *info, void *data)
{
	struct info_nodes *infos = data;

	if (infos->nr < infos->max)
		infos->nodes[infos->nr++] = bpf_prog_info_node__get(info);
}

/* Comparing programs takes env->bpf_progs.lock, so their infos are copied first. */
static void bpf_prog_totals__build(struct bpf_prog_totals *progs, struct perf_env *env, u32 nr)
{
	struct info_nodes infos = { .max = nr };
	struct bpf_prog_total *prog;

	bpf_prog_totals__free_tree(progs);
	infos.nodes = calloc(infos.max, sizeof(*infos.nodes));
	if (!infos.nodes)
		return;
	perf_env__iterate_bpf_prog_info(env, info_nodes__add, &infos);
	for (u32 i = 0; i < infos.nr; i++) {
		prog = bpf_prog_totals__find(progs, env, infos.nodes[i], /*create=*/true);
		if (prog)
			bpf_prog_total__add_load(prog, progs, &infos.nodes[i]->info_linear->info);
		bpf_prog_info_node__put(infos.nodes[i]);
	}
	free(infos.nodes);
}

/* In perf top, programs come while it shows them. Return: NULL if there is no memory. */
static struct bpf_prog_totals *perf_env__update_bpf_prog_totals(struct perf_env *env)
{
	struct bpf_prog_totals *progs = perf_env__bpf_prog_totals(env);
	u32 added, nr;

	mutex_lock(&env->bpf_progs.lock);
	added = env->bpf_progs.added;
	nr = env->bpf_progs.infos_cnt;
	mutex_unlock(&env->bpf_progs.lock);
	if (progs && progs->added != added) {
		progs->added = added;
		bpf_prog_totals__build(progs, env, nr);
	}
	return progs;
}

/**
 * dso__bpf_prog_total - what a recording tells of the program that kernel text belongs to
 * @dso: of the text
 *
 * Return: the program, until the next call, or NULL if it is none or not known.
 */
const struct bpf_prog_total *dso__bpf_prog_total(struct dso *dso)
{
	struct dso_bpf_prog *prog = dso__bpf_prog(dso);
	struct bpf_prog_totals *progs;

	if (!dso__is_bpf_prog(dso) || !prog->info)
		return NULL;
	progs = perf_env__update_bpf_prog_totals(prog->env);
	return progs ? bpf_prog_totals__find(progs, prog->env, prog->info, /*create=*/false) : NULL;
}

/**
 * bpf_prog_totals__have_runs - did the kernel count how often programs ran?
 * @env: of the recording
 *
 * It does with kernel.bpf_stats_enabled.
 */
bool bpf_prog_totals__have_runs(struct perf_env *env)
{
	struct bpf_prog_totals *progs = perf_env__update_bpf_prog_totals(env);

	for (struct rb_node *nd = progs ? rb_first(&progs->tree) : NULL; nd; nd = rb_next(nd)) {
		if (bpf_prog_total__has_runs(rb_entry(nd, struct bpf_prog_total, node)))
			return true;
	}
	return false;
}

/* What an event has at a place of a line, or in all of them */
struct hit_line {
	struct bpf_prog_total	*prog;
	int			event;
	struct bpf_hot_line	hot;
};

static int hit_line__cmp(const void *a, const void *b)
{
	const struct hit_line *l = a, *r = b;
	int cmp;

	if (l->prog != r->prog)
		return l->prog < r->prog ? -1 : 1;
	cmp = l->event - r->event ?: strcmp(l->hot.line->file, r->hot.line->file);
	if (cmp)
		return cmp;
	return l->hot.line->line < r->hot.line->line ? -1 : l->hot.line->line > r->hot.line->line;
}

static size_t bpf_prog_totals__get_lines(struct bpf_prog_totals *progs, struct perf_env *env,
					 struct hit_line *lines)
{
	struct hashmap_entry *cur;
	size_t bkt, nr = 0;

	hashmap__for_each_entry(progs->hits, cur, bkt) {
		const struct bpf_hit *hit = cur->pvalue;
		const struct bpf_line *line = dso__bpf_line(hit->dso, hit->addr);
		struct bpf_prog_total *prog;

		if (!line || hit->event >= progs->nr_events)
			continue;
		prog = bpf_prog_totals__find(progs, env, dso__bpf_prog(hit->dso)->info,
					     /*create=*/false);
		if (prog)
			lines[nr++] = (struct hit_line){ prog, hit->event, { line, hit->period } };
	}
	return nr;
}

static int bpf_prog_totals__add_line(struct bpf_prog_totals *progs, const struct hit_line *line)
{
	struct bpf_prog_total *prog = line->prog;
	struct bpf_hot_line *hot;

	if (!prog->hot_lines)
		prog->hot_lines = calloc(progs->nr_events, sizeof(*prog->hot_lines));
	if (!prog->hot_lines)
		return -ENOMEM;
	hot = &prog->hot_lines[line->event];
	if (line->hot.period > hot->period)
		*hot = line->hot;
	return 0;
}

/**
 * bpf_prog_totals__find_hot_lines - all samples have been read: which lines have most?
 * @env: of the recording
 * @nr_events: number of its events
 *
 * Instructions of one line may be in several places, and functions, and loads.
 *
 * Return: 0 or -ENOMEM.
 */
int bpf_prog_totals__find_hot_lines(struct perf_env *env, int nr_events)
{
	struct bpf_prog_totals *progs = perf_env__update_bpf_prog_totals(env);
	struct hit_line *lines;
	size_t nr;
	int err = 0;

	lines = progs ? calloc(hashmap__size(progs->hits) + 1, sizeof(*lines)) : NULL;
	if (!lines)
		return -ENOMEM;
	progs->nr_events = nr_events;
	nr = bpf_prog_totals__get_lines(progs, env, lines);
	qsort(lines, nr, sizeof(*lines), hit_line__cmp);
	for (size_t i = 0; i < nr && !err; i++) {
		if (i + 1 < nr && !hit_line__cmp(&lines[i], &lines[i + 1]))
			lines[i + 1].hot.period += lines[i].hot.period;
		else
			err = bpf_prog_totals__add_line(progs, &lines[i]);
	}
	free(lines);
	bpf_prog_totals__free_hits(progs);
	return err;
}
