/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Perf events of this process, and BPF programs for them. Page faults happen when
 * a test causes them and have an address, context switches have none.
 */
#ifndef SELFTESTS_PERF_EVENTS_BPF_EVENT_H
#define SELFTESTS_PERF_EVENTS_BPF_EVENT_H

#include <stdbool.h>
#include <sys/types.h>
#include <linux/perf_event.h>

#include "bpf_load.h"

/* A software event that takes a sample each time; for the caller to change. */
struct perf_event_attr sw_event_attr(__u64 config);

/* @pid 0 is this thread, @cpu -1 any CPU. Return: an fd or -errno. */
int open_event_on(struct perf_event_attr *attr, pid_t pid, int cpu);
int open_own_event(struct perf_event_attr *attr);

/* Return: 0 or -errno. */
int event_ioctl(int event, unsigned long request, long arg);

/* Attach @prog to @event with @cookie. Return: the fd of a link, or -errno. */
int link_to_event(int prog, int event, __u64 cookie);

/* Cause @nr page faults. Return: 0 or -errno. */
int fault_pages(int nr);

/* A program of @type that counts its runs in the value of a new map. Return: an fd or -errno. */
int load_counter(enum bpf_prog_type type, int *map);

/* Return: the id of @prog, or 0. */
__u32 id_of(int prog);

/* Wait up to @ms milliseconds until no program has @id. Return: has it none? */
bool prog_goes_within(__u32 id, int ms);

/* Return: recursion_misses of @prog, or -errno. */
long long misses_of(int prog);

#endif
