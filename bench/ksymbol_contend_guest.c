// SPDX-License-Identifier: GPL-2.0
/*
 * Runs in the guest for bench/ksymbol-contend: prints "NAME NANOSECONDS" lines.
 *
 * How long does it take to load and close a program while others use what it waits
 * for? Time is that of the guest's clock, so other load on the machine changes it.
 * On a kernel with the irqsoff tracer: how long are interrupts off meanwhile?
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf_event.h"
#include "bpf_load.h"
#include "ksym_ring.h"
#include "own_time.h"
#include "test_env.h"

#define NOBODY		65534
#define PROGS		10000
#define LOADS		201
#define LOADS_READERS	21	/* each waits for a turn of the CPU behind all readers */
#define READERS		100
#define EVENTS		100000
#define CPU_EVENTS	50000
#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"
#define TRACEFS		"/sys/kernel/tracing"

static void die(const char *what, int err)
{
	fprintf(stderr, "ksymbol_contend_guest: %s: %s\n", what, strerror(err));
	exit(1);
}

static __u64 now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static int load(void)
{
	int fd = load_filter("bench");

	if (fd < 0)
		die("loading a program", -fd);
	return fd;
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity", errno);
}

static bool has_irqsoff(void)
{
	char line[256] = "";
	FILE *f = fopen(TRACEFS "/available_tracers", "r");

	if (f) {
		if (!fgets(line, sizeof(line), f))
			line[0] = '\0';
		fclose(f);
	}
	return strstr(line, "irqsoff");
}

static void begin_irqsoff(void)
{
	int err = write_file(TRACEFS "/options", "function-trace", "0");

	err = err ?: write_file(TRACEFS, "tracing_max_latency", "0");
	err = err ?: write_file(TRACEFS, "current_tracer", "irqsoff");
	if (err)
		die("irqsoff", -err);
}

static void end_irqsoff(const char *who)
{
	long max;

	write_file(TRACEFS, "current_tracer", "nop");
	max = read_number(TRACEFS "/tracing_max_latency");	/* in us */
	if (max < 0)
		die("tracing_max_latency", -max);
	printf("irqsoff_%s %ld\n", who, max * 1000);
}

/* Median and maximum of loading and closing a program @nr times. */
static void bench_loads(const char *who, int nr)
{
	static __u64 times[LOADS];
	bool irqsoff = has_irqsoff();
	int i;

	if (irqsoff)
		begin_irqsoff();
	for (i = 0; i < nr; i++) {
		times[i] = now();
		close(load());
		times[i] = now() - times[i];
	}
	qsort(times, nr, sizeof(*times), cmp_times);
	printf("load_%s %llu\n", who, times[nr / 2]);
	printf("load_%s_max %llu\n", who, times[nr - 1]);
	if (irqsoff)
		end_irqsoff(who);
}

static void read_forever(void)
{
	static char buf[1 << 16];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			_exit(1);
		while (read(fd, buf, sizeof(buf)) > 0)
			;
		close(fd);
	}
}

static void bench_readers(void)
{
	pid_t pids[READERS];
	int i;

	for (i = 0; i < READERS; i++) {
		pids[i] = fork();
		if (!pids[i])
			read_forever();
	}
	sleep(1);
	bench_loads("readers", LOADS_READERS);
	for (i = 0; i < READERS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

static int open_cpu0_event(struct perf_event_attr *attr)
{
	return syscall(__NR_perf_event_open, attr, -1, 0, -1, 0);
}

/*
 * An unprivileged task with many events, of its own or of CPU 0, attaches filters to a
 * socket there.
 */
static void attack_forever(int ready, bool cpu)
{
	struct sock_filter insns[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog filter = { .len = 1, .filter = insns };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		/* walked like the others, and opened without a walk of all that there are */
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int i, sock, nr = cpu ? CPU_EVENTS : EVENTS;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_on(0);
	/* Only an event that asks for records is on the list of its CPU */
	attr.ksymbol = cpu;
	if (setuid(NOBODY))
		die("setuid", errno);
	for (i = 0; i < nr; i++)
		if ((cpu ? open_cpu0_event(&attr) : open_own_event(&attr)) < 0)
			die("opening an event", errno);
	sock = socket(AF_UNIX, SOCK_DGRAM, 0);
	if (sock < 0 || write(ready, "", 1) != 1)
		die("socket", errno);
	for (;;)
		if (setsockopt(sock, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)))
			die("SO_ATTACH_FILTER", errno);
}

static void bench_attack(const char *who, bool cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
	};
	struct ksym_rings rings;
	int err = ksym_rings__open(&rings, &attr), ready[2];
	pid_t pid;
	char c;

	if (err)
		die("opening the event", -err);
	if (pipe(ready))
		die("pipe", errno);
	pid = fork();
	if (!pid)
		attack_forever(ready[1], cpu);
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		die("starting the attack", EPIPE);
	run_on(1);
	bench_loads(who, LOADS);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ksym_rings__close(&rings);
}

int main(void)
{
	struct rlimit files = { EVENTS + 100, EVENTS + 100 };
	int i;

	setlinebuf(stdout);
	setrlimit(RLIMIT_NOFILE, &files);
	bench_loads("alone", LOADS);
	bench_attack("attack", false);
	/* Where users may open events of CPUs */
	if (write_number(PARANOID, 0))
		die(PARANOID, errno);
	bench_attack("attack_cpu", true);
	for (i = 0; i < PROGS; i++)
		load();
	bench_readers();
	return 0;
}
