// SPDX-License-Identifier: GPL-2.0
/*
 * The events and instances of a BPF object file while it is recorded.
 *
 *	-e FILE.bpf.o is parsed		a probe event in tracefs for each layout
 *					(bpf-object-tracefs.c)
 *	an event is about to be opened	the tasks of the recording are marked, and so are their
 *					children from then on (perf_bpf_layout__prepare())
 *	the events are open		the programs are loaded, one instance for each
 *					layout, and attached (perf_bpf_layout__attach())
 *	an event is enabled		the gate is opened (bpf-object-gate.c)
 *	the last event is deleted	the instances are closed and the probe events removed
 *
 * An instance is the gate, the prologue of its layout (bpf-prologue.c), and the program.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "bpf-object.h"
#include "bpf-object-events.h"
#include "debug.h"
#include "evsel.h"
#include "perf-sys.h"

#ifdef HAVE_BPF_OBJECT_EVENTS

/* The kernel runs no program on a kprobe while another BPF program runs on the CPU. */
static void report_misses(const struct perf_bpf_object *object, const struct perf_bpf_prog *prog)
{
	u64 misses = 0;

	for (int i = 0; prog->instances && i < prog->nr_layouts; i++) {
		const struct bpf_program *instance = bpf_instances__program(prog->instances, i);
		struct bpf_prog_info info = {};
		__u32 len = sizeof(info);

		if (!bpf_prog_get_info_by_fd(bpf_program__fd(instance), &info, &len))
			misses += info.recursion_misses;
	}
	if (misses)
		pr_warning("%s: %s: %" PRIu64 " hits have no sample, as other BPF code ran\n",
			   object->path, bpf_program__name(prog->prog), misses);
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
	for (int i = 0; i < object->nr_links; i++)
		bpf_link__destroy(object->links[i]);
	free(object->links);
	perf_bpf_object__put_gate(object);
	for (int i = 0; i < object->nr_progs; i++) {
		report_misses(object, &object->progs[i]);
		bpf_instances__free(object->progs[i].instances);
		for (int j = 0; j < object->progs[i].nr_layouts; j++) {
			if (object->progs[i].layouts[j]->event_fd >= 0)
				close(object->progs[i].layouts[j]->event_fd);
		}
	}
	perf_bpf_object__remove_events(object);
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

struct instance_maker {
	const struct perf_bpf_prog	*prog;
	const struct btf		*btf;
	struct bpf_insn			gate[PERF_BPF_GATE_INSNS];
	int				gate_cnt;
	bool				sleepable;
	struct bpf_insn			*insns;		/* of the instance that is made */
};

/*
 * The kernel looks at bit 0 of what a program on a probe returns, and a sample is to be
 * recorded unless that is 0. So each exit of the program, but not of its subprograms,
 * becomes a jump to these instructions, which are in front of it.
 */
static const struct bpf_insn return_0_or_1[] = {
	BPF_JMP_A(3),
	BPF_JMP32_IMM(BPF_JEQ, BPF_REG_0, 0, 1),
	BPF_MOV64_IMM(BPF_REG_0, 1),
	BPF_EXIT_INSN(),
};

/* long, not int, of which 32 bits of the register are what is returned */
static bool returns_64_bits(const struct bpf_program *prog, const struct btf *btf)
{
	int id = btf ? btf__find_by_name_kind(btf, bpf_program__name(prog), BTF_KIND_FUNC) : -1;
	const struct btf_type *func = id < 0 ? NULL : btf__type_by_id(btf, id);

	return func && btf__resolve_size(btf, btf__type_by_id(btf, func->type)->type) == 8;
}

/* @insns: @cnt of the program, with return_0_or_1 in front of @insns[0] */
static void redirect_exits(struct bpf_insn *insns, int cnt)
{
	for (int i = 0; i < cnt; i++) {
		/* back to behind the first one */
		int off = -i - (int)ARRAY_SIZE(return_0_or_1);

		if (insns[i].code != (BPF_JMP | BPF_EXIT))
			continue;
		/* since Linux 6.6, which programs that long need here */
		if (off < INT16_MIN)
			insns[i] = BPF_JMP32_A(off);
		else
			insns[i] = BPF_JMP_A(off);
	}
}

static bool reads_memory(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL) &&
	       (insn->imm == BPF_FUNC_probe_read || insn->imm == BPF_FUNC_probe_read_user);
}

/* As a probe event does: a page that is not there is read from the file or from swap. */
static void read_with_faults(struct bpf_insn *insns, int cnt)
{
	for (int i = 0; i < cnt; i++) {
		if (reads_memory(&insns[i]))
			insns[i].imm = BPF_FUNC_copy_from_user;
	}
}

static struct bpf_insn *append_insns(struct bpf_insn *to, const struct bpf_insn *from, int cnt)
{
	memcpy(to, from, cnt * sizeof(*to));
	return to + cnt;
}

/* bpf_instance_prep_fn: the gate, the prologue, and the program, named as its event. */
static int make_instance(const struct bpf_program *prog __maybe_unused, __u32 idx,
			 const struct bpf_insn *insns, size_t insn_cnt,
			 struct bpf_instance_code *code, void *ctx)
{
	struct instance_maker *maker = ctx;
	const struct perf_bpf_layout *layout = maker->prog->layouts[idx];
	const struct bpf_prologue *prologue = &layout->prologue;
	struct bpf_insn *end;

	code->name = layout->event;
	code->prologue_cnt = maker->gate_cnt + prologue->cnt + ARRAY_SIZE(return_0_or_1);
	code->insn_cnt = code->prologue_cnt + insn_cnt;
	free(maker->insns);
	maker->insns = calloc(code->insn_cnt, sizeof(*insns));
	if (!maker->insns)
		return -ENOMEM;
	end = append_insns(maker->insns, maker->gate, maker->gate_cnt);
	end = append_insns(end, prologue->insns, prologue->cnt);
	if (maker->sleepable)
		read_with_faults(end - prologue->cnt, prologue->cnt);
	end = append_insns(end, return_0_or_1, ARRAY_SIZE(return_0_or_1));
	if (returns_64_bits(maker->prog->prog, maker->btf))
		end[-3] = BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 1);
	append_insns(end, insns, insn_cnt);
	redirect_exits(end, maker->prog->main_cnt);
	code->insns = maker->insns;
	return 0;
}

static bool reads_user_memory(const struct perf_bpf_prog *prog)
{
	for (int i = 0; prog->pev.uprobes && i < prog->nr_layouts; i++) {
		const struct bpf_prologue *prologue = &prog->layouts[i]->prologue;

		for (int j = 0; j < prologue->cnt; j++) {
			if (reads_memory(&prologue->insns[j]))
				return true;
		}
	}
	return false;
}

static int make_instances(struct perf_bpf_prog *prog, struct instance_maker *maker)
{
	LIBBPF_OPTS(bpf_instances_opts, opts, .prep = make_instance, .ctx = maker);

	maker->prog = prog;
	prog->instances = bpf_program__instantiate(prog->prog, prog->nr_layouts, &opts);
	return prog->instances ? 0 : -errno;
}

/*
 * Since Linux 6.0 a program on a uprobe may sleep, and read pages that are not there. It may
 * not use all maps and helpers then: one that does is loaded as others are.
 */
static int make_sleepable(struct perf_bpf_prog *prog, struct instance_maker *maker)
{
	__u32 flags = bpf_program__flags(prog->prog);
	libbpf_print_fn_t print;
	int err;

	if (!reads_user_memory(prog))
		return -EOPNOTSUPP;
	err = bpf_program__set_flags(prog->prog, flags | BPF_F_SLEEPABLE);
	if (err)
		return err;
	print = libbpf_set_print(NULL);
	maker->sleepable = true;
	err = make_instances(prog, maker);
	maker->sleepable = false;
	libbpf_set_print(print);
	if (err) {
		bpf_program__set_flags(prog->prog, flags);
		pr_debug("%s cannot sleep (%s): memory in pages that are not there is not read\n",
			 bpf_program__name(prog->prog), strerror(-err));
	}
	return err;
}

static int instantiate(const struct perf_bpf_object *object, struct perf_bpf_prog *prog,
		       struct instance_maker *maker)
{
	int err = make_sleepable(prog, maker);

	if (err)
		err = make_instances(prog, maker);
	/* not as it is, without a prologue */
	if (!err)
		return bpf_program__set_autoload(prog->prog, false);
	perf_bpf_prog__err(object, prog, "cannot be loaded: %s; libbpf's messages say why",
			   strerror(-err));
	return err;
}

static bool is_at_probe_point(const struct perf_bpf_object *object,
			      const struct bpf_program *prog)
{
	for (int i = 0; i < object->nr_progs; i++) {
		if (object->progs[i].prog == prog)
			return true;
	}
	return false;
}

/* Not those that other programs call, nor SEC("perf_event"): libbpf does not know where. */
static int attach_other(struct perf_bpf_object *object, const struct bpf_program *prog)
{
	const char *section = bpf_program__section_name(prog);
	struct bpf_link *link = bpf_program__attach(prog);
	int err = link ? 0 : -errno;

	if (link)
		object->links[object->nr_links++] = link;
	if (err == -EOPNOTSUPP && !strchr(section, '/')) {
		pr_warning("%s: %s, SEC(\"%s\"), is not attached%s\n", object->path,
			   bpf_program__name(prog), section,
			   bpf_program__type(prog) != BPF_PROG_TYPE_PERF_EVENT ? "" :
			   "; for samples of an event, put it behind that: -e EVENT --bpf-prog FILE");
		return 0;
	}
	if (err)
		pr_err("%s: %s, SEC(\"%s\"), cannot be attached: %s\n", object->path,
		       bpf_program__name(prog), section, strerror(-err));
	return err;
}

/* What is beside them, for tracepoints and the like, runs until the events are deleted. */
static int attach_others(struct perf_bpf_object *object)
{
	struct bpf_program *prog;
	int nr = 0, err = 0;

	bpf_object__for_each_program(prog, object->obj)
		nr++;
	object->links = calloc(nr, sizeof(*object->links));
	if (!object->links)
		return -ENOMEM;
	bpf_object__for_each_program(prog, object->obj) {
		if (!err && !is_at_probe_point(object, prog) && bpf_program__autoload(prog))
			err = attach_other(object, prog);
	}
	return err;
}

static int load_instances(struct perf_bpf_object *object)
{
	struct instance_maker maker = { .btf = bpf_object__btf(object->obj), };
	int err = bpf_object__prepare(object->obj);

	if (err) {
		pr_err("%s: cannot be prepared for loading: %s\n", object->path,
		       strerror(-err));
		return err;
	}
	maker.gate_cnt = perf_bpf_object__make_gate(object, maker.gate);
	for (int i = 0; i < object->nr_progs && !err; i++)
		err = instantiate(object, &object->progs[i], &maker);
	free(maker.insns);
	if (!err)
		err = bpf_object__load(object->obj);
	if (!err)
		err = attach_others(object);
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
 * perf_bpf_layout__prepare - Mark the tasks that an event will be opened for
 * @layout: of @evsel, or NULL
 * @evsel: about to be opened
 * @threads: for these tasks, or for all
 *
 * Before that, so that no child inherits an event and is not marked.
 *
 * Return: 0, or -ECANCELED with a message printed.
 */
int perf_bpf_layout__prepare(struct perf_bpf_layout *layout, const struct evsel *evsel,
			     struct perf_thread_map *threads)
{
	int err;

	if (!layout)
		return 0;
	err = perf_bpf_object__load_gate(layout->object, threads, evsel->core.attr.inherit);
	if (!err)
		err = perf_bpf_object__mark_tasks(layout->object, threads);
	return err ? -ECANCELED : 0;
}

/**
 * perf_bpf_layout__attach - Attach the instance of a layout to its event
 * @layout: of @evsel, after perf_bpf_layout__prepare()
 * @evsel: not enabled
 *
 * The first call for an object loads the instances of all its programs. They do not run
 * before perf_bpf_layout__enable().
 *
 * Return: 0 or -errno, with a message printed and the verifier's log.
 */
int perf_bpf_layout__attach(struct perf_bpf_layout *layout, struct evsel *evsel)
{
	int err = layout->object->loaded ? 0 : load_instances(layout->object);

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

#endif /* HAVE_BPF_OBJECT_EVENTS */
