/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_KSYM_LOG_H
#define __PERF_KSYM_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct evsel;
union perf_event;

struct ksym_log;

struct ksym_log *ksym_log__new(size_t max_bytes);
void ksym_log__delete(struct ksym_log *log);
int ksym_log__add(struct ksym_log *log, const union perf_event *event, size_t size, u64 time);
void ksym_log__set_snapshot(struct ksym_log *log, bool begins);
u64 ksym_log__mark(const struct ksym_log *log);
u64 ksym_log__nr_dropped(const struct ksym_log *log, u64 from);
void ksym_log__drop(struct ksym_log *log, u64 mark);
int ksym_log__write(struct ksym_log *log, u64 from, const struct evsel *evsel, bool lost,
		    int (*process)(union perf_event *event, void *data), void *data);

#endif /* __PERF_KSYM_LOG_H */
