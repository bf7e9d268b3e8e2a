/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_SIDEBAND_H
#define __PERF_BPF_SIDEBAND_H

#include <stdbool.h>
#include <stdio.h>
#include <linux/compiler.h>
#include <linux/types.h>

struct evlist;
struct evsel;
struct perf_env;
struct record_opts;
union perf_event;

/**
 * enum bpf_count - BPF programs that were loaded, and how they were read
 * @BPF_LOADED: number of all programs: the sum of those up to @BPF_FAILED
 * @BPF_DESCRIBED: their bpf_prog_info was read, with the code
 * @BPF_HIDDEN: the kernel hides their code and their addresses from perf
 * @BPF_GONE: unloaded before they were read, on a kernel without attr.bpf_retain
 * @BPF_DENIED: perf does not have the privilege to open programs
 * @BPF_EVICTED: not retained by the kernel, or not for long enough
 * @BPF_UNREADY: still being unloaded when perf ended
 * @BPF_FAILED: could not be read
 * @BPF_LOST_RECORDS: number of records that were lost; some may have been of programs
 * @BPF_UNFOLLOWED: programs that were loaded during the recording are in no count,
 *		    as perf could not follow them: 1, else 0
 */
enum bpf_count {
	BPF_LOADED,
	BPF_DESCRIBED,
	BPF_HIDDEN,
	BPF_GONE,
	BPF_DENIED,
	BPF_EVICTED,
	BPF_UNREADY,
	BPF_FAILED,
	BPF_LOST_RECORDS,
	BPF_UNFOLLOWED,
	BPF_NR_COUNTS
};

/* perf.data has them in this order: add new ones at the end. */
struct bpf_counts {
	u64	nr[BPF_NR_COUNTS];
};

struct bpf_sideband;

#ifdef HAVE_LIBBPF_SUPPORT
struct bpf_sideband *bpf_sideband__new(struct perf_env *env);
void bpf_sideband__delete(struct bpf_sideband *sb);
int bpf_sideband__add_event(struct bpf_sideband *sb, struct evlist *evlist, bool all);
int bpf_sideband__keep_log(struct bpf_sideband *sb, const struct record_opts *opts,
			   bool keep_sent);
bool bpf_sideband__snapshot(struct bpf_sideband *sb, bool first);
int bpf_sideband__send_log(struct bpf_sideband *sb, const struct evsel *evsel,
			   int (*process)(union perf_event *event, void *data), void *data);
bool bpf_sideband__write_log(struct bpf_sideband *sb, const struct evsel *evsel,
			     int (*process)(union perf_event *event, void *data), void *data);
void bpf_sideband__mark(struct bpf_sideband *sb);
void bpf_sideband__forget(struct bpf_sideband *sb);
void bpf_sideband__limit_ended(struct bpf_sideband *sb, size_t max);
size_t bpf_sideband__nr_unready(const struct bpf_sideband *sb);
void bpf_sideband__read_runs(struct bpf_sideband *sb);
void bpf_sideband__stop(struct bpf_sideband *sb);
void bpf_sideband__count(const struct bpf_sideband *sb, struct bpf_counts *counts);
int bpf_counts__fprintf(const struct bpf_counts *counts, FILE *fp);
int bpf_counts__scnprintf(const struct bpf_counts *counts, const char *prefix, char *buf,
			  size_t size);
#else
static inline bool bpf_sideband__snapshot(struct bpf_sideband *sb __maybe_unused,
					  bool first __maybe_unused)
{
	return false;
}

static inline int
bpf_sideband__send_log(struct bpf_sideband *sb __maybe_unused,
		       const struct evsel *evsel __maybe_unused,
		       int (*process)(union perf_event *event, void *data) __maybe_unused,
		       void *data __maybe_unused)
{
	return 0;
}

static inline bool
bpf_sideband__write_log(struct bpf_sideband *sb __maybe_unused,
			const struct evsel *evsel __maybe_unused,
			int (*process)(union perf_event *event, void *data) __maybe_unused,
			void *data __maybe_unused)
{
	return false;
}

static inline void bpf_sideband__delete(struct bpf_sideband *sb __maybe_unused) { }

static inline void bpf_sideband__mark(struct bpf_sideband *sb __maybe_unused) { }
static inline void bpf_sideband__forget(struct bpf_sideband *sb __maybe_unused) { }
static inline void bpf_sideband__limit_ended(struct bpf_sideband *sb __maybe_unused,
					     size_t max __maybe_unused) { }

static inline size_t bpf_sideband__nr_unready(const struct bpf_sideband *sb __maybe_unused)
{
	return 0;
}

static inline void bpf_sideband__stop(struct bpf_sideband *sb __maybe_unused) { }

static inline void bpf_sideband__read_runs(struct bpf_sideband *sb __maybe_unused) { }

static inline void bpf_sideband__count(const struct bpf_sideband *sb __maybe_unused,
				       struct bpf_counts *counts __maybe_unused) { }

static inline int bpf_counts__fprintf(const struct bpf_counts *counts __maybe_unused,
				      FILE *fp __maybe_unused)
{
	return 0;
}
#endif

#endif /* __PERF_BPF_SIDEBAND_H */
