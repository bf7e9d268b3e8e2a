/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef _PROBE_ARG_H
#define _PROBE_ARG_H

#include <stdbool.h>

struct perf_probe_arg;
struct perf_probe_event;
struct probe_trace_arg;
struct probe_trace_arg_ref;
struct probe_trace_event;

struct probe_trace_arg_ref *alloc_trace_arg_ref(long offs);
int probe_trace_arg__set_immediate(struct probe_trace_arg *tvar, long value);
int probe_trace_arg__set_name(struct probe_trace_arg *tvar, struct perf_probe_arg *pvar);
int probe_trace_arg__set_number(struct probe_trace_arg *tvar, const char *cast, bool is_signed,
				int bytes, const char *type_name);

bool is_type_cast(const char *cast);
bool is_string_cast(const char *cast);
void print_var_not_found(const char *varname);
bool may_skip_trace_arg(const struct perf_probe_event *pev, int err);
int fill_empty_trace_arg(struct perf_probe_event *pev, struct probe_trace_event *tevs, int ntevs);

#endif /* _PROBE_ARG_H */
