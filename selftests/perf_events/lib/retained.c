// SPDX-License-Identifier: GPL-2.0
/* Opens events that retain information, and asks them for it. */
#include <errno.h>
#include <sys/ioctl.h>

#include "bpf_event.h"
#include "retained.h"

struct perf_event_attr retain_attr(bool retain)
{
	return (struct perf_event_attr) {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(struct perf_event_attr),
		.bpf_event = 1,
		.bpf_retain = retain,
	};
}

int open_retain_event(bool retain)
{
	struct perf_event_attr attr = retain_attr(retain);

	return open_event_on(&attr, -1, 0);
}

int ended_prog(int event, __u32 id)
{
	int fd = ioctl(event, PERF_EVENT_IOC_BPF_PROG_FD, id);

	return fd < 0 ? -errno : fd;
}
