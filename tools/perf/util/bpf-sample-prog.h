/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_SAMPLE_PROG_H
#define __PERF_BPF_SAMPLE_PROG_H

#include <linux/compiler.h>

struct bpf_object;
struct bpf_program;
struct evsel;
struct perf_bpf_sample_prog;

#ifdef HAVE_LIBBPF_SUPPORT
struct perf_bpf_sample_prog *perf_bpf_sample_prog__new(const char *arg);
struct perf_bpf_sample_prog *perf_bpf_sample_prog__get(struct perf_bpf_sample_prog *prog);
void perf_bpf_sample_prog__put(struct perf_bpf_sample_prog *prog);
int perf_bpf_sample_prog__set(struct perf_bpf_sample_prog *prog, struct evsel *evsel);

int perf_bpf_sample_prog__load(struct evsel *evsel);
int perf_bpf_sample_prog__attach_at_open(struct evsel *evsel);
int perf_bpf_sample_prog__attach(struct evsel *evsel);

const struct bpf_object *perf_bpf_sample_prog__object(const struct perf_bpf_sample_prog *prog);
void perf_bpf_sample_prog__report_misses(struct perf_bpf_sample_prog *prog);

void bpf_sample_fields__check(const struct bpf_program *prog, struct evsel *evsel,
			      const char *path);
#else
static inline struct perf_bpf_sample_prog *
perf_bpf_sample_prog__get(struct perf_bpf_sample_prog *prog)
{
	return prog;
}

static inline void perf_bpf_sample_prog__put(struct perf_bpf_sample_prog *prog __maybe_unused)
{
}

static inline int perf_bpf_sample_prog__attach_at_open(struct evsel *evsel __maybe_unused)
{
	return 0;
}

static inline int perf_bpf_sample_prog__attach(struct evsel *evsel __maybe_unused)
{
	return 0;
}

static inline void
perf_bpf_sample_prog__report_misses(struct perf_bpf_sample_prog *prog __maybe_unused)
{
}
#endif

#endif /* __PERF_BPF_SAMPLE_PROG_H */
