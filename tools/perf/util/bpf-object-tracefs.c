// SPDX-License-Identifier: GPL-2.0
/*
 * The probe events of a BPF object file in tracefs: one for each layout, in a group that
 * belongs to perf.
 *
 * They have to go however perf ends. So another process, the keeper, removes them: it
 * waits until perf closes its end of a socket, which the kernel does if perf does not.
 * It has none of perf's files open, gets no signal of its terminal, and perf gets none of
 * it.
 *
 * Perfs that create events wait for each other, by flock() of the tracefs directory:
 * the names that are free are read from there.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <api/fs/tracing_path.h>
#include "bpf-object.h"
#include "bpf-object-events.h"
#include "debug.h"
#include "probe-file.h"
#include "strlist.h"

#ifdef HAVE_BPF_OBJECT_EVENTS

#ifndef __NR_close_range
#define __NR_close_range 436	/* the same on all architectures */
#endif

#define LOCK_SECONDS	30

struct added_event {
	bool	user;
	char	command[128];	/* that removes it */
};

/**
 * struct perf_bpf_keeper - what the keeper shares with perf
 * @files: kprobe_events and uprobe_events
 * @pid: of the keeper
 * @sockets: the ends of perf and of the keeper
 * @size: of this in memory, in bytes
 * @nr: number of @events
 * @nr_left: of those, how many the keeper could not remove
 * @events: that have been, or are just about to be, created
 */
struct perf_bpf_keeper {
	char			*files[2];
	pid_t			pid;
	int			sockets[2];
	size_t			size;
	int			nr;
	int			nr_left;
	struct added_event	events[];
};

/* The keeper: calls only what is safe behind a fork, where other threads are gone */

static int write_command(const struct perf_bpf_keeper *keeper, const struct added_event *event)
{
	int fd = open(keeper->files[event->user], O_WRONLY | O_APPEND | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, event->command, strlen(event->command)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Events may be open still while perf exits. Return: number of events that are left. */
static int remove_events(struct perf_bpf_keeper *keeper)
{
	const struct timespec delay = { .tv_nsec = 20 * NSEC_PER_MSEC };
	int left = 0;

	for (int tries = 0; tries < 100; tries++) {
		left = 0;
		for (int i = 0; i < keeper->nr; i++)
			left += write_command(keeper, &keeper->events[i]) == -EBUSY;
		if (!left)
			break;
		nanosleep(&delay, NULL);
	}
	return left;
}

static int keep(void *arg)
{
	struct perf_bpf_keeper *keeper = arg;
	struct pollfd perf_end = { .fd = 0, .events = POLLIN };

	setsid();
	prctl(PR_SET_NAME, "perf-bpf-probes");
	if (chdir("/") || dup2(keeper->sockets[1], perf_end.fd) < 0 ||
	    syscall(__NR_close_range, 1, ~0U, 0))
		_exit(1);
	while (poll(&perf_end, 1, -1) < 1)
		continue;
	keeper->nr_left = remove_events(keeper);
	_exit(0);
}

/*
 * A child that ends without SIGCHLD, and which wait() does not wait for: perf's own is the
 * workload. Its stack is in its copy of perf's memory. It begins with all signals blocked,
 * as one of the terminal may come at once.
 */
static int fork_keeper(struct perf_bpf_keeper *keeper)
{
	char stack[16384] __aligned(16);
	sigset_t all, old;
	int err = 0;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	keeper->pid = clone(keep, stack + sizeof(stack), /*flags=*/0, keeper);
	if (keeper->pid < 0)
		err = -errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	return err;
}

static int count_layouts(const struct perf_bpf_object *object)
{
	int nr = 0;

	for (int i = 0; i < object->nr_progs; i++)
		nr += object->progs[i].nr_layouts;
	return nr;
}

static void delete_keeper(struct perf_bpf_keeper *keeper)
{
	put_tracing_file(keeper->files[0]);
	put_tracing_file(keeper->files[1]);
	munmap(keeper, keeper->size);
}

static struct perf_bpf_keeper *new_keeper(int nr_events)
{
	size_t size = sizeof(struct perf_bpf_keeper) + nr_events * sizeof(struct added_event);
	struct perf_bpf_keeper *keeper = mmap(NULL, size, PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (keeper == MAP_FAILED)
		return NULL;
	keeper->size = size;
	keeper->files[0] = get_tracing_file("kprobe_events");
	keeper->files[1] = get_tracing_file("uprobe_events");
	if (keeper->files[0] && keeper->files[1])
		return keeper;
	delete_keeper(keeper);
	return NULL;
}

static int start_keeper(struct perf_bpf_object *object)
{
	struct perf_bpf_keeper *keeper = new_keeper(count_layouts(object));
	int err = -ENOMEM;

	if (!keeper)
		return err;
	err = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, keeper->sockets) ? -errno : 0;
	if (!err) {
		err = fork_keeper(keeper);
		close(keeper->sockets[1]);
		if (err)
			close(keeper->sockets[0]);
	}
	if (err) {
		pr_err("%s: no process can be started that removes its probe events: %s\n",
		       object->path, strerror(-err));
		delete_keeper(keeper);
		return err;
	}
	object->keeper = keeper;
	return 0;
}

/**
 * perf_bpf_object__remove_events - Remove the probe events of an object
 * @object: that may have none; its events are closed
 */
void perf_bpf_object__remove_events(struct perf_bpf_object *object)
{
	struct perf_bpf_keeper *keeper = object->keeper;
	int status = -1;

	if (!keeper)
		return;
	/* also for the workload, which may not have closed it yet */
	shutdown(keeper->sockets[0], SHUT_RDWR);
	close(keeper->sockets[0]);
	kill(keeper->pid, SIGCONT);
	while (waitpid(keeper->pid, &status, __WCLONE) < 0 && errno == EINTR)
		continue;
	/* somebody has killed it */
	if (status)
		keeper->nr_left = remove_events(keeper);
	if (keeper->nr_left)
		pr_warning("%s: %d of %d events of the group %s are in use by others, and left: perf probe -d '%s:*'\n",
			   object->path, keeper->nr_left, keeper->nr, PERF_BPF_EVENT_GROUP,
			   PERF_BPF_EVENT_GROUP);
	delete_keeper(keeper);
	object->keeper = NULL;
}

/* For LOCK_SECONDS at most. Return: 0 or -errno. */
static int wait_for_lock(int fd, const char *path)
{
	int err = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;

	if (err == -EWOULDBLOCK)
		pr_warning("Waiting for another perf that creates probe events (lock of %s)\n",
			   path);
	for (int i = 0; err == -EWOULDBLOCK && i < LOCK_SECONDS * 10; i++) {
		usleep(100000);
		err = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
	}
	return err;
}

/* Other perfs wait here. Return: what to close, or -errno. */
static int lock_events(void)
{
	const char *path = tracing_path_mount();
	int fd, err;

	if (!path) {
		pr_err("tracefs is not mounted, which probe events need: mount -t tracefs nodev /sys/kernel/tracing\n");
		return -ENOENT;
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = fd < 0 ? -errno : wait_for_lock(fd, path);
	if (!err)
		return fd;
	pr_err("%s cannot be locked: %s%s\n", path, strerror(-err),
	       err == -EACCES ? "; probe events need root" : "");
	if (fd >= 0)
		close(fd);
	return err;
}

/* The names of the group's events in a file, without the group. */
static struct strlist *list_group(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct strlist *all, *group = strlist__new(NULL, NULL);
	struct str_node *ent;

	/* Not all kernels have both kinds of events */
	all = probe_file__get_group_namelist(fd);
	if (fd >= 0)
		close(fd);
	if (!all || !group)
		goto out;
	strlist__for_each_entry(ent, all) {
		if (strstarts(ent->s, PERF_BPF_EVENT_GROUP ":"))
			strlist__add(group, ent->s + strlen(PERF_BPF_EVENT_GROUP ":"));
	}
out:
	strlist__delete(all);
	return group;
}

/* Another perf, or another -e of this one, may have an event of the same name. */
static int find_free_name(struct perf_bpf_layout *layout, const struct perf_bpf_keeper *keeper)
{
	struct strlist *kernel = list_group(keeper->files[0]);
	struct strlist *user = list_group(keeper->files[1]);
	char *name = strdup(layout->event);
	int err = -ENOMEM;

	if (!kernel || !user)
		goto out;
	for (int i = 1; name; i++) {
		if (!strlist__has_entry(kernel, name) && !strlist__has_entry(user, name)) {
			err = perf_bpf_layout__set_event(layout, name);
			break;
		}
		free(name);
		if (asprintf(&name, "%s__%d", layout->event, i) < 0)
			name = NULL;
	}
out:
	free(name);
	strlist__delete(kernel);
	strlist__delete(user);
	return err;
}

/*
 * What the kernel says of a command, since Linux 5.2:
 *
 *	[  12.345678] trace_kprobe: error: REASON
 *	  Command: COMMAND
 *	                 ^
 */
static void read_reason(const char *command, char *reason, size_t size)
{
	char *path = get_tracing_file("error_log"), *line = NULL, *text;
	FILE *fp = path ? fopen(path, "r") : NULL;
	char last[512] = "";
	size_t alloc = 0;

	reason[0] = '\0';
	while (fp && getline(&line, &alloc, fp) > 0) {
		strim(line);
		text = strstr(line, ": error: ");
		if (line[0] == '[' && text)
			scnprintf(last, sizeof(last), " (%s)", text + strlen(": error: "));
		text = strstr(line, "Command: ");
		if (text && !strcmp(text + strlen("Command: "), command))
			scnprintf(reason, size, "%s", last);
	}
	free(line);
	if (fp)
		fclose(fp);
	put_tracing_file(path);
}

/* Return: 0 or -errno of the kernel, with its reason if it gives one. */
static int write_point(struct probe_trace_event *point, int fd, char *reason, size_t size)
{
	char *command = synthesize_probe_trace_command(point);
	int err = 0;

	if (!command)
		return -ENOMEM;
	if (write(fd, command, strlen(command)) < 0) {
		err = -errno;
		read_reason(command, reason, size);
	}
	free(command);
	return err;
}

/* Return: 0 if the program may run without the point. */
static int report_refused(const struct perf_bpf_layout *layout,
			  const struct probe_trace_event *point, int err, const char *reason)
{
	bool partial = layout->prog->partial && err != -ENOMEM;
	char at[256];

	perf_bpf_point__scnprintf(point, at, sizeof(at));
	perf_bpf_prog__err(layout->object, layout->prog,
			   "the kernel refuses a probe at %s: %s%s%s", at, strerror(-err), reason,
			   partial ? ", skipped" : layout->prog->pev.ntevs == 1 ? "" :
			   "; to probe the others, begin the section with partial=yes;");
	return partial ? 0 : err;
}

/* Keeps those that the kernel takes. */
static int add_points(struct perf_bpf_layout *layout, int fd)
{
	int nr = 0;

	for (int i = 0; i < layout->nr_points; i++) {
		struct probe_trace_event *point = layout->points[i];
		char reason[512] = "";
		int err = write_point(point, fd, reason, sizeof(reason));

		if (!err)
			layout->points[nr++] = point;
		else if (report_refused(layout, point, err, reason))
			return err;
	}
	layout->nr_points = nr;
	return 0;
}

static int add_event(struct perf_bpf_layout *layout, struct perf_bpf_keeper *keeper)
{
	bool user = layout->prog->pev.uprobes;
	struct added_event *event;
	int fd, err;

	err = find_free_name(layout, keeper);
	if (err)
		return err;
	event = &keeper->events[keeper->nr];
	event->user = user;
	scnprintf(event->command, sizeof(event->command), "-:%s/%s", PERF_BPF_EVENT_GROUP,
		  layout->event);
	WRITE_ONCE(keeper->nr, keeper->nr + 1);
	fd = probe_file__open(PF_FL_RW | (user ? PF_FL_UPROBE : 0));
	if (fd < 0)
		return fd;
	err = add_points(layout, fd);
	close(fd);
	return err;
}

/* Layouts without a point go, and what is skipped is told. */
static int count_points(const struct perf_bpf_object *object, struct perf_bpf_prog *prog)
{
	int nr_points = 0, nr = 0;

	for (int i = 0; i < prog->nr_layouts; i++) {
		struct perf_bpf_layout *layout = prog->layouts[i];

		if (layout->nr_points) {
			nr_points += layout->nr_points;
			prog->layouts[nr++] = layout;
		} else {
			perf_bpf_layout__delete(layout);
		}
	}
	prog->nr_layouts = nr;
	if (nr_points == prog->pev.ntevs)
		return 0;
	perf_bpf_prog__err(object, prog, "%d of %d points are skipped; perf probe --bpf says more",
			   prog->pev.ntevs - nr_points, prog->pev.ntevs);
	return nr_points ? 0 : -ENODATA;
}

static int add_events_of_prog(struct perf_bpf_object *object, struct perf_bpf_prog *prog)
{
	int err = 0;

	for (int i = 0; i < prog->nr_layouts && !err; i++) {
		prog->layouts[i]->object = object;
		prog->layouts[i]->prog = prog;
		err = add_event(prog->layouts[i], object->keeper);
	}
	return err ?: count_points(object, prog);
}

/**
 * perf_bpf_object__add_events - Create a probe event for each layout
 * @object: after perf_bpf_object__find_points()
 *
 * The caller creates evsels for the events, and puts @object behind that.
 *
 * Return: 0 or -errno, with a message printed.
 */
int perf_bpf_object__add_events(struct perf_bpf_object *object)
{
	int lock = lock_events();
	int err;

	object->users = 1;
	if (lock < 0)
		return lock;
	err = start_keeper(object);
	for (int i = 0; i < object->nr_progs && !err; i++)
		err = add_events_of_prog(object, &object->progs[i]);
	/* The keeper may not have closed it yet. */
	flock(lock, LOCK_UN);
	close(lock);
	return err;
}

#endif /* HAVE_BPF_OBJECT_EVENTS */
