// SPDX-License-Identifier: GPL-2.0
/*
 * The text that the kernel generates and loads, as perf record and perf top see it:
 * which text there is when they begin, which is added later, and what it contains.
 *
 * The events of the samples report text that is added, unless those of the side band do.
 * What perf.data needs besides comes from here, so that neither command knows how it is
 * obtained:
 *
 *   config      decides which event reports text
 *   open        begins to follow BPF programs in a thread, which reads their info
 *   synthesize  writes records of the text that exists already, to each file
 *   send        writes programs, and text of other tasks, that the thread has read since
 *   mark        before the ring buffers are read, if a file may end behind that
 *   complete    writes the rest to a file, before its header
 *   switch      the next file of --switch-output begins
 *   stop        ends the thread, when all events are disabled
 *   summary     tells the user how many programs have no code, and why
 */
#include <errno.h>
#include <linux/compiler.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include "bpf-fetch.h"
#include "bpf-sideband.h"
#include "cap.h"
#include "debug.h"
#include "env.h"
#include "evlist.h"
#include "evsel.h"
#include "ksym-snapshot.h"
#include "perf_api_probe.h"
#include "record.h"
#include "record-ktext.h"
#include "session.h"
#include "synthetic-events.h"
#include "target.h"
#include "time-utils.h"
#include "tool.h"
#include "util.h"

struct ktext_recorder {
	struct perf_session	*session;
	struct record_opts	*opts;
	struct ktext_ops	ops;
	/* events of the thread; NULL if there is none */
	struct evlist		*sb_evlist;
	struct bpf_sideband	*sideband;
	/* programs that were loaded before the recording, and all, when it is complete */
	struct bpf_counts	counts;
	/* the side band has read what existed when it was opened */
	bool			has_snapshot;
	/* the first file has its existing text, so that samples may follow */
	bool			started;
	bool			stopped;
	/* this file has the programs that were added up to then, see perf_env */
	u32			sent;
};

/**
 * ktext_recorder__new - allocate a recorder of kernel text
 * @session: the session, with its tool
 * @opts: the options
 * @ops: what the command does, copied
 *
 * Return: NULL if out of memory.
 */
struct ktext_recorder *ktext_recorder__new(struct perf_session *session,
					   struct record_opts *opts,
					   const struct ktext_ops *ops)
{
	struct ktext_recorder *kt = zalloc(sizeof(*kt));

	if (kt) {
		kt->session = session;
		kt->opts = opts;
		kt->ops = *ops;
	}
	return kt;
}

/**
 * ktext_recorder__delete - stop, and free what ktext_recorder__new() returned
 * @kt: may be NULL
 */
void ktext_recorder__delete(struct ktext_recorder *kt)
{
	if (!kt)
		return;
	ktext_recorder__stop(kt, /*nr_signals=*/-1);
	bpf_sideband__delete(kt->sideband);
	free(kt);
}

/* perf record writes the env of the session to the header; perf top has one of the machine. */
static struct perf_env *ktext_recorder__env(struct ktext_recorder *kt)
{
	return kt->session->machines.host.env ?: perf_session__env(kt->session);
}

#ifdef HAVE_LIBBPF_SUPPORT
/**
 * ktext_recorder__config - decide which event reports kernel text
 * @opts: what to record; sb_text is set if it is the one of the side band
 * @evlist: the events, not yet open
 *
 * Any task may run text that another one loads. The kernel reports the load to events of
 * the task and of the CPU where it happens: those of a recorded task get only its own.
 * The side-band event gets all, as it is open on all CPUs. It is no event of the file, so
 * that no sample has to grow by an id for it.
 *
 * If nothing can keep the side band from getting the text, it alone requests it.
 * The samples need a time, as the records are put in order with them.
 */
void ktext_recorder__config(struct record_opts *opts, struct evlist *evlist)
{
	/* an event for text pokes has all text */
	opts->sb_text = !target__has_cpu(&opts->target) && !opts->target.per_thread &&
			opts->sample_time && !opts->text_poke &&
			!opts->no_bpf_event && !opts->all_user &&
			evlist__needs_bpf_sb_event(evlist) && perf_cap__capable(CAP_IPC_LOCK) &&
			perf_can_record_cpu_wide();
}

/*
 * The records are put in order by their times, so samples need a time too. Some kernels
 * without ksymbol_all add up the sizes of the sample ids of all events that get a
 * KSYMBOL: don't add an event with a sample id there.
 */
static bool ktext_recorder__can_log(struct ktext_recorder *kt)
{
	struct evlist *evlist = kt->session->evlist;
	struct evsel *evsel;

	if (!(evlist__first(evlist)->core.attr.sample_type & PERF_SAMPLE_TIME))
		return false;

	evlist__for_each_entry(evlist, evsel) {
		if (evsel->core.attr.ksymbol_all)
			return true;
	}
	return false;
}

/*
 * Without per-CPU ring buffers, the side band is opened as the other events: a recording
 * of one thread opens nothing elsewhere.
 */
static bool ktext_recorder__follows_all(const struct ktext_recorder *kt)
{
	const struct target *target = &kt->opts->target;

	return kt->opts->sb_text || ((target__has_cpu(target) || !target->per_thread) &&
				     perf_event_paranoid_check(0));
}

static int ktext_recorder__follow_bpf(struct ktext_recorder *kt)
{
	bool all = ktext_recorder__follows_all(kt);

	if (kt->opts->no_bpf_event)
		return 0;

	if (!kt->sb_evlist)
		kt->sb_evlist = evlist__new();
	if (!kt->sb_evlist) {
		pr_err("Couldn't create side band evlist.\n.");
		return -ENOMEM;
	}

	ktext_recorder__env(kt)->bpf_progs.xlated = kt->opts->bpf_xlated;
	kt->sideband = bpf_sideband__new(ktext_recorder__env(kt));
	if (!kt->sideband || bpf_sideband__add_event(kt->sideband, kt->sb_evlist, all)) {
		pr_err("Couldn't ask for PERF_RECORD_BPF_EVENT side band events.\n.");
		evlist__put(kt->sb_evlist);
		kt->sb_evlist = NULL;
		return -EINVAL;
	}
	if (kt->opts->sb_text || (kt->ops.keep_log && ktext_recorder__can_log(kt)))
		return bpf_sideband__keep_log(kt->sideband, kt->opts, kt->ops.keep_log);
	return 0;
}
#else
void ktext_recorder__config(struct record_opts *opts __maybe_unused,
			    struct evlist *evlist __maybe_unused)
{
}

static int ktext_recorder__follow_bpf(struct ktext_recorder *kt __maybe_unused)
{
	return 0;
}
#endif

static const char *side_band_hint(int err)
{
	if (err == -EMFILE)
		return ". Raise the limit of open files, ulimit -n";
	if (err == -EPERM)
		return ". Raise kernel.perf_event_mlock_kb, or run perf with CAP_IPC_LOCK";
	return "";
}

/* Existing programs are still read. Who may not read any is not told of it each time. */
static void ktext_recorder__cannot_follow(struct ktext_recorder *kt, int err)
{
	if (kt->sideband && (kt->opts->sb_text || bpf_progs__can_read())) {
		pr_warning("BPF programs that are loaded from now on will have no %scode: cannot open the event that reports them: %s%s.\n",
			   kt->opts->sb_text ? "symbol and no " : "", strerror(-err),
			   side_band_hint(err));
		kt->counts.nr[BPF_UNFOLLOWED] = 1;
	} else {
		pr_debug("Couldn't start the side band thread: %s\n", strerror(-err));
	}
	bpf_sideband__delete(kt->sideband);
	kt->sideband = NULL;
	kt->sb_evlist = NULL;
}

/* A command that is recorded without per-CPU ring buffers: the thread with its pid. */
static struct target *ktext_recorder__target(const struct ktext_recorder *kt,
					     struct target *target, char tid[12])
{
	*target = kt->opts->target;
	if (target__none(target) && target->per_thread) {
		scnprintf(tid, 12, "%d", evlist__workload_pid(kt->session->evlist));
		target->tid = tid;
	}
	return target;
}

/**
 * ktext_recorder__open - begin to follow BPF programs
 * @kt: the recorder
 * @sb_evlist: events that its thread has to read as well, which it then owns; or NULL
 *
 * It is no error if the thread cannot start: BPF programs that are loaded later have no
 * code then, and with sb_text no text that is added later has a symbol.
 *
 * Return: 0 or -errno.
 */
int ktext_recorder__open(struct ktext_recorder *kt, struct evlist *sb_evlist)
{
	struct target target;
	char tid[12];
	int err;

	kt->sb_evlist = sb_evlist;
	err = ktext_recorder__follow_bpf(kt);
	if (err)
		return err;

	err = evlist__start_sb_thread(kt->sb_evlist, ktext_recorder__target(kt, &target, tid));
	if (err)
		ktext_recorder__cannot_follow(kt, err);
	kt->has_snapshot = bpf_sideband__snapshot(kt->sideband, /*first=*/true);
	return 0;
}

static size_t ktext_recorder__nr_unready(struct ktext_recorder *kt)
{
	size_t nr;

	evlist__sb_lock(kt->sb_evlist);
	nr = bpf_sideband__nr_unready(kt->sideband);
	evlist__sb_unlock(kt->sb_evlist);
	return nr;
}

static int ktext_recorder__drain(void *data)
{
	struct ktext_recorder *kt = data;

	return kt->ops.drain(kt->session->tool);
}

static bool ktext_recorder__snapshot(struct ktext_recorder *kt)
{
	struct ksym_snapshot snapshot = { .drain = ktext_recorder__drain, .data = kt, };

	if (!kt->ops.drain || kt->opts->no_bpf_event)
		return false;
	return evlist__ksym_snapshot(kt->session->evlist, &snapshot) == 0;
}

static int ktext_recorder__write_logged(union perf_event *event, void *data)
{
	struct ktext_recorder *kt = data;
	perf_event__handler_t process = kt->ops.process_text ?: kt->ops.process;

	return process(kt->session->tool, event, /*sample=*/NULL, &kt->session->machines.host);
}

/* perf record --overwrite writes the log at the end of the file. */
static bool ktext_recorder__sends_text(const struct ktext_recorder *kt)
{
	return kt->opts->sb_text && !(kt->opts->overwrite && kt->ops.keep_log);
}

/**
 * ktext_recorder__send_text - write the text that the events of the samples don't report
 * @kt: the recorder, or NULL
 *
 * Call it each time before the ring buffers of the samples are read. What it leaves for the
 * next time is then newer than the samples of the last time, so that readers, which sort
 * the records of two times, put it in order.
 *
 * Return: 0, or the error of the record that could not be written.
 */
int ktext_recorder__send_text(struct ktext_recorder *kt)
{
	if (!kt || !ktext_recorder__sends_text(kt))
		return 0;
	return bpf_sideband__send_log(kt->sideband, evlist__first(kt->session->evlist),
				      ktext_recorder__write_logged, kt);
}

/*
 * A later file of --switch-output has samples from the time when the ring buffers
 * were last read for the previous file: text that ended since then is in the log too.
 * Return: true if the kernel has reported existing text, so that there is no need to.
 */
static bool ktext_recorder__replays(struct ktext_recorder *kt)
{
	if (ktext_recorder__sends_text(kt) && !kt->started)
		return !ktext_recorder__send_text(kt) && kt->has_snapshot;
	if (!kt->opts->tail_synthesize && !kt->started)
		return ktext_recorder__snapshot(kt);
	return bpf_sideband__write_log(kt->sideband, evlist__first(kt->session->evlist),
				       ktext_recorder__write_logged, kt);
}

/**
 * ktext_recorder__synthesize - write records of the text that exists
 * @kt: the recorder
 *
 * Call it for each file. Before the first sample, the kernel writes the records to the
 * ring buffers if it can. A later file of --switch-output has earlier samples in the ring
 * buffers, and one that is synthesized at its end has all: it gets the log of the records,
 * or they are synthesized.
 *
 * Return: 0 or a negative number; the recording is still of use then.
 */
int ktext_recorder__synthesize(struct ktext_recorder *kt)
{
	bool replayed = ktext_recorder__replays(kt);
	/* later files have the same programs, or some that the side band counts */
	bool count = !kt->started;
	int err = 0;

	if (!kt->opts->no_bpf_event)
		err = perf_event__synthesize_bpf_events(kt->session->tool, kt->session,
							ktext_recorder__env(kt), kt->ops.process,
							replayed, count ? &kt->counts : NULL);
	kt->started = true;
	return err;
}

/**
 * ktext_recorder__send - write the programs and the text that are new since the last call
 * @kt: the recorder
 *
 * The reader of a pipe gets the code of a program before its samples, or soon after. In
 * a file it is used if the recording is killed, or the file is cut: features, which
 * have the same, are written last.
 *
 * Return: 0, or the error of the record that could not be written.
 */
int ktext_recorder__send(struct ktext_recorder *kt)
{
	int err = ktext_recorder__send_text(kt);

	return err ?: perf_event__synthesize_bpf_features(kt->session, &kt->sent,
							  !perf_data__is_pipe(kt->session->data),
							  kt->ops.process);
}

/**
 * ktext_recorder__mark - remember which programs have been unloaded up to now
 * @kt: the recorder
 *
 * Call it before the ring buffers are read, if a switch to the next file may follow:
 * these programs have no samples after that. If the thread is busy, the previous mark
 * is good enough.
 */
void ktext_recorder__mark(struct ktext_recorder *kt)
{
	if (!evlist__sb_trylock(kt->sb_evlist))
		return;
	bpf_sideband__mark(kt->sideband);
	evlist__sb_unlock(kt->sb_evlist);
}

/* How long a switch to the next file may wait for BPF programs being unloaded */
#define SWITCH_WAIT_MS 200

static void bpf_counts__sum_up(struct bpf_counts *counts)
{
	counts->nr[BPF_LOADED] = 0;
	for (int i = BPF_DESCRIBED; i <= BPF_FAILED; i++)
		counts->nr[BPF_LOADED] += counts->nr[i];
}

/*
 * For whoever reads the file, and misses the code of a program. There are no counts before
 * the end of the recording.
 */
static int ktext_recorder__write_counts(struct ktext_recorder *kt)
{
	struct {
		struct perf_record_bpf_counts	head;
		struct bpf_counts		counts;
	} event = {
		.head = {
			.header = { .type = PERF_RECORD_EVENT_UPDATE, .size = sizeof(event), },
			.type = PERF_EVENT_UPDATE__BPF_COUNTS,
			.nr = BPF_NR_COUNTS,
		},
	};

	if (!kt->stopped)
		return 0;
	bpf_counts__sum_up(&kt->counts);
	if (!kt->counts.nr[BPF_LOADED] && !kt->counts.nr[BPF_UNFOLLOWED])
		return 0;
	event.counts = kt->counts;
	return kt->ops.process(kt->session->tool, (union perf_event *)&event, NULL, NULL);
}

/**
 * ktext_recorder__complete - write the programs that the thread has read to the file
 * @kt: the recorder
 *
 * Call it before the header of the file is written. It does not wait for long, as nobody
 * reads the ring buffers meanwhile.
 *
 * Return: 0, or the error of the record that could not be written.
 */
int ktext_recorder__complete(struct ktext_recorder *kt)
{
	size_t nr_unready;
	int err;

	evlist__flush_sb(kt->sb_evlist, SWITCH_WAIT_MS);
	nr_unready = ktext_recorder__nr_unready(kt);
	if (nr_unready && !kt->stopped && !quiet)
		fprintf(stderr, "[ perf record: %zu BPF programs are still being unloaded: %s ]\n",
			nr_unready, "this file may lack their code");

	err = ktext_recorder__send(kt);
	return err ?: ktext_recorder__write_counts(kt);
}

/**
 * ktext_recorder__switch - the file is complete, the next one begins
 * @kt: the recorder
 *
 * The next file needs only the programs that were still loaded at the mark.
 */
void ktext_recorder__switch(struct ktext_recorder *kt)
{
	evlist__sb_lock(kt->sb_evlist);
	bpf_sideband__forget(kt->sideband);
	evlist__sb_unlock(kt->sb_evlist);
	kt->sent = 0;
}

/* The samples of a program have been processed before as many others have ended. */
#define MAX_ENDED	2048

/**
 * ktext_recorder__forget - free programs that have ended long ago, if no dso needs them
 * @kt: the recorder of a command that never writes them
 *
 * Context: the thread that processes the records.
 */
void ktext_recorder__forget(struct ktext_recorder *kt)
{
	if (!evlist__sb_trylock(kt->sb_evlist))
		return;
	bpf_sideband__limit_ended(kt->sideband, MAX_ENDED);
	evlist__sb_unlock(kt->sb_evlist);
}

/* Grace periods usually take milliseconds; nobody is told of these. */
#define SHORT_WAIT_MS	100
#define LONG_WAIT_MS	10000
#define WAIT_STEP_MS	10

/* Return: how many programs are not ready then; 0 if a signal has ended the wait. */
static size_t ktext_recorder__wait_ms(struct ktext_recorder *kt, int wait_ms, int nr_signals)
{
	u64 end = rdclock() + wait_ms * NSEC_PER_MSEC;
	size_t nr_unready;

	do {
		evlist__flush_sb(kt->sb_evlist, WAIT_STEP_MS);
		nr_unready = ktext_recorder__nr_unready(kt);
		if (*kt->ops.end_signals > nr_signals)
			return 0;
	} while (nr_unready && rdclock() < end);
	return nr_unready;
}

/* Wait for BPF programs that the kernel has not described yet. */
static void ktext_recorder__wait(struct ktext_recorder *kt, int nr_signals)
{
	size_t nr_unready = ktext_recorder__wait_ms(kt, SHORT_WAIT_MS, nr_signals);

	if (!nr_unready)
		return;
	/* in case perf is killed */
	ktext_recorder__send(kt);
	if (!quiet)
		fprintf(stderr, "[ perf record: waiting up to %d s for BPF programs that the kernel is still unloading: %zu. Ctrl-C ends the wait ]\n",
			LONG_WAIT_MS / 1000, nr_unready);
	ktext_recorder__wait_ms(kt, LONG_WAIT_MS, nr_signals);
}

/**
 * ktext_recorder__stop - end the thread when it has read all records
 * @kt: the recorder, which may have stopped already; or NULL
 * @nr_signals: number of signals that ended the recording; -1: don't wait for programs
 *
 * Call it before the header is written, which has the info that the thread collects.
 */
void ktext_recorder__stop(struct ktext_recorder *kt, int nr_signals)
{
	if (!kt || kt->stopped)
		return;
	if (kt->sb_evlist) {
		/* for what is synthesized then, when the events are closed */
		if (nr_signals >= 0 && kt->opts->tail_synthesize && !ktext_recorder__sends_text(kt))
			bpf_sideband__snapshot(kt->sideband, /*first=*/false);
		if (nr_signals >= 0) {
			/* nothing more is added */
			evlist__disable(kt->sb_evlist);
			ktext_recorder__wait(kt, nr_signals);
		}
		evlist__join_sb_thread(kt->sb_evlist);
		if (nr_signals >= 0)
			bpf_sideband__read_runs(kt->sideband);
		bpf_sideband__stop(kt->sideband);
		evlist__put(kt->sb_evlist);
	}
	kt->sb_evlist = NULL;
	bpf_sideband__count(kt->sideband, &kt->counts);
	kt->stopped = true;
}

/**
 * ktext_recorder__summary - print how many programs have no code, and why
 * @kt: the recorder, which has stopped and completed the last file
 * @fp: where to print
 *
 * Return: the number of characters printed; 0 if all programs have code.
 */
int ktext_recorder__summary(const struct ktext_recorder *kt, FILE *fp)
{
	return bpf_counts__fprintf(&kt->counts, fp);
}
