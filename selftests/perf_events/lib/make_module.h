/* SPDX-License-Identifier: GPL-2.0 */
/* Text of modules: see made.h. */
#ifndef SELFTESTS_PERF_EVENTS_MAKE_MODULE_H
#define SELFTESTS_PERF_EVENTS_MAKE_MODULE_H

#include "made.h"

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
