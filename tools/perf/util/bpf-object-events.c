// SPDX-License-Identifier: GPL-2.0
/*
 * The probe events and instances of a BPF object file while it is recorded.
 *
 *	-e FILE.bpf.o is parsed		a probe event in tracefs for each layout
 *					(perf_bpf_object__add_events())
 *	the events are open		the programs are loaded, one instance for each
 *					layout, and attached to its event
 *					(perf_bpf_layout__attach())
 *	an event is enabled		the gate is opened (perf_bpf_layout__enable())
 *	the last event is deleted	the instances are closed and the probe events removed
 *
 * A program on a probe event runs from when it is attached, and in every task, so each
 * instance begins with the gate: instructions that end it unless the recording is enabled
 * and the current task part of it (bpf_skel/probe_gate.bpf.c).
 *
 * All probe events are in one group, which belongs to perf. Those that a killed perf left
 * behind are removed by the next one. What another perf still uses is marked by a lock: a
 * read lock of the tracefs directory, of the byte whose number is the event's id. That the
 * kernel does not remove an event that is open is not enough: mainline removes all of its
 * probes but one. Perfs that create events wait for each other (flock() of the directory).
 * When perf is ended by one of handled_signals and does not handle it, or exits somewhere
 * else, it removes its events as well; only functions that are safe in a signal handler
 * are called for that.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <internal/xyarray.h>
#include <linux/filter.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <perf/threadmap.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <api/fs/tracing_path.h>
#include "bpf-object.h"
#include "bpf-object-events.h"
#include "bpf_skel/probe_gate.skel.h"
#include "debug.h"
#include "evsel.h"
#include "perf-sys.h"
#include "probe-file.h"
#include "strlist.h"
#include "tp_pmu.h"

#ifdef HAVE_BPF_OBJECT_EVENTS

#ifndef PIDFD_THREAD
#define PIDFD_THREAD	O_EXCL	/* since Linux 6.9 */
#endif

/* The same number on all architectures; perf's own headers may not have it */
#ifndef __NR_pidfd_open
#define __NR_pidfd_open	434
#endif
#ifndef __NR_close_range
#define __NR_close_range 436
#endif

#define GATE_INSNS	20
#define LOCK_SECONDS	30

/* Probe events in tracefs */

struct added_event {
	bool	user;
	char	command[128];	/* that removes it */
};

/* What remove_and_end() uses, a signal handler */
static struct {
	struct added_event	*events;
	int			nr;
	pid_t			owner;	/* not in the workload before it runs */
	char			*files[2];	/* kprobe_events, uprobe_events */
	int			lock;		/* of those that create events */
	int			in_use;		/* has the locks of these events */
} added = { .lock = -1, .in_use = -1 };

static const int handled_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };

static void block_handled_signals(sigset_t *old)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(handled_signals); i++)
		sigaddset(&set, handled_signals[i]);
	sigprocmask(SIG_BLOCK, &set, old);
}

static int write_command(bool user, const char *command)
{
	int fd = open(added.files[user], O_WRONLY | O_APPEND | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, command, strlen(command)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/*
 * "START-END ... anon_inode:[perf_event]" of /proc/self/maps. Another thread may be
 * reading the ring buffer, and finds zeros.
 */
static void unmap_if_event(const char *line)
{
	unsigned long start, end;
	char *rest;

	if (!strstr(line, "[perf_event]"))
		return;
	start = strtoul(line, &rest, 16);
	end = strtoul(rest + 1, NULL, 16);
	mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void unmap_events(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char line[512], some[4096];
	size_t len = 0;
	ssize_t nr;

	while ((nr = read(fd, some, sizeof(some))) > 0) {
		for (ssize_t i = 0; i < nr; i++) {
			if (some[i] != '\n') {
				len += len < sizeof(line) - 1;
				line[len - 1] = some[i];
				continue;
			}
			line[len] = '\0';
			len = 0;
			unmap_if_event(line);
		}
	}
	close(fd);
}

/* An event that is open or mapped cannot be removed, and perf is about to end. */
static void release_events(void)
{
	unmap_events();
	if (syscall(__NR_close_range, 3, ~0U, 0))
		for (int fd = 3; fd < 65536; fd++)
			close(fd);
}

/* Return: whether one is left because it is open. */
static bool remove_closed_events(void)
{
	bool busy = false;

	for (int i = 0; i < added.nr; i++)
		busy |= write_command(added.events[i].user, added.events[i].command) == -EBUSY;
	return busy;
}

/* Another thread may be in poll() for them, which takes up to 100 ms. */
static void remove_released_events(void)
{
	const struct timespec delay = { .tv_nsec = 20 * NSEC_PER_MSEC };

	for (int i = 0; remove_closed_events() && i < 50; i++)
		nanosleep(&delay, NULL);
}

static void remove_at_exit(void)
{
	if (!added.nr || added.owner != getpid())
		return;
	if (remove_closed_events()) {
		fflush(NULL);
		release_events();
		remove_released_events();
	}
	added.nr = 0;
}

/* Calls only what is safe in a signal handler. */
static void remove_and_end(int sig)
{
	if (added.nr && added.owner == getpid()) {
		release_events();
		remove_released_events();
		added.nr = 0;
	}
	signal(sig, SIG_DFL);
	raise(sig);
}

/* Until the tool handles these signals itself */
static void handle_signals(void)
{
	struct sigaction act, remove = { .sa_handler = remove_and_end };

	for (size_t i = 0; i < ARRAY_SIZE(handled_signals); i++) {
		if (!sigaction(handled_signals[i], NULL, &act) && act.sa_handler == SIG_DFL)
			sigaction(handled_signals[i], &remove, NULL);
	}
}

static int prepare_files(void)
{
	if (added.owner)
		return 0;
	if (!tracing_path_mount()) {
		pr_err("tracefs is not mounted, which probe events need: mount -t tracefs nodev /sys/kernel/tracing\n");
		return -ENOENT;
	}
	added.files[0] = get_tracing_file("kprobe_events");
	added.files[1] = get_tracing_file("uprobe_events");
	if (!added.files[0] || !added.files[1])
		return -ENOMEM;
	added.owner = getpid();
	atexit(remove_at_exit);
	handle_signals();
	return 0;
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

/* Other perfs wait here. */
static int lock_events(void)
{
	const char *path = tracing_path_mount();
	int fd, err;

	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = fd < 0 ? -errno : wait_for_lock(fd, path);
	if (!err) {
		added.lock = fd;
		return 0;
	}
	pr_err("%s cannot be locked: %s%s\n", path, strerror(-err),
	       err == -EACCES ? "; probe events need root" : "");
	if (fd >= 0)
		close(fd);
	return err;
}

static void unlock_events(void)
{
	close(added.lock);
	added.lock = -1;
}

static struct flock lock_of_id(int id, short type)
{
	return (struct flock) { .l_type = type, .l_whence = SEEK_SET, .l_start = id, .l_len = 1 };
}

static int lock_id(int id)
{
	struct flock lock = lock_of_id(id, F_RDLCK);

	if (id < 0)
		return id;
	if (added.in_use < 0)
		added.in_use = open(tracing_path_mount(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return added.in_use < 0 || fcntl(added.in_use, F_OFD_SETLK, &lock) ? -errno : 0;
}

/* Other perfs see that it is in use until this one ends. Return: 0 or -errno. */
static int mark_in_use(const char *event)
{
	int err = lock_id(tp_pmu__id(PERF_BPF_EVENT_GROUP, event));

	if (err)
		pr_err("%s:%s cannot be locked: %s\n", PERF_BPF_EVENT_GROUP, event,
		       strerror(-err));
	return err;
}

static bool is_in_use(const char *event)
{
	int id = tp_pmu__id(PERF_BPF_EVENT_GROUP, event);
	struct flock lock = lock_of_id(id, F_WRLCK);

	return id < 0 || fcntl(added.lock, F_OFD_GETLK, &lock) || lock.l_type != F_UNLCK;
}

static int remember_event(const char *event, bool user)
{
	struct added_event *events;
	sigset_t old;
	int err = 0;

	block_handled_signals(&old);
	events = reallocarray(added.events, added.nr + 1, sizeof(*events));
	if (events) {
		added.events = events;
		events[added.nr].user = user;
		scnprintf(events[added.nr].command, sizeof(events->command), "-:%s/%s",
			  PERF_BPF_EVENT_GROUP, event);
		added.nr++;
	} else {
		err = -ENOMEM;
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return err;
}

static struct added_event *find_event(const char *event)
{
	for (int i = 0; i < added.nr; i++) {
		if (!strcmp(strchr(added.events[i].command, '/') + 1, event))
			return &added.events[i];
	}
	return NULL;
}

static void remove_event(const char *event)
{
	struct added_event *found;
	sigset_t old;
	int err = 0;

	block_handled_signals(&old);
	found = find_event(event);
	if (found) {
		err = write_command(found->user, found->command);
		*found = added.events[--added.nr];
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	/* The kernel may have refused to create it */
	if (err && err != -ENOENT)
		pr_warning("%s:%s cannot be removed: %s\n", PERF_BPF_EVENT_GROUP, event,
			   strerror(-err));
}

/* The names of the group's events in a file, without the group. */
static struct strlist *list_group(bool user)
{
	int fd = open(added.files[user], O_RDONLY | O_CLOEXEC);
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

/* What a killed perf left */
static void remove_stale_events(bool user)
{
	struct strlist *names = list_group(user);
	struct str_node *ent;
	char command[128];

	if (!names)
		return;
	strlist__for_each_entry(ent, names) {
		if (is_in_use(ent->s))
			continue;
		scnprintf(command, sizeof(command), "-:%s/%s", PERF_BPF_EVENT_GROUP, ent->s);
		if (!write_command(user, command))
			pr_debug("Removed %s:%s, which a perf that was killed left behind\n",
				 PERF_BPF_EVENT_GROUP, ent->s);
	}
	strlist__delete(names);
}

/* Another perf, or another -e of this one, may have an event of the same name. */
static int find_free_name(struct perf_bpf_layout *layout)
{
	struct strlist *kernel = list_group(false), *user = list_group(true);
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

/* Return: 0 or -errno of the kernel. */
static int write_point(struct probe_trace_event *point, int fd)
{
	char *command = synthesize_probe_trace_command(point);
	int err = 0;

	if (!command)
		return -ENOMEM;
	if (write(fd, command, strlen(command)) < 0)
		err = -errno;
	free(command);
	return err;
}

/* Return: 0 if the program may run without the point. */
static int report_refused(const struct perf_bpf_layout *layout,
			  const struct probe_trace_event *point, int err)
{
	bool partial = layout->prog->partial && err != -ENOMEM;
	char at[256];

	perf_bpf_point__scnprintf(point, at, sizeof(at));
	perf_bpf_prog__err(layout->object, layout->prog,
			   "the kernel refuses a probe at %s: %s%s", at, strerror(-err),
			   partial ? ", skipped" :
			   "; to probe the others, begin the section with partial=yes;");
	return partial ? 0 : err;
}

/* Keeps those that the kernel takes. */
static int add_points(struct perf_bpf_layout *layout, int fd)
{
	int nr = 0;

	for (int i = 0; i < layout->nr_points; i++) {
		struct probe_trace_event *point = layout->points[i];
		int err = write_point(point, fd);

		if (!err)
			layout->points[nr++] = point;
		else if (report_refused(layout, point, err))
			return err;
	}
	layout->nr_points = nr;
	return 0;
}

static int add_event(struct perf_bpf_layout *layout)
{
	bool user = layout->prog->pev.uprobes;
	int fd, err;

	err = find_free_name(layout);
	if (!err)
		err = remember_event(layout->event, user);
	if (err)
		return err;
	layout->added = true;
	fd = probe_file__open(PF_FL_RW | (user ? PF_FL_UPROBE : 0));
	if (fd < 0)
		return fd;
	err = add_points(layout, fd);
	close(fd);
	if (err || !layout->nr_points)
		return err;
	return mark_in_use(layout->event);
}

static void remove_layout(const struct perf_bpf_layout *layout)
{
	if (!layout->added)
		return;
	if (layout->event_fd >= 0)
		close(layout->event_fd);
	remove_event(layout->event);
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
			remove_layout(layout);
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
		prog->layouts[i]->event_fd = -1;
		err = add_event(prog->layouts[i]);
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
	int err = prepare_files();

	object->users = 1;
	if (!err)
		err = lock_events();
	if (err)
		return err;
	remove_stale_events(false);
	remove_stale_events(true);
	for (int i = 0; i < object->nr_progs && !err; i++)
		err = add_events_of_prog(object, &object->progs[i]);
	unlock_events();
	return err;
}

static void report_missed_tasks(const struct perf_bpf_object *object)
{
	if (object->gate && object->loaded && object->gate->bss->missed)
		pr_warning("%s: programs did not run in %u new tasks and their children: no memory to mark them\n",
			   object->path, object->gate->bss->missed);
}

/**
 * perf_bpf_object__put - Drop a reference to an object with events
 * @object: after perf_bpf_object__add_events()
 *
 * The last one closes the instances and the object and removes the probe events.
 */
void perf_bpf_object__put(struct perf_bpf_object *object)
{
	if (--object->users)
		return;
	report_missed_tasks(object);
	probe_gate_bpf__destroy(object->gate);
	for (int i = 0; i < object->nr_progs; i++) {
		bpf_instances__free(object->progs[i].instances);
		for (int j = 0; j < object->progs[i].nr_layouts; j++)
			remove_layout(object->progs[i].layouts[j]);
	}
	perf_bpf_object__close(object);
}

struct perf_bpf_layout *perf_bpf_layout__get(struct perf_bpf_layout *layout)
{
	if (layout)
		layout->object->users++;
	return layout;
}

void perf_bpf_layout__put(struct perf_bpf_layout *layout)
{
	if (layout)
		perf_bpf_object__put(layout->object);
}

/* The gate */

static bool has_tasks(struct evsel *evsel)
{
	return perf_thread_map__pid(evsel->core.threads, 0) != -1;
}

static int mark_task(struct probe_gate_bpf *gate, pid_t pid)
{
	__u8 recorded = 1;
	int pidfd = syscall(__NR_pidfd_open, pid, PIDFD_THREAD);
	int err;

	/* Before Linux 6.9 for the first thread of a process only */
	if (pidfd < 0 && errno == EINVAL)
		pidfd = syscall(__NR_pidfd_open, pid, 0);
	if (pidfd < 0)
		return errno == ESRCH ? 0 : -errno;
	err = bpf_map__update_elem(gate->maps.recorded_tasks, &pidfd, sizeof(pidfd),
				   &recorded, sizeof(recorded), BPF_ANY);
	close(pidfd);
	return err == -ENOENT || err == -ESRCH ? 0 : err;
}

/* perf stat -r has another task in each run. */
static int mark_tasks(struct perf_bpf_object *object, struct evsel *evsel)
{
	int nr = perf_thread_map__nr(evsel->core.threads);

	if (!has_tasks(evsel) || object->marked == perf_thread_map__pid(evsel->core.threads, 0))
		return 0;
	object->marked = perf_thread_map__pid(evsel->core.threads, 0);
	for (int i = 0; i < nr; i++) {
		pid_t pid = perf_thread_map__pid(evsel->core.threads, i);
		int err = mark_task(object->gate, pid);

		if (err) {
			pr_err("%s: task %d cannot be limited to: %s%s\n", object->path, pid,
			       strerror(-err), err == -EINVAL ?
			       "; threads need Linux 6.9 or later, use -a" : "");
			return err;
		}
	}
	return 0;
}

static int load_gate(struct perf_bpf_object *object, struct evsel *evsel)
{
	bool inherit = has_tasks(evsel) && evsel->core.attr.inherit;
	int err;

	object->gate = probe_gate_bpf__open();
	err = object->gate ? 0 : -errno;
	if (!err) {
		bpf_program__set_autoload(object->gate->progs.mark_child, inherit);
		err = probe_gate_bpf__load(object->gate);
	}
	/* Before the tasks are marked, so that none of their children is missed */
	if (!err && inherit)
		err = probe_gate_bpf__attach(object->gate);
	if (err)
		pr_err("%s: cannot load what limits programs to the recording: %s; it needs Linux 5.12 with BTF\n",
		       object->path, strerror(-err));
	return err;
}

static int copy_insns(struct bpf_insn *to, const struct bpf_insn *from, int cnt)
{
	memcpy(to, from, cnt * sizeof(*to));
	return cnt;
}

/* Instructions that end the program unless it may run. Return: how many. */
static int make_gate(const struct perf_bpf_object *object, bool tasks, struct bpf_insn *insns)
{
	const struct bpf_insn enabled[] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
		BPF_LD_IMM64_RAW_FULL(BPF_REG_1, BPF_PSEUDO_MAP_VALUE, 0, 0,
				      bpf_map__fd(object->gate->maps.bss), 0),
		BPF_LDX_MEM(BPF_W, BPF_REG_1, BPF_REG_1,
			    offsetof(struct probe_gate_bpf__bss, enabled)),
	};
	const struct bpf_insn in_all_tasks[] = {
		BPF_JMP_IMM(BPF_JNE, BPF_REG_1, 0, 2),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	const struct bpf_insn in_recorded_tasks[] = {
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_1, 0, 8),
		BPF_EMIT_CALL(BPF_FUNC_get_current_task_btf),
		BPF_LD_IMM64_RAW_FULL(BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, 0,
				      bpf_map__fd(object->gate->maps.recorded_tasks), 0),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_0),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_EMIT_CALL(BPF_FUNC_task_storage_get),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 2),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int cnt = copy_insns(insns, enabled, ARRAY_SIZE(enabled));

	if (tasks)
		cnt += copy_insns(insns + cnt, in_recorded_tasks,
				  ARRAY_SIZE(in_recorded_tasks));
	else
		cnt += copy_insns(insns + cnt, in_all_tasks, ARRAY_SIZE(in_all_tasks));
	insns[cnt] = BPF_MOV64_REG(BPF_REG_1, BPF_REG_6);
	return cnt + 1;
}

/* Instances */

struct instance_maker {
	const struct perf_bpf_prog	*prog;
	struct bpf_insn			gate[GATE_INSNS];
	int				gate_cnt;
	struct bpf_insn			*insns;		/* of the instance that is made */
};

/* bpf_instance_prep_fn: the gate, the prologue, and the program as it is, named as its event. */
static int make_instance(const struct bpf_program *prog __maybe_unused, __u32 idx,
			 const struct bpf_insn *insns, size_t insn_cnt,
			 struct bpf_instance_code *code, void *ctx)
{
	struct instance_maker *maker = ctx;
	const struct perf_bpf_layout *layout = maker->prog->layouts[idx];
	const struct bpf_prologue *prologue = &layout->prologue;

	code->name = layout->event;
	code->prologue_cnt = maker->gate_cnt + prologue->cnt;
	code->insn_cnt = code->prologue_cnt + insn_cnt;
	free(maker->insns);
	maker->insns = calloc(code->insn_cnt, sizeof(*insns));
	if (!maker->insns)
		return -ENOMEM;
	copy_insns(maker->insns, maker->gate, maker->gate_cnt);
	copy_insns(maker->insns + maker->gate_cnt, prologue->insns, prologue->cnt);
	copy_insns(maker->insns + code->prologue_cnt, insns, insn_cnt);
	code->insns = maker->insns;
	return 0;
}

static int instantiate(const struct perf_bpf_object *object, struct perf_bpf_prog *prog,
		       struct instance_maker *maker)
{
	LIBBPF_OPTS(bpf_instances_opts, opts, .prep = make_instance, .ctx = maker);
	int err;

	maker->prog = prog;
	prog->instances = bpf_program__instantiate(prog->prog, prog->nr_layouts, &opts);
	if (prog->instances)
		return 0;
	err = -errno;
	perf_bpf_prog__err(object, prog, "cannot be loaded: %s; libbpf's messages say why",
			   strerror(-err));
	return err;
}

static int load_instances(struct perf_bpf_object *object, struct evsel *evsel)
{
	struct instance_maker maker = {};
	int err = bpf_object__prepare(object->obj);

	if (err) {
		pr_err("%s: cannot be prepared for loading: %s\n", object->path,
		       strerror(-err));
		return err;
	}
	maker.gate_cnt = make_gate(object, has_tasks(evsel), maker.gate);
	for (int i = 0; i < object->nr_progs && !err; i++)
		err = instantiate(object, &object->progs[i], &maker);
	free(maker.insns);
	return err ?: bpf_object__load(object->obj);
}

static int load(struct perf_bpf_object *object, struct evsel *evsel)
{
	int err;

	if (object->loaded)
		return mark_tasks(object, evsel);
	err = load_gate(object, evsel);
	if (!err)
		err = mark_tasks(object, evsel);
	if (!err)
		err = load_instances(object, evsel);
	object->loaded = !err;
	return err;
}

static int fd_of_instance(const struct perf_bpf_layout *layout)
{
	for (int i = 0; i < layout->prog->nr_layouts; i++) {
		if (layout->prog->layouts[i] == layout)
			return bpf_program__fd(bpf_instances__program(layout->prog->instances,
								      i));
	}
	return -ENOENT;
}

/* Has perf stat found out that the event is not supported? */
static bool is_open(struct evsel *evsel)
{
	struct xyarray *fds = evsel->core.fd;

	for (int cpu = 0; fds && cpu < xyarray__max_x(fds); cpu++) {
		for (int thread = 0; thread < xyarray__max_y(fds); thread++) {
			if (*(int *)xyarray__entry(fds, cpu, thread) >= 0)
				return true;
		}
	}
	return false;
}

/*
 * All events of a probe share its programs, so it is attached to one that is for nothing
 * else. With an event that is recorded, kernels up to 7.3 detach it as soon as a task ends
 * that has inherited the event. And it stays between two runs of perf stat -r.
 */
static int open_holder(const struct evsel *evsel)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = PERF_ATTR_SIZE_VER0,
		.config = evsel->core.attr.config,
		.sample_period = 1,
		.disabled = 1,
	};
	int fd = sys_perf_event_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Once: evsels are cloned for cgroups, and attached in each run of perf stat -r. */
static int attach(struct perf_bpf_layout *layout, const struct evsel *evsel)
{
	int fd;

	if (layout->event_fd >= 0)
		return 0;
	fd = open_holder(evsel);
	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, fd_of_instance(layout))) {
		int err = -errno;

		close(fd);
		return err;
	}
	layout->event_fd = fd;
	return 0;
}

/**
 * perf_bpf_layout__attach - Attach the instance of a layout to its event
 * @layout: of @evsel
 * @evsel: open and not enabled
 *
 * The first call for an object loads the instances of all its programs. They do not run
 * before perf_bpf_layout__enable().
 *
 * Return: 0 or -errno, with a message printed and the verifier's log.
 */
int perf_bpf_layout__attach(struct perf_bpf_layout *layout, struct evsel *evsel)
{
	int err;

	if (!is_open(evsel))
		return 0;
	err = load(layout->object, evsel);
	if (!err) {
		err = attach(layout, evsel);
		if (err)
			perf_bpf_prog__err(layout->object, layout->prog,
					   "cannot be attached to %s: %s",
					   evsel__name(evsel), strerror(-err));
	}
	/* Callers print it */
	errno = -err;
	return err;
}

/**
 * perf_bpf_layout__enable - Open or close the gate for an event
 * @layout: of an evsel, or NULL
 * @enable: before its events are enabled, or after they were disabled
 *
 * The programs of an object share a gate, which is open while one of them is enabled.
 */
void perf_bpf_layout__enable(struct perf_bpf_layout *layout, bool enable)
{
	struct perf_bpf_object *object;
	bool any = false;

	if (!layout || !layout->object->loaded)
		return;
	layout->enabled = enable;
	object = layout->object;
	for (int i = 0; i < object->nr_progs && !any; i++) {
		for (int j = 0; j < object->progs[i].nr_layouts && !any; j++)
			any = object->progs[i].layouts[j]->enabled;
	}
	WRITE_ONCE(object->gate->bss->enabled, any);
}

#endif /* HAVE_BPF_OBJECT_EVENTS */
