/* SPDX-License-Identifier: GPL-2.0 */
/* What does the kernel's "%pS" print for an address? */
#ifndef SELFTESTS_PERF_EVENTS_SYMBOLIZE_H
#define SELFTESTS_PERF_EVENTS_SYMBOLIZE_H

#include <linux/bpf.h>

/* Print @addr as "name+0x1/0x20" to @buf, of @size bytes. Return: 0 or -errno. */
int symbolize(__u64 addr, char *buf, __u32 size);

#endif
