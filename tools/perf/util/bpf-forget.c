// SPDX-License-Identifier: GPL-2.0
/*
 * Which BPF programs does perf top no longer need?
 *
 * perf report keeps the info of all programs until it ends, and perf record writes it to
 * the header. perf top may run for months while programs come and go, so it frees the info
 * of a program when
 *
 *   - the side-band thread has heard of its end, and all samples that were in the ring
 *     buffers then have been processed, see ENDED_CALLS in bpf-sideband.c, and
 *   - no dso of its functions is left: no map, histogram entry or listing shows it.
 *
 * A dso holds a reference to the info, and has a pointer to the env too, which it must
 * not use to tell of its own end: the env may have ended before. So nothing happens when
 * the last dso goes; the env is searched once for each doubling of the number of ended
 * programs in it, which costs each of them a constant time.
 *
 * Only the thread that processes the records calls this. The side-band thread adds
 * programs meanwhile, and uses none of those that it has added, except under the lock.
 */
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include "bpf-event.h"
#include "bpf-forget.h"
#include "bpf-utils.h"
#include "dso.h"
#include "env.h"

#define FORGET_MIN	256U

/**
 * dso__hold_bpf_info - keep the info of a program as long as a dso exists
 * @dso: of one of its functions
 * @info: the info, which an env has
 */
void dso__hold_bpf_info(struct dso *dso, struct bpf_prog_info_node *info)
{
	refcount_inc(&info->refcnt);
	dso__put_bpf_info(dso);
	dso__bpf_prog(dso)->info = info;
}

/**
 * dso__put_bpf_info - undo dso__hold_bpf_info()
 * @dso: any
 */
void dso__put_bpf_info(struct dso *dso)
{
	bpf_prog_info_node__put(dso__bpf_prog(dso)->info);
	dso__bpf_prog(dso)->info = NULL;
}

/* Return: the number of programs that have ended and are still needed. */
static u32 perf_env__forget_bpf_progs(struct perf_env *env)
{
	struct rb_node *n, *next;
	u32 nr_infos, nr_kept = 0;

	mutex_lock(&env->bpf_progs.lock);
	nr_infos = env->bpf_progs.infos_cnt;
	for (n = rb_first(&env->bpf_progs.infos); n; n = next) {
		struct bpf_prog_info_node *node = rb_entry(n, struct bpf_prog_info_node, rb_node);

		next = rb_next(n);
		if (!node->unloaded)
			continue;
		if (refcount_read(&node->refcnt) > 1)
			nr_kept++;
		else
			__perf_env__remove_bpf_prog_info(env, node);
	}
	/* the difference of the two is the number of infos that machine__link_late_bpf() awaits */
	env->bpf_progs.infos_linked -= nr_infos - env->bpf_progs.infos_cnt;
	mutex_unlock(&env->bpf_progs.lock);
	perf_env__remove_unused_btfs(env);
	return nr_kept;
}

/**
 * perf_env__bpf_prog_unloaded - a program has ended, and has no more samples
 * @env: of perf top
 * @id: of the program; no effect if it is not in @env
 *
 * Any info in @env that has ended may be freed, if no dso holds it.
 */
void perf_env__bpf_prog_unloaded(struct perf_env *env, u32 id)
{
	struct bpf_prog_info_node *node = perf_env__find_bpf_prog_info(env, id);

	if (!node || node->unloaded)
		return;
	node->unloaded = true;
	if (++env->bpf_progs.nr_unloaded >= max(env->bpf_progs.forget_at, FORGET_MIN)) {
		env->bpf_progs.nr_unloaded = perf_env__forget_bpf_progs(env);
		env->bpf_progs.forget_at = 2 * env->bpf_progs.nr_unloaded;
	}
}
