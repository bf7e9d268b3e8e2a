/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_OBJECT_EVENTS_H
#define __PERF_BPF_OBJECT_EVENTS_H

#include <errno.h>
#include <linux/compiler.h>
#include <stdbool.h>

struct bpf_insn;
struct evsel;
struct perf_bpf_layout;
struct perf_bpf_object;
struct perf_thread_map;

#define PERF_BPF_GATE_INSNS	20

/* It needs bpf_program__instantiate() */
#if defined(HAVE_BPF_SKEL) && defined(HAVE_LIBBPF_INSTANTIATE)
#define HAVE_BPF_OBJECT_EVENTS
#endif

#ifdef HAVE_BPF_OBJECT_EVENTS
int perf_bpf_object__add_events(struct perf_bpf_object *object);
void perf_bpf_object__remove_events(struct perf_bpf_object *object);
void perf_bpf_object__put(struct perf_bpf_object *object);

int perf_bpf_object__load_gate(struct perf_bpf_object *object, struct perf_thread_map *threads,
			       bool inherit);
int perf_bpf_object__mark_tasks(struct perf_bpf_object *object, struct perf_thread_map *threads);
int perf_bpf_object__make_gate(const struct perf_bpf_object *object, struct bpf_insn *insns);
void perf_bpf_object__put_gate(struct perf_bpf_object *object);

struct perf_bpf_layout *perf_bpf_layout__get(struct perf_bpf_layout *layout);
void perf_bpf_layout__put(struct perf_bpf_layout *layout);
int perf_bpf_layout__prepare(struct perf_bpf_layout *layout, const struct evsel *evsel,
			     struct perf_thread_map *threads);
int perf_bpf_layout__attach(struct perf_bpf_layout *layout, struct evsel *evsel);
void perf_bpf_layout__enable(struct perf_bpf_layout *layout, bool enable);
#else
static inline struct perf_bpf_layout *perf_bpf_layout__get(struct perf_bpf_layout *layout)
{
	return layout;
}

static inline void perf_bpf_layout__put(struct perf_bpf_layout *layout __maybe_unused)
{
}

static inline int perf_bpf_layout__prepare(struct perf_bpf_layout *layout __maybe_unused,
					   const struct evsel *evsel __maybe_unused,
					   struct perf_thread_map *threads __maybe_unused)
{
	return 0;
}

static inline int perf_bpf_layout__attach(struct perf_bpf_layout *layout __maybe_unused,
					  struct evsel *evsel __maybe_unused)
{
	return -EOPNOTSUPP;
}

static inline void perf_bpf_layout__enable(struct perf_bpf_layout *layout __maybe_unused,
					   bool enable __maybe_unused)
{
}
#endif

#endif /* __PERF_BPF_OBJECT_EVENTS_H */
