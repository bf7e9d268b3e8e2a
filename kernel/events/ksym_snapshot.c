// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_EVENT_IOC_KSYM_SNAPSHOT: replay existing dynamic kernel text to an event
 *
 * The events of a profiler get a record whenever dynamic text is registered or
 * unregistered. For text that existed before, the profiler calls this ioctl on
 * one of its events. It writes the same records to the ring buffer of that
 * event.
 *
 * kallsyms_dynamic writes live records and calls snapshot_one() under the same
 * lock. Text is either registered when the walk gets to it, and has its record
 * here, or its live record is in the ring buffer of some CPU. No text is missed,
 * and the timestamps of its records are in order.
 *
 * A ring buffer is written only on its own CPU. If it is full, the walk stops
 * before the symbol that did not fit, and user space gets the position as a
 * cursor: twice the registration number of the last symbol. The cursor is odd if
 * the KSYMBOL of that symbol was written, but its BPF_EVENT was not.
 */

#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/kallsyms_dynamic.h>
#include <linux/perf_event.h>
#include <linux/smp.h>
#include <linux/uaccess.h>

#include "internal.h"

struct ksym_snapshot {
	struct perf_event	*event;
	u64			seq;	/* last symbol with all records written */
	u64			begun;	/* last symbol with its KSYMBOL written */
	u32			emitted;
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

	if (snap->begun != sym->seq) {
		ret = perf_event_ksymbol_replay(snap->event, sym);
		if (ret < 0)
			return ret;
		snap->emitted += ret;
		snap->begun = sym->seq;
	}

	prog = snapshot_main_prog(sym);
	if (!prog)
		return 0;

	ret = perf_event_bpf_replay(snap->event, prog);
	if (ret < 0)
		return ret;
	snap->emitted += ret;
	return 0;
}

static int snapshot_walk(void *data)
{
	struct ksym_snapshot *snap = data;

	return kallsym_dyn_walk(&snap->seq, snapshot_one, snap);
}

static void snapshot_cursor_decode(struct ksym_snapshot *snap, u64 cursor)
{
	snap->begun = cursor >> 1;
	snap->seq = snap->begun - (cursor & 1);
}

static u64 snapshot_cursor_encode(const struct ksym_snapshot *snap)
{
	return snap->begun > snap->seq ? snap->begun << 1 | 1 : snap->seq << 1;
}

/* A ring buffer in overwrite mode never gets full, so records could be lost. */
static bool snapshot_ring_usable(struct perf_event *event)
{
	struct perf_buffer *rb;

	guard(rcu)();
	rb = rcu_dereference(event->rb);
	return rb && !rb->paused && !rb->overwrite;
}

/**
 * perf_event_ksym_snapshot() - handle PERF_EVENT_IOC_KSYM_SNAPSHOT
 * @event: the event; the caller holds a reference
 * @usnap: argument of the ioctl, both read and written
 *
 * Waits for a worker on the CPU of the event. Signals do not interrupt this.
 *
 * Context: Process, may sleep. Not under the mutex of the event's context, which
 * other users of the context would have to wait for.
 * Return: 0 or -errno, see &struct perf_event_ksym_snapshot.
 */
long perf_event_ksym_snapshot(struct perf_event *event,
			      struct perf_event_ksym_snapshot __user *usnap)
{
	struct ksym_snapshot snap = { .event = event };
	struct perf_event_ksym_snapshot arg;
	int cpu = READ_ONCE(event->cpu);
	int ret;

	if (copy_from_user(&arg, usnap, sizeof(arg)))
		return -EFAULT;
	if (arg.flags || arg.__reserved || arg.cursor == 1)
		return -EINVAL;
	/* perf_event_open() without CAP_PERFMON has cleared the bits */
	if (!perf_event_wants_ksymbols(event))
		return perfmon_capable() ? -EINVAL : -EACCES;
	if (cpu < 0 || !snapshot_ring_usable(event))
		return -EINVAL;

	snapshot_cursor_decode(&snap, arg.cursor);
	ret = smp_call_on_cpu(cpu, snapshot_walk, &snap, false);
	if (ret == -ENXIO)
		ret = -ENODEV;

	arg.cursor = snapshot_cursor_encode(&snap);
	arg.emitted = snap.emitted;
	arg.lost = min_t(u64, atomic64_read(&event->lost_samples), U32_MAX);
	if (copy_to_user(usnap, &arg, sizeof(arg)))
		return -EFAULT;

	return ret;
}
