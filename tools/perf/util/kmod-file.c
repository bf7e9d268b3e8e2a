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
 *
 * The directory has thousands of files. It is read once.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <api/io_dir.h>
#include <linux/limits.h>
#include <linux/list.h>
#include "build-id.h"
#include "debug.h"
#include "dso.h"
#include "env.h"
#include "kmod-file.h"
#include "machine.h"
#include "mutex.h"
#include "symbol.h"
#include "symbol_conf.h"

/* Deep enough for a tree of modules; symbolic links may form a loop. */
#define MAX_DEPTH 16

/**
 * struct kmod_file - a file that may be a kernel module
 * @node: in the list of the directory
 * @m: parsed from its name; kmod_path.name is "[module]"
 * @path: of the file, with the root of the file system if that is another one
 */
struct kmod_file {
	struct list_head	node;
	struct kmod_path	m;
	char			path[];
};

/* The last directory that was read, that of one kernel release as a rule */
static struct {
	struct mutex		lock;	/* for all of it */
	struct list_head	files;
	char			dir[PATH_MAX];
} kmod_dir = {
	.lock	= { .lock = PTHREAD_MUTEX_INITIALIZER, },
	.files	= LIST_HEAD_INIT(kmod_dir.files),
};

static void kmod_dir__add(const char *path, const char *name)
{
	struct kmod_file *file = malloc(sizeof(*file) + strlen(path) + 1);

	if (!file)
		return;
	if (kmod_path__parse_name(&file->m, name) || !file->m.kmod) {
		free(file->m.name);
		free(file);
		return;
	}
	strcpy(file->path, path);
	list_add_tail(&file->node, &kmod_dir.files);
}

static void kmod_dir__clear(void)
{
	struct kmod_file *file, *tmp;

	list_for_each_entry_safe(file, tmp, &kmod_dir.files, node) {
		list_del(&file->node);
		free(file->m.name);
		free(file);
	}
}

/* Add the files of a directory. @path has PATH_MAX bytes; it is changed behind @len. */
static void kmod_dir__read(char *path, size_t len, int depth)
{
	struct io_dirent64 *dent;
	struct io_dir iod;

	io_dir__init(&iod, open(path, O_CLOEXEC | O_DIRECTORY | O_RDONLY));
	if (iod.dirfd < 0)
		return;

	while ((dent = io_dir__readdir(&iod)) != NULL) {
		const char *name = dent->d_name;

		if (!strcmp(name, ".") || !strcmp(name, "..") ||
		    len + 1 + strlen(name) >= PATH_MAX)
			continue;

		/* links to the sources and to the build tree of the kernel */
		if (depth == 0 && (!strcmp(name, "source") || !strcmp(name, "build")))
			continue;

		path[len] = '/';
		strcpy(path + len + 1, name);

		if (!io_dir__is_dir(&iod, dent))
			kmod_dir__add(path, name);
		else if (depth < MAX_DEPTH)
			kmod_dir__read(path, len + 1 + strlen(name), depth + 1);
	}

	close(iod.dirfd);
}

static bool kmod_file__is_of(const struct kmod_file *file, struct dso *dso)
{
	struct build_id bid = { .size = 0, };

	if (strcmp(file->m.name, dso__long_name(dso)))
		return false;
	if (!dso__has_build_id(dso))
		return true;
	if (filename__read_build_id(file->path, &bid) <= 0)
		return false;

	if (!dso__build_id_equal(dso, &bid)) {
		pr_debug("%s has another build ID than the loaded module\n", file->path);
		return false;
	}
	return true;
}

static const char *recorded_release(struct machine *machine, struct utsname *uts)
{
	if (machine && machine->env && machine->env->os_release)
		return machine->env->os_release;

	return uname(uts) ? NULL : uts->release;
}

/* Write the path of the directory. Return: its length, or -1 if there is none. */
static int kmod_dir__path(struct machine *machine, char path[PATH_MAX])
{
	struct utsname uts;
	const char *release = recorded_release(machine, &uts);
	int len;

	if (!release || release[0] == '.' || strchr(release, '/'))
		return -1;

	if (symbol_conf.symfs_layout_flat)
		len = snprintf(path, PATH_MAX, "%s", symbol_conf.symfs);
	else
		len = snprintf(path, PATH_MAX, "%s/lib/modules/%s",
			       symbol_conf.symfs, release);
	return len < PATH_MAX ? len : -1;
}

/* Return: the name of the file in its own file system, or NULL. */
static char *dso__search_kmod(struct dso *dso, struct machine *machine, int *comp)
{
	struct kmod_file *file;
	char path[PATH_MAX], *name = NULL;
	int len;

	if (!dso__is_kmod(dso) || dso__long_name(dso)[0] != '[' ||
	    dso__symtab_type(dso) != DSO_BINARY_TYPE__SYSTEM_PATH_KMODULE)
		return NULL;

	len = kmod_dir__path(machine, path);
	if (len < 0)
		return NULL;

	mutex_lock(&kmod_dir.lock);
	if (strcmp(kmod_dir.dir, path)) {
		strcpy(kmod_dir.dir, path);
		kmod_dir__clear();
		kmod_dir__read(path, len, 0);
	}
	list_for_each_entry(file, &kmod_dir.files, node) {
		if (kmod_file__is_of(file, dso)) {
			pr_debug("%s is %s\n", dso__long_name(dso), file->path);
			name = strdup(file->path + strlen(symbol_conf.symfs));
			*comp = file->m.comp;
			break;
		}
	}
	mutex_unlock(&kmod_dir.lock);
	return name;
}

/**
 * dso__kmod_file - get the file name of a kernel module
 * @dso: dso of a module
 * @machine: see dso__find_kmod_file()
 *
 * Unlike dso__find_kmod_file(), this changes nothing: the caller may iterate over the
 * machine's dsos.
 *
 * Return: the name of the file, to be freed; NULL if the name of @dso is a file
 * already, or if no file was found.
 */
char *dso__kmod_file(struct dso *dso, struct machine *machine)
{
	int comp;

	return dso__search_kmod(dso, machine, &comp);
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
	int comp = 0;
	char *name = dso__search_kmod(dso, machine, &comp);

	if (!name)
		return;
	if (comp) {
		dso__set_symtab_type(dso, DSO_BINARY_TYPE__SYSTEM_PATH_KMODULE_COMP);
		dso__set_comp(dso, comp);
	}
	dso__set_long_name(dso, name, true);
}
