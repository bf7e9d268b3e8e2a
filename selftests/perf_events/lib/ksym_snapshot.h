/* SPDX-License-Identifier: GPL-2.0 */
/* Which kernel text does PERF_EVENT_IOC_KSYM_SNAPSHOT replay? */
#ifndef SELFTESTS_PERF_EVENTS_KSYM_SNAPSHOT_H
#define SELFTESTS_PERF_EVENTS_KSYM_SNAPSHOT_H

#include "ksym_set.h"

/*
 * Replay all text into the first ring, on its CPU, and read it as often as it is full.
 * Return: how often it was full, or -errno; -ENOTTY and -EINVAL come from kernels
 * without this ioctl.
 */
int ksym_snapshot(struct ksym_rings *rings);

/* Was @rec replayed? For MMAP2, which does not say so, the answer is yes. */
bool ksym_rec__is_replay(const struct ksym_rec *rec);

/* Add what was replayed at record @from or later. Return: 0 or -errno. */
int ksym_set__read_snapshot(struct ksym_set *set, const struct ksym_rings *rings, size_t from);

#endif
