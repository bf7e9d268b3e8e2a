/* SPDX-License-Identifier: GPL-2.0 */
/* Text of ftrace: see made.h. */
#ifndef SELFTESTS_PERF_EVENTS_MAKE_TRACE_H
#define SELFTESTS_PERF_EVENTS_MAKE_TRACE_H

#include "made.h"

/* Instances that trace functions: each has a trampoline of its own. */
int make_ftrace(struct made *m);
void unmake_ftrace(struct made *m);

#endif
