/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_KSYM_LOG_H
#define __PERF_KSYM_LOG_H

#include <stddef.h>
#include <linux/types.h>

struct evsel;
union perf_event;

struct ksym_log;

struct ksym_log *ksym_log__new(size_t max_bytes, void (*dropped)(u32 prog_id, void *data),
			       void *data);
void ksym_log__delete(struct ksym_log *log);
int ksym_log__add(struct ksym_log *log, const union perf_event *event, size_t size, u64 time);
u64 ksym_log__mark(const struct ksym_log *log);
void ksym_log__prune(struct ksym_log *log, u64 mark);
int ksym_log__write(struct ksym_log *log, const struct evsel *evsel,
		    int (*process)(union perf_event *event, void *data), void *data);
int ksym_log__index(struct ksym_log *log);
u64 ksym_log__last_time(const struct ksym_log *log, u64 addr, u64 len);

#endif /* __PERF_KSYM_LOG_H */
