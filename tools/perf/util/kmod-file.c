// SPDX-License-Identifier: GPL-2.0
/*
 * Which file is a kernel module from?
 *
 * perf finds the files of the modules that are there when it begins, and records
 * their paths. Of one that is loaded later there is only what the kernel says:
 * a name in brackets, and the build ID. Its file is looked for where modprobe
 * takes it from, below /lib/modules/<release>, when it is needed: by then the
 * module may be gone, and sysfs with it.
 *
 * The name alone may lead to another build, with other offsets: an update that was
 * installed since, or one of two files with that name. Where the build ID is
 * known, only a file that has it is taken.
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

/* As deep as a tree of modules is; symbolic links may make it endless. */
#define MAX_DEPTH 16

struct kmod_search {
	struct dso	*dso;
	struct kmod_path m;
	/* of the file that is looked at, or of the one that is found */
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
		pr_debug("%s is of another build than the module that was loaded\n",
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

		/* links to the kernel's sources, with all that was built there */
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
 * dso__kmod_file - which file is a kernel module from?
 * @dso: of a module whose file is not known
 * @machine: as of dso__find_kmod_file()
 *
 * Unlike dso__find_kmod_file(), this changes nothing and takes no lock: the
 * caller may iterate over the machine's dsos.
 *
 * Return: the file's name, to be freed; NULL when there is none to look for, or
 * none was found.
 */
char *dso__kmod_file(struct dso *dso, struct machine *machine)
{
	struct kmod_search search = { .dso = dso, };

	return kmod_search__run(&search, machine) ? kmod_search__name(&search) : NULL;
}

/**
 * dso__find_kmod_file - look for the file of a kernel module
 * @dso: of a module; nothing is done when its file is known
 * @machine: the recorded machine, or NULL: the release of its kernel says where
 *	to look
 *
 * Sets the dso's long name to the file's when it is found.
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
