// SPDX-License-Identifier: GPL-2.0
/* Probes inside system calls, behind the bytes that ftrace patches. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bpf_event.h"
#include "made.h"
#include "test_env.h"

#define NR_KPROBES	40	/* enough for more than one page of detours */

/* Return: an event on byte @off of @func, which never counts, or -errno. */
static int kprobe_open(long pmu, const char *func, int off)
{
	struct perf_event_attr attr = {
		.type = pmu,
		.size = sizeof(attr),
		.kprobe_func = (unsigned long)func,
		.probe_offset = off,
		.disabled = 1,
	};

	return open_own_event(&attr);
}

/* At the first instruction after the bytes that ftrace owns. */
static int kprobe_open_inside(long pmu, const char *func)
{
	int off, fd = -ENOENT;

	for (off = 9; off >= 5 && fd < 0; off -= 4)
		fd = kprobe_open(pmu, func, off);
	return fd;
}

int make_kprobes(struct made *m)
{
	char line[256], name[128];
	long pmu = read_number(KPROBE_PMU);
	FILE *f;
	int fd;

	m->want = 1;
	if (pmu < 0)
		return made__unsupported(m, "no " KPROBE_PMU ": needs CONFIG_KPROBE_EVENTS");
	f = fopen("/proc/kallsyms", "re");
	if (!f)
		return -errno;
	while (m->nr_fds < NR_KPROBES && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*x T %127s", name) != 1 ||
		    strncmp(name, "__x64_sys_", 10))
			continue;
		fd = kprobe_open_inside(pmu, name);
		if (fd >= 0)
			made__fd(m, fd);
	}
	fclose(f);
	return m->nr_fds < NR_KPROBES ?
	       made__unsupported(m, "only %d kprobes inside of functions", m->nr_fds) : 0;
}
