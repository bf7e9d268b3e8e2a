// SPDX-License-Identifier: GPL-2.0
/*
 * Programs of the user's for samples: perf record -e EVENT --bpf-prog FILE.bpf.o[:PROGRAM]
 *
 * The kernel runs the program for each sample of the event, and records the sample unless
 * the program returns 0. It is loaded once, whatever number of events it is for, so that
 * they share its maps.
 *
 * If the kernel supports PERF_BPF_F_ATTACH, it attaches the program when it opens the event,
 * and all children inherit it. Otherwise perf attaches it to the open event, which it
 * enables after that. An event has one program: with --filter it is the filter, which goes
 * on to this one (bpf-filter.c).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <internal/xyarray.h>
#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "bpf-sample-prog.h"
#include "bpf-variables.h"
#include "debug.h"
#include "evsel.h"
#include "perf_api_probe.h"
#include "pmu.h"

struct perf_bpf_sample_prog {
	char			*path;
	char			*name;		/* NULL: the only one of the file */
	const char		*values;	/* of its variables, NULL: none; behind path */
	struct bpf_object	*obj;
	struct bpf_program	*prog;
	bool			loaded;
	bool			reported;	/* its misses */
	int			users;
};

/* libbpf has errors of its own, as for a file that is not ELF. */
static const char *error_text(int err, char *buf, size_t size)
{
	libbpf_strerror(err, buf, size);
	return buf;
}

static bool is_for_samples(const struct bpf_program *prog)
{
	return bpf_program__type(prog) == BPF_PROG_TYPE_PERF_EVENT;
}

static bool has_name(const struct bpf_program *prog, const char *name)
{
	return !strcmp(bpf_program__name(prog), name) ||
	       !strcmp(bpf_program__section_name(prog), name);
}

static void list_programs(const struct perf_bpf_sample_prog *sp)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, sp->obj) {
		pr_err("  %s, SEC(\"%s\")%s\n", bpf_program__name(prog),
		       bpf_program__section_name(prog),
		       is_for_samples(prog) ? "" : ": not for perf events");
	}
}

/* libbpf fills in a map of programs when it loads them, so that all of them are needed. */
static bool has_tail_calls(const struct bpf_object *obj)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, obj) {
		if (bpf_map__type(map) == BPF_MAP_TYPE_PROG_ARRAY)
			return true;
	}
	return false;
}

/* The one that is named, or else the only one there is */
static int choose_program(struct perf_bpf_sample_prog *sp)
{
	bool load_all = has_tail_calls(sp->obj);
	struct bpf_program *prog;
	int nr = 0;

	bpf_object__for_each_program(prog, sp->obj) {
		bpf_program__set_autoload(prog, load_all && is_for_samples(prog));
		if (!is_for_samples(prog) || (sp->name && !has_name(prog, sp->name)))
			continue;
		sp->prog = prog;
		nr++;
	}
	if (nr == 1) {
		bpf_program__set_autoload(sp->prog, true);
		return 0;
	}
	if (nr)
		pr_err("%s: has %d such programs for perf events; name one of these, as in --bpf-prog %s:%s\n",
		       sp->path, nr, sp->path, bpf_program__name(sp->prog));
	else if (sp->name)
		pr_err("%s: has no program %s for perf events, but these:\n", sp->path, sp->name);
	else
		pr_err("%s: has no program for perf events; begin one with SEC(\"perf_event\")\n",
		       sp->path);
	list_programs(sp);
	return -ENOENT;
}

/* The first comma in front of VARIABLE= */
static char *find_values(char *arg)
{
	while ((arg = strchr(arg, ','))) {
		size_t len = 0;

		while (isalnum(arg[1 + len]) || arg[1 + len] == '_')
			len++;
		if (arg[1 + len] == '=')
			return arg;
		arg++;
	}
	return NULL;
}

/* "FILE[:PROGRAM][,VARIABLE=VALUE]...". A file's name may have a comma or a colon. */
static int parse_arg(struct perf_bpf_sample_prog *sp, const char *arg)
{
	char *comma, *colon;

	sp->path = strdup(arg);
	if (!sp->path)
		return -ENOMEM;
	comma = access(arg, F_OK) ? find_values(sp->path) : NULL;
	if (comma) {
		*comma = '\0';
		sp->values = comma + 1;
	}
	colon = strrchr(sp->path, ':');
	if (!colon || !access(sp->path, F_OK))
		return 0;
	*colon = '\0';
	if (!colon[1])
		return 0;
	sp->name = strdup(colon + 1);
	return sp->name ? 0 : -ENOMEM;
}

/**
 * perf_bpf_sample_prog__new - Read a program for samples
 * @arg: "FILE[:PROGRAM][,VARIABLE=VALUE]...", where PROGRAM is its function or its section
 *
 * Return: the program with one reference, or an ERR_PTR() with a message printed.
 */
struct perf_bpf_sample_prog *perf_bpf_sample_prog__new(const char *arg)
{
	struct perf_bpf_sample_prog *sp = zalloc(sizeof(*sp));
	char sbuf[STRERR_BUFSIZE];
	int err;

	if (!sp)
		return ERR_PTR(-ENOMEM);
	sp->users = 1;
	err = parse_arg(sp, arg);
	if (err)
		goto out;
	sp->obj = bpf_object__open(sp->path);
	if (!sp->obj) {
		err = -errno;
		pr_err("%s: cannot be opened as a BPF object file: %s\n", sp->path,
		       error_text(err, sbuf, sizeof(sbuf)));
		goto out;
	}
	err = choose_program(sp);
	if (!err && sp->values)
		err = bpf_variables__set(sp->obj, sp->path, sp->values);
	if (!err)
		return sp;
out:
	perf_bpf_sample_prog__put(sp);
	return ERR_PTR(err);
}

struct perf_bpf_sample_prog *perf_bpf_sample_prog__get(struct perf_bpf_sample_prog *sp)
{
	if (sp)
		sp->users++;
	return sp;
}

void perf_bpf_sample_prog__put(struct perf_bpf_sample_prog *sp)
{
	if (!sp || --sp->users)
		return;
	bpf_object__close(sp->obj);
	free(sp->path);
	free(sp->name);
	free(sp);
}

/* Tracepoints and probes run programs at each hit, and of other types. */
static bool is_tracing_event(const struct evsel *evsel)
{
	const struct perf_pmu *pmu = evsel__find_pmu(evsel);

	return evsel->core.attr.type == PERF_TYPE_TRACEPOINT ||
	       (pmu && (!strcmp(pmu->name, "kprobe") || !strcmp(pmu->name, "uprobe")));
}

/**
 * perf_bpf_sample_prog__set - Have a program run for the samples of an event
 * @sp: gets another reference
 * @evsel: not open yet
 *
 * Return: 0, or -EINVAL with a message printed.
 */
int perf_bpf_sample_prog__set(struct perf_bpf_sample_prog *sp, struct evsel *evsel)
{
	const char *event = evsel__name(evsel);

	if (is_tracing_event(evsel)) {
		pr_err("--bpf-prog %s: %s is a tracing event, which takes no such program. For one at a function or a line see -e FILE.bpf.o\n",
		       sp->path, event);
		return -EINVAL;
	}
	if (evsel->bpf_prog) {
		pr_err("--bpf-prog %s: %s has --bpf-prog %s already, and an event runs one program\n",
		       sp->path, event, evsel->bpf_prog->path);
		return -EINVAL;
	}
	evsel->bpf_prog = perf_bpf_sample_prog__get(sp);
	return 0;
}

static int load_object(struct perf_bpf_sample_prog *sp)
{
	char sbuf[STRERR_BUFSIZE];
	int err = bpf_object__load(sp->obj);

	if (err) {
		pr_err("--bpf-prog %s: %s cannot be loaded: %s; %s\n", sp->path,
		       bpf_program__name(sp->prog), error_text(err, sbuf, sizeof(sbuf)),
		       err == -EPERM ?
		       "loading programs takes root, or CAP_BPF and CAP_PERFMON" :
		       "libbpf's messages say why. Fields of the sample (ctx->data) need a kernel that has them");
		return err;
	}
	sp->loaded = true;
	return 0;
}

/**
 * perf_bpf_sample_prog__load - Load the program of an event, if it is not loaded yet
 * @evsel: with a program, and its final attributes
 *
 * Return: the program's file descriptor, or -errno with a message printed.
 */
int perf_bpf_sample_prog__load(struct evsel *evsel)
{
	struct perf_bpf_sample_prog *sp = evsel->bpf_prog;
	int err = sp->loaded ? 0 : load_object(sp);

	if (err)
		return err;
	bpf_sample_fields__check(sp->prog, evsel, sp->path);
	return bpf_program__fd(sp->prog);
}

/**
 * perf_bpf_sample_prog__attach_at_open - Let the kernel attach the program
 * @evsel: with a program, configured and not open yet
 *
 * On a kernel without PERF_BPF_F_ATTACH this only loads it. If the event takes no samples it
 * does nothing.
 *
 * Return: 0 or -errno, with a message printed.
 */
int perf_bpf_sample_prog__attach_at_open(struct evsel *evsel)
{
	struct perf_event_attr *attr = &evsel->core.attr;
	int fd;

	/* As those behind the leader of {...}:S */
	if (!attr->sample_period)
		return 0;
	fd = perf_bpf_sample_prog__load(evsel);
	if (fd < 0)
		return fd;
	if (perf_can_bpf_attach()) {
		attr->bpf_flags = PERF_BPF_F_ATTACH;
		attr->bpf_fd = fd;
	}
	return 0;
}

static int attach_to_open_event(struct evsel *evsel, int prog)
{
	struct xyarray *fds = evsel->core.fd;

	for (int cpu = 0; cpu < xyarray__max_x(fds); cpu++) {
		for (int thread = 0; thread < xyarray__max_y(fds); thread++) {
			int event = *(int *)xyarray__entry(fds, cpu, thread);
			int err;

			if (event < 0 || !ioctl(event, PERF_EVENT_IOC_SET_BPF, prog))
				continue;
			err = -errno;
			pr_err("--bpf-prog %s: cannot be attached to %s: %s\n",
			       evsel->bpf_prog->path, evsel__name(evsel), strerror(-err));
			return err;
		}
	}
	return 0;
}

/**
 * perf_bpf_sample_prog__attach - Attach the program unless the kernel has done it
 * @evsel: after perf_bpf_sample_prog__attach_at_open(), open and not enabled
 *
 * Return: 0 or -errno, with a message printed.
 */
int perf_bpf_sample_prog__attach(struct evsel *evsel)
{
	struct perf_event_attr *attr = &evsel->core.attr;

	if (!evsel->bpf_prog->loaded) {
		pr_err("--bpf-prog %s: %s takes no samples, so that no program would run\n",
		       evsel->bpf_prog->path, evsel__name(evsel));
		return -EINVAL;
	}
	if (!attr->sample_period)
		return 0;
	if (!attr->bpf_flags)
		return attach_to_open_event(evsel, bpf_program__fd(evsel->bpf_prog->prog));
	/* It is written to perf.data, where a file descriptor has no meaning */
	attr->bpf_flags = 0;
	attr->bpf_fd = 0;
	return 0;
}

/**
 * perf_bpf_sample_prog__object - The object of a program
 * @sp: the program
 *
 * Return: the object, or NULL if it is not loaded.
 */
const struct bpf_object *perf_bpf_sample_prog__object(const struct perf_bpf_sample_prog *sp)
{
	return sp->loaded ? sp->obj : NULL;
}

/**
 * perf_bpf_sample_prog__report_misses - Warn of samples without a run of the program
 * @sp: the program, or NULL
 *
 * Once, if several events have it. The kernel drops a sample that hits in BPF code, where
 * no other program may run. Older kernels do not count them.
 */
void perf_bpf_sample_prog__report_misses(struct perf_bpf_sample_prog *sp)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	if (!sp || !sp->loaded || sp->reported)
		return;
	sp->reported = true;
	if (bpf_prog_get_info_by_fd(bpf_program__fd(sp->prog), &info, &len) ||
	    !info.recursion_misses)
		return;
	pr_warning("--bpf-prog %s: dropped %llu samples in BPF code, where it cannot run\n",
		   sp->path, (unsigned long long)info.recursion_misses);
}
