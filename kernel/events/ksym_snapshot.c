// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_EVENT_IOC_KSYM_SNAPSHOT: replay existing dynamic kernel text to an event
 *
 * The events of a profiler get a record whenever dynamic text is registered or
 * unregistered. For text that existed before, the profiler calls this ioctl on
 * one of its events. It writes the same records to the ring buffer of that
 * event.
 *
 * snapshot_one() writes under the registry's lock. A symbol is either in the tree
 * when the walk gets to its address, and has its record here before the live one of
 * its end, or its live record is in the ring buffer of some CPU. No text is missed, and
 * the timestamps of its records are in order. That takes events of whole CPUs: an
 * event of a task or a cgroup does not get the ends of other tasks' text.
 *
 * A ring buffer is written only on its own CPU, where the caller has to be. If it is
 * full, the walk stops before the record that did not fit, and user space gets the
 * position as a cursor: all text below this address is written. An address within a
 * symbol means that its KSYMBOL is written, but not all that follows: its BPF_EVENT, or
 * its code from that address on. If there is another symbol at the address by then,
 * it has live records.
 *
 * The code of a symbol is read under text_mutex. Those who patch text hold it from
 * their TEXT_POKE until the bytes are written, so the bytes here are never older than
 * a TEXT_POKE that comes before them.
 */

#include <linux/bpf.h>
#include <linux/cpumask.h>
#include <linux/kallsyms_dynamic.h>
#include <linux/memory.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>
#include <linux/uaccess.h>

#include "internal.h"

/* Result of snapshot_one(): go on with the next record */
#define SNAPSHOT_NEXT	1

struct ksym_snapshot {
	struct perf_event	*event;
	unsigned long		addr;	/* see the cursor above */
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

static int snapshot_begin(struct ksym_snapshot *snap, const struct kallsym_dyn *sym)
{
	int ret = perf_event_ksymbol_replay(snap->event, sym);

	if (ret < 0)
		return ret;
	snap->emitted += ret;
	/* Within the symbol, but no code is written */
	snap->addr = sym->start + 1;
	return SNAPSHOT_NEXT;
}

static int snapshot_code(struct ksym_snapshot *snap, const struct kallsym_dyn *sym)
{
	size_t offset = snap->addr - sym->start;
	int ret;

	if (offset == 1)
		offset = 0;
	ret = perf_event_code_replay(snap->event, sym, offset);
	if (ret < 0)
		return ret;
	snap->emitted++;
	snap->addr = sym->start + offset + ret;
	return SNAPSHOT_NEXT;
}

static int snapshot_bpf_event(struct ksym_snapshot *snap, const struct kallsym_dyn *sym)
{
	struct bpf_prog *prog = snapshot_main_prog(sym);
	int ret = prog ? perf_event_bpf_replay(snap->event, prog) : 0;

	if (ret < 0)
		return ret;
	snap->emitted += ret;
	snap->addr = sym->end;
	return SNAPSHOT_NEXT;
}

/* Write the next record about @sym, of which BPF_EVENT or code follow the KSYMBOL. */
static int snapshot_one(const struct kallsym_dyn *sym, void *data)
{
	struct ksym_snapshot *snap = data;

	if (smp_processor_id() != READ_ONCE(snap->event->cpu))
		return -EAGAIN;

	if (snap->addr <= sym->start)
		return snapshot_begin(snap, sym);
	if (sym->flags & KALLSYM_DYN_CODE && snap->event->attr.ksymbol_code)
		return snapshot_code(snap, sym);
	return snapshot_bpf_event(snap, sym);
}

/* One record at a time, so that others get the locks and the CPU in between. */
static int snapshot_walk(struct ksym_snapshot *snap)
{
	bool with_code = snap->event->attr.ksymbol_code;
	int ret;

	do {
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		if (with_code)
			mutex_lock(&text_mutex);
		ret = kallsym_dyn_with_next(snap->addr, snapshot_one, snap);
		if (with_code)
			mutex_unlock(&text_mutex);
	} while (ret == SNAPSHOT_NEXT);

	return ret;
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
	if (!perf_event_wants_ksymbols(event))
		return event->ksymbol_dropped ? -EACCES : -EOPNOTSUPP;
	if (event->attach_state & PERF_ATTACH_TASK || is_cgroup_event(event))
		return -ENXIO;
	if (!cpu_online(READ_ONCE(event->cpu)))
		return -ENODEV;
	return snapshot_check_ring(event);
}

/**
 * perf_event_ksym_snapshot() - handle PERF_EVENT_IOC_KSYM_SNAPSHOT
 * @event: the event; the caller holds a reference
 * @usnap: argument of the ioctl, both read and written
 * @size: its size in bytes, as user space knows it
 *
 * Context: Process, may sleep. Takes time for each symbol that exists, so not under
 * the mutex of the event's context, which other users of the context would have to
 * wait for.
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
	if (arg.flags || arg.cursor > ULONG_MAX)
		return -EINVAL;
	ret = snapshot_check_event(event);
	if (ret)
		return ret;

	snap.addr = arg.cursor;
	ret = snapshot_walk(&snap);

	arg.cursor = snap.addr;
	arg.emitted = snap.emitted;
	if (copy_to_user(usnap, &arg, min(size, sizeof(arg))))
		return -EFAULT;

	return ret;
}
