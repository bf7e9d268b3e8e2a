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
 * the end, perf record waits for the rest, when it has written a file that is valid
 * without them.
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
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <sys/ioctl.h>
#include <internal/xyarray.h>
#include <perf/cpumap.h>
#include <perf/evsel.h>
#include <perf/event.h>
#include "bpf-event.h"
#include "bpf-fetch.h"
#include "bpf-forget.h"
#include "bpf-sideband.h"
#include "debug.h"
#include "env.h"
#include "evlist.h"
#include "evsel.h"
#include "ksym-log.h"
#include "perf_api_probe.h"
#include "record.h"

/* Stop trying the queue when this many programs in a row are not ready. */
#define MAX_NOT_READY	64
#define WAIT_STEP_MS	10
/* Some hundred thousand records: few ring buffers reach that far back */
#define LOG_MAX_BYTES	(16 << 20)

/*
 * perf top: if a program had ended at a call of bpf_sideband__tell_ended(), its last
 * samples have been processed after so many more. Another thread reads all ring buffers in
 * a round meanwhile, and a round lies between two calls, or across one: what is read in the
 * first round that begins after the call is processed before the second one after it.
 */
#define ENDED_CALLS	2

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
	struct bpf_sideband_counts	counts;
	/* unloaded programs that the kernel may have retained */
	struct id_list			queue;
	/*
	 * Programs that were unloaded; the first nr_marked of them before the mark. If
	 * there is a log, those that it has dropped.
	 */
	struct id_list			ended;
	size_t				nr_marked;
	/* perf top: how many of them had ended at each of the last calls */
	size_t				nr_ended[ENDED_CALLS];
	/* records of kernel text, see bpf_sideband__keep_log(); or NULL */
	struct ksym_log			*log;
	u64				log_mark;
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

/*
 * Call @forget for the first @nr programs of those that were unloaded. Programs in the
 * queue, which have not been read yet, stay in the list until the next call.
 * Return: the number of programs that are taken off the list.
 */
static size_t bpf_sideband__drop(struct bpf_sideband *sb, size_t nr,
				 void (*forget)(struct perf_env *env, __u32 id))
{
	size_t i, kept = 0;

	for (i = 0; i < sb->ended.nr; i++) {
		u32 id = sb->ended.ids[i];

		if (i < nr && !id_list__has(&sb->queue, id))
			forget(sb->env, id);
		else
			sb->ended.ids[kept++] = id;
	}
	sb->ended.nr = kept;
	return i - kept;
}

static void bpf_sideband__missed(struct bpf_sideband *sb, u64 *why)
{
	sb->counts.loaded++;
	(*why)++;
}

/*
 * Count a program, unless it was counted when perf read those that exist.
 * Return: false if its info is not in the env.
 */
static bool bpf_sideband__has_read(struct bpf_sideband *sb, u32 id)
{
	const struct bpf_prog_info_node *node = perf_env__find_bpf_prog_info(sb->env, id);

	if (node && perf_env__count_bpf_prog(sb->env, id))
		bpf_sideband_counts__add(&sb->counts, node, /*err=*/0);
	return node;
}

/* Read and count a program. Closes @fd. */
static void bpf_sideband__describe(struct bpf_sideband *sb, u32 id, int fd)
{
	int err = perf_env__add_bpf_info(sb->env, fd);

	close(fd);
	if (err < 0) {
		pr_debug("Cannot read BPF program %u: %s\n", id, strerror(-err));
		bpf_sideband__missed(sb, &sb->counts.failed);
	} else {
		bpf_sideband__has_read(sb, id);
	}
}

static void bpf_sideband__loaded(struct bpf_sideband *sb, u32 id)
{
	int fd, err;

	if (bpf_sideband__has_read(sb, id))
		return;

	fd = bpf_prog_get_fd_by_id(id);
	err = errno;
	if (fd >= 0) {
		bpf_sideband__describe(sb, id, fd);
	} else if (err == EPERM) {
		bpf_sideband__missed(sb, &sb->counts.denied);
	} else if (err == ENOENT && !sb->evsel->core.attr.bpf_retain) {
		bpf_sideband__missed(sb, &sb->counts.gone);
	} else if (err != ENOENT || id_list__add(&sb->queue, id)) {
		pr_debug("Cannot open BPF program %u: %s\n", id, strerror(err));
		bpf_sideband__missed(sb, &sb->counts.failed);
	}
}

/* The log has dropped the records of a program. Out of memory, it is kept to the end. */
static void bpf_sideband__dropped(u32 id, void *data)
{
	struct bpf_sideband *sb = data;

	id_list__add(&sb->ended, id);
}

static void bpf_sideband__forget_first(struct bpf_sideband *sb, size_t nr)
{
	if (!nr)
		return;
	bpf_sideband__drop(sb, nr, perf_env__remove_bpf_prog_info);
	perf_env__remove_unused_btfs(sb->env);
}

static void bpf_sideband__add_to_log(struct bpf_sideband *sb, const union perf_event *event)
{
	size_t size = event->header.size - evsel__id_hdr_size(sb->evsel);
	size_t nr_ended = sb->ended.nr;
	u64 time;

	if (evsel__parse_sample_timestamp(sb->evsel, (union perf_event *)event, &time) ||
	    ksym_log__add(sb->log, event, size, time))
		sb->counts.lost++;
	/* it had to be pruned */
	if (sb->ended.nr > nr_ended)
		bpf_sideband__forget_first(sb, sb->ended.nr);
}

/* The event gets no maps of tasks, and those of the kernel are of modules. */
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
	else if (event->bpf.type == PERF_BPF_EVENT_PROG_UNLOAD && !sb->log)
		/* out of memory, it is kept to the end of the recording */
		id_list__add(&sb->ended, event->bpf.id);
	return 0;
}

/* Try once to read all programs in the queue. Those that are not ready stay there. */
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
			bpf_sideband__describe(sb, id, fd);
			not_ready = 0;
		} else if (errno == EAGAIN) {
			sb->queue.ids[kept++] = id;
			not_ready++;
		} else if (errno == ENOENT) {
			bpf_sideband__missed(sb, &sb->counts.evicted);
		} else {
			pr_debug("Cannot open unloaded BPF program %u: %s\n",
				 id, strerror(errno));
			bpf_sideband__missed(sb, &sb->counts.failed);
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
	if (sb->log)
		sb->log_mark = ksym_log__mark(sb->log);
	else
		sb->nr_marked = sb->ended.nr;
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
	if (sb->log) {
		ksym_log__prune(sb->log, sb->log_mark);
		sb->nr_marked = sb->ended.nr;
	}
	bpf_sideband__forget_first(sb, sb->nr_marked);
	sb->nr_marked = 0;
}

/**
 * bpf_sideband__tell_ended - tell the env of programs whose samples have been processed
 * @sb: may be NULL; its evlist is locked
 *
 * perf top calls it when it has processed the records that it had, see ENDED_CALLS.
 */
void bpf_sideband__tell_ended(struct bpf_sideband *sb)
{
	size_t nr, i;

	if (!sb || !sb->ended.nr)
		return;

	nr = bpf_sideband__drop(sb, sb->nr_ended[0], perf_env__bpf_prog_unloaded);
	for (i = 0; i + 1 < ENDED_CALLS; i++)
		sb->nr_ended[i] = sb->nr_ended[i + 1] - nr;
	sb->nr_ended[i] = sb->ended.nr;
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

/* evlist__add() has given it all CPUs */
static void evsel__replace_cpus(struct evsel *evsel, struct perf_cpu_map *cpus)
{
	perf_cpu_map__put(evsel->core.cpus);
	perf_cpu_map__put(evsel->core.pmu_cpus);
	evsel->core.cpus = perf_cpu_map__get(cpus);
	evsel->core.pmu_cpus = perf_cpu_map__get(cpus);
}

/**
 * bpf_sideband__add_event - add the event that the thread reads
 * @sb: must live longer than the thread
 * @evlist: the side-band events, not yet open
 * @cpus: where to open it if it follows all tasks; NULL: everywhere
 *
 * Return: 0 or a negative number.
 */
int bpf_sideband__add_event(struct bpf_sideband *sb, struct evlist *evlist,
			    struct perf_cpu_map *cpus)
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
	/* a program may run for any task, no matter which one loads it */
	sb->evsel->core.system_wide = perf_can_record_cpu_wide();
	if (sb->evsel->core.system_wide && cpus)
		evsel__replace_cpus(sb->evsel, cpus);
	sb->evsel->side_band.idle = bpf_sideband__idle;
	return 0;
}

/**
 * bpf_sideband__keep_log - log the records, for files that would miss some of them
 * @sb: with its event, which is not yet open
 * @opts: options of the samples, whose clock the records must have
 *
 * Return: 0 or -ENOMEM.
 */
int bpf_sideband__keep_log(struct bpf_sideband *sb, const struct record_opts *opts)
{
	struct perf_event_attr *attr = &sb->evsel->core.attr;
	struct evsel *evsel;

	sb->log = ksym_log__new(LOG_MAX_BYTES, bpf_sideband__dropped, sb);
	if (!sb->log)
		return -ENOMEM;

	attr->ksymbol = 1;
	attr->ksymbol_all = 1;
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

/**
 * bpf_sideband__uncount_denied - do not count the programs that existed when the log began
 * @sb: its evlist is locked; it has read the snapshot that the log begins with
 *
 * Who may not read BPF programs is told how many are loaded during the recording, not how
 * many there are.
 */
void bpf_sideband__uncount_denied(struct bpf_sideband *sb)
{
	sb->counts.loaded -= sb->counts.denied;
	sb->counts.denied = 0;
}

/**
 * bpf_sideband__drop_log - keep no log, as it would not have all text
 * @sb: its evlist is locked
 */
void bpf_sideband__drop_log(struct bpf_sideband *sb)
{
	ksym_log__delete(sb->log);
	sb->log = NULL;
}

/**
 * bpf_sideband__log - get the log of bpf_sideband__keep_log()
 * @sb: may be NULL; its evlist is locked while the log is used
 *
 * Return: the log, or NULL if there is none.
 */
struct ksym_log *bpf_sideband__log(struct bpf_sideband *sb)
{
	return sb ? sb->log : NULL;
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

/**
 * bpf_sideband__read_lost - count the records that the kernel could not write
 * @sb: may be NULL; its evlist is locked, or its thread has stopped
 *
 * PERF_RECORD_LOST tells of them only before the next record, and there may be none.
 *
 * Return: the number of records since the event was opened.
 */
u64 bpf_sideband__read_lost(struct bpf_sideband *sb)
{
	if (!sb)
		return 0;
	if (sb->evsel)
		sb->counts.lost = max(sb->counts.lost, evsel__read_lost(&sb->evsel->core));
	return sb->counts.lost;
}

/**
 * bpf_sideband__stop - count the last records that were lost
 * @sb: may be NULL; its thread has stopped, and its evlist is about to go
 */
void bpf_sideband__stop(struct bpf_sideband *sb)
{
	if (!sb)
		return;
	bpf_sideband__read_lost(sb);
	sb->evsel = NULL;
}

/**
 * bpf_sideband__wait - wait for programs that the kernel is still unloading
 * @sb: may be NULL; the thread of its evlist must have stopped, its event is open
 * @wait_ms: how long at most
 * @signals: counts signals that end the wait, in their handler
 * @ignore: number of signals that came before the wait and do not end it
 *
 * Return: true if some programs are not ready, and no signal ended the wait.
 */
bool bpf_sideband__wait(struct bpf_sideband *sb, int wait_ms,
			const volatile sig_atomic_t *signals, int ignore)
{
	u64 end = now_ms() + wait_ms;

	if (!sb)
		return false;
	while (sb->queue.nr && *signals <= ignore) {
		if (now_ms() >= end)
			return true;
		usleep(WAIT_STEP_MS * USEC_PER_MSEC);
		bpf_sideband__ask(sb);
	}
	return false;
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
 * bpf_sideband__counts - get the counts of programs
 * @sb: may be NULL; the thread of its evlist must have stopped
 * @counts: filled in, unless @sb is NULL
 */
void bpf_sideband__counts(const struct bpf_sideband *sb, struct bpf_sideband_counts *counts)
{
	if (!sb)
		return;
	*counts = sb->counts;
	counts->unready = sb->queue.nr;
	counts->loaded += sb->queue.nr;
}

static const struct {
	size_t		count;
	const char	*why;
} reasons[] = {
#define REASON(member, text) { offsetof(struct bpf_sideband_counts, member), text }
	REASON(gone, "were unloaded too early: the kernel has no attr.bpf_retain"),
	REASON(denied, "could not be opened: this requires CAP_SYS_ADMIN"),
	REASON(hidden,
	       "have hidden code: reading it requires CAP_SYSLOG and kernel.kptr_restrict below 2"),
	REASON(evicted, "were not retained: raise kernel.perf_bpf_retain_kb"),
	REASON(unready, "were still being unloaded when perf record ended"),
	REASON(failed, "could not be read: perf record -v prints why"),
#undef REASON
};

/**
 * bpf_sideband_counts__scnprintf - list the reasons why programs have no code
 * @counts: the counts at the end of the recording
 * @prefix: of each line
 * @buf: gets a line for each reason
 * @size: size of @buf
 *
 * Return: the length of the text; 0 if all programs have code.
 */
int bpf_sideband_counts__scnprintf(const struct bpf_sideband_counts *counts,
				   const char *prefix, char *buf, size_t size)
{
	bool some = counts->unfollowed == BPF_UNFOLLOWED_CPUS;
	int printed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		u64 nr = *(const u64 *)((const char *)counts + reasons[i].count);

		if (nr)
			printed += scnprintf(buf + printed, size - printed,
					     "%s%" PRIu64 " %s\n", prefix, nr, reasons[i].why);
	}
	if (counts->unfollowed)
		printed += scnprintf(buf + printed, size - printed,
				     "%sthose loaded during the recording%s have none and are not counted%s\n",
				     prefix, some ? " on CPUs outside kernel-text-cpus" : "",
				     some ? "" : ": perf could not follow them");
	return printed;
}

/**
 * bpf_sideband_counts__fprintf - print how many programs have no code, and why
 * @counts: the counts at the end of the recording
 * @fp: where to print
 *
 * Return: the number of characters printed; 0 if all programs have code.
 */
int bpf_sideband_counts__fprintf(const struct bpf_sideband_counts *counts, FILE *fp)
{
	u64 missing = counts->loaded - counts->described;
	int printed = 0;
	char buf[1024];

	if (missing || counts->unfollowed)
		printed += fprintf(fp, "[ perf record: %" PRIu64 "/%" PRIu64 " %s ]\n",
				   missing, counts->loaded, "BPF programs without code");
	if (bpf_sideband_counts__scnprintf(counts, "  ", buf, sizeof(buf)))
		printed += fprintf(fp, "%s", buf);
	if (counts->lost)
		printed += fprintf(fp, "[ perf record: lost %" PRIu64 " BPF records: %s ]\n",
				   counts->lost, "some programs may have no code");
	return printed;
}
