// SPDX-License-Identifier: GPL-2.0
/* Loads modules by finit_module(2), without modprobe and its index files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "made.h"

int load_module(struct made *m, const char *dir, const char *name, const char *config,
		const char *args)
{
	const char *all = getenv("KSYMBOL_MODULES");
	char path[256];
	struct utsname uts;
	int fd, err = 0;

	if (access("/proc/modules", F_OK))
		return made__unsupported(m, "no modules: needs CONFIG_MODULES");
	uname(&uts);
	if (all)
		snprintf(path, sizeof(path), "%s/%s.ko", all, name);
	else
		snprintf(path, sizeof(path), "/lib/modules/%s/%s/%s.ko",
			 uts.release, dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return made__unsupported(m,
			"no %s: needs %s=m, or KSYMBOL_MODULES=directory with it", path, config);
	if (syscall(__NR_finit_module, fd, args, 0))
		err = -errno;
	close(fd);
	return err == -EEXIST ?
	       made__unsupported(m, "the module %s is loaded already", name) : err;
}

void unload_module(const char *name)
{
	syscall(__NR_delete_module, name, O_NONBLOCK);
}

int make_module(struct made *m)
{
	m->want = 1;
	return load_module(m, "kernel/drivers/net", "dummy", "CONFIG_DUMMY",
			   "numdummies=0");
}

void unmake_module(struct made *m)
{
	unload_module("dummy");
}
