// SPDX-License-Identifier: GPL-2.0
/*
 * The BPF programs that are loaded while perf records or shows: a thread reads
 * PERF_RECORD_BPF_EVENT from an event of its own, and asks for what
 * bpf_prog_info tells of each program.
 *
 * A program that has ended before it was asked for is asked for once more, by the
 * event: with attr.bpf_retain the kernel keeps what there is to tell. It is not
 * ready at once, and the records of others must not wait for that, so the
 * program is put into a queue, from which the thread asks when it has read what
 * records there were, and waits only at its end.
 *
 *   LOAD -> by id  --> described
 *             | ENOENT
 *             v
 *           queue --> by the event --> described, evicted
 *
 * Without attr.bpf_retain, on an older kernel, such a program is counted as gone;
 * without CAP_SYS_ADMIN no program can be asked for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <linux/err.h>
#include <linux/perf_event.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <sys/ioctl.h>
#include <internal/xyarray.h>
#include <perf/event.h>
#include "bpf-event.h"
#include "bpf-sideband.h"
#include "debug.h"
#include "env.h"
#include "evlist.h"
#include "evsel.h"
#include "ksym-log.h"
#include "perf_api_probe.h"
#include "record.h"

/* So many in a row are not ready: ask no more of them for now. */
#define MAX_NOT_READY	64
#define WAIT_STEP_MS	10
/* Some hundred thousand records: no ring buffer reaches as far back */
#define LOG_MAX_BYTES	(16 << 20)

/* Ids of programs, oldest first */
struct id_list {
	u32	*ids;
	size_t	nr;
	size_t	max;
};

struct bpf_sideband {
	struct perf_env			*env;
	struct evsel			*evsel;
	bool				wait;
	/* what follows is under the lock of the evlist, while its thread runs */
	struct bpf_sideband_counts	counts;
	/* programs to ask the event for */
	struct id_list			queue;
	/* programs that have ended, of which the first are marked */
	struct id_list			ended;
	size_t				nr_marked;
	/* all records, for files that are told of at their end, or NULL */
	struct ksym_log			*log;
	u64				log_mark;
};

/**
 * bpf_sideband__new - keep track of BPF programs
 * @env: where what is told of them goes to
 * @wait: at the end, for programs that have not quite ended
 *
 * Return: NULL without memory.
 */
struct bpf_sideband *bpf_sideband__new(struct perf_env *env, bool wait)
{
	struct bpf_sideband *sb = zalloc(sizeof(*sb));

	if (sb) {
		sb->env = env;
		sb->wait = wait;
	}
	return sb;
}

/**
 * bpf_sideband__delete - end of bpf_sideband__new()
 * @sb: may be NULL; the thread of its evlist has stopped
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

/* Count what became of a program; @fd is consumed. */
static void bpf_sideband__describe(struct bpf_sideband *sb, int fd)
{
	int err = perf_env__add_bpf_info(sb->env, fd);

	close(fd);
	if (err)
		sb->counts.failed++;
	else
		sb->counts.described++;
}

static void bpf_sideband__loaded(struct bpf_sideband *sb, u32 id)
{
	int fd = bpf_prog_get_fd_by_id(id), err = errno;

	sb->counts.loaded++;
	if (fd >= 0) {
		bpf_sideband__describe(sb, fd);
	} else if (err == EPERM) {
		sb->counts.denied++;
	} else if (err == ENOENT && !sb->evsel->core.attr.bpf_retain) {
		sb->counts.gone++;
	} else if (err != ENOENT || id_list__add(&sb->queue, id)) {
		pr_debug("BPF program %u cannot be asked for: %s\n", id, strerror(err));
		sb->counts.failed++;
	}
}

static void bpf_sideband__add_to_log(struct bpf_sideband *sb, const union perf_event *event)
{
	size_t size = event->header.size - evsel__id_hdr_size(sb->evsel);
	u64 time;

	if (evsel__parse_sample_timestamp(sb->evsel, (union perf_event *)event, &time) ||
	    ksym_log__add(sb->log, event, size, time))
		sb->counts.lost++;
}

/* The event has no map of a task: the kernel's are those of modules. */
static bool is_of_kernel_text(const union perf_event *event)
{
	return event->header.type == PERF_RECORD_KSYMBOL ||
	       event->header.type == PERF_RECORD_BPF_EVENT ||
	       event->header.type == PERF_RECORD_MMAP2;
}

static int bpf_sideband__process(union perf_event *event, void *data)
{
	struct bpf_sideband *sb = data;

	if (sb->log && is_of_kernel_text(event))
		bpf_sideband__add_to_log(sb, event);

	if (event->header.type == PERF_RECORD_LOST)
		sb->counts.lost += event->lost.lost;
	else if (event->header.type != PERF_RECORD_BPF_EVENT)
		return 0;
	else if (event->bpf.type == PERF_BPF_EVENT_PROG_LOAD)
		bpf_sideband__loaded(sb, event->bpf.id);
	else if (event->bpf.type == PERF_BPF_EVENT_PROG_UNLOAD)
		/* without memory it is remembered for ever */
		id_list__add(&sb->ended, event->bpf.id);
	return 0;
}

/* Ask once for all in the queue, and keep there what is not ready. */
static void bpf_sideband__ask(struct bpf_sideband *sb)
{
	int event = *(int *)xyarray__entry(sb->evsel->core.fd, 0, 0);
	size_t i, kept = 0, not_ready = 0;
	int fd;

	for (i = 0; i < sb->queue.nr; i++) {
		u32 id = sb->queue.ids[i];

		errno = EAGAIN;
		fd = -1;
		if (not_ready < MAX_NOT_READY)
			fd = ioctl(event, PERF_EVENT_IOC_BPF_PROG_FD, id);

		if (fd >= 0) {
			bpf_sideband__describe(sb, fd);
			not_ready = 0;
		} else if (errno == EAGAIN) {
			sb->queue.ids[kept++] = id;
			not_ready++;
		} else if (errno == ENOENT) {
			sb->counts.evicted++;
		} else {
			pr_debug("BPF program %u has ended, and is not told of: %s\n",
				 id, strerror(errno));
			sb->counts.failed++;
		}
	}
	sb->queue.nr = kept;
}

static u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * MSEC_PER_SEC + ts.tv_nsec / NSEC_PER_MSEC;
}

static bool bpf_sideband__idle(void *data, int wait_ms)
{
	struct bpf_sideband *sb = data;
	u64 end = now_ms() + wait_ms;

	if (sb->queue.nr)
		bpf_sideband__ask(sb);

	while (sb->wait && sb->queue.nr && now_ms() < end) {
		usleep(WAIT_STEP_MS * USEC_PER_MSEC);
		bpf_sideband__ask(sb);
	}
	return sb->queue.nr;
}

/**
 * bpf_sideband__mark - remember which programs have ended up to now
 * @sb: may be NULL; its evlist is locked
 *
 * Samples of these programs are in the ring buffers already, or have been read.
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
 * bpf_sideband__forget - forget the programs that had ended at the mark
 * @sb: may be NULL; its evlist is locked
 *
 * For when the file with their samples is complete. Those that the kernel has not
 * told of yet are for the next time.
 */
void bpf_sideband__forget(struct bpf_sideband *sb)
{
	size_t i, kept = 0;

	if (sb && sb->log)
		ksym_log__fold(sb->log, sb->log_mark);
	if (!sb || !sb->nr_marked)
		return;

	for (i = 0; i < sb->ended.nr; i++) {
		u32 id = sb->ended.ids[i];

		if (i < sb->nr_marked && !id_list__has(&sb->queue, id))
			perf_env__remove_bpf_prog_info(sb->env, id);
		else
			sb->ended.ids[kept++] = id;
	}
	sb->ended.nr = kept;
	sb->nr_marked = 0;
	perf_env__remove_unused_btfs(sb->env);
}

/**
 * bpf_sideband__nr_unready - how many programs the kernel has yet to tell of
 * @sb: may be NULL; its evlist is locked
 *
 * Return: the number of those that have ended.
 */
size_t bpf_sideband__nr_unready(const struct bpf_sideband *sb)
{
	return sb ? sb->queue.nr : 0;
}

/**
 * bpf_sideband__add_event - add the event that the thread reads
 * @sb: lives longer than the thread
 * @evlist: the side-band events, not yet open
 *
 * Return: 0 or a negative number.
 */
int bpf_sideband__add_event(struct bpf_sideband *sb, struct evlist *evlist)
{
	struct perf_event_attr attr = {
		.type	          = PERF_TYPE_SOFTWARE,
		.config           = PERF_COUNT_SW_DUMMY,
		.sample_id_all    = 1,
		.watermark        = 1,
		.bpf_event        = 1,
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
	/* programs run for any task, whoever loads them */
	sb->evsel->core.system_wide = perf_can_record_cpu_wide();
	sb->evsel->side_band.idle = bpf_sideband__idle;
	return 0;
}

/**
 * bpf_sideband__keep_log - keep the records, for files that cannot have all of them
 * @sb: has its event, which is not yet open
 * @opts: of the samples, which have the same clock
 *
 * Return: 0 or -ENOMEM.
 */
int bpf_sideband__keep_log(struct bpf_sideband *sb, const struct record_opts *opts)
{
	struct perf_event_attr *attr = &sb->evsel->core.attr;
	struct evsel *evsel;

	sb->log = ksym_log__new(LOG_MAX_BYTES);
	if (!sb->log)
		return -ENOMEM;

	attr->ksymbol = 1;
	attr->ksymbol_all = 1;
	attr->build_id = opts->build_id;
	attr->sample_type |= PERF_SAMPLE_TIME;
	/* events of --switch-output-event share its ring buffers, which takes one clock */
	evlist__for_each_entry(sb->evsel->evlist, evsel) {
		evsel->core.attr.use_clockid = opts->use_clockid;
		if (opts->use_clockid)
			evsel->core.attr.clockid = opts->clockid;
	}
	return 0;
}

/**
 * bpf_sideband__log - the records that are kept
 * @sb: may be NULL; its evlist is locked while the log is used
 *
 * Return: NULL without a log.
 */
struct ksym_log *bpf_sideband__log(struct bpf_sideband *sb)
{
	return sb ? sb->log : NULL;
}

/**
 * bpf_sideband__counts - what became of the programs
 * @sb: may be NULL; the thread of its evlist has stopped
 * @counts: filled in, unless @sb is NULL
 */
void bpf_sideband__counts(const struct bpf_sideband *sb, struct bpf_sideband_counts *counts)
{
	if (!sb)
		return;
	*counts = sb->counts;
	counts->unready = sb->queue.nr;
}

static int say_why(unsigned long nr, const char *why, FILE *fp)
{
	return nr ? fprintf(fp, "  %lu %s\n", nr, why) : 0;
}

/**
 * bpf_sideband_counts__fprintf - tell which programs have no code, and why
 * @counts: at the end
 * @fp: to where
 *
 * Return: the number of characters; nothing is said when nothing is missing.
 */
int bpf_sideband_counts__fprintf(const struct bpf_sideband_counts *counts, FILE *fp)
{
	unsigned long missing = counts->loaded - counts->described;
	int printed = 0;

	if (missing)
		printed += fprintf(fp, "[ perf record: %lu/%lu BPF programs without code ]\n",
				   missing, counts->loaded);
	printed += say_why(counts->gone, "ended too early: the kernel has no attr.bpf_retain", fp);
	printed += say_why(counts->denied, "may not be asked for: that takes CAP_SYS_ADMIN", fp);
	printed += say_why(counts->evicted, "were not kept: raise kernel.perf_bpf_retain_kb", fp);
	printed += say_why(counts->unready, "had not quite ended when perf did", fp);
	printed += say_why(counts->failed, "could not be read: -v tells why", fp);
	if (counts->lost)
		printed += fprintf(fp, "[ perf record: lost %lu BPF records: %s ]\n",
				   counts->lost, "some programs may have no code");
	return printed;
}
