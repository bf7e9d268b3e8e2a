/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_SIDEBAND_H
#define __PERF_BPF_SIDEBAND_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <linux/compiler.h>
#include <linux/types.h>

struct evlist;
struct ksym_log;
struct perf_cpu_map;
struct perf_env;
struct record_opts;

/**
 * struct bpf_sideband_counts - BPF programs that were loaded, and how they were read
 *
 * perf.data has the members in this order: add new ones at the end.
 *
 * @loaded: number of all programs
 * @described: their bpf_prog_info was read, with the code
 * @hidden: the kernel hides their code and their addresses from perf
 * @gone: unloaded before they were read, on a kernel without attr.bpf_retain
 * @denied: perf does not have the privilege to open programs
 * @evicted: not retained by the kernel, or not for long enough
 * @unready: still being unloaded when perf ended
 * @failed: could not be read
 * @lost: number of records that were lost; some may have been of programs
 * @unfollowed: programs that were loaded during the recording are in no count: 0 none,
 *		BPF_UNFOLLOWED_ALL or BPF_UNFOLLOWED_CPUS
 */
struct bpf_sideband_counts {
	u64 loaded;
	u64 described;
	u64 hidden;
	u64 gone;
	u64 denied;
	u64 evicted;
	u64 unready;
	u64 failed;
	u64 lost;
	u64 unfollowed;
};

/* perf could not open the event that reports programs, or opened it on some CPUs only */
#define BPF_UNFOLLOWED_ALL	1
#define BPF_UNFOLLOWED_CPUS	2

struct bpf_sideband;

#ifdef HAVE_LIBBPF_SUPPORT
struct bpf_sideband *bpf_sideband__new(struct perf_env *env);
void bpf_sideband__delete(struct bpf_sideband *sb);
int bpf_sideband__add_event(struct bpf_sideband *sb, struct evlist *evlist,
			    struct perf_cpu_map *cpus);
int bpf_sideband__keep_log(struct bpf_sideband *sb, const struct record_opts *opts);
void bpf_sideband__uncount_denied(struct bpf_sideband *sb);
void bpf_sideband__drop_log(struct bpf_sideband *sb);
struct ksym_log *bpf_sideband__log(struct bpf_sideband *sb);
void bpf_sideband__mark(struct bpf_sideband *sb);
void bpf_sideband__forget(struct bpf_sideband *sb);
void bpf_sideband__tell_ended(struct bpf_sideband *sb);
size_t bpf_sideband__nr_unready(const struct bpf_sideband *sb);
bool bpf_sideband__wait(struct bpf_sideband *sb, int wait_ms,
			const volatile sig_atomic_t *signals, int ignore);
u64 bpf_sideband__read_lost(struct bpf_sideband *sb);
void bpf_sideband__read_runs(struct bpf_sideband *sb);
void bpf_sideband__stop(struct bpf_sideband *sb);
void bpf_sideband__counts(const struct bpf_sideband *sb, struct bpf_sideband_counts *counts);
int bpf_sideband_counts__fprintf(const struct bpf_sideband_counts *counts, FILE *fp);
int bpf_sideband_counts__scnprintf(const struct bpf_sideband_counts *counts,
				   const char *prefix, char *buf, size_t size);
#else
static inline void bpf_sideband__uncount_denied(struct bpf_sideband *sb __maybe_unused) { }
static inline void bpf_sideband__drop_log(struct bpf_sideband *sb __maybe_unused) { }
static inline struct ksym_log *bpf_sideband__log(struct bpf_sideband *sb __maybe_unused)
{
	return NULL;
}

static inline void bpf_sideband__delete(struct bpf_sideband *sb __maybe_unused) { }

static inline void bpf_sideband__mark(struct bpf_sideband *sb __maybe_unused) { }
static inline void bpf_sideband__forget(struct bpf_sideband *sb __maybe_unused) { }
static inline void bpf_sideband__tell_ended(struct bpf_sideband *sb __maybe_unused) { }

static inline size_t bpf_sideband__nr_unready(const struct bpf_sideband *sb __maybe_unused)
{
	return 0;
}

static inline u64 bpf_sideband__read_lost(struct bpf_sideband *sb __maybe_unused)
{
	return 0;
}

static inline void bpf_sideband__stop(struct bpf_sideband *sb __maybe_unused) { }

static inline void bpf_sideband__read_runs(struct bpf_sideband *sb __maybe_unused) { }

static inline bool bpf_sideband__wait(struct bpf_sideband *sb __maybe_unused,
				      int wait_ms __maybe_unused,
				      const volatile sig_atomic_t *signals __maybe_unused,
				      int ignore __maybe_unused)
{
	return false;
}

static inline void bpf_sideband__counts(const struct bpf_sideband *sb __maybe_unused,
					struct bpf_sideband_counts *counts __maybe_unused) { }

static inline int
bpf_sideband_counts__fprintf(const struct bpf_sideband_counts *counts __maybe_unused,
			     FILE *fp __maybe_unused)
{
	return 0;
}
#endif

#endif /* __PERF_BPF_SIDEBAND_H */
