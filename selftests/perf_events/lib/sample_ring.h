/* SPDX-License-Identifier: GPL-2.0 */
/* An event and its ring buffer, which has room for all that a test causes. */
#ifndef SELFTESTS_PERF_EVENTS_SAMPLE_RING_H
#define SELFTESTS_PERF_EVENTS_SAMPLE_RING_H

#include <sys/types.h>
#include <linux/perf_event.h>

struct ring {
	int event;
	size_t size;
	struct perf_event_mmap_page *page;
};

/* An event of this thread. Return: 0 or -errno; ring__close() in both cases. */
int ring__open(struct ring *ring, struct perf_event_attr *attr);

/* The same for an event of @pid on @cpu; 0 is this thread, -1 any CPU. */
int ring__open_on(struct ring *ring, struct perf_event_attr *attr, pid_t pid, int cpu);
void ring__close(struct ring *ring);

/* Return: the first word of the sample after *@at, which is moved on, or NULL. */
const __u64 *ring__next_sample(const struct ring *ring, __u64 *at);

#endif
