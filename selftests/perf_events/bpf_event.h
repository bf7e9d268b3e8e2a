/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BPF programs for perf events, and events of this process for them: page faults
 * happen when it wants them, with an address, and context switches without.
 */
#ifndef SELFTESTS_PERF_EVENTS_BPF_EVENT_H
#define SELFTESTS_PERF_EVENTS_BPF_EVENT_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <linux/bpf_perf_event.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "bpf_raw.h"

#define RING_PAGES	8

/* "*(u64 *)(r@PTR + @OFF) += r@SRC" */
#define BPF_RAW_ADD(PTR, OFF, SRC)					\
	BPF_RAW_INSN(BPF_STX | BPF_ATOMIC | BPF_DW, PTR, SRC, OFF, BPF_ADD)

/* An event that samples each time it happens; change what is different. */
static inline struct perf_event_attr sw_event_attr(__u64 config)
{
	return (struct perf_event_attr) {
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.size = sizeof(struct perf_event_attr),
		.sample_period = 1,
		.disabled = 1,
	};
}

/* Of @pid, 0 is this thread, on @cpu, -1 is any. Return: an fd or -errno. */
static inline int open_event_on(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = syscall(__NR_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static inline int open_own_event(struct perf_event_attr *attr)
{
	return open_event_on(attr, 0, -1);
}

/* Return: 0 or -errno. */
static inline int event_ioctl(int event, unsigned long request, long arg)
{
	return ioctl(event, request, arg) ? -errno : 0;
}

/* Return: the fd of a link, or -errno. */
static inline int link_to_event(int prog, int event, __u64 cookie)
{
	union bpf_attr attr = {
		.link_create = {
			.prog_fd = prog,
			.target_fd = event,
			.attach_type = BPF_PERF_EVENT,
			.perf_event.bpf_cookie = cookie,
		},
	};

	return bpf_raw(BPF_LINK_CREATE, &attr);
}

/* @nr page faults. Return: 0 or -errno. */
static inline int fault_pages(int nr)
{
	size_t size = sysconf(_SC_PAGESIZE);
	char *mem = mmap(NULL, nr * size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return -errno;
	madvise(mem, nr * size, MADV_NOHUGEPAGE);
	memset(mem, 1, nr * size);
	return munmap(mem, nr * size) ? -errno : 0;
}

/* A program of @type that counts in @map's value how often it runs. */
static inline int load_counter(enum bpf_prog_type type, int map)
{
	const struct bpf_insn insns[] = {
		BPF_RAW_LD_IMM64_LO(BPF_REG_1, BPF_PSEUDO_MAP_VALUE, map),
		BPF_RAW_LD_IMM64_HI(0),
		BPF_RAW_MOV_IMM(BPF_REG_2, 1),
		BPF_RAW_ADD(BPF_REG_1, 0, BPF_REG_2),
		BPF_RAW_MOV_IMM(BPF_REG_0, 1),
		BPF_RAW_EXIT(),
	};

	return bpf_raw_load_named(type, "count_runs", insns, sizeof(insns) / sizeof(*insns));
}

/* Return: 0 or -errno. */
static inline int prog_info(int prog, struct bpf_prog_info *info)
{
	union bpf_attr attr = {
		.info = {
			.bpf_fd = prog,
			.info_len = sizeof(*info),
			.info = (unsigned long)info,
		},
	};

	memset(info, 0, sizeof(*info));
	return bpf_raw(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

/* Wait up to @ms milliseconds until no program has @id. Return: is that so? */
static inline bool prog_goes_within(__u32 id, int ms)
{
	union bpf_attr attr = { .prog_id = id };
	int fd;

	for (; ms >= 0; ms -= 10) {
		fd = bpf_raw(BPF_PROG_GET_FD_BY_ID, &attr);
		if (fd == -ENOENT)
			return true;
		if (fd >= 0)
			close(fd);
		usleep(10000);
	}
	return false;
}

/* Return: how often the program could not run, or -errno. */
static inline long long misses_of(int prog)
{
	struct bpf_prog_info info;
	int err = prog_info(prog, &info);

	return err ?: (long long)info.recursion_misses;
}

struct ring {
	int event;
	size_t size;
	struct perf_event_mmap_page *page;
};

static inline int ring__open_on(struct ring *ring, struct perf_event_attr *attr,
				pid_t pid, int cpu)
{
	ring->size = (RING_PAGES + 1) * sysconf(_SC_PAGESIZE);
	ring->event = open_event_on(attr, pid, cpu);
	if (ring->event < 0)
		return ring->event;
	ring->page = mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->event, 0);
	return ring->page == MAP_FAILED ? -errno : 0;
}

static inline int ring__open(struct ring *ring, struct perf_event_attr *attr)
{
	return ring__open_on(ring, attr, 0, -1);
}

static inline void ring__close(struct ring *ring)
{
	if (ring->page && ring->page != MAP_FAILED)
		munmap(ring->page, ring->size);
	close_fd(&ring->event);
}

/*
 * The next sample, which stays where it is until the one after it is asked for;
 * the rings are larger than what the tests let happen. Return: NULL at the end.
 */
static inline const __u64 *ring__next_sample(const struct ring *ring, __u64 *at)
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

#endif
