/* SPDX-License-Identifier: GPL-2.0 */
/* What does the kernel's "%pS" print for an address? */
#ifndef SELFTESTS_PERF_EVENTS_SYMBOLIZE_H
#define SELFTESTS_PERF_EVENTS_SYMBOLIZE_H

#include <linux/bpf.h>

/* Print @addr as "name+0x1/0x20" to @buf, of @size bytes. Return: 0 or -errno. */
int symbolize(__u64 addr, char *buf, __u32 size);

/* A frozen, read-only map with @format, which is of @size bytes with its end. */
int symbolize__format_map(const char *format, __u32 size);

/*
 * A program of @type that prints @addr to the value of @out_map, of @size bytes,
 * as @format_map says. Return: an fd or -errno.
 */
int symbolize__load(enum bpf_prog_type type, int format_map, int out_map, __u32 size,
		    __u64 addr);

#endif
