/* SPDX-License-Identifier: GPL-2.0 */
/* Thunks of the mitigation of Indirect Target Selection: see made.h. */
#ifndef SELFTESTS_PERF_EVENTS_MAKE_ITS_H
#define SELFTESTS_PERF_EVENTS_MAKE_ITS_H

#include "made.h"

int make_its(struct made *m);
void unmake_nothing(struct made *m);

#endif
