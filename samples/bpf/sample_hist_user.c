// SPDX-License-Identifier: GPL-2.0
/*
 * sample_hist: histogram of a command's samples by cgroup, data source and cost
 *
 * Runs a command and all its children under a perf event. A BPF program that is
 * attached when the event is opened counts the samples; every n-th sample is also
 * written to the ring buffer.
 *
 *	sample_hist -e page-faults -k 10 -- ls -R /usr
 *	sample_hist -e r1cd -c 1000 -- make	# x86, Intel: loads and their latency
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "sample_hist.h"

#define RING_PAGES	64

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
	__u64 samples, lost;
};

static const char usage[] =
	"usage: sample_hist [-e EVENT] [-c PERIOD] [-k KEEP] [--] COMMAND [ARGS]\n"
	"  -e EVENT   page-faults (default), cpu-clock, cycles, or rHEX: a raw event\n"
	"             of the CPU that samples addresses\n"
	"  -c PERIOD  events per sample (1; cpu-clock: 100000 ns; cycles: 1000000)\n"
	"  -k KEEP    write every KEEP-th sample to the ring buffer, 0: none (10)\n";

static const char load_rejected[] =
	"sample_hist: the verifier rejected the program, see above. With\n"
	"  \"invalid bpf_context access\", the kernel lacks struct bpf_perf_sample_data\n";

/* Return: 0, or -EINVAL for an unknown name. */
static int parse_event(const char *name, struct perf_event_attr *attr)
{
	char *end;

	if (!strcmp(name, "page-faults") || !strcmp(name, "cpu-clock")) {
		attr->type = PERF_TYPE_SOFTWARE;
		attr->config = *name == 'p' ? PERF_COUNT_SW_PAGE_FAULTS : PERF_COUNT_SW_CPU_CLOCK;
		if (*name == 'c' && !attr->sample_period)
			attr->sample_period = 100000;
	} else if (!strcmp(name, "cycles")) {
		attr->type = PERF_TYPE_HARDWARE;
		attr->config = PERF_COUNT_HW_CPU_CYCLES;
		if (!attr->sample_period)
			attr->sample_period = 1000000;
	} else if (*name == 'r') {
		attr->type = PERF_TYPE_RAW;
		attr->config = strtoull(name + 1, &end, 16);
		attr->precise_ip = 2;
		if (!name[1] || *end)
			return -EINVAL;
	} else {
		return -EINVAL;
	}
	if (!attr->sample_period)
		attr->sample_period = 1;
	return 0;
}

/* Fork a child that runs @argv once a byte is written to @go. */
static pid_t start_stopped(char **argv, int *go)
{
	int fds[2];
	pid_t pid;
	char c;

	if (pipe(fds))
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		close(fds[1]);
		if (read(fds[0], &c, 1) != 1)
			_exit(1);
		close(fds[0]);
		execvp(argv[0], argv);
		fprintf(stderr, "sample_hist: %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	close(fds[0]);
	*go = fds[1];
	return pid;
}

/* Per CPU: an inherited event can only be mapped on one CPU. Return: 0 or -errno. */
static int ring__open(struct ring *ring, const struct bpf_program *prog,
		      struct perf_event_attr *attr, pid_t pid, int cpu)
{
	/* The command has not been executed yet: allow the fallback of older kernels */
	LIBBPF_OPTS(bpf_perf_event_open_opts, opts, .target_is_stopped = true);

	ring->fd = bpf_program__open_perf_event(prog, attr, pid, cpu, &opts);
	if (ring->fd < 0)
		return ring->fd;
	ring->page = mmap(NULL, (RING_PAGES + 1) * sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
			  MAP_SHARED, ring->fd, 0);
	return ring->page == MAP_FAILED ? -errno : 0;
}

/* Count the records in the ring; a real reader would decode them. */
static void ring__read(struct ring *ring)
{
	const char *data = (const char *)ring->page + ring->page->data_offset;
	__u64 head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	__u64 tail = ring->page->data_tail;

	while (tail < head) {
		const struct perf_event_header *header =
			(const void *)(data + tail % ring->page->data_size);

		if (header->type == PERF_RECORD_SAMPLE)
			ring->samples++;
		else if (header->type == PERF_RECORD_LOST)
			ring->lost += *(const __u64 *)(data + (tail + sizeof(*header) +
						       sizeof(__u64)) % ring->page->data_size);
		tail += header->size;
	}
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
}

static const char *source_name(__u64 data_src)
{
	static const char * const levels[] = {
		[PERF_MEM_LVLNUM_L1] = "L1", [PERF_MEM_LVLNUM_L2] = "L2",
		[PERF_MEM_LVLNUM_L3] = "L3", [PERF_MEM_LVLNUM_L4] = "L4",
		[PERF_MEM_LVLNUM_LFB] = "LFB", [PERF_MEM_LVLNUM_RAM] = "RAM",
		[PERF_MEM_LVLNUM_PMEM] = "PMEM", [PERF_MEM_LVLNUM_NA] = "-",
	};
	union perf_mem_data_src src = { .val = data_src };

	if (!data_src)
		return "-";
	return levels[src.mem_lvl_num] ?: "other";
}

static void print_hist(int map)
{
	struct hist_key key, *prev = NULL;
	struct hist_value value;

	printf("%12s %12s %-6s %16s %22s %14s\n", "samples", "cgroup", "data", "data_src", "cost",
	       "mean cost");
	while (!bpf_map_get_next_key(map, prev, &key)) {
		__u64 low = key.cost ? 1ULL << (key.cost - 1) : 0;

		prev = &key;
		if (bpf_map_lookup_elem(map, &key, &value))
			continue;
		printf("%12llu %12llu %-6s %16llx %10llu-%-11llu %14.1f\n", value.samples,
		       key.cgroup, source_name(key.data_src), key.data_src, low,
		       key.cost ? 2 * low - 1 : 0, (double)value.weight / value.samples);
	}
}

/* The program's counters are all of its .bss. */
static void print_counts(struct bpf_object *obj, const struct ring *rings, int nr)
{
	struct bpf_map *bss = bpf_object__find_map_by_name(obj, ".bss");
	const struct hist_counts *counts;
	__u64 kept = 0, lost = 0;
	size_t size;
	int i;

	counts = bss ? bpf_map__initial_value(bss, &size) : NULL;
	for (i = 0; i < nr; i++) {
		kept += rings[i].samples;
		lost += rings[i].lost;
	}
	if (counts)
		printf("%llu samples, %llu without room in the histogram; ", counts->samples,
		       counts->no_room);
	printf("%llu in the ring buffers, %llu lost there\n", kept, lost);
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "sample_hist: %s: %s\n", what, strerror(-err));
	return 1;
}

static int run(struct bpf_object *obj, struct perf_event_attr *attr, char **argv)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(obj, "sum_up");
	int nr_cpus = libbpf_num_possible_cpus(), nr = 0, go = -1, cpu, err, status, i;
	struct ring *rings;
	pid_t pid;

	if (nr_cpus < 0)
		return fail("number of CPUs", nr_cpus);
	rings = calloc(nr_cpus, sizeof(*rings));
	if (!rings)
		return fail("rings", -ENOMEM);
	pid = start_stopped(argv, &go);
	if (pid < 0)
		return fail(argv[0], pid);

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		err = ring__open(&rings[nr], prog, attr, pid, cpu);
		if (err == -ENODEV)	/* offline */
			continue;
		if (err) {
			kill(pid, SIGKILL);
			return fail("perf_event_open", err);
		}
		nr++;
	}
	if (write(go, "", 1) != 1)
		return fail(argv[0], -errno);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		for (i = 0; i < nr; i++)
			ring__read(&rings[i]);
		usleep(10000);
	}
	for (i = 0; i < nr; i++) {
		ioctl(rings[i].fd, PERF_EVENT_IOC_DISABLE, 0);
		ring__read(&rings[i]);
	}
	print_hist(bpf_object__find_map_fd_by_name(obj, "hist"));
	print_counts(obj, rings, nr);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int set_keep(struct bpf_object *obj, __u64 keep)
{
	struct bpf_map *data = bpf_object__find_map_by_name(obj, ".data");
	size_t size;
	__u64 *keep_every = data ? bpf_map__initial_value(data, &size) : NULL;

	if (!keep_every)
		return -ENOENT;
	*keep_every = keep;
	return 0;
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR |
			       PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_CGROUP,
		.inherit = 1,
		.disabled = 1,
		.enable_on_exec = 1,
		.exclude_hv = 1,
	};
	const char *event = "page-faults";
	struct bpf_object *obj;
	char filename[256];
	__u64 keep = 10;
	int opt, err;

	while ((opt = getopt(argc, argv, "+e:c:k:")) != -1) {
		if (opt == 'e')
			event = optarg;
		else if (opt == 'c')
			attr.sample_period = strtoull(optarg, NULL, 0);
		else if (opt == 'k')
			keep = strtoull(optarg, NULL, 0);
		else
			optind = argc;
	}
	if (optind >= argc || parse_event(event, &attr)) {
		fputs(usage, stderr);
		return 2;
	}

	snprintf(filename, sizeof(filename), "%s.bpf.o", argv[0]);
	obj = bpf_object__open_file(filename, NULL);
	if (!obj)
		return fail(filename, -errno);
	err = set_keep(obj, keep) ?: bpf_object__load(obj);
	if (err == -EACCES)
		fputs(load_rejected, stderr);
	if (err)
		return fail(filename, err);
	return run(obj, &attr, argv + optind);
}
