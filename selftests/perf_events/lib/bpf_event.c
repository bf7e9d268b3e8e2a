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
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);

	return bpf_link_create(prog, event, BPF_PERF_EVENT, &opts);
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

int load_counter(enum bpf_prog_type type, int *map)
{
	*map = value_map(sizeof(__u64));
	if (*map < 0)
		return *map;

	const struct bpf_insn insns[] = {
		BPF_LD_MAP_VALUE(BPF_REG_1, *map, 0),
		BPF_MOV64_IMM(BPF_REG_2, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_2, 0),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};

	return bpf_prog_load(type, "count_runs", "GPL", insns,
			     ARRAY_SIZE(insns), NULL);
}

__u32 id_of(int prog)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	return bpf_prog_get_info_by_fd(prog, &info, &len) ? 0 : info.id;
}

bool prog_goes_within(__u32 id, int ms)
{
	int fd;

	for (; ms >= 0; ms -= 10) {
		fd = bpf_prog_get_fd_by_id(id);
		if (fd == -ENOENT)
			return true;
		close_fd(&fd);
		usleep(10000);
	}
	return false;
}

long long misses_of(int prog)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	int err = bpf_prog_get_info_by_fd(prog, &info, &len);

	return err ?: (long long)info.recursion_misses;
}
