/* SPDX-License-Identifier: GPL-2.0 */
/* Pages with copies of probed instructions: see made.h. */
#ifndef SELFTESTS_PERF_EVENTS_MAKE_KPROBE_H
#define SELFTESTS_PERF_EVENTS_MAKE_KPROBE_H

#include "made.h"

/* unmake_fds() removes the probes; the kernel may keep the pages. */
int make_kprobes(struct made *m);

#endif
