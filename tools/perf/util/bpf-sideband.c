// SPDX-License-Identifier: GPL-2.0
/*
 * Track the BPF programs that are loaded while perf record or perf top runs. A thread
 * reads PERF_RECORD_BPF_EVENT from an event of its own, and the bpf_prog_info of each
 * program.
 *
 * If a program has been unloaded before that, the thread reads its retained information
 * through the event, which has attr.bpf_retain. The kernel may not have it ready yet.
 * So that the next records don't wait for it, the program is put into a queue. The
 * thread tries the queue again each time after it has read all available records. At
 * the end, perf record waits for the rest.
 *
 *   LOAD -> open by id --> described
 *             | ENOENT
 *             v
 *           queue --> PERF_EVENT_IOC_BPF_PROG_FD --> described, evicted
 *
 * Without attr.bpf_retain, on an older kernel, such a program is counted as gone.
 * Without CAP_SYS_ADMIN no program can be read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>
#include <sys/ioctl.h>
#include <internal/xyarray.h>
#include <perf/evsel.h>
#include <perf/event.h>
#include "bpf-event.h"
#include "bpf-fetch.h"
#include "bpf-sideband.h"
#include "debug.h"
#include "env.h"
#include "evlist.h"
#include "evsel.h"
#include "ksym-log.h"
#include "ksym-snapshot.h"
#include "perf_api_probe.h"
#include "record.h"
#include "session.h"

/* Stop trying the queue when this many programs in a row are not ready. */
#define MAX_NOT_READY	8
/* Some hundred thousand records: few ring buffers reach that far back */
#define LOG_MAX_BYTES	(16 << 20)

/* The log has a record or two of each, and its limit is a matter of memory too */
#define LOG_MAX_ENDED	(16 << 10)

/* Ids of programs, the oldest first */
struct id_list {
	u32	*ids;
	size_t	nr;
	size_t	max;
};

struct bpf_sideband {
	struct perf_env			*env;
	/* NULL when the thread has stopped for good */
	struct evsel			*evsel;
	/* protected by evlist__sb_lock() from here on, while the thread runs */
	struct bpf_counts		counts;
	/* records that were lost, as the kernel has told so far */
	u64				lost_told;
	/* unloaded programs that the kernel may have retained */
	struct id_list			queue;
	/* with which of them the next round begins */
	size_t				next;
	/* programs that were unloaded; the first nr_marked of them before the mark */
	struct id_list			ended;
	size_t				nr_marked;
	/* so many are needed, see bpf_sideband__limit_ended() */
	size_t				nr_needed;
	/* the records also tell of text that existed before */
	bool				in_snapshot;
	/* records of kernel text, see bpf_sideband__keep_log(); or NULL */
	struct ksym_log			*log;
	const struct record_opts	*opts;
	/* so many records had been lost when a file was written */
	u64				lost_written;
	u64				log_mark;
	/* up to here the log is in the file; later files need it as well */
	u64				log_sent;
	bool				keeps_sent;
	/* the log began with a snapshot */
	bool				has_snapshot;
};

/**
 * bpf_sideband__new - track BPF programs
 * @env: gets the info of the programs
 *
 * Return: NULL if out of memory.
 */
struct bpf_sideband *bpf_sideband__new(struct perf_env *env)
{
	struct bpf_sideband *sb = zalloc(sizeof(*sb));

	if (sb)
		sb->env = env;
	return sb;
}

/**
 * bpf_sideband__delete - free what bpf_sideband__new() returned
 * @sb: may be NULL; the thread of its evlist must have stopped
 */
void bpf_sideband__delete(struct bpf_sideband *sb)
{
	if (!sb)
		return;
	free(sb->queue.ids);
	free(sb->ended.ids);
	ksym_log__delete(sb->log);
	free(sb);
}

static int id_list__add(struct id_list *list, u32 id)
{
	if (list->nr == list->max) {
		size_t max = list->max ? 2 * list->max : 64;
		u32 *ids = reallocarray(list->ids, max, sizeof(*ids));

		if (!ids)
			return -ENOMEM;
		list->ids = ids;
		list->max = max;
	}
	list->ids[list->nr++] = id;
	return 0;
}

static bool id_list__has(const struct id_list *list, u32 id)
{
	size_t i;

	for (i = 0; i < list->nr; i++) {
		if (list->ids[i] == id)
			return true;
	}
	return false;
}

/* Read and count a program, unless perf knows it as one that exists already. Closes @fd. */
static void bpf_sideband__describe(struct bpf_sideband *sb, u32 id, int fd)
{
	int err = perf_env__add_bpf_info(sb->env, fd, &sb->counts);

	close(fd);
	if (err < 0)
		pr_debug("Cannot read BPF program %u: %s\n", id, strerror(-err));
}

static void bpf_sideband__loaded(struct bpf_sideband *sb, u32 id)
{
	int fd, err;

	if (perf_env__find_bpf_prog_info(sb->env, id))
		return;

	fd = bpf_prog_get_fd_by_id(id);
	err = errno;
	if (fd >= 0) {
		bpf_sideband__describe(sb, id, fd);
	} else if (err != ENOENT && sb->in_snapshot) {
		/* it existed before: counted when perf reads all that exist */
	} else if (err == EPERM) {
		sb->counts.nr[BPF_DENIED]++;
	} else if (err == ENOENT && !sb->evsel->core.attr.bpf_retain) {
		sb->counts.nr[BPF_GONE]++;
	} else if (err != ENOENT || id_list__add(&sb->queue, id)) {
		pr_debug("Cannot open BPF program %u: %s\n", id, strerror(err));
		sb->counts.nr[BPF_FAILED]++;
	}
}

/*
 * Forget the first @nr programs of those that were unloaded. Programs that have not been
 * read yet, or that a dso needs, stay in the list until the next call.
 */
static void bpf_sideband__forget_first(struct bpf_sideband *sb, size_t nr)
{
	size_t i, kept = 0;

	if (!nr)
		return;
	for (i = 0; i < sb->ended.nr; i++) {
		u32 id = sb->ended.ids[i];

		if (i >= nr || id_list__has(&sb->queue, id) ||
		    !perf_env__remove_bpf_prog_info(sb->env, id))
			sb->ended.ids[kept++] = id;
	}
	sb->nr_marked -= min(sb->nr_marked, sb->ended.nr - kept);
	sb->ended.nr = kept;
	perf_env__remove_unused_btfs(sb->env);
}

/**
 * bpf_sideband__limit_ended - forget the oldest programs if too many have ended
 * @sb: may be NULL; its evlist is locked
 * @max: keep so many at least, for samples that come later
 *
 * perf top and a flight recorder may run for months while programs come and go. They keep
 * the last that have ended, and perf top those in its tables and listings, which dsos hold.
 *
 * Context: the thread that links dsos to the info, if any does.
 */
void bpf_sideband__limit_ended(struct bpf_sideband *sb, size_t max)
{
	if (!sb || sb->ended.nr < 2 * max_t(size_t, sb->nr_needed, max))
		return;
	bpf_sideband__forget_first(sb, sb->ended.nr - max);
	sb->nr_needed = sb->ended.nr;
}

static void bpf_sideband__add_to_log(struct bpf_sideband *sb, const union perf_event *event)
{
	int id_size = evsel__id_hdr_size(sb->evsel);
	int end = perf_event__id_end(event, id_size);
	u64 time;

	if (end <= 0 ||
	    evsel__parse_sample_timestamp(sb->evsel, (union perf_event *)event, &time) ||
	    ksym_log__add(sb->log, event, end - id_size, time))
		sb->counts.nr[BPF_LOST_RECORDS]++;
}

/* The event gets no maps of tasks, and those of the kernel are of modules. */
static bool is_of_kernel_text(const union perf_event *event)
{
	return event->header.type == PERF_RECORD_KSYMBOL ||
	       event->header.type == PERF_RECORD_BPF_EVENT ||
	       event->header.type == PERF_RECORD_TEXT_POKE ||
	       event->header.type == PERF_RECORD_MMAP2;
}

static void bpf_sideband__unloaded(struct bpf_sideband *sb, u32 id)
{
	/* out of memory, it is kept to the end of the recording */
	id_list__add(&sb->ended, id);
	/* the samples of programs that ended long ago have been overwritten */
	if (sb->keeps_sent && sb->opts->overwrite)
		bpf_sideband__limit_ended(sb, LOG_MAX_ENDED);
}

static int bpf_sideband__process(union perf_event *event, void *data)
{
	struct bpf_sideband *sb = data;

	if (sb->log && is_of_kernel_text(event))
		bpf_sideband__add_to_log(sb, event);

	if (event->header.type == PERF_RECORD_LOST)
		sb->lost_told += event->lost.lost;
	else if (event->header.type != PERF_RECORD_BPF_EVENT)
		return 0;
	else if (event->bpf.type == PERF_BPF_EVENT_PROG_LOAD)
		bpf_sideband__loaded(sb, event->bpf.id);
	else if (event->bpf.type == PERF_BPF_EVENT_PROG_UNLOAD)
		bpf_sideband__unloaded(sb, event->bpf.id);
	return 0;
}

/* Try to read the programs in the queue, from where it was stopped. Who is not ready stays. */
static void bpf_sideband__ask(struct bpf_sideband *sb)
{
	int event = *(int *)xyarray__entry(sb->evsel->core.fd, 0, 0);
	struct id_list *queue = &sb->queue;
	size_t kept = 0, not_ready = 0;

	for (size_t n = 0; n < queue->nr && not_ready < MAX_NOT_READY; n++) {
		u32 *id = &queue->ids[sb->next++ % queue->nr];
		int fd = ioctl(event, PERF_EVENT_IOC_BPF_PROG_FD, *id);

		if (fd < 0 && errno == EAGAIN) {
			not_ready++;
			continue;
		}
		if (fd >= 0) {
			bpf_sideband__describe(sb, *id, fd);
			not_ready = 0;
		} else if (errno == ENOENT) {
			sb->counts.nr[BPF_EVICTED]++;
		} else {
			pr_debug("Cannot open unloaded BPF program %u: %s\n",
				 *id, strerror(errno));
			sb->counts.nr[BPF_FAILED]++;
		}
		/* no program has this id */
		*id = 0;
	}
	for (size_t n = 0; n < queue->nr; n++) {
		if (queue->ids[n])
			queue->ids[kept++] = queue->ids[n];
	}
	queue->nr = kept;
}

static bool bpf_sideband__idle(void *data)
{
	struct bpf_sideband *sb = data;

	if (sb->queue.nr)
		bpf_sideband__ask(sb);
	return sb->queue.nr;
}

/**
 * bpf_sideband__mark - remember which programs have been unloaded up to now
 * @sb: may be NULL; its evlist is locked
 *
 * All samples of these programs are in the ring buffers, or have been read.
 */
void bpf_sideband__mark(struct bpf_sideband *sb)
{
	if (!sb)
		return;
	sb->nr_marked = sb->ended.nr;
	if (sb->log)
		sb->log_mark = ksym_log__mark(sb->log);
}

/**
 * bpf_sideband__forget - drop the programs that had been unloaded at the mark
 * @sb: may be NULL; its evlist is locked
 *
 * Call it when the file with their samples is complete.
 */
void bpf_sideband__forget(struct bpf_sideband *sb)
{
	if (!sb)
		return;
	if (sb->log)
		ksym_log__drop(sb->log, sb->log_mark);
	bpf_sideband__forget_first(sb, sb->nr_marked);
	sb->nr_marked = 0;
}

/**
 * bpf_sideband__nr_unready - count the programs in the queue
 * @sb: may be NULL; its evlist is locked
 *
 * Return: the number of unloaded programs that the kernel has not ready yet.
 */
size_t bpf_sideband__nr_unready(const struct bpf_sideband *sb)
{
	return sb ? sb->queue.nr : 0;
}

/**
 * bpf_sideband__add_event - add the event that the thread reads
 * @sb: must live longer than the thread
 * @evlist: the side-band events, not yet open
 * @all: open it on all CPUs, not for what is recorded
 *
 * Return: 0 or a negative number.
 */
int bpf_sideband__add_event(struct bpf_sideband *sb, struct evlist *evlist, bool all)
{
	struct perf_event_attr attr = {
		.type	          = PERF_TYPE_SOFTWARE,
		.config           = PERF_COUNT_SW_DUMMY,
		.sample_id_all    = 1,
		.watermark        = 1,
		.bpf_event        = 1,
		.read_format      = PERF_FORMAT_LOST,
		.size	   = sizeof(attr), /* to capture ABI version */
	};
	int err;

	/*
	 * Older gcc versions don't support designated initializers, like above,
	 * for unnamed union members, such as the following:
	 */
	attr.wakeup_watermark = 1;
	attr.bpf_retain = perf_can_bpf_retain();

	err = evlist__add_sb_event(evlist, &attr, bpf_sideband__process, sb);
	if (err)
		return err;

	sb->evsel = evlist__last(evlist);
	sb->evsel->core.system_wide = all;
	sb->evsel->side_band.idle = bpf_sideband__idle;
	return 0;
}

/**
 * bpf_sideband__keep_log - log the records, for files that would miss some of them
 * @sb: with its event, which is not yet open
 * @opts: options of the samples, whose clock the records must have
 * @keep_sent: keep the records that bpf_sideband__send_log() has written
 *
 * Return: 0 or -ENOMEM.
 */
int bpf_sideband__keep_log(struct bpf_sideband *sb, const struct record_opts *opts,
			   bool keep_sent)
{
	struct perf_event_attr *attr = &sb->evsel->core.attr;
	struct evsel *evsel;

	sb->opts = opts;
	sb->keeps_sent = keep_sent;
	sb->log = ksym_log__new(LOG_MAX_BYTES);
	if (!sb->log)
		return -ENOMEM;

	evsel__config_ksymbol(sb->evsel, /*code=*/true);
	attr->build_id = opts->build_id;
	attr->sample_type |= PERF_SAMPLE_TIME;
	/* events of --switch-output-event share the ring buffers, so need the same clock */
	evlist__for_each_entry(sb->evsel->evlist, evsel) {
		evsel->core.attr.use_clockid = opts->use_clockid;
		if (opts->use_clockid)
			evsel->core.attr.clockid = opts->clockid;
	}
	return 0;
}

static u64 evsel__read_lost(struct perf_evsel *evsel)
{
	u64 lost = 0;

	if (!evsel->fd || !(evsel->attr.read_format & PERF_FORMAT_LOST))
		return 0;
	for (int cpu = 0; cpu < xyarray__max_x(evsel->fd); cpu++) {
		for (int thread = 0; thread < xyarray__max_y(evsel->fd); thread++) {
			struct perf_counts_values count = {};

			if (!perf_evsel__read(evsel, cpu, thread, &count))
				lost += count.lost;
		}
	}
	return lost;
}

/* PERF_RECORD_LOST tells of lost records only before the next record, and there may be none. */
static u64 bpf_sideband__nr_lost(const struct bpf_sideband *sb)
{
	return max(sb->lost_told, sb->evsel ? evsel__read_lost(&sb->evsel->core) : 0);
}

static int drain_sb(void *data)
{
	evlist__flush_sb(data, /*wait_ms=*/0);
	return 0;
}

/* All text that exists is added to a new log. Later, the log may have it. */
static void bpf_sideband__set_snapshot(struct bpf_sideband *sb, struct evlist *evlist,
				       bool begins, bool first)
{
	evlist__flush_sb(evlist, /*wait_ms=*/0);
	evlist__sb_lock(evlist);
	sb->in_snapshot = begins;
	ksym_log__set_snapshot(sb->log, begins && !first);
	evlist__sb_unlock(evlist);
}

/**
 * bpf_sideband__snapshot - add the text that exists to the log
 * @sb: may be NULL; its evlist is open and not locked
 * @first: the log begins with it
 *
 * If perf may not take a snapshot, the kernel does not report changes to the text either:
 * no log then, unless it is all that perf has, on a kernel without snapshots.
 *
 * Return: true if the log has a snapshot, which may be of before if the thread has stopped.
 */
bool bpf_sideband__snapshot(struct bpf_sideband *sb, bool first)
{
	struct ksym_snapshot snapshot = { .drain = drain_sb, };
	int err;

	if (!sb || !sb->log || !sb->evsel)
		return sb && sb->log && sb->has_snapshot;

	snapshot.data = sb->evsel->evlist;
	bpf_sideband__set_snapshot(sb, snapshot.data, /*begins=*/true, first);
	err = evlist__ksym_snapshot(snapshot.data, &snapshot);
	bpf_sideband__set_snapshot(sb, snapshot.data, /*begins=*/false, first);
	sb->has_snapshot = !err;
	/* without one, the log is of use if no other event reports text */
	if (!err || sb->opts->sb_text)
		return !err;

	evlist__sb_lock(snapshot.data);
	ksym_log__delete(sb->log);
	sb->log = NULL;
	evlist__sb_unlock(snapshot.data);
	return false;
}

static int fwrite_event(union perf_event *event, void *data)
{
	return fwrite(event, event->header.size, 1, data) == 1 ? 0 : -ENOMEM;
}

/* Copy the records from the log that a file needs, or only those it lacks, to @fp. */
static int bpf_sideband__copy_log(struct bpf_sideband *sb, bool lacking,
				  const struct evsel *evsel, FILE *fp)
{
	u64 from = lacking ? sb->log_sent : 0, nr_lost = lacking ? 0 : bpf_sideband__nr_lost(sb);
	int err;

	if (lacking)
		sb->counts.nr[BPF_LOST_RECORDS] += ksym_log__nr_dropped(sb->log, from);
	err = ksym_log__write(sb->log, from, evsel, nr_lost > sb->lost_written, fwrite_event, fp);
	sb->lost_written = max(sb->lost_written, nr_lost);
	sb->log_sent = ksym_log__mark(sb->log);
	if (!sb->keeps_sent)
		ksym_log__drop(sb->log, sb->log_sent);
	return err;
}

/* Whoever reads a pipe may be slow: the thread goes on reading its ring buffers meanwhile. */
static int bpf_sideband__write(struct bpf_sideband *sb, bool lacking, const struct evsel *evsel,
			       int (*process)(union perf_event *event, void *data), void *data)
{
	struct evlist *evlist = sb->evsel ? sb->evsel->evlist : NULL;
	union perf_event *event;
	size_t size = 0;
	char *buf = NULL;
	FILE *fp = open_memstream(&buf, &size);
	int err;

	if (!fp)
		return -ENOMEM;

	evlist__flush_sb(evlist, /*wait_ms=*/0);
	evlist__sb_lock(evlist);
	err = bpf_sideband__copy_log(sb, lacking, evsel, fp);
	evlist__sb_unlock(evlist);
	if (fclose(fp))
		err = err ?: -ENOMEM;

	for (size_t pos = 0; !err && pos < size; pos += event->header.size) {
		event = (union perf_event *)(buf + pos);
		err = process(event, data);
	}
	free(buf);
	return err;
}

/**
 * bpf_sideband__send_log - write the records that are new in the log
 * @sb: may be NULL; its evlist is not locked
 * @evsel: first evsel of the file
 * @process: writes a record
 * @data: passed to @process
 *
 * Return: 0, or the error of the record that could not be written.
 */
int bpf_sideband__send_log(struct bpf_sideband *sb, const struct evsel *evsel,
			   int (*process)(union perf_event *event, void *data), void *data)
{
	if (!sb || !sb->log)
		return 0;
	return bpf_sideband__write(sb, /*lacking=*/true, evsel, process, data);
}

/**
 * bpf_sideband__write_log - write the log and the text that exists to a file
 * @sb: may be NULL; its evlist is not locked
 * @evsel: first evsel of the file
 * @process: writes a record
 * @data: passed to @process
 *
 * Return: false if there is no log or no snapshot, or not all of it could be written.
 */
bool bpf_sideband__write_log(struct bpf_sideband *sb, const struct evsel *evsel,
			     int (*process)(union perf_event *event, void *data), void *data)
{
	bool has_snapshot = bpf_sideband__snapshot(sb, /*first=*/false);

	if (!sb || !sb->log)
		return false;
	return !bpf_sideband__write(sb, /*lacking=*/false, evsel, process, data) && has_snapshot;
}

/**
 * bpf_sideband__stop - count the last records that were lost
 * @sb: may be NULL; its thread has stopped, and its evlist is about to go
 */
void bpf_sideband__stop(struct bpf_sideband *sb)
{
	if (!sb)
		return;
	sb->counts.nr[BPF_LOST_RECORDS] += bpf_sideband__nr_lost(sb);
	sb->evsel = NULL;
}

/**
 * bpf_sideband__read_runs - read again how often the programs ran
 * @sb: may be NULL; the thread of its evlist must have stopped
 */
void bpf_sideband__read_runs(struct bpf_sideband *sb)
{
	const struct perf_evsel *evsel = sb && sb->evsel ? &sb->evsel->core : NULL;

	/* it may have failed to open */
	if (evsel && evsel->fd)
		perf_env__read_bpf_runs(sb->env, evsel->attr.bpf_retain ?
					*(int *)xyarray__entry(evsel->fd, 0, 0) : -1);
}

/**
 * bpf_sideband__count - add up the programs that the thread has read and others
 * @sb: may be NULL; the thread of its evlist must have stopped
 * @counts: those that others have read
 */
void bpf_sideband__count(const struct bpf_sideband *sb, struct bpf_counts *counts)
{
	for (size_t i = BPF_DESCRIBED; sb && i <= BPF_LOST_RECORDS; i++)
		counts->nr[i] += sb->counts.nr[i];
	if (sb)
		counts->nr[BPF_UNREADY] = sb->queue.nr;
}

static const char * const reasons[BPF_NR_COUNTS] = {
	[BPF_GONE]	= "were unloaded too early: the kernel has no attr.bpf_retain",
	[BPF_DENIED]	= "could not be opened: this requires CAP_SYS_ADMIN",
	[BPF_HIDDEN]	=
		"have hidden code: reading it requires CAP_SYSLOG and kernel.kptr_restrict below 2",
	[BPF_EVICTED]	= "were not retained: raise kernel.perf_bpf_retain_kb",
	[BPF_UNREADY]	= "were still being unloaded when perf record ended",
	[BPF_FAILED]	= "could not be read: perf record -v prints why",
};

/**
 * bpf_counts__scnprintf - list the reasons why programs have no code
 * @counts: the counts at the end of the recording
 * @prefix: of each line
 * @buf: gets a line for each reason
 * @size: size of @buf
 *
 * Return: the length of the text; 0 if all programs have code.
 */
int bpf_counts__scnprintf(const struct bpf_counts *counts, const char *prefix, char *buf,
			  size_t size)
{
	int printed = 0;

	for (size_t i = 0; i < BPF_NR_COUNTS; i++) {
		if (reasons[i] && counts->nr[i])
			printed += scnprintf(buf + printed, size - printed, "%s%" PRIu64 " %s\n",
					     prefix, counts->nr[i], reasons[i]);
	}
	if (counts->nr[BPF_UNFOLLOWED])
		printed += scnprintf(buf + printed, size - printed, "%s%s\n", prefix,
				     "programs loaded during the recording have none and are not counted: perf could not follow them");
	return printed;
}

/**
 * bpf_counts__fprintf - print how many programs have no code, and why
 * @counts: the counts at the end of the recording
 * @fp: where to print
 *
 * Return: the number of characters printed; 0 if all programs have code.
 */
int bpf_counts__fprintf(const struct bpf_counts *counts, FILE *fp)
{
	u64 missing = counts->nr[BPF_LOADED] - counts->nr[BPF_DESCRIBED];
	int printed = 0;
	char buf[1024];

	if (missing)
		printed += fprintf(fp, "[ perf record: %" PRIu64 "/%" PRIu64 " %s ]\n",
				   missing, counts->nr[BPF_LOADED], "BPF programs without code");
	else if (counts->nr[BPF_UNFOLLOWED])
		printed += fprintf(fp, "[ perf record: BPF programs without code ]\n");
	if (bpf_counts__scnprintf(counts, "  ", buf, sizeof(buf)))
		printed += fprintf(fp, "%s", buf);
	if (counts->nr[BPF_LOST_RECORDS])
		printed += fprintf(fp, "[ perf record: lost %" PRIu64 " BPF records: %s ]\n",
				   counts->nr[BPF_LOST_RECORDS], "names or code may be missing");
	return printed;
}
