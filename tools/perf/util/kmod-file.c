// SPDX-License-Identifier: GPL-2.0
/*
 * Find the file of a kernel module.
 *
 * perf finds the files of the modules that are loaded when it starts, and records
 * their paths. Of a module that is loaded later it knows only what the kernel reports:
 * a name in brackets, and the build ID. When its file is needed, perf looks for it
 * where modprobe does, below /lib/modules/<release>: by then the module may have been
 * unloaded, and its directory in sysfs with it.
 *
 * A file with the right name may be another build, with other offsets: an update that
 * was installed since, or one of two files with that name. If the build ID is known,
 * only a file that has it is used.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <api/io_dir.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include "build-id.h"
#include "debug.h"
#include "dso.h"
#include "env.h"
#include "kmod-file.h"
#include "machine.h"
#include "symbol.h"
#include "symbol_conf.h"

/* Deep enough for a tree of modules; symbolic links may form a loop. */
#define MAX_DEPTH 16

struct kmod_search {
	struct dso	*dso;
	struct kmod_path m;
	/* the path being searched, and finally that of the file */
	char		path[PATH_MAX];
};

static bool kmod_search__match(struct kmod_search *search, const char *file)
{
	struct build_id bid = { .size = 0, };
	bool match;

	if (kmod_path__parse_name(&search->m, file))
		return false;

	match = search->m.kmod && !strcmp(search->m.name, dso__long_name(search->dso));
	zfree(&search->m.name);
	if (!match || !dso__has_build_id(search->dso))
		return match;

	if (filename__read_build_id(search->path, &bid) <= 0)
		return false;

	if (!dso__build_id_equal(search->dso, &bid)) {
		pr_debug("%s has another build ID than the loaded module\n",
			 search->path);
		return false;
	}
	return true;
}

static bool kmod_search__dir(struct kmod_search *search, size_t len, int depth)
{
	struct io_dirent64 *dent;
	struct io_dir iod;
	bool found = false;

	io_dir__init(&iod, open(search->path, O_CLOEXEC | O_DIRECTORY | O_RDONLY));
	if (iod.dirfd < 0)
		return false;

	while (!found && (dent = io_dir__readdir(&iod)) != NULL) {
		const char *name = dent->d_name;

		if (!strcmp(name, ".") || !strcmp(name, "..") ||
		    len + 1 + strlen(name) >= sizeof(search->path))
			continue;

		/* links to the sources and to the build tree of the kernel */
		if (depth == 0 && (!strcmp(name, "source") || !strcmp(name, "build")))
			continue;

		search->path[len] = '/';
		strcpy(search->path + len + 1, name);

		if (!io_dir__is_dir(&iod, dent))
			found = kmod_search__match(search, name);
		else if (depth < MAX_DEPTH)
			found = kmod_search__dir(search, len + 1 + strlen(name), depth + 1);
	}

	close(iod.dirfd);
	return found;
}

static const char *recorded_release(struct machine *machine, struct utsname *uts)
{
	if (machine && machine->env && machine->env->os_release)
		return machine->env->os_release;

	return uname(uts) ? NULL : uts->release;
}

static bool kmod_search__run(struct kmod_search *search, struct machine *machine)
{
	struct dso *dso = search->dso;
	struct utsname uts;
	const char *release;
	int len;

	if (!dso__is_kmod(dso) || dso__long_name(dso)[0] != '[' ||
	    dso__symtab_type(dso) != DSO_BINARY_TYPE__SYSTEM_PATH_KMODULE)
		return false;

	release = recorded_release(machine, &uts);
	if (!release || release[0] == '.' || strchr(release, '/'))
		return false;

	if (symbol_conf.symfs_layout_flat)
		len = snprintf(search->path, sizeof(search->path), "%s", symbol_conf.symfs);
	else
		len = snprintf(search->path, sizeof(search->path), "%s/lib/modules/%s",
			       symbol_conf.symfs, release);
	if (len < 0 || len >= (int)sizeof(search->path))
		return false;

	return kmod_search__dir(search, len, 0);
}

static char *kmod_search__name(const struct kmod_search *search)
{
	pr_debug("%s is %s\n", dso__long_name(search->dso), search->path);
	return strdup(search->path + strlen(symbol_conf.symfs));
}

/**
 * dso__kmod_file - get the file name of a kernel module
 * @dso: dso of a module
 * @machine: see dso__find_kmod_file()
 *
 * Unlike dso__find_kmod_file(), this changes nothing and takes no lock: the caller may
 * iterate over the machine's dsos.
 *
 * Return: the name of the file, to be freed; NULL if the name of @dso is a file
 * already, or if no file was found.
 */
char *dso__kmod_file(struct dso *dso, struct machine *machine)
{
	struct kmod_search search = { .dso = dso, };

	return kmod_search__run(&search, machine) ? kmod_search__name(&search) : NULL;
}

/**
 * dso__find_kmod_file - find the file of a kernel module
 * @dso: dso of a module; no effect if its name is a file already
 * @machine: the recorded machine, whose kernel release selects the directory; NULL
 *	for that of the running kernel
 *
 * Sets the long name of @dso to that of the file if it is found.
 */
void dso__find_kmod_file(struct dso *dso, struct machine *machine)
{
	struct kmod_search search = { .dso = dso, };
	char *name;

	if (!kmod_search__run(&search, machine))
		return;

	name = kmod_search__name(&search);
	if (!name)
		return;

	if (search.m.comp) {
		dso__set_symtab_type(dso, DSO_BINARY_TYPE__SYSTEM_PATH_KMODULE_COMP);
		dso__set_comp(dso, search.m.comp);
	}
	dso__set_long_name(dso, name, true);
}
