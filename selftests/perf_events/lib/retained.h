/* SPDX-License-Identifier: GPL-2.0 */
/* Which BPF programs does attr.bpf_retain keep information of? */
#ifndef SELFTESTS_PERF_EVENTS_RETAINED_H
#define SELFTESTS_PERF_EVENTS_RETAINED_H

#include <stdbool.h>
#include <linux/perf_event.h>

#define BUDGET		"/proc/sys/kernel/perf_bpf_retain_kb"

/* A dummy event with BPF_EVENT records, and with attr.bpf_retain if @retain. */
struct perf_event_attr retain_attr(bool retain);

/* Return: such an event on CPU 0, or -errno. */
int open_retain_event(bool retain);

/* Return: a file of the unloaded program that had @id, or -errno. */
int ended_prog(int event, __u32 id);

#endif
