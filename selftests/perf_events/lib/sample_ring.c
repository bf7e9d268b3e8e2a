// SPDX-License-Identifier: GPL-2.0
/* The ring is read from its beginning, and data_tail is never written. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf_event.h"
#include "sample_ring.h"

#define RING_PAGES	8	/* ksymbol_leak opens many, of what a user may lock */

int ring__open(struct ring *ring, struct perf_event_attr *attr)
{
	return ring__open_on(ring, attr, 0, -1);
}

int ring__open_on(struct ring *ring, struct perf_event_attr *attr, pid_t pid, int cpu)
{
	ring->size = (RING_PAGES + 1) * sysconf(_SC_PAGESIZE);
	ring->event = open_event_on(attr, pid, cpu);
	if (ring->event < 0)
		return ring->event;
	ring->page = mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->event, 0);
	return ring->page == MAP_FAILED ? -errno : 0;
}

void ring__close(struct ring *ring)
{
	if (ring->page && ring->page != MAP_FAILED)
		munmap(ring->page, ring->size);
	close_fd(&ring->event);
}

const __u64 *ring__next_sample(const struct ring *ring, __u64 *at)
{
	const char *data = (const char *)ring->page + ring->page->data_offset;
	__u64 head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);

	while (*at < head) {
		const struct perf_event_header *header = (const void *)(data + *at);

		*at += header->size;
		if (header->type == PERF_RECORD_SAMPLE)
			return (const __u64 *)(header + 1);
	}
	return NULL;
}
