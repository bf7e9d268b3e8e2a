// SPDX-License-Identifier: GPL-2.0
/* Tracers that are at work in instances of this process. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "made.h"
#include "test_env.h"

#define TRACEFS		"/sys/kernel/tracing"

int make_ftrace(struct made *m)
{
	int i, err;

	m->want = MADE_DIRS;
	for (i = 0; i < m->want; i++) {
		snprintf(m->dirs[i], sizeof(m->dirs[i]),
			 TRACEFS "/instances/ksym_%d_%d", getpid(), i);
		if (mkdir(m->dirs[i], 0700)) {
			m->dirs[i][0] = '\0';
			return errno == ENOENT ?
			       made__unsupported(m, "no " TRACEFS "/instances") : -errno;
		}
		err = write_file(m->dirs[i], "set_ftrace_filter", "do_exit");
		err = err ?: write_file(m->dirs[i], "current_tracer", "function");
		if (err == -ENOENT || err == -EINVAL)
			return made__unsupported(m,
				"no function tracer: needs CONFIG_FUNCTION_TRACER");
		if (err)
			return err;
	}
	return 0;
}

void unmake_ftrace(struct made *m)
{
	int i;

	for (i = 0; i < MADE_DIRS; i++) {
		if (!m->dirs[i][0])
			continue;
		write_file(m->dirs[i], "current_tracer", "nop");
		rmdir(m->dirs[i]);
		m->dirs[i][0] = '\0';
	}
}
