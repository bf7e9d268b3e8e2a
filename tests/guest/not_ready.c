// SPDX-License-Identifier: GPL-2.0
/*
 * Preloaded into perf: an ioctl() that says of each unloaded BPF program that the kernel
 * is not ready to describe it, as it may be on a busy machine, but for as long as perf asks.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>

int ioctl(int fd, unsigned long request, ...)
{
	int (*next)(int, unsigned long, void *) = dlsym(RTLD_NEXT, "ioctl");
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == PERF_EVENT_IOC_BPF_PROG_FD) {
		errno = EAGAIN;
		return -1;
	}
	return next(fd, request, arg);
}
