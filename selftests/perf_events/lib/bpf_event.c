// SPDX-License-Identifier: GPL-2.0
/* Opens events, attaches programs to them and makes them happen. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf_event.h"

struct perf_event_attr sw_event_attr(__u64 config)
{
	return (struct perf_event_attr) {
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.size = sizeof(struct perf_event_attr),
		.sample_period = 1,
		.disabled = 1,
	};
}

int open_event_on(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = syscall(__NR_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int open_own_event(struct perf_event_attr *attr)
{
	return open_event_on(attr, 0, -1);
}

int event_ioctl(int event, unsigned long request, long arg)
{
	return ioctl(event, request, arg) ? -errno : 0;
}

int link_to_event(int prog, int event, __u64 cookie)
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

int fault_pages(int nr)
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

int load_counter(enum bpf_prog_type type, int map)
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

int prog_info(int prog, struct bpf_prog_info *info)
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

bool prog_goes_within(__u32 id, int ms)
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

long long misses_of(int prog)
{
	struct bpf_prog_info info;
	int err = prog_info(prog, &info);

	return err ?: (long long)info.recursion_misses;
}
