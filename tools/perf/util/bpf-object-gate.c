// SPDX-License-Identifier: GPL-2.0
/*
 * The gate of a BPF object file: instructions in front of its programs that end them
 * unless the recording is enabled and the current task is part of it. A program on a
 * probe event would run from when it is attached, and in every task.
 *
 * What they look at is in bpf_skel/probe_gate.bpf.c.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/compiler.h>
#include <linux/filter.h>
#include <linux/kernel.h>
#include <perf/threadmap.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "bpf-object.h"
#include "bpf-object-events.h"
#include "bpf_skel/probe_gate.skel.h"
#include "debug.h"

#ifdef HAVE_BPF_OBJECT_EVENTS

#ifndef PIDFD_THREAD
#define PIDFD_THREAD	O_EXCL	/* since Linux 6.9 */
#endif

/* The same number on all architectures; perf's own headers may not have it */
#ifndef __NR_pidfd_open
#define __NR_pidfd_open	434
#endif

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

/**
 * perf_bpf_object__mark_tasks - Let the programs of an object run in tasks
 * @object: with a gate
 * @threads: the tasks, or all
 *
 * A task that has ended is skipped. perf stat -r has another task in each run.
 *
 * Return: 0 or -errno, with a message printed.
 */
int perf_bpf_object__mark_tasks(struct perf_bpf_object *object, struct perf_thread_map *threads)
{
	pid_t first = perf_thread_map__pid(threads, 0);

	if (first == -1 || object->marked == first)
		return 0;
	object->marked = first;
	for (int i = 0; i < perf_thread_map__nr(threads); i++) {
		pid_t pid = perf_thread_map__pid(threads, i);
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

/**
 * perf_bpf_object__load_gate - Load what the gate of an object looks at
 * @object: of which each event has the same @threads and @inherit
 * @threads: the tasks that programs run in, or all
 * @inherit: whether children of marked tasks are marked, from now on
 *
 * Return: 0 or -errno, with a message printed.
 */
int perf_bpf_object__load_gate(struct perf_bpf_object *object, struct perf_thread_map *threads,
			       bool inherit)
{
	int err;

	if (object->gate)
		return 0;
	object->in_tasks = perf_thread_map__pid(threads, 0) != -1;
	inherit &= object->in_tasks;
	object->gate = probe_gate_bpf__open();
	err = object->gate ? 0 : -errno;
	if (!err) {
		bpf_program__set_autoload(object->gate->progs.mark_child, inherit);
		err = probe_gate_bpf__load(object->gate);
	}
	if (!err && inherit)
		err = probe_gate_bpf__attach(object->gate);
	if (err)
		pr_err("%s: cannot load what limits programs to the recording: %s; it needs Linux 5.12 with BTF\n",
		       object->path, strerror(-err));
	return err;
}

/**
 * perf_bpf_object__put_gate - Release the gate, and tell which tasks it has missed
 * @object: may have none
 */
void perf_bpf_object__put_gate(struct perf_bpf_object *object)
{
	if (object->gate && object->loaded && object->gate->bss->missed)
		pr_warning("%s: programs did not run in %u new tasks and their children: no memory to mark them\n",
			   object->path, object->gate->bss->missed);
	probe_gate_bpf__destroy(object->gate);
}

static int copy_insns(struct bpf_insn *to, const struct bpf_insn *from, int cnt)
{
	memcpy(to, from, cnt * sizeof(*to));
	return cnt;
}

/**
 * perf_bpf_object__make_gate - Make the instructions of the gate
 * @object: with a gate
 * @insns: PERF_BPF_GATE_INSNS of them; the context is in r1 before and after
 *
 * Return: how many.
 */
int perf_bpf_object__make_gate(const struct perf_bpf_object *object, struct bpf_insn *insns)
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

	if (object->in_tasks)
		cnt += copy_insns(insns + cnt, in_recorded_tasks,
				  ARRAY_SIZE(in_recorded_tasks));
	else
		cnt += copy_insns(insns + cnt, in_all_tasks, ARRAY_SIZE(in_all_tasks));
	insns[cnt] = BPF_MOV64_REG(BPF_REG_1, BPF_REG_6);
	return cnt + 1;
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
