// SPDX-License-Identifier: GPL-2.0
/*
 * A log of kernel text, for perf record --overwrite and --switch-output, and for what the
 * events of a recorded task don't report.
 *
 * With --overwrite, a ring buffer has the newest samples, but has lost older records. A
 * later file of --switch-output has samples from the time when the ring buffers were last
 * read for the previous file. A BPF program that was unloaded before such a file is
 * written would have no symbol in it, and its samples might get the symbol of the program
 * that replaced it.
 *
 * Therefore the side-band thread, which reads its ring buffers all the time, adds its
 * PERF_RECORD_KSYMBOL, PERF_RECORD_TEXT_POKE with code, PERF_RECORD_BPF_EVENT and
 * PERF_RECORD_MMAP2 of modules to this log. It has the most recent ones only, up to a
 * limit. For each file the kernel reports the text that exists, in a snapshot, so that a
 * program needs no record in the log until it ends. A file begins with, or ends with:
 *
 *   - the recent records, with their times,
 *   - the beginning of text that ended, if it is not among them, and
 *   - the text that exists, if its beginning is not among them.
 *
 * No text is sampled before it begins. So the last two can begin as early as the addresses
 * were free: when the text that was there before ended, or before all samples.
 *
 * No file needs the records from before its ring buffers were restarted.
 *
 * In a recording of tasks, the log begins with a snapshot, and what has been added is
 * written each time that the ring buffers are read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>
#include <perf/event.h>
#include "evsel.h"
#include "event.h"
#include "hashmap.h"
#include "ksym-log.h"
#include "sample.h"
#include "synthetic-events.h"

/* Before all samples. 0 is no time, and means that perf record found the text at its start. */
#define BEFORE_SAMPLES	1

struct ksym_log_entry {
	struct list_head	node;
	u64			time;
	/* number of the entry, in the order in which they were added; 0 if of a snapshot */
	u64			seq;
	/* address of text or code, or id of a program, which are different numbers */
	u64			key;
	/* address behind text; 0: of a program, or code */
	u64			text_end;
	/* the text or the program ends */
	bool			ends;
	/* of the record, without its sample id */
	size_t			size;
	u64			event[];
};

struct ksym_log {
	struct list_head	recent;
	size_t			nr;
	size_t			bytes;
	size_t			max_bytes;
	u64			seq;
	/* entries before this one are gone for lack of room */
	u64			dropped;
	/* what the last snapshot has */
	struct list_head	existing;
	bool			in_snapshot;
};

static const union perf_event *entry__event(const struct ksym_log_entry *entry)
{
	return (const union perf_event *)entry->event;
}

static u32 entry__type(const struct ksym_log_entry *entry)
{
	return entry__event(entry)->header.type;
}

static void entry__init(struct ksym_log_entry *entry)
{
	const union perf_event *event = entry__event(entry);

	entry->ends = false;
	entry->text_end = 0;
	switch (event->header.type) {
	case PERF_RECORD_BPF_EVENT:
		entry->key = event->bpf.id;
		entry->ends = event->bpf.type == PERF_BPF_EVENT_PROG_UNLOAD;
		break;
	case PERF_RECORD_TEXT_POKE:
		entry->key = event->text_poke.addr;
		break;
	case PERF_RECORD_MMAP2:
		entry->key = event->mmap2.start;
		entry->text_end = entry->key + event->mmap2.len;
		break;
	default:
		entry->key = event->ksymbol.addr;
		entry->text_end = entry->key + event->ksymbol.len;
		entry->ends = event->ksymbol.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	}
}

/**
 * ksym_log__new - allocate a log
 * @max_bytes: size in bytes above which the older half is dropped
 *
 * Return: NULL if out of memory.
 */
struct ksym_log *ksym_log__new(size_t max_bytes)
{
	struct ksym_log *log = zalloc(sizeof(*log));

	if (log) {
		INIT_LIST_HEAD(&log->recent);
		INIT_LIST_HEAD(&log->existing);
		log->max_bytes = max_bytes;
		log->seq = 1;
	}
	return log;
}

static void free_entries(struct list_head *list)
{
	struct ksym_log_entry *entry, *tmp;

	list_for_each_entry_safe(entry, tmp, list, node)
		free(entry);
	INIT_LIST_HEAD(list);
}

/**
 * ksym_log__delete - free what ksym_log__new() returned
 * @log: may be NULL
 */
void ksym_log__delete(struct ksym_log *log)
{
	if (!log)
		return;
	free_entries(&log->recent);
	free_entries(&log->existing);
	free(log);
}

static void ksym_log__drop_entry(struct ksym_log *log, struct ksym_log_entry *entry)
{
	list_del(&entry->node);
	log->bytes -= sizeof(*entry) + entry->size;
	log->nr--;
	free(entry);
}

/* The end of a module has less than its beginning, which stays until then. */
static void ksym_log__drop_module(struct ksym_log *log, const struct ksym_log_entry *end)
{
	struct ksym_log_entry *entry, *tmp;

	list_for_each_entry_safe(entry, tmp, &log->recent, node) {
		if (entry == end)
			break;
		if (entry__type(entry) == PERF_RECORD_MMAP2 && entry->key == end->key)
			ksym_log__drop_entry(log, entry);
	}
}

/**
 * ksym_log__drop - drop the records before a mark
 * @log: the log
 * @mark: from ksym_log__mark()
 */
void ksym_log__drop(struct ksym_log *log, u64 mark)
{
	struct ksym_log_entry *entry, *tmp;

	list_for_each_entry_safe(entry, tmp, &log->recent, node) {
		if (entry->seq >= mark)
			break;
		if (entry__type(entry) == PERF_RECORD_MMAP2)
			continue;
		if (entry__type(entry) == PERF_RECORD_KSYMBOL &&
		    entry__event(entry)->ksymbol.ksym_type == PERF_RECORD_KSYMBOL_TYPE_MODULE)
			ksym_log__drop_module(log, entry);
		ksym_log__drop_entry(log, entry);
	}
}

/**
 * ksym_log__mark - get a mark between the records so far and later ones
 * @log: the log
 *
 * Return: the mark, which is not 0.
 */
u64 ksym_log__mark(const struct ksym_log *log)
{
	return log->seq;
}

/**
 * ksym_log__nr_dropped - count the records that were dropped for lack of room
 * @log: the log
 * @from: mark from which on to count, from ksym_log__mark(); or 0
 *
 * Return: their number, but for those that a mark had dropped before.
 */
u64 ksym_log__nr_dropped(const struct ksym_log *log, u64 from)
{
	from = max_t(u64, from, 1);
	return log->dropped > from ? log->dropped - from : 0;
}

/* In a snapshot, text comes before its code, of which a part is @code. */
static void ksym_log__find_text(const struct ksym_log *log, struct ksym_log_entry *code)
{
	const struct ksym_log_entry *text;

	list_for_each_entry_reverse(text, &log->existing, node) {
		if (text->key <= code->key && code->key < text->text_end) {
			code->key = text->key;
			return;
		}
	}
}

/**
 * ksym_log__add - add a record
 * @log: the log
 * @event: PERF_RECORD_KSYMBOL, PERF_RECORD_TEXT_POKE, PERF_RECORD_BPF_EVENT, or a
 *	   module's PERF_RECORD_MMAP2
 * @size: size of the record without its sample id, in bytes
 * @time: time of the record, in the clock of the samples
 *
 * Return: 0 or -ENOMEM.
 */
int ksym_log__add(struct ksym_log *log, const union perf_event *event, size_t size, u64 time)
{
	struct ksym_log_entry *entry = malloc(sizeof(*entry) + size);

	if (!entry)
		return -ENOMEM;
	memcpy(entry->event, event, size);
	entry->size = size;
	entry->time = time;
	entry->seq = 0;
	entry__init(entry);
	/* What begins during a snapshot exists at its end, or ends. Other code is a change. */
	if (log->in_snapshot && !entry->ends &&
	    !(entry__type(entry) == PERF_RECORD_TEXT_POKE && event->text_poke.old_len)) {
		if (entry__type(entry) == PERF_RECORD_TEXT_POKE)
			ksym_log__find_text(log, entry);
		list_add_tail(&entry->node, &log->existing);
		return 0;
	}

	if (log->bytes > log->max_bytes) {
		log->dropped = log->seq - log->nr / 2;
		ksym_log__drop(log, log->dropped);
	}
	entry->seq = log->seq++;
	list_add_tail(&entry->node, &log->recent);
	log->bytes += sizeof(*entry) + size;
	log->nr++;
	return 0;
}

/**
 * ksym_log__set_snapshot - tell the log where the records of a snapshot begin or end
 * @log: the log, which keeps them until it is written or the next snapshot begins
 * @begins: it begins
 */
void ksym_log__set_snapshot(struct ksym_log *log, bool begins)
{
	if (begins)
		free_entries(&log->existing);
	log->in_snapshot = begins;
}

/* State of ksym_log__write() */
struct ksym_log_writer {
	/* the file has the records before this one, and needs no other beginnings */
	u64			from;
	const struct evsel	*evsel;
	int			(*process)(union perf_event *event, void *data);
	void			*data;
	/* recent entries in the order of their times */
	struct ksym_log_entry	**entries;
	size_t			nr;
	/* there may have been others */
	bool			lost;
	/* the last entry so far, by address and by id */
	struct hashmap		*last;
	/* when the last of the text began that exists */
	u64			newest;
	/* room for a record */
	union perf_event	*event;
};

static int entry__cmp(const void *a, const void *b)
{
	const struct ksym_log_entry *l = *(struct ksym_log_entry **)a;
	const struct ksym_log_entry *r = *(struct ksym_log_entry **)b;

	if (l->time != r->time)
		return l->time < r->time ? -1 : 1;
	return l->seq < r->seq ? -1 : 1;
}

static size_t hash_key(long key, void *ctx __maybe_unused)
{
	return hash_bits(*(u64 *)key, 8 * sizeof(size_t));
}

static bool equal_keys(long a, long b, void *ctx __maybe_unused)
{
	return *(u64 *)a == *(u64 *)b;
}

/* Write the record of an entry with another time; that of an end as a beginning, if @begins. */
static int writer__put(struct ksym_log_writer *w, const struct ksym_log_entry *entry,
		       bool begins, u64 time)
{
	union perf_event *event = w->event;
	struct perf_sample sample;

	memcpy(event, entry->event, entry->size);
	if (begins && event->header.type == PERF_RECORD_KSYMBOL) {
		event->ksymbol.flags &= ~PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	} else if (begins && event->header.type == PERF_RECORD_BPF_EVENT) {
		event->bpf.type = PERF_BPF_EVENT_PROG_LOAD;
		event->bpf.flags = 0;
	}

	perf_sample__init(&sample, /*all=*/true);
	sample.time = time;
	event->header.size = entry->size +
		perf_event__synthesize_id_sample((void *)event + entry->size,
						 w->evsel->core.attr.sample_type, &sample);
	perf_sample__exit(&sample);
	return w->process(event, w->data);
}

static struct ksym_log_entry *writer__last(struct ksym_log_writer *w,
					   const struct ksym_log_entry *entry)
{
	struct ksym_log_entry *last = NULL;

	hashmap__find(w->last, &entry->key, &last);
	return last;
}

static int writer__put_recent(struct ksym_log_writer *w, struct ksym_log_entry *entry)
{
	struct ksym_log_entry *last = writer__last(w, entry);
	int err = 0;

	if (!w->from && entry->ends && (!last || last->ends))
		err = writer__put(w, entry, /*begins=*/true, last ? last->time : BEFORE_SAMPLES);
	err = err ?: writer__put(w, entry, /*begins=*/false, entry->time);
	if (!err && entry__type(entry) != PERF_RECORD_TEXT_POKE)
		err = hashmap__set(w->last, &entry->key, entry, NULL, NULL);
	return err;
}

/* Only if records were lost, text that exists is later than text that began elsewhere in it. */
static u64 writer__free_since(struct ksym_log_writer *w, const struct ksym_log_entry *entry,
			      const struct ksym_log_entry *last)
{
	for (size_t i = w->lost ? w->nr : 0; i-- > 0; ) {
		const struct ksym_log_entry *other = w->entries[i];

		if (other->key < entry->text_end && entry->key < other->text_end)
			return other->time;
	}
	return last ? last->time : 0;
}

/* Has the log the beginning of what exists? The end of other text may be lost. */
static bool entry__is_same(const struct ksym_log_entry *entry, const struct ksym_log_entry *last)
{
	const union perf_event *l = entry__event(entry), *r = entry__event(last);

	if (last->ends || l->header.type != r->header.type || entry->text_end != last->text_end)
		return false;
	if (entry__type(entry) == PERF_RECORD_MMAP2)
		return !strcmp(l->mmap2.filename, r->mmap2.filename);
	return !entry->text_end || !strcmp(l->ksymbol.name, r->ksymbol.name);
}

static int writer__put_existing(struct ksym_log_writer *w, struct ksym_log_entry *entry)
{
	const struct ksym_log_entry *last = writer__last(w, entry);
	int err;

	if (entry__type(entry) == PERF_RECORD_TEXT_POKE) {
		/* code follows its text, unless the log has both */
		if (last && last->seq)
			return 0;
		return writer__put(w, entry, /*begins=*/false, last ? last->time : w->newest);
	}
	if (last && entry__is_same(entry, last))
		return 0;
	/* a program is linked to text that is there already */
	entry->time = entry->text_end ? writer__free_since(w, entry, last) : w->newest;
	w->newest = max(w->newest, entry->time);
	err = writer__put(w, entry, /*begins=*/false, entry->time);
	return err ?: hashmap__set(w->last, &entry->key, entry, NULL, NULL);
}

/* All text, or all programs and code: these come behind the text in which they are. */
static int writer__put_all(struct ksym_log_writer *w, const struct ksym_log *log, bool text)
{
	struct ksym_log_entry *entry;
	int err = 0;

	for (size_t i = 0; i < w->nr && !err; i++) {
		if (!!w->entries[i]->text_end == text)
			err = writer__put_recent(w, w->entries[i]);
	}
	list_for_each_entry(entry, &log->existing, node) {
		if (!err && !!entry->text_end == text)
			err = writer__put_existing(w, entry);
	}
	return err;
}

static int writer__init(struct ksym_log_writer *w, struct ksym_log *log)
{
	struct ksym_log_entry *entry;

	w->event = malloc(PERF_SAMPLE_MAX_SIZE);
	w->entries = calloc(log->nr + 1, sizeof(*w->entries));
	w->last = hashmap__new(hash_key, equal_keys, NULL);
	if (!w->event || !w->entries || IS_ERR(w->last))
		return -ENOMEM;

	list_for_each_entry_reverse(entry, &log->recent, node) {
		if (entry->seq < w->from)
			break;
		w->entries[w->nr++] = entry;
	}
	qsort(w->entries, w->nr, sizeof(*w->entries), entry__cmp);
	return 0;
}

/**
 * ksym_log__write - write the log and the text that exists to a file
 * @log: the log, after a snapshot
 * @from: 0; or from ksym_log__mark(), to write what the file lacks since then
 * @evsel: first evsel of the file, whose sample_type defines the sample ids
 * @lost: the log may lack records
 * @process: writes a record; stops at the first error
 * @data: passed to @process
 *
 * Return: 0, -ENOMEM, or the error of @process.
 */
int ksym_log__write(struct ksym_log *log, u64 from, const struct evsel *evsel, bool lost,
		    int (*process)(union perf_event *event, void *data), void *data)
{
	struct ksym_log_writer w = {
		.from = from,
		.evsel = evsel,
		.process = process,
		.data = data,
		.lost = lost,
	};
	int err;

	if (from == log->seq)
		return 0;
	err = writer__init(&w, log);
	err = err ?: writer__put_all(&w, log, /*text=*/true);
	err = err ?: writer__put_all(&w, log, /*text=*/false);
	hashmap__free(w.last);
	free(w.entries);
	free(w.event);
	free_entries(&log->existing);
	return err;
}
