// SPDX-License-Identifier: GPL-2.0
/*
 * BPF programs of perf events: attach, run, inherit and detach.
 *
 * Events of a tracepoint, a kprobe or a uprobe share their programs: kernel/trace
 * keeps an array of programs for each trace_event_call, and runs all of them on
 * each hit. This file only checks which programs may be added to the array.
 *
 * Any other event has at most one program, of BPF_PROG_TYPE_PERF_EVENT. It runs
 * when the event overflows, and decides whether the sample is written.
 * Children have the program of their parent: each event holds its own reference.
 * It changes under the parent's child_mutex, and for all of them at once. With
 * PERF_BPF_F_ATTACH it is attached before the event counts anything.
 *
 * Releasing a link, or unregistering a PMU, detaches the program while the event
 * may overflow, in NMI context. The overflow handler holds the RCU read lock, and a
 * program is freed a grace period after its last reference is put.
 */

#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/security.h>
#include <linux/seq_file.h>
#include <linux/syscalls.h>
#include <linux/trace_events.h>

#include "internal.h"

int bpf_overflow_handler(struct perf_event *event,
			 struct perf_sample_data *data,
			 struct pt_regs *regs)
{
	struct bpf_perf_event_data_kern ctx = {
		.data = data,
		.event = event,
	};
	struct bpf_prog *prog;
	int ret = 0;

	guard(rcu)();
	/* Pairs with the release in perf_event_publish_bpf_prog() */
	prog = smp_load_acquire(&event->prog);
	if (!prog || prog->type != BPF_PROG_TYPE_PERF_EVENT)
		return 1;

	ctx.regs = perf_arch_bpf_user_pt_regs(regs);
	if (likely(__this_cpu_inc_return(bpf_prog_active) == 1)) {
		perf_prepare_sample(data, event, regs);
		/* Programs can read bpf_perf_event_data.addr in any case */
		if (!(data->sample_flags & PERF_SAMPLE_ADDR))
			data->addr = 0;
		ret = bpf_prog_run(prog, &ctx);
	} else {
		bpf_prog_inc_misses_counter(prog);
		ret = !!(event->attr.bpf_flags & PERF_BPF_F_PASS_ON_MISS);
	}
	__this_cpu_dec(bpf_prog_active);

	return ret;
}

static void perf_event_publish_bpf_prog(struct perf_event *event,
					struct bpf_prog *prog, u64 bpf_cookie)
{
	WRITE_ONCE(event->bpf_cookie, bpf_cookie);
	/* The event may be running: publish the program after its cookie. */
	smp_store_release(&event->prog, prog);
}

/* @event, which gets the caller's reference to @prog, is not a child itself. */
static int perf_event_set_bpf_handler(struct perf_event *event,
				      struct bpf_prog *prog,
				      u64 bpf_cookie)
{
	struct perf_event *child;

	if (event->overflow_handler_context)
		/* hw breakpoint or kernel counter */
		return -EINVAL;

	guard(mutex)(&event->child_mutex);
	if (event->prog)
		return -EEXIST;

	if (prog->type != BPF_PROG_TYPE_PERF_EVENT)
		return -EINVAL;

	if (event->attr.precise_ip &&
	    prog->call_get_stack &&
	    (!(event->attr.sample_type & PERF_SAMPLE_CALLCHAIN) ||
	     event->attr.exclude_callchain_kernel ||
	     event->attr.exclude_callchain_user)) {
		/*
		 * On perf_event with precise_ip, calling bpf_get_stack()
		 * may trigger unwinder warnings and occasional crashes.
		 * bpf_get_[stack|stackid] works around this issue by using
		 * callchain attached to perf_sample_data. If the
		 * perf_event does not full (kernel and user) callchain
		 * attached to perf_sample_data, do not allow attaching BPF
		 * program that calls bpf_get_[stack|stackid].
		 */
		return -EPROTO;
	}

	list_for_each_entry(child, &event->child_list, child_list) {
		bpf_prog_inc(prog);
		perf_event_publish_bpf_prog(child, prog, bpf_cookie);
	}
	perf_event_publish_bpf_prog(event, prog, bpf_cookie);
	return 0;
}

static void perf_event_unpublish_bpf_prog(struct perf_event *event)
{
	/* A link's release may race with the event's PMU being unregistered. */
	struct bpf_prog *prog = xchg(&event->prog, NULL);

	if (prog)
		bpf_prog_put(prog);
}

static void perf_event_free_bpf_handler(struct perf_event *event)
{
	struct perf_event *child;

	guard(mutex)(&event->child_mutex);
	list_for_each_entry(child, &event->child_list, child_list)
		perf_event_unpublish_bpf_prog(child);
	perf_event_unpublish_bpf_prog(event);
}

int __perf_event_set_bpf_prog(struct perf_event *event,
			      struct bpf_prog *prog,
			      u64 bpf_cookie)
{
	bool is_kprobe, is_uprobe, is_tracepoint, is_syscall_tp;

	if (event->state <= PERF_EVENT_STATE_REVOKED)
		return -ENODEV;

	if (!perf_event_is_tracing(event))
		return perf_event_set_bpf_handler(event, prog, bpf_cookie);

	is_kprobe = event->tp_event->flags & TRACE_EVENT_FL_KPROBE;
	is_uprobe = event->tp_event->flags & TRACE_EVENT_FL_UPROBE;
	is_tracepoint = event->tp_event->flags & TRACE_EVENT_FL_TRACEPOINT;
	is_syscall_tp = is_syscall_trace_event(event->tp_event);
	if (!is_kprobe && !is_uprobe && !is_tracepoint && !is_syscall_tp)
		/* bpf programs can only be attached to u/kprobe or tracepoint */
		return -EINVAL;

	if (((is_kprobe || is_uprobe) && prog->type != BPF_PROG_TYPE_KPROBE) ||
	    (is_tracepoint && prog->type != BPF_PROG_TYPE_TRACEPOINT) ||
	    (is_syscall_tp && prog->type != BPF_PROG_TYPE_TRACEPOINT))
		return -EINVAL;

	if (prog->type == BPF_PROG_TYPE_KPROBE && prog->sleepable && !is_uprobe)
		/* only uprobe programs are allowed to be sleepable */
		return -EINVAL;

	if (prog->type == BPF_PROG_TYPE_TRACEPOINT && prog->sleepable) {
		/*
		 * Sleepable tracepoint programs can only attach to faultable
		 * tracepoints. Currently only syscall tracepoints are faultable.
		 */
		if (!is_syscall_tp)
			return -EINVAL;
	}

	/* Kprobe override only works for kprobes, not uprobes. */
	if (prog->kprobe_override && !is_kprobe)
		return -EINVAL;

	/* Writing to context allowed only for uprobes. */
	if (prog->aux->kprobe_write_ctx && !is_uprobe)
		return -EINVAL;

	if (is_tracepoint || is_syscall_tp) {
		int off = trace_event_get_offsets(event->tp_event);

		if (prog->aux->max_ctx_offset > off)
			return -EACCES;
	}

	return perf_event_attach_bpf_prog(event, prog, bpf_cookie);
}

void perf_event_free_bpf_prog(struct perf_event *event)
{
	if (!event->prog)
		return;

	if (!perf_event_is_tracing(event)) {
		perf_event_free_bpf_handler(event);
		return;
	}
	perf_event_detach_bpf_prog(event);
}

/*
 * @event is about to be freed. It has no children, which hold references to it, and
 * child_mutex must not be taken: mmap_lock may be held.
 */
void __perf_event_free_bpf_prog(struct perf_event *event)
{
	if (!event->prog)
		return;

	if (!perf_event_is_tracing(event)) {
		perf_event_unpublish_bpf_prog(event);
		return;
	}
	perf_event_detach_bpf_prog(event);
}

/* Are there samples of @event that are written without an overflow? */
static bool perf_event_bypasses_bpf_prog(const struct perf_event *event)
{
	const struct perf_event_attr *attr = &event->attr;

	/* PEBS via PT: the hardware writes them to the AUX area */
	if (attr->aux_output)
		return true;
	/* bpf_perf_event_output() writes them */
	return attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_BPF_OUTPUT;
}

/* PERF_BPF_F_ATTACH: @event is new, and not visible to anyone else yet. */
int perf_event_open_bpf_prog(struct perf_event *event)
{
	struct bpf_prog *prog;
	int err;

	/* Their programs belong to the tracepoint, not to the event */
	if (perf_event_is_tracing(event) || perf_event_bypasses_bpf_prog(event))
		return -EOPNOTSUPP;
	if (!is_sampling_event(event))
		return -EINVAL;

	/* The same check as for PERF_EVENT_IOC_SET_BPF */
	err = security_perf_event_write(event);
	if (err)
		return err;

	prog = bpf_prog_get(event->attr.bpf_fd);
	if (IS_ERR(prog))
		return PTR_ERR(prog);

	err = perf_event_set_bpf_handler(event, prog, event->attr.bpf_cookie);
	if (err)
		bpf_prog_put(prog);
	return err;
}

/* @event is a new child of @parent. */
void perf_event_inherit_bpf_prog(struct perf_event *event, struct perf_event *parent)
{
	struct bpf_prog *prog;

	lockdep_assert_held(&parent->child_mutex);
	/* The program of a tracing event, which changes without this mutex, may end */
	guard(rcu)();
	prog = READ_ONCE(parent->prog);
	if (!prog || prog->type != BPF_PROG_TYPE_PERF_EVENT)
		return;

	bpf_prog_inc(prog);
	perf_event_publish_bpf_prog(event, prog, parent->bpf_cookie);
}

/**
 * perf_event_bpf_prog - the BPF program of an event, and its cookie
 * @event: the event, of any type
 * @cookie: gets the cookie that the program was attached with
 *
 * The program may be detached, and another one attached, meanwhile.
 *
 * Context: RCU read side, which the program is valid in.
 * Return: the program, or NULL if the event has none.
 */
struct bpf_prog *perf_event_bpf_prog(const struct perf_event *event, u64 *cookie)
{
	struct bpf_prog *prog;

	do {
		/* Pairs with the release where the program is attached */
		prog = smp_load_acquire(&event->prog);
		*cookie = READ_ONCE(event->bpf_cookie);
		/* Read the cookie before looking at the program again */
		smp_rmb();
	} while (prog != READ_ONCE(event->prog));
	return prog;
}

/* For fdinfo */
void perf_event_show_bpf_prog(struct seq_file *m, struct perf_event *event)
{
	struct bpf_prog *prog;
	u64 cookie;

	guard(rcu)();
	prog = perf_event_bpf_prog(event, &cookie);
	if (!prog)
		return;

	seq_printf(m, "bpf_prog_id:\t%u\n", prog->aux->id);
	seq_printf(m, "bpf_cookie:\t%llu\n", cookie);
}
