/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests ask of the machine and of /proc, and the limits of their time. */
#ifndef SELFTESTS_PERF_EVENTS_KSYM_ENV_H
#define SELFTESTS_PERF_EVENTS_KSYM_ENV_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "btf_lookup.h"

#define KPROBE_PMU	"/sys/bus/event_source/devices/kprobe/type"
#define WAIT_MS		40000	/* grace periods are slow on debug kernels */
#define TEST_S		150	/* three times WAIT_MS, and some */

/* Return: the number in @path, or -errno. */
static inline long read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	long val;
	int n;

	if (!f)
		return -errno;
	n = fscanf(f, "%ld", &val);
	fclose(f);
	return n == 1 ? val : -EINVAL;
}

/* Return: the number after "@key:" in the fdinfo of @fd, or -errno. */
static inline long long fdinfo_number(int fd, const char *key)
{
	char path[64], line[256];
	long long val = -ENOENT;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
			val = strtoll(line + strlen(key) + 1, NULL, 0);
	}
	fclose(f);
	return val;
}

/* Return: why the tests cannot run here, or NULL. */
static inline const char *cannot_run(void)
{
	if (geteuid())
		return "needs root";
	if (access(BTF_VMLINUX, R_OK))
		return "no " BTF_VMLINUX ": needs CONFIG_DEBUG_INFO_BTF";
	if (read_number("/proc/sys/net/core/bpf_jit_enable") < 1)
		return "no BPF JIT: needs CONFIG_BPF_JIT and net.core.bpf_jit_enable=1";
	if (read_number("/proc/sys/net/core/bpf_jit_harden") > 0)
		return "net.core.bpf_jit_harden hides BPF symbols: set it to 0";
	if (read_number("/proc/sys/net/core/bpf_jit_kallsyms") < 1)
		return "BPF symbols are hidden: set net.core.bpf_jit_kallsyms to 1";
	if (read_number("/proc/sys/kernel/kptr_restrict") > 1)
		return "kernel.kptr_restrict hides addresses: set it to 0 or 1";
	return NULL;
}

#endif
