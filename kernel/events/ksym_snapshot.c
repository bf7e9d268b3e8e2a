// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_EVENT_IOC_KSYM_SNAPSHOT: replay existing dynamic kernel text to an event
 *
 * The events of a profiler get a record whenever dynamic text is registered or
 * unregistered. For text that existed before, the profiler calls this ioctl on
 * one of its events. It writes the same records to the ring buffer of that
 * event.
 *
 * kallsyms_dynamic writes live records for events of a CPU, and calls
 * snapshot_one(), under the same lock. Text is either registered when the walk gets
 * to it, and has its record here, or its live record is in the ring buffer of some
 * CPU. No text is missed, and the timestamps of its records are in order. An event
 * of a task may have both records for text that its task registers meanwhile.
 * The pid and tid of a record here are those of the worker.
 *
 * A ring buffer is written only on its own CPU. If it is full, the walk stops
 * before the record that did not fit, and user space gets the position as a
 * cursor: twice the registration number of the last symbol. The cursor is odd if
 * the KSYMBOL of that symbol was written, but not all that follows: its code, of
 * which the first bytes may have been written, or its BPF_EVENT.
 *
 * The code of a symbol is read under text_mutex. Those who patch text hold it from
 * their TEXT_POKE until the bytes are written, so the bytes here are never older than
 * a TEXT_POKE that comes before them.
 */

#include <linux/bpf.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/kallsyms_dynamic.h>
#include <linux/memory.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "internal.h"

/* Result of snapshot_one(): written, stop the walk before the next symbol */
#define SNAPSHOT_NEXT	1

struct ksym_snapshot {
	struct perf_event	*event;
	u64			seq;	/* last symbol with all records written */
	u64			begun;	/* last symbol with its KSYMBOL written */
	size_t			code_offset;	/* bytes of its code written */
	u32			emitted;
	int			ret;
	bool			killed;	/* nobody waits any more */
	struct work_struct	work;
	struct completion	done;
};

/* Return: the program whose main function is @sym, or NULL. */
static struct bpf_prog *snapshot_main_prog(const struct kallsym_dyn *sym)
{
	struct bpf_prog_aux *aux;

	if (!(sym->flags & KALLSYM_DYN_BPF_PROG))
		return NULL;

	aux = container_of(sym, struct bpf_prog_aux, ksym.sym);
	/* Subprograms have no id */
	return aux->event_id ? aux->prog : NULL;
}

static int snapshot_code(struct ksym_snapshot *snap, const struct kallsym_dyn *sym)
{
	int ret;

	if (!(sym->flags & KALLSYM_DYN_CODE))
		return 0;

	while (snap->code_offset < sym->end - sym->start) {
		ret = perf_event_code_replay(snap->event, sym, snap->code_offset);
		if (ret <= 0)
			return ret;
		snap->code_offset += ret;
		snap->emitted++;
	}
	return 0;
}

static int snapshot_one(const struct kallsym_dyn *sym, void *data)
{
	struct ksym_snapshot *snap = data;
	struct bpf_prog *prog;
	int ret;

	/*
	 * If the CPU goes offline, its queued work runs on another CPU, and some
	 * events are moved to another CPU.
	 */
	if (smp_processor_id() != READ_ONCE(snap->event->cpu))
		return -ENODEV;

	/* The event may have got the end of the text already, so not its begin */
	if (READ_ONCE(sym->task_ended) &&
	    snap->event->attach_state & PERF_ATTACH_TASK)
		return SNAPSHOT_NEXT;

	if (snap->begun != sym->seq) {
		ret = perf_event_ksymbol_replay(snap->event, sym);
		if (ret < 0)
			return ret;
		snap->emitted += ret;
		snap->begun = sym->seq;
		snap->code_offset = 0;
	}

	ret = snapshot_code(snap, sym);
	if (ret < 0)
		return ret;

	prog = snapshot_main_prog(sym);
	if (!prog)
		return SNAPSHOT_NEXT;

	ret = perf_event_bpf_replay(snap->event, prog);
	if (ret < 0)
		return ret;
	snap->emitted += ret;
	return SNAPSHOT_NEXT;
}

/* One symbol at a time, so that others get the locks and the CPU in between. */
static void snapshot_walk(struct work_struct *work)
{
	struct ksym_snapshot *snap = container_of(work, struct ksym_snapshot, work);
	bool with_code = snap->event->attr.ksymbol_code;

	do {
		if (with_code)
			mutex_lock(&text_mutex);
		snap->ret = kallsym_dyn_walk(&snap->seq, snapshot_one, snap);
		if (with_code)
			mutex_unlock(&text_mutex);
		cond_resched();
	} while (snap->ret == SNAPSHOT_NEXT && !READ_ONCE(snap->killed));

	complete(&snap->done);
}

/* Walk on @cpu. Unlike smp_call_on_cpu() this can be killed. */
static int snapshot_run(struct ksym_snapshot *snap, int cpu)
{
	if (!cpu_online(cpu))
		return -ENODEV;

	init_completion(&snap->done);
	INIT_WORK_ONSTACK(&snap->work, snapshot_walk);
	queue_work_on(cpu, system_percpu_wq, &snap->work);
	if (wait_for_completion_killable(&snap->done)) {
		/* The walk may not have begun; if it has, it ends with this symbol. */
		WRITE_ONCE(snap->killed, true);
		cancel_work_sync(&snap->work);
		snap->ret = -EINTR;
	}
	destroy_work_on_stack(&snap->work);
	return snap->ret;
}

static void snapshot_cursor_decode(struct ksym_snapshot *snap,
				   const struct perf_event_ksym_snapshot *arg)
{
	snap->begun = arg->cursor >> 1;
	snap->seq = snap->begun - (arg->cursor & 1);
	snap->code_offset = arg->code_offset;
}

static void snapshot_cursor_encode(const struct ksym_snapshot *snap,
				   struct perf_event_ksym_snapshot *arg)
{
	bool within = snap->begun > snap->seq;

	arg->cursor = within ? snap->begun << 1 | 1 : snap->seq << 1;
	arg->code_offset = within ? snap->code_offset : 0;
}

/* A ring buffer in overwrite mode never gets full, so records could be lost. */
static int snapshot_check_ring(struct perf_event *event)
{
	struct perf_buffer *rb;

	guard(rcu)();
	rb = rcu_dereference(event->rb);
	if (!rb)
		return -ENOBUFS;
	return rb->paused || rb->overwrite ? -EBUSY : 0;
}

static int snapshot_check_event(struct perf_event *event)
{
	if (READ_ONCE(event->state) <= PERF_EVENT_STATE_REVOKED)
		return -ENODEV;
	/* perf_event_open() clears the bits if it may not profile the kernel */
	if (!perf_event_wants_ksymbols(event))
		return perf_allow_kernel() ?: -EOPNOTSUPP;
	if (READ_ONCE(event->cpu) < 0)
		return -ENXIO;
	/* The text of all tasks, for an event that was opened for one of them */
	if (event->attach_state & PERF_ATTACH_TASK && perf_allow_cpu())
		return -EACCES;
	return snapshot_check_ring(event);
}

/**
 * perf_event_ksym_snapshot() - handle PERF_EVENT_IOC_KSYM_SNAPSHOT
 * @event: the event; the caller holds a reference
 * @usnap: argument of the ioctl, both read and written
 * @size: its size in bytes, as user space knows it
 *
 * Waits for a worker on the CPU of the event. A fatal signal ends this.
 *
 * Context: Process, may sleep. Not under the mutex of the event's context, which
 * other users of the context would have to wait for.
 * Return: 0 or -errno, see &struct perf_event_ksym_snapshot.
 */
long perf_event_ksym_snapshot(struct perf_event *event,
			      struct perf_event_ksym_snapshot __user *usnap,
			      size_t size)
{
	struct ksym_snapshot snap = { .event = event };
	struct perf_event_ksym_snapshot arg;
	int ret;

	if (size < PERF_KSYM_SNAPSHOT_SIZE_VER0)
		return -EINVAL;
	ret = copy_struct_from_user(&arg, sizeof(arg), usnap, size);
	if (ret)
		return ret;
	if (arg.flags || arg.cursor == 1)
		return -EINVAL;
	ret = snapshot_check_event(event);
	if (ret)
		return ret;

	snapshot_cursor_decode(&snap, &arg);
	ret = snapshot_run(&snap, READ_ONCE(event->cpu));

	snapshot_cursor_encode(&snap, &arg);
	arg.emitted = snap.emitted;
	arg.lost = min_t(u64, atomic64_read(&event->lost_samples), U32_MAX);
	if (copy_to_user(usnap, &arg, min(size, sizeof(arg))))
		return -EFAULT;

	return ret;
}
