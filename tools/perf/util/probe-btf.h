/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PROBE_BTF_H
#define __PROBE_BTF_H

#include <errno.h>
#include <linux/compiler.h>
#include <stdbool.h>

struct perf_probe_event;
struct probe_trace_event;
struct variable_list;

#if defined(HAVE_LIBBPF_SUPPORT) && defined(HAVE_LIBDW_SUPPORT)
bool probe_btf__suits(struct perf_probe_event *pev);
void probe_btf__explain(struct perf_probe_event *pev, bool variables);
int probe_btf__find_trace_events(struct perf_probe_event *pev, struct probe_trace_event **tevs);
int probe_btf__find_variables(struct perf_probe_event *pev, struct variable_list **vls);
#else
static inline bool probe_btf__suits(struct perf_probe_event *pev __maybe_unused)
{
	return false;
}

static inline void probe_btf__explain(struct perf_probe_event *pev __maybe_unused)
{
}

static inline int probe_btf__find_trace_events(struct perf_probe_event *pev __maybe_unused,
					       struct probe_trace_event **tevs __maybe_unused)
{
	return 0;
}

static inline int probe_btf__find_variables(struct perf_probe_event *pev __maybe_unused,
					    struct variable_list **vls __maybe_unused)
{
	return -ENODATA;
}
#endif

#endif /* __PROBE_BTF_H */
