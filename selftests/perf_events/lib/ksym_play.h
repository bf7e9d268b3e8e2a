/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Do three sources agree on which kernel text exists?
 *
 *   records    the KSYMBOL records of the rings, replayed in their order
 *   kallsyms   what /proc/kallsyms lists and neither vmlinux nor a module owns
 *   snapshot   what PERF_EVENT_IOC_KSYM_SNAPSHOT replays
 *
 * /proc/kallsyms has neither lengths nor the ranges of modules; those are
 * compared where both sides have them.
 */
#ifndef SELFTESTS_PERF_EVENTS_KSYM_PLAY_H
#define SELFTESTS_PERF_EVENTS_KSYM_PLAY_H

#include "ksym_set.h"

#define KSYM_WHY_LEN	4096

/*
 * Records replayed in their order, and the first error in them. The rings are
 * read to one point in time only while no text comes or goes: a record of one CPU
 * can be read later than a younger one of another CPU.
 */
struct ksym_play {
	struct ksym_set live;
	bool begun;		/* live has all text that is older than the rings */
	bool whole;		/* live began with a snapshot */
	size_t next;		/* the first record that was not replayed yet */
	size_t registers, unregisters;
	char wrong[2 * KSYM_NAME_LEN + 256];
};

/*
 * Open the rings for all text that this kernel reports.
 * Return: 1; 0 where the kernel lacks attr.ksymbol_all; -errno.
 */
int ksym_rings__open_all(struct ksym_rings *rings);

/*
 * The same, and begin with the text that exists, which a snapshot has, or where the
 * kernel has none /proc/kallsyms.
 */
int ksym_play__begin(struct ksym_play *p, struct ksym_rings *rings);

/* Read the rings and replay the new records. Return: 0 or -errno. */
int ksym_play__drain(struct ksym_play *p, struct ksym_rings *rings);

/* Discard the records, all of which must have been replayed. */
void ksym_play__forget(struct ksym_play *p, struct ksym_rings *rings);

/*
 * Are the three sets equal, was no record wrong so far, and none lost?
 * @why, of KSYM_WHY_LEN bytes, has the reason if not.
 */
bool ksym_play__agrees(struct ksym_play *p, struct ksym_rings *rings, char *why);

#endif
