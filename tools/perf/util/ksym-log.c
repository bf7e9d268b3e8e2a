// SPDX-License-Identifier: GPL-2.0
/*
 * Which text did the kernel have while ring buffers were overwritten?
 *
 * An overwritten ring buffer has its newest samples, and has lost the records of
 * what came before them. What a file can tell at its end is what is there then: a
 * program that ran until a moment before has no name, and its samples may get that
 * of the program that took its place.
 *
 * So the side band, whose ring buffers are read, keeps its PERF_RECORD_KSYMBOL and
 * PERF_RECORD_BPF_EVENT here, with PERF_RECORD_MMAP2 of modules, and a file gets all
 * of them, with their times. What had ended before the ring buffers began anew is not
 * needed by the next file: the log is folded then. It is folded too when it grows
 * beyond its limit, its older half, to which hardly any ring buffer reaches.
 *
 * Without --overwrite, a later file of --switch-output begins with it: its first samples
 * are from before the moment when the kernel replays its text for the file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/err.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <perf/event.h>
#include "debug.h"
#include "evsel.h"
#include "event.h"
#include "hashmap.h"
#include "ksym-log.h"
#include "sample.h"
#include "synthetic-events.h"

struct ksym_log_entry {
	u64			time;
	/* the order in which they were added */
	u64			seq;
	size_t			size;
	/* without sample id; NULL when it is folded */
	union perf_event	*event;
};

struct ksym_log {
	struct ksym_log_entry	*entries;
	size_t			nr;
	size_t			max;
	size_t			bytes;
	size_t			max_bytes;
	u64			seq;
};

/**
 * ksym_log__new - begin a log
 * @max_bytes: of memory, before it is folded
 *
 * Return: NULL without memory.
 */
struct ksym_log *ksym_log__new(size_t max_bytes)
{
	struct ksym_log *log = zalloc(sizeof(*log));

	if (log)
		log->max_bytes = max_bytes;
	return log;
}

/**
 * ksym_log__delete - end of ksym_log__new()
 * @log: may be NULL
 */
void ksym_log__delete(struct ksym_log *log)
{
	size_t i;

	if (!log)
		return;
	for (i = 0; i < log->nr; i++)
		free(log->entries[i].event);
	free(log->entries);
	free(log);
}

/**
 * ksym_log__mark - remember what has been added
 * @log: the log
 *
 * Return: that, for ksym_log__fold().
 */
u64 ksym_log__mark(const struct ksym_log *log)
{
	return log->seq;
}

static int ksym_log__grow(struct ksym_log *log)
{
	size_t max = log->max ? 2 * log->max : 256;
	struct ksym_log_entry *entries = reallocarray(log->entries, max, sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	log->entries = entries;
	log->max = max;
	return 0;
}

/**
 * ksym_log__add - remember a record
 * @log: the log
 * @event: PERF_RECORD_KSYMBOL, PERF_RECORD_BPF_EVENT, or a module's PERF_RECORD_MMAP2
 * @size: of the record without its sample id, bytes
 * @time: of the record, by the clock of the samples; 0 for what was there before
 *
 * Return: 0 or -ENOMEM.
 */
int ksym_log__add(struct ksym_log *log, const union perf_event *event, size_t size, u64 time)
{
	struct ksym_log_entry *entry;

	if (log->bytes > log->max_bytes) {
		ksym_log__fold(log, log->seq - log->nr / 2);
		/* all of it is still there: fold again when it is twice as much */
		if (log->bytes > log->max_bytes / 2)
			log->max_bytes = 2 * log->bytes;
	}
	if (log->nr == log->max && ksym_log__grow(log))
		return -ENOMEM;

	entry = &log->entries[log->nr];
	entry->event = memdup(event, size);
	if (!entry->event)
		return -ENOMEM;
	entry->event->header.size = size;
	entry->size = size;
	entry->time = time;
	entry->seq = log->seq++;
	log->bytes += size + sizeof(*entry);
	log->nr++;
	return 0;
}

static int cmp_entries(const void *a, const void *b)
{
	const struct ksym_log_entry *l = a, *r = b;

	if (l->time != r->time)
		return l->time < r->time ? -1 : 1;
	return l->seq < r->seq ? -1 : 1;
}

/* Records come in order from each CPU, not from all of them. */
static void sort_entries(struct ksym_log *log)
{
	if (log->nr)
		qsort(log->entries, log->nr, sizeof(*log->entries), cmp_entries);
}

static size_t hash_id(long key, void *ctx __maybe_unused)
{
	return hash_bits(key, 8 * sizeof(size_t));
}

static bool equal_ids(long a, long b, void *ctx __maybe_unused)
{
	return a == b;
}

static void drop(struct ksym_log *log, struct ksym_log_entry *entry)
{
	log->bytes -= entry->size + sizeof(*entry);
	zfree(&entry->event);
}

/* What a fold knows while it goes through the records, which are in their order */
struct fold {
	struct ksym_log	*log;
	u64		mark;
	/* the records of what has begun, by address and by id */
	struct hashmap	*texts;
	struct hashmap	*progs;
};

/*
 * @entry tells of the beginning or the end of what @id is of. Of two CPUs the end may
 * have been added before the beginning, so that the end alone is to be of before the
 * mark. Return: -ENOMEM, with which nothing is dropped that may be needed.
 */
static int fold_one(struct fold *fold, struct hashmap *there, struct ksym_log_entry *entry,
		    long id, bool ends)
{
	bool marked = entry->seq < fold->mark;
	struct ksym_log_entry *begun = NULL;

	if (hashmap__find(there, id, &begun)) {
		if (marked)
			drop(fold->log, begun);
		hashmap__delete(there, id, NULL, NULL);
	}
	if (!ends)
		return hashmap__add(there, id, entry);
	if (marked)
		drop(fold->log, entry);
	return 0;
}

static int fold_entry(struct fold *fold, struct ksym_log_entry *entry)
{
	const union perf_event *event = entry->event;

	if (event->header.type == PERF_RECORD_MMAP2)
		return fold_one(fold, fold->texts, entry, event->mmap2.start, /*ends=*/false);

	if (event->header.type == PERF_RECORD_KSYMBOL)
		return fold_one(fold, fold->texts, entry, event->ksymbol.addr,
				event->ksymbol.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);

	return fold_one(fold, fold->progs, entry, event->bpf.id,
			event->bpf.type == PERF_BPF_EVENT_PROG_UNLOAD);
}

/**
 * ksym_log__fold - forget what had ended
 * @log: the log
 * @mark: what ended in the records before that goes
 */
void ksym_log__fold(struct ksym_log *log, u64 mark)
{
	struct fold fold = {
		.log = log,
		.mark = mark,
		.texts = hashmap__new(hash_id, equal_ids, NULL),
		.progs = hashmap__new(hash_id, equal_ids, NULL),
	};
	size_t i, kept = 0, bytes = log->bytes;

	if (IS_ERR(fold.texts) || IS_ERR(fold.progs))
		goto out;

	sort_entries(log);
	for (i = 0; i < log->nr; i++) {
		if (fold_entry(&fold, &log->entries[i]))
			break;
	}
	for (i = 0; i < log->nr; i++) {
		if (log->entries[i].event)
			log->entries[kept++] = log->entries[i];
	}
	pr_debug("Kernel text: %zu of %zu records folded, %zu bytes\n",
		 log->nr - kept, log->nr, bytes - log->bytes);
	log->nr = kept;
out:
	hashmap__free(fold.texts);
	hashmap__free(fold.progs);
}

/**
 * ksym_log__write - give a file all records, in their order
 * @log: the log
 * @evsel: the first of the file; the records get a sample id as its own have
 * @process: takes a record; an error ends it
 * @data: for @process
 *
 * Return: 0, -ENOMEM or what @process returned.
 */
int ksym_log__write(struct ksym_log *log, const struct evsel *evsel,
		    int (*process)(union perf_event *event, void *data), void *data)
{
	union perf_event *event = malloc(PERF_SAMPLE_MAX_SIZE);
	struct perf_sample sample;
	size_t i;
	int err = 0;

	if (!event)
		return -ENOMEM;

	perf_sample__init(&sample, /*all=*/true);
	sort_entries(log);
	for (i = 0; i < log->nr && !err; i++) {
		const struct ksym_log_entry *entry = &log->entries[i];

		memcpy(event, entry->event, entry->size);
		sample.time = entry->time;
		event->header.size = entry->size +
			perf_event__synthesize_id_sample((void *)event + entry->size,
							 evsel->core.attr.sample_type, &sample);
		err = process(event, data);
	}
	perf_sample__exit(&sample);
	free(event);
	return err;
}
