// SPDX-License-Identifier: GPL-2.0
/* The thunks of vmlinux exist since boot, so this only says whether there are any. */
#include <stdio.h>
#include <string.h>

#include "made.h"

static void read_vulnerability(const char *name, char *buf, size_t size)
{
	char path[112];
	FILE *f;

	snprintf(path, sizeof(path),
		 "/sys/devices/system/cpu/vulnerabilities/%s", name);
	snprintf(buf, size, "no %s", path);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(buf, size, f))
		buf[strcspn(buf, "\n")] = '\0';
	fclose(f);
}

int make_its(struct made *m)
{
	char its[128], v2[128];

	read_vulnerability("indirect_target_selection", its, sizeof(its));
	read_vulnerability("spectre_v2", v2, sizeof(v2));
	m->want = 1;
	if (!strstr(its, "Aligned branch"))
		return made__unsupported(m,
			"no ITS thunks (%s): boot with indirect_target_selection=force", its);
	if (strstr(v2, "etpoline"))
		return made__unsupported(m, "no ITS thunks: retpolines are in their place");
	return 0;
}

void unmake_nothing(struct made *m)
{
}
