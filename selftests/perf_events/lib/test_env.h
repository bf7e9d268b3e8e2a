/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Can a test run on this machine, and how long may it take? Access to the files
 * in /proc and /sys that the answer depends on.
 */
#ifndef SELFTESTS_PERF_EVENTS_TEST_ENV_H
#define SELFTESTS_PERF_EVENTS_TEST_ENV_H

#include <linux/types.h>

#define KPROBE_PMU	"/sys/bus/event_source/devices/kprobe/type"
#define WAIT_MS		40000	/* grace periods are slow on debug kernels */
#define TEST_S		150	/* three times WAIT_MS, and some */

/* Return: why a test that needs BPF symbols cannot run here, or NULL. */
const char *skip_reason(void);

/* Return: the number in the file @path, or -errno. */
long read_number(const char *path);

/* Return: the number after "@key:" in the fdinfo of @fd, or -errno. */
long long fdinfo_number(int fd, const char *key);

/* Write @text to the file @dir/@file. Return: 0 or -errno. */
int write_file(const char *dir, const char *file, const char *text);

/* Return: 0 or -errno. */
int write_number(const char *path, long number);

/* Move this thread to @cpu. Return: 0 or -errno. */
int run_on_cpu(int cpu);

/* Return: CLOCK_MONOTONIC. */
__u64 now_ns(void);
__u64 now_ms(void);

#define MAX_CHURN_S	7200

/*
 * How long does a test run? @ms, or the seconds that the environment has in @name.
 * Return: milliseconds, or -EINVAL if those are not 1 to MAX_CHURN_S.
 */
long churn_ms(const char *name, long ms);

#endif
