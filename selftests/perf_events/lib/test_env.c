// SPDX-License-Identifier: GPL-2.0
/* Checks of the machine and its settings, and access to files in /proc and /sys. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test_env.h"

#define BTF	"/sys/kernel/btf/vmlinux"

const char *skip_reason(void)
{
	if (geteuid())
		return "needs root";
	if (access(BTF, R_OK))
		return "no " BTF ": needs CONFIG_DEBUG_INFO_BTF";
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

long read_number(const char *path)
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

long long fdinfo_number(int fd, const char *key)
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

int write_file(const char *dir, const char *file, const char *text)
{
	char path[256];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

int write_number(const char *path, long number)
{
	FILE *f = fopen(path, "we");
	int err = 0;

	if (!f)
		return -errno;
	fprintf(f, "%ld\n", number);
	if (fclose(f))
		err = -errno;
	return err;
}

int run_on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

__u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

__u64 now_ms(void)
{
	return now_ns() / 1000000;
}

long churn_ms(const char *name, long ms)
{
	const char *text = getenv(name);
	char *end;
	long s;

	if (!text)
		return ms;
	s = strtol(text, &end, 10);
	return *text && !*end && s > 0 && s <= MAX_CHURN_S ? s * 1000 : -EINVAL;
}
