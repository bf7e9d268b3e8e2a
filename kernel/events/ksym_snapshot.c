// SPDX-License-Identifier: GPL-2.0
/*
 * Which dynamic kernel text was there before this event?
 *
 * A profiler opens events and gets a record for all text that comes and goes
 * from then on. For what was there before it calls PERF_EVENT_IOC_KSYM_SNAPSHOT
 * on one of them, which writes the same records to the ring of that event.
 *
 * kallsyms_dynamic writes live records and calls us back under one lock: text
 * is either there when its turn comes and gets its record here, or its live
 * record is on some CPU. Nothing falls between, and the records of one piece
 * of text are in the order of their times.
 *
 * A ring is filled on its own CPU only. When it is full, the walk ends before
 * the symbol that did not fit, and its place goes to user space as a cursor:
 * twice the number of the last symbol that was dealt with. It is odd if of
 * this one the BPF_EVENT is still to come.
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
	u64			seq;	/* the last symbol that is complete */
	u64			begun;	/* the last one with its KSYMBOL out */
	u32			emitted;
};

/* The program that @sym is the main function of, or NULL. */
static struct bpf_prog *main_prog_of(const struct kallsym_dyn *sym)
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
	 * Work that was queued for a CPU runs elsewhere when the CPU goes, and
	 * some events move to another one then.
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

	prog = main_prog_of(sym);
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

static void cursor_get(struct ksym_snapshot *snap, u64 cursor)
{
	snap->begun = cursor >> 1;
	snap->seq = snap->begun - (cursor & 1);
}

static u64 cursor_put(const struct ksym_snapshot *snap)
{
	return snap->begun > snap->seq ? snap->begun << 1 | 1 : snap->seq << 1;
}

/* A ring that old records are overwritten in is never full: it is no use. */
static bool has_ring(struct perf_event *event)
{
	struct perf_buffer *rb;

	guard(rcu)();
	rb = rcu_dereference(event->rb);
	return rb && !rb->paused && !rb->overwrite;
}

/**
 * perf_event_ksym_snapshot() - PERF_EVENT_IOC_KSYM_SNAPSHOT
 * @event: the event, which the caller has a reference to
 * @usnap: where to begin, and where to tell what was done
 *
 * Waits until the CPU of the event runs its work, which signals do not end.
 *
 * Context: process, may sleep. Not under the mutex of the event's context: what
 * else uses that has not to wait for the CPU.
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
	/* Who opens without CAP_PERFMON gets an event that asks for none */
	if (!perf_event_wants_ksymbols(event))
		return perfmon_capable() ? -EINVAL : -EACCES;
	if (cpu < 0 || !has_ring(event))
		return -EINVAL;

	cursor_get(&snap, arg.cursor);
	ret = smp_call_on_cpu(cpu, snapshot_walk, &snap, false);
	if (ret == -ENXIO)
		ret = -ENODEV;

	arg.cursor = cursor_put(&snap);
	arg.emitted = snap.emitted;
	arg.lost = min_t(u64, atomic64_read(&event->lost_samples), U32_MAX);
	if (copy_to_user(usnap, &arg, sizeof(arg)))
		return -EFAULT;

	return ret;
}
