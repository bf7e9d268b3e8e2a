/* SPDX-License-Identifier: GPL-2.0 */
/* Do KSYMBOL records contradict each other, and does /proc/kallsyms agree? */
#ifndef SELFTESTS_PERF_EVENTS_KSYM_CHECK_H
#define SELFTESTS_PERF_EVENTS_KSYM_CHECK_H

#include "ksym_ring.h"

/* Return: 1 if /proc/kallsyms has @name at @addr, 0 if not, or -errno. */
int kallsyms_has(const char *name, __u64 addr);

/* Return: what is wrong with the records that were read so far, or NULL. */
const char *records_wrong(const struct ksym_rings *rings);

#endif
