/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kernel text that a test has created. A function make_...() creates text of one
 * kind and keeps in struct made what it takes to free it again. It returns 0;
 * -ENOTSUP if this kernel or machine has no such text, with the reason in
 * made->why; or another -errno. Each has a function that undoes it, also after
 * a failure: unmake_fds() unless there is another one.
 */
#ifndef SELFTESTS_PERF_EVENTS_MADE_H
#define SELFTESTS_PERF_EVENTS_MADE_H

#include <sys/types.h>

#include "tcp_ops.h"

#define MADE_FDS	64
#define MADE_DIRS	2
#define NR_SAME		4	/* programs of one kind that make_...() loads */

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

/* Classic BPF */
int attach_filter(int sock);
int make_socket_filters(struct made *m);
int make_seccomp_filters(struct made *m);
void unmake_seccomp_filters(struct made *m);

/* The kernel may keep the pages with copies of probed instructions. */
int make_kprobes(struct made *m);

/* Thunks of the mitigation of Indirect Target Selection */
int make_its(struct made *m);
void unmake_nothing(struct made *m);

/* Instances that trace functions: each has a trampoline of its own. */
int make_ftrace(struct made *m);
void unmake_ftrace(struct made *m);

/*
 * Load the module @name, which the option @config builds as @dir/@name.ko.
 * KSYMBOL_MODULES in the environment is a directory that has the modules, for
 * kernels whose modules are not installed.
 */
int load_module(struct made *m, const char *dir, const char *name, const char *config,
		const char *args);
void unload_module(const char *name);

/* The module dummy, whose init text may be freed before this returns. */
int make_module(struct made *m);
void unmake_module(struct made *m);

#endif
