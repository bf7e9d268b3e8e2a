/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_OBJECT_H
#define __PERF_BPF_OBJECT_H

#include <linux/bits.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>
#include "bpf-prologue.h"
#include "probe-event.h"

struct bpf_instances;
struct bpf_link;
struct bpf_object;
struct perf_bpf_keeper;
struct probe_gate_bpf;
struct bpf_program;
struct evsel;
struct perf_bpf_object;
struct perf_bpf_prog;
struct target;

/* Options of perf_bpf_object__fprintf() */
#define PERF_BPF_OBJECT_INSNS	BIT(0)	/* the instructions of the prologues */

#define PERF_BPF_EVENT_GROUP	"perf_bpf_probe"

/* Points with the same instructions to fetch the arguments: an event and an instance */
struct perf_bpf_layout {
	struct bpf_prologue		prologue;
	char				*event;		/* in PERF_BPF_EVENT_GROUP */
	struct probe_trace_event	**points;
	int				nr_points;

	/* While it is recorded */
	struct perf_bpf_object		*object;
	struct perf_bpf_prog		*prog;
	bool				enabled;
	int				event_fd;	/* has the instance, -1 before */
};

struct perf_bpf_skipped {
	struct probe_trace_event	*point;
	char				*why;
};

struct perf_bpf_prog {
	struct bpf_program	*prog;
	int			main_cnt;	/* instructions without those of subprograms */
	struct perf_probe_event	pev;		/* of the section; has the points */
	bool			partial;
	bool			no_inlines;
	int			max_points;
	struct perf_bpf_layout	**layouts;
	int			nr_layouts;
	struct perf_bpf_skipped	*skipped;
	int			nr_skipped;
	struct bpf_instances	*instances;	/* one for each layout */
};

struct perf_bpf_object {
	char			*path;
	struct bpf_object	*obj;
	struct perf_bpf_prog	*progs;
	int			nr_progs;

	/* While it is recorded */
	int			users;		/* events, and who opened it */
	struct perf_bpf_keeper	*keeper;	/* of its probe events */
	struct probe_gate_bpf	*gate;
	bool			in_tasks;	/* programs run in marked tasks, not in all */
	pid_t			marked;		/* the first of them */
	bool			loaded;
	struct bpf_link		**links;	/* of the programs that libbpf attaches */
	int			nr_links;
};

#ifdef HAVE_LIBBPF_SUPPORT
struct perf_bpf_object *perf_bpf_object__open(const char *path, const char *values);
int perf_bpf_object__find_points(struct perf_bpf_object *object);
int perf_bpf_object__fprintf(const struct perf_bpf_object *object, unsigned int flags,
			     FILE *fp);
void perf_bpf_object__close(struct perf_bpf_object *object);

void perf_bpf_prog__err(const struct perf_bpf_object *object,
			const struct perf_bpf_prog *prog, const char *fmt, ...)
	__printf(3, 4);
void perf_bpf_layout__delete(struct perf_bpf_layout *layout);
int perf_bpf_layout__set_event(struct perf_bpf_layout *layout, const char *event);
int perf_bpf_point__scnprintf(const struct probe_trace_event *point, char *buf, size_t size);
#endif

#endif /* __PERF_BPF_OBJECT_H */
