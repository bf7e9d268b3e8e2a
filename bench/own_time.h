/* SPDX-License-Identifier: GPL-2.0 */
/* Times of this process, for the programs that count instructions in the guest. */
#ifndef BENCH_OWN_TIME_H
#define BENCH_OWN_TIME_H

#include <time.h>
#include <linux/types.h>

/* In ns */
static inline __u64 own_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static inline int cmp_times(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

#endif
