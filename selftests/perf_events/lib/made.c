// SPDX-License-Identifier: GPL-2.0
/* What created text holds: see made.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "made.h"

void made__init(struct made *m)
{
	memset(m, 0, sizeof(*m));
	m->child = -1;
	tcp_ops__init(&m->ops);
}

int made__fd(struct made *m, int fd)
{
	if (fd < 0)
		return fd;
	if (m->nr_fds == MADE_FDS) {
		close(fd);
		return -ENOSPC;
	}
	m->fds[m->nr_fds++] = fd;
	return 0;
}

void unmake_fds(struct made *m)
{
	while (m->nr_fds)
		close(m->fds[--m->nr_fds]);
}

int made__unsupported(struct made *m, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(m->why, sizeof(m->why), format, args);
	va_end(args);
	return -ENOTSUP;
}
