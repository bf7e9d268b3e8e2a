// SPDX-License-Identifier: GPL-2.0
/*
 * The text that the kernel generates and loads, as perf record and perf top see it:
 * which text there is when they begin, which is added later, and what it contains.
 *
 * The events of the samples report text that is added. What perf.data needs besides
 * comes from here, so that neither command knows how it is obtained:
 *
 *   config      adds an event that reports text to those of the samples, if they don't
 *   open        begins to follow BPF programs in a thread, which reads their info
 *   synthesize  writes records of the text that exists already
 *   send        writes programs that the thread has read since
 *   mark, complete, switch   around the end of each file of --switch-output
 *   stop        ends the thread, when all events are disabled
 *   finish      writes what is known only then
 *   summary     tells the user how many programs have no code, and why
 */
#include <errno.h>
#include <string.h>
#include <linux/ctype.h>
#include <linux/compiler.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <perf/cpumap.h>
#include "bpf-fetch.h"
#include "bpf-sideband.h"
#include "cap.h"
#include "debug.h"
#include "env.h"
#include "evlist.h"
#include "evsel.h"
#include "ksym-log.h"
#include "ksym-snapshot.h"
#include "map.h"
#include "perf_api_probe.h"
#include "record.h"
#include "record-ktext.h"
#include "sample.h"
#include "session.h"
#include "synthetic-events.h"
#include "tool.h"

/*
 * The kernel writes a record of text for each event, one after the other. Longer than that
 * takes, and shorter than it takes until the memory of a program that ended is used again.
 */
#define KSYM_COPIES_NS		NSEC_PER_MSEC

struct ktext_recorder {
	struct perf_session	*session;
	struct record_opts	*opts;
	struct ktext_ops	ops;
	/* for callbacks, see process_feature() and ktext_recorder__process_existing() */
	struct perf_tool	tool;
	/* events of the thread; NULL if there is none */
	struct evlist		*sb_evlist;
	struct bpf_sideband	*sideband;
	/* programs that were loaded before the recording, and all, when it has stopped */
	struct bpf_sideband_counts before;
	struct bpf_sideband_counts counts;
	/* the thread did not start, so that nobody counts programs that are loaded */
	bool			unfollowed;
	/* the thread keeps a log of kernel text, which began with a snapshot */
	bool			logged;
	/* it lacks records, see ktext_recorder__process_existing() */
	bool			incomplete;
	/* of the last record of text at the addresses of the program being written */
	u64			prog_time;
	/* of the programs in this file */
	u64			bytes;
	/* existing text has been synthesized, so that samples may follow */
	bool			started;
};

/* perf_cpu_map__new() returns all CPUs if it does not understand the end */
static bool is_list_of_numbers(const char *list)
{
	char last = ',';

	for (; *list; last = *list++) {
		if (!isdigit(*list) && !(isdigit(last) && strchr(",-", *list)))
			return false;
	}
	return isdigit(last);
}

/* Set the CPUs of the events that report kernel text, unless these are all. */
static int record_opts__set_kernel_text_cpus(struct record_opts *opts)
{
	const char *list = opts->kernel_text_list;
	int err = 0;
	struct perf_cpu_map *cpus = NULL, *online;

	if (opts->text_poke) {
		pr_warning("kernel-text-cpus is ignored: --kcore and traces of instructions need the changes of kernel text on all CPUs\n");
		return 0;
	}

	if (is_list_of_numbers(list))
		cpus = perf_cpu_map__new(list);
	if (!cpus) {
		pr_err("kernel-text-cpus: '%s' is not a list of CPUs, such as 0-3,8\n", list);
		return -EINVAL;
	}

	online = perf_cpu_map__new_online_cpus();
	opts->kernel_text_cpus = perf_cpu_map__intersect(online, cpus);
	perf_cpu_map__put(cpus);
	if (!opts->kernel_text_cpus) {
		pr_err("kernel-text-cpus: none of the CPUs %s is online\n", list);
		err = -EINVAL;
	} else if (perf_cpu_map__equal(opts->kernel_text_cpus, online)) {
		perf_cpu_map__put(opts->kernel_text_cpus);
		opts->kernel_text_cpus = NULL;
	}
	perf_cpu_map__put(online);
	return err;
}

/*
 * The text of a BPF program or a module may be in the samples of any task, no matter
 * which task loaded it. The kernel reports the load to events of that task and of the
 * CPU where it happens, so that events of other tasks don't get the record.
 */
static bool needs_kernel_text_event(const struct record_opts *opts, struct evlist *evlist)
{
	bool per_thread = target__uses_dummy_map(&opts->target);

	if (opts->text_poke)
		return true;

	if (target__has_cpu(&opts->target) || opts->no_bpf_event || opts->all_user ||
	    !evlist__needs_bpf_sb_event(evlist))
		return false;

	/*
	 * Its records have to be ordered with the samples by time. AUX area traces
	 * have clocks of their own, and whether records have a time decides when a
	 * trace of a thread is decoded.
	 */
	if (!opts->sample_time || (opts->full_auxtrace && per_thread))
		return false;

	/* Adds ring buffers of CPUs to those of threads, and locked memory is limited */
	if (per_thread && !perf_cap__capable(CAP_IPC_LOCK))
		return false;

	/* The kernel reports no addresses to others */
	return (perf_cap__capable(CAP_PERFMON) || perf_cap__capable(CAP_SYS_ADMIN)) &&
	       perf_can_record_cpu_wide();
}

/**
 * ktext_recorder__config - track kernel text, on all CPUs if nothing else is asked for
 * @opts: what to record; kernel_text is set if an event was added, kernel_text_cpus to a
 *	  reference that the caller owns
 * @evlist: gets a dummy event if one is needed and perf has the privileges
 *
 * The event is enabled immediately, as text that is loaded before the first sample
 * matters too.
 *
 * Return: 0, -ENOMEM, or -EINVAL if kernel_text_list is of no use, with a message.
 */
int ktext_recorder__config(struct record_opts *opts, struct evlist *evlist)
{
	int err = opts->kernel_text_list ? record_opts__set_kernel_text_cpus(opts) : 0;
	struct evsel *evsel;

	if (err || !needs_kernel_text_event(opts, evlist))
		return err;

	evsel = evlist__add_dummy_on_cpus(evlist, opts->kernel_text_cpus);
	if (!evsel) {
		pr_err("No memory for the event that tracks kernel text\n");
		return -ENOMEM;
	}

	opts->kernel_text = true;
	evsel->kernel_text = true;
	evsel->core.attr.text_poke = opts->text_poke;
	evsel->immediate = true;
	evsel__set_sample_bit(evsel, TIME);

	return 0;
}

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

static int ktext_recorder__follow_bpf(struct ktext_recorder *kt)
{
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
	if (!kt->sideband ||
	    bpf_sideband__add_event(kt->sideband, kt->sb_evlist, kt->opts->kernel_text_cpus)) {
		pr_err("Couldn't ask for PERF_RECORD_BPF_EVENT side band events.\n.");
		evlist__put(kt->sb_evlist);
		kt->sb_evlist = NULL;
		return -EINVAL;
	}
	if (kt->ops.keep_log && ktext_recorder__can_log(kt))
		return bpf_sideband__keep_log(kt->sideband, kt->opts);
	return 0;
}
#else
static int ktext_recorder__follow_bpf(struct ktext_recorder *kt __maybe_unused)
{
	return 0;
}
#endif

static int ktext_recorder__drain_sb(void *data)
{
	struct ktext_recorder *kt = data;

	evlist__flush_sb(kt->sb_evlist, /*wait_ms=*/0);
	return 0;
}

/*
 * The log begins with a snapshot of existing text, for files that are synthesized at
 * their end, and for later files of --switch-output. If perf may not take a snapshot,
 * the kernel does not report changes to it either: no log then.
 */
static void ktext_recorder__begin_log(struct ktext_recorder *kt)
{
	struct ksym_snapshot snapshot = { .drain = ktext_recorder__drain_sb, .data = kt, };

	if (!bpf_sideband__log(kt->sideband))
		return;
	kt->logged = evlist__ksym_snapshot(kt->sb_evlist, &snapshot) == 0;
	evlist__flush_sb(kt->sb_evlist, /*wait_ms=*/0);
	evlist__sb_lock(kt->sb_evlist);
	bpf_sideband__uncount_denied(kt->sideband);
	if (!kt->logged)
		bpf_sideband__drop_log(kt->sideband);
	evlist__sb_unlock(kt->sb_evlist);
}

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
	if (kt->sideband && bpf_progs__can_read()) {
		pr_warning("BPF programs that are loaded from now on will have no code: cannot open the event that reports them: %s%s.\n",
			   strerror(-err), side_band_hint(err));
		kt->unfollowed = true;
		kt->counts.unfollowed = BPF_UNFOLLOWED_ALL;
	} else {
		pr_debug("Couldn't start the side band thread: %s\n", strerror(-err));
	}
	bpf_sideband__delete(kt->sideband);
	kt->sideband = NULL;
	kt->sb_evlist = NULL;
}

/**
 * ktext_recorder__open - begin to follow BPF programs
 * @kt: the recorder
 * @sb_evlist: events that its thread has to read as well, which it then owns; or NULL
 *
 * It is no error if the thread cannot start: BPF programs that are loaded later have no
 * code then.
 *
 * Return: 0 or -errno.
 */
int ktext_recorder__open(struct ktext_recorder *kt, struct evlist *sb_evlist)
{
	int err;

	kt->sb_evlist = sb_evlist;
	err = ktext_recorder__follow_bpf(kt);
	if (err)
		return err;

	err = evlist__start_sb_thread(kt->sb_evlist, &kt->opts->target);
	if (err)
		ktext_recorder__cannot_follow(kt, err);
	ktext_recorder__begin_log(kt);
	return 0;
}

static int ktext_recorder__drain(void *data)
{
	struct ktext_recorder *kt = data;

	return kt->ops.drain(kt->session->tool);
}

/* With --tail-synthesize it would be too late: the file has samples already. */
static bool ktext_recorder__snapshot(struct ktext_recorder *kt)
{
	struct ksym_snapshot snapshot = { .drain = ktext_recorder__drain, .data = kt, };

	/* perf top synthesizes before its events are open */
	if (!kt->session->evlist)
		return false;
	if (!kt->ops.drain || kt->opts->tail_synthesize || kt->opts->no_bpf_event)
		return false;
	return evlist__ksym_snapshot(kt->session->evlist, &snapshot) == 0;
}

static int ktext_recorder__write_logged(union perf_event *event, void *data)
{
	struct ktext_recorder *kt = data;

	return kt->ops.process(kt->session->tool, event, /*sample=*/NULL,
			       &kt->session->machines.host);
}

/*
 * A later file of --switch-output has samples from the time when the ring buffers
 * were last read for the previous file: text that ended since then is in the log too.
 * Return: true if the log was written.
 */
static bool ktext_recorder__write_log(struct ktext_recorder *kt)
{
	int err;

	if (!kt->logged)
		return false;

	evlist__flush_sb(kt->sb_evlist, /*wait_ms=*/0);
	evlist__sb_lock(kt->sb_evlist);
	err = ksym_log__write(bpf_sideband__log(kt->sideband), evlist__first(kt->session->evlist),
			      ktext_recorder__write_logged, kt);
	evlist__sb_unlock(kt->sb_evlist);
	return err >= 0;
}

/* Has the thread lost records, which the log then lacks? */
static bool ktext_recorder__lost(struct ktext_recorder *kt)
{
	u64 lost;

	evlist__sb_lock(kt->sb_evlist);
	lost = bpf_sideband__read_lost(kt->sideband);
	evlist__sb_unlock(kt->sb_evlist);
	return lost > 0;
}

/*
 * Return: true if the kernel has reported existing text, so that there is no need to. If
 * the log is not complete, programs that are still loaded are written as well.
 */
static bool ktext_recorder__replays(struct ktext_recorder *kt)
{
	kt->incomplete = false;
	kt->prog_time = 0;
	if (!kt->opts->tail_synthesize && !kt->started)
		return ktext_recorder__snapshot(kt);
	if (!ktext_recorder__write_log(kt))
		return false;
	if (!ktext_recorder__lost(kt) && !kt->opts->kernel_text_cpus)
		return true;

	evlist__sb_lock(kt->sb_evlist);
	kt->incomplete = ksym_log__index(bpf_sideband__log(kt->sideband)) == 0;
	evlist__sb_unlock(kt->sb_evlist);
	return false;
}

/*
 * Write a record of text that exists. Without a time it is read before all others. If the
 * log has records of other text that was at this address before, these would replace the
 * text or end it: so it begins behind the last of them. The program follows its text.
 *
 * Not so an image: its length is a guess, and if the log has its own record, that is better.
 */
static int ktext_recorder__process_existing(const struct perf_tool *tool,
					    union perf_event *event, struct perf_sample *sample,
					    struct machine *machine)
{
	struct ktext_recorder *kt = container_of(tool, struct ktext_recorder, tool);
	bool text = event->header.type == PERF_RECORD_KSYMBOL;
	struct perf_sample with_time;
	u64 time = kt->prog_time;

	if (!kt->incomplete || !machine->id_hdr_size ||
	    (text && is_bpf_image(event->ksymbol.name)))
		return kt->ops.process(kt->session->tool, event, sample, machine);

	if (text) {
		time = ksym_log__last_time(bpf_sideband__log(kt->sideband), event->ksymbol.addr,
					   event->ksymbol.len);
		if (time)
			time += KSYM_COPIES_NS;
	}
	kt->prog_time = text ? max(kt->prog_time, time) : 0;

	perf_sample__init(&with_time, /*all=*/true);
	with_time.time = time;
	perf_event__synthesize_id_sample((void *)event + event->header.size - machine->id_hdr_size,
					 evlist__first(kt->session->evlist)->core.attr.sample_type,
					 &with_time);
	perf_sample__exit(&with_time);
	return kt->ops.process(kt->session->tool, event, sample, machine);
}

/**
 * ktext_recorder__synthesize - write records of the text that exists
 * @kt: the recorder
 *
 * Call it for each file. Before the first sample, the kernel writes the records to the
 * ring buffers if it can, and if the events are open. A later file of --switch-output has
 * earlier samples in the ring buffers, and one that is synthesized at its end has all: it
 * gets the log of the records, or they are synthesized. ktext_recorder__replay() follows
 * in a later file.
 *
 * Return: 0 or a negative number; the recording is still of use then.
 */
int ktext_recorder__synthesize(struct ktext_recorder *kt)
{
	bool replayed = ktext_recorder__replays(kt);
	/* later files have the same programs, or some that the side band counts */
	bool count = !kt->started && !kt->opts->tail_synthesize && !kt->logged;
	int err = 0;

	if (!kt->opts->no_bpf_event)
		err = perf_event__synthesize_bpf_events(&kt->tool, kt->session,
							ktext_recorder__env(kt),
							ktext_recorder__process_existing, replayed,
							count ? &kt->before : NULL);
	kt->started = true;
	return err;
}

static int process_feature(const struct perf_tool *tool, union perf_event *event,
			   struct perf_sample *sample, struct machine *machine)
{
	struct ktext_recorder *kt = container_of(tool, struct ktext_recorder, tool);

	kt->bytes += event->header.size;
	return kt->ops.process(kt->session->tool, event, sample, machine);
}

/**
 * ktext_recorder__send - write the programs that are new since the last call
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
	return perf_event__synthesize_bpf_features(&kt->tool, kt->session, process_feature);
}

/**
 * ktext_recorder__bytes - get the size of the programs in this file
 * @kt: the recorder, or NULL
 *
 * Programs are no reason to end the file: the next one would have the same.
 *
 * Return: the size in bytes.
 */
u64 ktext_recorder__bytes(const struct ktext_recorder *kt)
{
	return kt ? kt->bytes : 0;
}

/**
 * ktext_recorder__replay - make the kernel report the text that exists
 * @kt: the recorder
 *
 * Call it if text was synthesized before the events were open, or there are earlier
 * samples in a later file of --switch-output. Nothing is lost if the kernel cannot do it,
 * except names that only the kernel knows.
 */
void ktext_recorder__replay(struct ktext_recorder *kt)
{
	ktext_recorder__snapshot(kt);
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

/**
 * ktext_recorder__complete - get the info of all programs that have samples in this file
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

	evlist__flush_sb(kt->sb_evlist, SWITCH_WAIT_MS);
	evlist__sb_lock(kt->sb_evlist);
	nr_unready = bpf_sideband__nr_unready(kt->sideband);
	evlist__sb_unlock(kt->sb_evlist);
	if (nr_unready && !quiet)
		fprintf(stderr, "[ perf record: %zu BPF programs are still being unloaded: %s ]\n",
			nr_unready, "this file may lack their code");

	return ktext_recorder__finish(kt);
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
	perf_env__resend_bpf(perf_session__env(kt->session));
	kt->bytes = 0;
}

/**
 * ktext_recorder__forget - free the programs that have ended, if no dso needs them
 * @kt: the recorder of a command that never writes them
 *
 * Call it in the thread that processes the records, each time that it has processed all
 * that it had when another thread had read the ring buffers.
 */
void ktext_recorder__forget(struct ktext_recorder *kt)
{
	if (!evlist__sb_trylock(kt->sb_evlist))
		return;
	bpf_sideband__tell_ended(kt->sideband);
	evlist__sb_unlock(kt->sb_evlist);
}

static void ktext_recorder__count(struct ktext_recorder *kt)
{
	kt->counts = (struct bpf_sideband_counts) {};
	bpf_sideband__counts(kt->sideband, &kt->counts);
	kt->counts.loaded += kt->before.loaded;
	kt->counts.described += kt->before.described;
	kt->counts.hidden += kt->before.hidden;
	kt->counts.failed += kt->before.failed;
	if (kt->unfollowed)
		kt->counts.unfollowed = BPF_UNFOLLOWED_ALL;
	else if (kt->sideband && kt->opts->kernel_text_cpus)
		kt->counts.unfollowed = BPF_UNFOLLOWED_CPUS;
}

/* Grace periods usually take milliseconds; nobody is told of these. */
#define SHORT_WAIT_MS	100
#define LONG_WAIT_MS	10000

/* Wait for BPF programs that the kernel has not described yet, with a file that is valid. */
static void ktext_recorder__wait(struct ktext_recorder *kt, int nr_signals)
{
	const volatile sig_atomic_t *signals = kt->ops.end_signals;
	struct bpf_sideband *sb = kt->sideband;

	if (!bpf_sideband__wait(sb, SHORT_WAIT_MS, signals, nr_signals))
		return;
	kt->ops.checkpoint(kt->session->tool);
	if (!quiet)
		fprintf(stderr, "[ perf record: waiting up to %d s for BPF programs that the kernel is still unloading: %zu. Ctrl-C ends the wait ]\n",
			LONG_WAIT_MS / 1000, bpf_sideband__nr_unready(sb));
	bpf_sideband__wait(sb, LONG_WAIT_MS, signals, nr_signals);
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
	if (!kt)
		return;
	if (kt->sb_evlist) {
		evlist__join_sb_thread(kt->sb_evlist);
		if (nr_signals >= 0) {
			ktext_recorder__wait(kt, nr_signals);
			bpf_sideband__read_runs(kt->sideband);
		}
		bpf_sideband__stop(kt->sideband);
		evlist__put(kt->sb_evlist);
	}
	kt->sb_evlist = NULL;
	ktext_recorder__count(kt);
}

/*
 * For whoever reads the file, and misses the code of a program. There are no counts before
 * the end of the recording.
 */
static int ktext_recorder__write_counts(struct ktext_recorder *kt)
{
	if (kt->opts->no_bpf_event || (!kt->counts.loaded && !kt->counts.unfollowed))
		return 0;
	return perf_event__synthesize_bpf_counts(kt->session->tool, &kt->counts,
						 kt->ops.process);
}

/**
 * ktext_recorder__finish - write records of the programs that the thread has read
 * @kt: the recorder, which has stopped, or ktext_recorder__complete() has been called
 *
 * Return: 0, or the error of the record that could not be written.
 */
int ktext_recorder__finish(struct ktext_recorder *kt)
{
	int err;

#ifdef HAVE_LIBBPF_SUPPORT
	perf_event__synthesize_final_bpf_metadata(kt->session, kt->ops.process);
#endif
	err = ktext_recorder__send(kt);
	return err ?: ktext_recorder__write_counts(kt);
}

/**
 * ktext_recorder__summary - print how many programs have no code, and why
 * @kt: the recorder, which has stopped
 * @fp: where to print
 *
 * Return: the number of characters printed; 0 if all programs have code.
 */
int ktext_recorder__summary(const struct ktext_recorder *kt, FILE *fp)
{
	return bpf_sideband_counts__fprintf(&kt->counts, fp);
}
