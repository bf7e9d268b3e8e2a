/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kernel text that a test has created. A function make_...() creates text of one
 * kind and keeps in struct made what it takes to free it again. It returns 0;
 * -ENOTSUP if this kernel or machine has no such text, with the reason in
 * made->why; or another -errno. Each has a function that undoes it, also after
 * a failure.
 */
#ifndef SELFTESTS_PERF_EVENTS_MADE_H
#define SELFTESTS_PERF_EVENTS_MADE_H

#include <sys/types.h>

#include "tcp_ops.h"

#define MADE_FDS	64
#define MADE_DIRS	2

struct made {
	int want;		/* make_...() creates at least as many texts */
	int fds[MADE_FDS], nr_fds;
	pid_t child;		/* -1: none */
	struct tcp_ops ops;
	char dirs[MADE_DIRS][128];	/* "": none */
	char why[384];
};

void made__init(struct made *m);

/* Return: 0, and then @fd belongs to @m; @fd if it is a negative error. */
int made__fd(struct made *m, int fd);

/* Close the fds, links before the programs that they hold. */
void unmake_fds(struct made *m);

/* Store the reason for -ENOTSUP. Return: -ENOTSUP. */
int made__unsupported(struct made *m, const char *format, ...);

#endif
