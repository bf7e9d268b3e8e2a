// SPDX-License-Identifier: GPL-2.0
/*
 * A log of kernel text, for perf record --overwrite and --switch-output.
 *
 * With --overwrite, a ring buffer has the newest samples, but has lost older records.
 * The records that perf synthesizes at the end of a file describe the text that exists
 * then. A program that was unloaded shortly before would have no symbol, and its samples
 * might get the symbol of the program that replaced it.
 *
 * Therefore the side-band thread, which reads its ring buffers all the time, adds its
 * PERF_RECORD_KSYMBOL, PERF_RECORD_BPF_EVENT and PERF_RECORD_MMAP2 of modules to this
 * log. The whole log is written to each file, with the times of the records.
 *
 * No file needs the records of text that was removed before its ring buffers were
 * restarted: they are pruned when a file is begun. If the log exceeds its limit before,
 * the records of text that was removed in the older half of the log are pruned, as few
 * ring buffers reach that far back. If that does not free enough, most of the text still
 * exists, and the limit is raised. Whoever has more of a program than its records, such
 * as its code, is told when they are dropped.
 *
 * Without --overwrite, each file of --switch-output but the first begins with the log.
 * After the switch the kernel writes records of all text that exists, and these are
 * newer than the first samples of the file.
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
	/* number of the entry, in the order in which they were added */
	u64			seq;
	size_t			size;
	/* address or id of what begins or ends, while the log is pruned */
	u64			key;
	/* without sample id; NULL if dropped */
	union perf_event	*event;
};

/* Text at one address: the end of the longest that was there, and the time of the last record */
struct ksym_log_text {
	u64			addr;
	u64			end;
	u64			time;
	/* neither this text nor those before it reach further */
	u64			max_end;
};

struct ksym_log {
	struct ksym_log_entry	*entries;
	size_t			nr;
	size_t			max;
	size_t			bytes;
	size_t			max_bytes;
	u64			seq;
	/* see ksym_log__index(); sorted by address */
	struct ksym_log_text	*texts;
	size_t			nr_texts;
	/* see ksym_log__new() */
	void			(*dropped)(u32 prog_id, void *data);
	void			*data;
};

/**
 * ksym_log__new - allocate a log
 * @max_bytes: size in bytes above which it is pruned; raised if pruning frees too little
 * @dropped: called when the log drops the record that a BPF program has ended
 * @data: passed to @dropped
 *
 * Return: NULL if out of memory.
 */
struct ksym_log *ksym_log__new(size_t max_bytes, void (*dropped)(u32 prog_id, void *data),
			       void *data)
{
	struct ksym_log *log = zalloc(sizeof(*log));

	if (log) {
		log->max_bytes = max_bytes;
		log->dropped = dropped;
		log->data = data;
	}
	return log;
}

/**
 * ksym_log__delete - free what ksym_log__new() returned
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
	free(log->texts);
	free(log);
}

/**
 * ksym_log__mark - get a mark between the records so far and later ones
 * @log: the log
 *
 * Return: the mark, for ksym_log__prune().
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
 * ksym_log__add - add a record
 * @log: the log
 * @event: PERF_RECORD_KSYMBOL, PERF_RECORD_BPF_EVENT, or a module's PERF_RECORD_MMAP2
 * @size: size of the record without its sample id, in bytes
 * @time: time of the record, in the clock of the samples
 *
 * Return: 0 or -ENOMEM.
 */
int ksym_log__add(struct ksym_log *log, const union perf_event *event, size_t size, u64 time)
{
	struct ksym_log_entry *entry;

	if (log->bytes > log->max_bytes) {
		ksym_log__prune(log, log->seq - log->nr / 2);
		/* The newer half is left, and much that exists: prune again at twice the size. */
		if (log->bytes > log->max_bytes / 4 * 3)
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

static int ksym_log_entry__cmp(const void *a, const void *b)
{
	const struct ksym_log_entry *l = a, *r = b;

	if (l->time != r->time)
		return l->time < r->time ? -1 : 1;
	return l->seq < r->seq ? -1 : 1;
}

/* CPUs are read one after the other: only the records of each CPU are in order. */
static void ksym_log__sort(struct ksym_log *log)
{
	if (log->nr)
		qsort(log->entries, log->nr, sizeof(*log->entries), ksym_log_entry__cmp);
}

/* Keys are pointers: an address of a 64-bit kernel does not fit into a long of 32 bits. */
static size_t ksym_log__hash_key(long key, void *ctx __maybe_unused)
{
	u64 value = *(const u64 *)key;

	return hash_bits(value ^ value >> 32, 8 * sizeof(size_t));
}

static bool ksym_log__equal_keys(long a, long b, void *ctx __maybe_unused)
{
	return *(const u64 *)a == *(const u64 *)b;
}

static void ksym_log__drop_entry(struct ksym_log *log, struct ksym_log_entry *entry)
{
	if (entry->event->header.type == PERF_RECORD_BPF_EVENT &&
	    entry->event->bpf.type == PERF_BPF_EVENT_PROG_UNLOAD)
		log->dropped(entry->event->bpf.id, log->data);
	log->bytes -= entry->size + sizeof(*entry);
	zfree(&entry->event);
}

/* State of ksym_log__prune() while it walks the sorted records */
struct ksym_log_prune {
	struct ksym_log	*log;
	u64		mark;
	/* begin records without an end so far, by address and by id */
	struct hashmap	*texts;
	struct hashmap	*progs;
};

/*
 * @entry is the begin or the end record of the text at address @key, or of program @key.
 * Text has ended at its end record, or at the next begin record with the same @key if
 * the end record was lost. CPUs are read out of order, so only the record that ends it
 * decides whether a pair precedes the mark.
 * Return: 0 or -ENOMEM; nothing that may be needed is dropped.
 */
static int ksym_log__prune_pair(struct ksym_log_prune *prune, struct hashmap *begun_map,
				struct ksym_log_entry *entry, u64 key, bool ends)
{
	bool marked = entry->seq < prune->mark;
	struct ksym_log_entry *begun = NULL;

	entry->key = key;
	if (hashmap__find(begun_map, &entry->key, &begun)) {
		if (marked)
			ksym_log__drop_entry(prune->log, begun);
		hashmap__delete(begun_map, &entry->key, NULL, NULL);
	}
	if (!ends)
		return hashmap__add(begun_map, &entry->key, entry);
	if (marked)
		ksym_log__drop_entry(prune->log, entry);
	return 0;
}

static int ksym_log__prune_entry(struct ksym_log_prune *prune, struct ksym_log_entry *entry)
{
	const union perf_event *event = entry->event;

	if (event->header.type == PERF_RECORD_MMAP2)
		return ksym_log__prune_pair(prune, prune->texts, entry, event->mmap2.start,
					    /*ends=*/false);

	if (event->header.type == PERF_RECORD_KSYMBOL)
		return ksym_log__prune_pair(prune, prune->texts, entry, event->ksymbol.addr,
					    event->ksymbol.flags &
					    PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);

	return ksym_log__prune_pair(prune, prune->progs, entry, event->bpf.id,
				    event->bpf.type == PERF_BPF_EVENT_PROG_UNLOAD);
}

/**
 * ksym_log__prune - drop the records of text that has ended before a mark
 * @log: the log
 * @mark: from ksym_log__mark(); text is dropped if its end was added before the mark
 */
void ksym_log__prune(struct ksym_log *log, u64 mark)
{
	struct ksym_log_prune prune = {
		.log = log,
		.mark = mark,
		.texts = hashmap__new(ksym_log__hash_key, ksym_log__equal_keys, NULL),
		.progs = hashmap__new(ksym_log__hash_key, ksym_log__equal_keys, NULL),
	};
	size_t i, kept = 0, bytes = log->bytes;

	if (IS_ERR(prune.texts) || IS_ERR(prune.progs))
		goto out;

	ksym_log__sort(log);
	for (i = 0; i < log->nr; i++) {
		if (ksym_log__prune_entry(&prune, &log->entries[i]))
			break;
	}
	for (i = 0; i < log->nr; i++) {
		if (log->entries[i].event)
			log->entries[kept++] = log->entries[i];
	}
	pr_debug("Pruned %zu of %zu records of kernel text, %zu bytes\n",
		 log->nr - kept, log->nr, bytes - log->bytes);
	log->nr = kept;
out:
	hashmap__free(prune.texts);
	hashmap__free(prune.progs);
}

/**
 * ksym_log__write - write all records to a file, in the order of their times
 * @log: the log
 * @evsel: first evsel of the file, whose sample_type defines the sample ids
 * @process: writes a record; stops at the first error
 * @data: passed to @process
 *
 * Return: 0, -ENOMEM, or the error of @process.
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
	ksym_log__sort(log);
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

static int ksym_log_text__cmp(const void *a, const void *b)
{
	const struct ksym_log_text *l = a, *r = b;

	if (l->addr != r->addr)
		return l->addr < r->addr ? -1 : 1;
	return 0;
}

static void ksym_log__index_entry(struct ksym_log *log, const struct ksym_log_entry *entry)
{
	struct ksym_log_text *text = &log->texts[log->nr_texts];
	const union perf_event *event = entry->event;

	if (event->header.type == PERF_RECORD_KSYMBOL) {
		text->addr = event->ksymbol.addr;
		text->end = text->addr + event->ksymbol.len;
	} else if (event->header.type == PERF_RECORD_MMAP2) {
		text->addr = event->mmap2.start;
		text->end = text->addr + event->mmap2.len;
	} else {
		return;
	}
	text->time = entry->time;
	log->nr_texts++;
}

/**
 * ksym_log__index - prepare ksym_log__last_time() for the records so far
 * @log: the log
 *
 * Return: 0 or -ENOMEM, which leaves no index.
 */
int ksym_log__index(struct ksym_log *log)
{
	size_t i, kept = 0;
	u64 max_end = 0;

	zfree(&log->texts);
	log->nr_texts = 0;
	if (!log->nr)
		return 0;
	log->texts = calloc(log->nr, sizeof(*log->texts));
	if (!log->texts)
		return -ENOMEM;

	for (i = 0; i < log->nr; i++)
		ksym_log__index_entry(log, &log->entries[i]);

	qsort(log->texts, log->nr_texts, sizeof(*log->texts), ksym_log_text__cmp);
	for (i = 0; i < log->nr_texts; i++) {
		struct ksym_log_text *text = &log->texts[i];

		if (kept && log->texts[kept - 1].addr == text->addr) {
			log->texts[kept - 1].end = max(log->texts[kept - 1].end, text->end);
			log->texts[kept - 1].time = max(log->texts[kept - 1].time, text->time);
		} else {
			log->texts[kept++] = *text;
		}
		max_end = max(max_end, text->end);
		log->texts[kept - 1].max_end = max_end;
	}
	log->nr_texts = kept;
	return 0;
}

/**
 * ksym_log__last_time - get the time of the last record of text at some addresses
 * @log: the log, after ksym_log__index()
 * @addr: the first address
 * @len: length in bytes
 *
 * Text of which the log has no record, and which exists, has begun later than that. Needs no
 * lock: only ksym_log__index() writes what it reads.
 *
 * Return: the time in the clock of the samples, 0 if there is no such record.
 */
u64 ksym_log__last_time(const struct ksym_log *log, u64 addr, u64 len)
{
	size_t low = 0, high = log->nr_texts;
	u64 time = 0;

	/* the first text at or behind the end */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (log->texts[mid].addr < addr + len)
			low = mid + 1;
		else
			high = mid;
	}
	while (low-- > 0) {
		const struct ksym_log_text *text = &log->texts[low];

		if (text->max_end <= addr)
			break;
		if (text->end > addr)
			time = max(time, text->time);
	}
	return time;
}
