/* SPDX-License-Identifier: GPL-2.0 */
/* Text of eBPF: see made.h. unmake_fds() frees all but struct_ops. */
#ifndef SELFTESTS_PERF_EVENTS_MAKE_BPF_H
#define SELFTESTS_PERF_EVENTS_MAKE_BPF_H

#include "made.h"

#define NR_SAME		4	/* programs of one kind that make_...() loads */

int make_progs(struct made *m);
int make_subprogs(struct made *m);

/* Programs that can throw: the verifier adds a callback to each. */
int make_exception_callback(struct made *m);

int make_trampolines(struct made *m);

/* A program that runs more than once is added to the dispatcher of XDP. */
int make_dispatcher(struct made *m);

int make_struct_ops(struct made *m);
void unmake_struct_ops(struct made *m);

/* The trampoline is freed before this returns. */
int make_dummy_struct_ops(struct made *m);

#endif
