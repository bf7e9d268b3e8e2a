// SPDX-License-Identifier: GPL-2.0
/*
 * What bpf_prog_info tells of a program, for a while after the program's end.
 *
 * A profiler hears of a program from PERF_RECORD_BPF_EVENT, and then asks for
 * its code, its line info and its BTF by its id. Nobody waits for it: half of
 * the programs that live for milliseconds are gone when it asks. So, while
 * somebody wants that (attr.bpf_retain), what there is to tell outlives the
 * program, up to so many bytes. Nothing else does: no map, no executable
 * memory, no attachment, and no module, unless the program's BTF has a kptr to
 * a type of it, as then every reference to the BTF keeps the module.
 *
 *   bpf_prog_put_deferred()	begin: PENDING	before the id is given up, so that
 *     |					who asks finds one of the two
 *     | grace periods
 *   __bpf_prog_put_rcu()	UNLOAD record, with PERF_BPF_EVENT_F_RETAINED
 *     | grace period, if it had symbols
 *   bpf_prog_retain_work()	fill: READY	or not, without memory, or when
 *     |					nobody wants it any more
 *   evicted, or nobody wants it: out of the table; who has a file of it still
 *   reads it
 *
 * begin runs where the last reference is dropped, maybe in softirq, and only
 * allocates a small struct; fill may sleep. It takes line info, BTF and the
 * like from the program, which needs them no more, and copies the code.
 *
 * A READY one has a struct bpf_prog with an aux of its own, of which only what
 * bpf_prog_info and the LSM look at is set. It never runs.
 */

#include <linux/anon_inodes.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/jump_label_ratelimit.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/security.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/sysctl.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "prog_info.h"

static DEFINE_STATIC_KEY_DEFERRED_FALSE(bpf_prog_retain_key, HZ);

/* The budget, in KiB: kernel.perf_bpf_retain_kb */
static unsigned int sysctl_retain_kb __read_mostly = 16384;

/*
 * retain_lock is for all below, and for ->hash, ->order and ->pending of what is in
 * the table. The table has a reference on each of them.
 *
 * It is taken with interrupts off. A program that traces what is called with it may
 * end others: with interrupts off that is left to a work, which may wait for it.
 */
static DEFINE_SPINLOCK(retain_lock);
static DEFINE_HASHTABLE(retain_table, 10);
static LIST_HEAD(retain_order);			/* the READY ones, oldest first */
static unsigned int retain_users;		/* retaining events */
static size_t retain_bytes;
static struct bpf_prog_retain_counts retain_counts;

static DECLARE_WAIT_QUEUE_HEAD(retain_wait);	/* one is PENDING no more */

/* So many leave the table at once: whoever ends a program waits for the lock. */
#define RETAIN_BATCH	256

/* Nobody is to be killed for what may as well be lost. */
#define GFP_RETAIN	(GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

static struct bpf_prog_retained *retained_new(u32 id)
{
	struct bpf_prog_retained *r = kzalloc_obj(*r, GFP_ATOMIC | __GFP_NOWARN);

	if (!r)
		return NULL;
	refcount_set(&r->ref, 1);
	INIT_LIST_HEAD(&r->order);
	r->id = id;
	r->pending = true;
	return r;
}

static void retained_free(struct bpf_prog_retained *r)
{
	struct bpf_prog_aux *aux;

	if (r->prog) {
		aux = r->prog->aux;
		security_bpf_prog_free(r->prog);
		btf_put(aux->btf);
		kvfree(aux->linfo);
		kvfree(aux->jited_linfo);
		kvfree(aux->func_info);
		free_uid(aux->user);
		mutex_destroy(&aux->used_maps_mutex);
		kfree(aux);
		kfree(r->prog);
	}
	kvfree(r->texts);
	kvfree(r->images);
	kvfree(r->map_ids);
	kfree(r);
}

static void retained_put(struct bpf_prog_retained *r)
{
	if (refcount_dec_and_test(&r->ref))
		retained_free(r);
}

/* Drop what left the table; may sleep. */
static void retained_put_list(struct list_head *gone)
{
	struct bpf_prog_retained *r, *next;

	list_for_each_entry_safe(r, next, gone, order) {
		list_del_init(&r->order);
		retained_put(r);
		cond_resched();
	}
}

/* Copy code, names and numbers of @prog, which is still whole. */
static int retained_copy(struct bpf_prog_retained *r, const struct bpf_prog *prog)
{
	u32 i, nr = bpf_prog_nr_texts(prog, true);
	struct bpf_prog_text text;
	size_t at = 0, len = 0;

	for (i = 0; i < nr; i++)
		len += bpf_prog_text_at(prog, i).len;

	r->texts = kvcalloc(nr, sizeof(*r->texts), GFP_RETAIN);
	r->images = kvmalloc(len, GFP_RETAIN);
	if (!r->texts || (len && !r->images))
		return -ENOMEM;

	for (i = 0; i < nr; i++) {
		text = bpf_prog_text_at(prog, i);
		memcpy(r->images + at, text.image, text.len);
		text.image = r->images + at;
		r->texts[i] = text;
		at += text.len;
	}
	r->nr_texts = nr;
	r->size += nr * sizeof(*r->texts) + len;

	bpf_prog_get_stats(prog, &r->stats);
	r->attach_btf_obj_id = bpf_prog_attach_btf_obj_id(prog);
	return 0;
}

static int retained_copy_map_ids(struct bpf_prog_retained *r, struct bpf_prog *prog)
{
	u32 i, nr = prog->aux->used_map_cnt;

	if (!nr)
		return 0;
	r->map_ids = kvcalloc(nr, sizeof(*r->map_ids), GFP_RETAIN);
	if (!r->map_ids)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		r->map_ids[i] = prog->aux->used_maps[i]->id;
	r->nr_map_ids = nr;
	r->size += nr * sizeof(*r->map_ids);
	return 0;
}

#ifdef CONFIG_SECURITY
static void take_security(struct bpf_prog_aux *to, struct bpf_prog_aux *from)
{
	swap(to->security, from->security);
}
#else
static void take_security(struct bpf_prog_aux *to, struct bpf_prog_aux *from) { }
#endif

/* Take from @prog what it needs no more. */
static int retained_take(struct bpf_prog_retained *r, struct bpf_prog *prog)
{
	struct bpf_prog_aux *from = prog->aux, *aux;

	r->prog = kzalloc_obj(*r->prog, GFP_RETAIN);
	aux = kzalloc_obj(*aux, GFP_RETAIN);
	if (!r->prog || !aux) {
		kfree(r->prog);
		kfree(aux);
		r->prog = NULL;
		return -ENOMEM;
	}
	r->size += sizeof(*r->prog) + sizeof(*aux);

	r->prog->type = prog->type;
	r->prog->expected_attach_type = prog->expected_attach_type;
	r->prog->gpl_compatible = prog->gpl_compatible;
	r->prog->sleepable = prog->sleepable;
	r->prog->jited = prog->jited;
	r->prog->jited_len = prog->jited_len;
	memcpy(r->prog->digest, prog->digest, sizeof(prog->digest));
	r->prog->aux = aux;

	mutex_init(&aux->used_maps_mutex);
	aux->prog = r->prog;
	aux->retained = r;
	aux->id = r->id;
	aux->event_id = r->id;
	aux->func_cnt = from->func_cnt;
	aux->real_func_cnt = from->real_func_cnt;
	aux->load_time = from->load_time;
	aux->verified_insns = from->verified_insns;
	aux->attach_btf_id = from->attach_btf_id;
	aux->sig = from->sig;
	memcpy(aux->name, from->name, sizeof(aux->name));
	aux->used_map_cnt = r->nr_map_ids;
	aux->func_info_cnt = from->func_info_cnt;
	aux->nr_linfo = from->nr_linfo;
	r->size += from->func_info_cnt * sizeof(*from->func_info) +
		   from->nr_linfo * sizeof(*from->linfo);
	if (from->jited_linfo)
		r->size += from->nr_linfo * sizeof(*from->jited_linfo);

	swap(aux->func_info, from->func_info);
	swap(aux->linfo, from->linfo);
	swap(aux->jited_linfo, from->jited_linfo);
	swap(aux->btf, from->btf);
	swap(aux->user, from->user);
	take_security(aux, from);
	return 0;
}

static size_t retain_budget(void)
{
	return (size_t)READ_ONCE(sysctl_retain_kb) << 10;
}

/* A BTF that others have as well was counted with them. */
static void retain_charge(struct bpf_prog_retained *r)
{
	lockdep_assert_held(&retain_lock);

	if (r->prog->aux->btf)
		retain_bytes += btf_retain(r->prog->aux->btf);
	retain_bytes += r->size;
	retain_counts.nr_kept++;
}

static void retain_uncharge(struct bpf_prog_retained *r)
{
	lockdep_assert_held(&retain_lock);

	if (r->prog->aux->btf)
		retain_bytes -= btf_unretain(r->prog->aux->btf);
	retain_bytes -= r->size;
	retain_counts.nr_kept--;
}

/* What does not fit alone does not drive out others. Return: is it kept? */
static bool retain_add(struct bpf_prog_retained *r)
{
	size_t alone = r->size;

	lockdep_assert_held(&retain_lock);

	if (!r->prog)
		return false;
	if (r->prog->aux->btf)
		alone += btf_bytes(r->prog->aux->btf);
	if (alone > retain_budget())
		return false;
	retain_charge(r);
	list_add_tail(&r->order, &retain_order);
	return true;
}

/* The oldest one leaves the table. Return: NULL if there is none. */
static struct bpf_prog_retained *retain_remove_oldest(struct list_head *gone)
{
	struct bpf_prog_retained *r;

	lockdep_assert_held(&retain_lock);

	r = list_first_entry_or_null(&retain_order, struct bpf_prog_retained, order);
	if (!r)
		return NULL;
	hash_del(&r->hash);
	retain_uncharge(r);
	list_move_tail(&r->order, gone);
	return r;
}

/* Return: there may be more that do not fit. */
static bool retain_evict_some(struct list_head *gone)
{
	struct bpf_prog_retained *r;
	int i;

	for (i = 0; i < RETAIN_BATCH; i++) {
		if (retain_bytes <= retain_budget())
			return false;
		r = retain_remove_oldest(gone);
		if (!r)
			return false;
		if (!READ_ONCE(r->asked))
			retain_counts.nr_evicted++;
	}
	return true;
}

/* Oldest first, until the rest fits; may sleep. */
static void retain_evict(void)
{
	LIST_HEAD(gone);
	bool more;

	do {
		scoped_guard(spinlock_irqsave, &retain_lock)
			more = retain_evict_some(&gone);
		retained_put_list(&gone);
	} while (more);
}

/**
 * bpf_prog_retain_begin - a program is about to give up its id
 * @prog: the program, without references
 *
 * Context: task or softirq; does not sleep.
 */
void bpf_prog_retain_begin(struct bpf_prog *prog)
{
	struct bpf_prog_retained *r;
	unsigned long flags;

	if (!static_branch_unlikely(&bpf_prog_retain_key.key))
		return;
	/* The code of offloaded programs is not the kernel's */
	if (!prog->aux->id || bpf_prog_is_offloaded(prog->aux))
		return;

	r = retained_new(prog->aux->id);

	spin_lock_irqsave(&retain_lock, flags);
	if (!r) {
		retain_counts.nr_lost += !!retain_users;
	} else if (retain_users && !retain_budget()) {
		retain_counts.nr_evicted++;
	} else if (retain_users) {
		hash_add(retain_table, &r->hash, r->id);
		prog->aux->retained = r;
		r = NULL;
	}
	spin_unlock_irqrestore(&retain_lock, flags);

	kfree(r);
}

/**
 * bpf_prog_retain_fill - keep what bpf_prog_info tells of a program
 * @prog: a program that bpf_prog_retain_begin() has put into the table; it can
 *	be neither run nor found, and is about to be freed
 *
 * Context: process, may sleep.
 * Return: whether the program has lost to it what its LSM blob and its user are;
 *	both are given up with what is kept.
 */
bool bpf_prog_retain_fill(struct bpf_prog *prog)
{
	struct bpf_prog_retained *r = prog->aux->retained;
	bool taken, more = false;
	LIST_HEAD(gone);
	int err = 0;

	/* From here on this is no longer a program of which something is kept */
	prog->aux->retained = NULL;
	if (READ_ONCE(retain_users) && retain_budget()) {
		r->size = sizeof(*r);
		err = retained_copy(r, prog) ?:
		      retained_copy_map_ids(r, prog) ?:
		      retained_take(r, prog);
	}
	taken = r->prog;

	scoped_guard(spinlock_irqsave, &retain_lock) {
		r->pending = false;
		if (err)
			retain_counts.nr_lost++;
		else if (retain_users && !retain_add(r))
			retain_counts.nr_evicted++;
		else if (retain_users)
			more = retain_evict_some(&gone);
		if (list_empty(&r->order)) {
			hash_del(&r->hash);
			list_add_tail(&r->order, &gone);
		}
	}

	wake_up_all(&retain_wait);
	retained_put_list(&gone);
	if (more)
		retain_evict();
	return taken;
}

/* The last one of this id: an id may be used again. */
static struct bpf_prog_retained *retain_find(u32 id)
{
	struct bpf_prog_retained *r;

	lockdep_assert_held(&retain_lock);

	hash_for_each_possible(retain_table, r, hash, id)
		if (r->id == id)
			return r;
	return NULL;
}

/* A reference, or ERR_PTR: -ENOENT, -EAGAIN while it is PENDING. */
static struct bpf_prog_retained *retain_get_ended(u32 id)
{
	struct bpf_prog_retained *r;

	guard(spinlock_irqsave)(&retain_lock);
	r = retain_find(id);
	if (!r)
		return ERR_PTR(-ENOENT);
	if (r->pending)
		return ERR_PTR(-EAGAIN);
	refcount_inc(&r->ref);
	return r;
}

/*
 * The same, and -EBUSY for a moment in which neither the program nor this can be
 * found: without a reference, and before begin. What is not ending any more is in
 * the table by now, if it ever will be.
 */
static struct bpf_prog_retained *retain_get(u32 id)
{
	struct bpf_prog_retained *r = retain_get_ended(id);

	if (r != ERR_PTR(-ENOENT))
		return r;
	if (bpf_prog_id_is_ending(id))
		return ERR_PTR(-EBUSY);
	return retain_get_ended(id);
}

static struct bpf_prog_retained *retain_wait_for(u32 id)
{
	struct bpf_prog_retained *r;
	int err;

	while ((r = retain_get(id)) == ERR_PTR(-EBUSY)) {
		/* Nobody tells when that moment is over */
		schedule_timeout_interruptible(1);
		if (signal_pending(current))
			return ERR_PTR(-ERESTARTSYS);
	}
	if (r != ERR_PTR(-EAGAIN))
		return r;
	err = wait_event_interruptible(retain_wait, (r = retain_get_ended(id)) !=
						    ERR_PTR(-EAGAIN));
	return err ? ERR_PTR(err) : r;
}

static int retained_release(struct inode *inode, struct file *file)
{
	struct bpf_prog *prog = file->private_data;

	retained_put(prog->aux->retained);
	return 0;
}

#ifdef CONFIG_PROC_FS
static void retained_show_fdinfo(struct seq_file *m, struct file *file)
{
	const struct bpf_prog *prog = file->private_data;

	seq_printf(m, "prog_type:\t%u\nprog_tag:\t%*phN\nprog_id:\t%u\n", prog->type,
		   BPF_TAG_SIZE, prog->tag, prog->aux->event_id);
}
#endif

const struct file_operations bpf_prog_retained_fops = {
	.release	= retained_release,
#ifdef CONFIG_PROC_FS
	.show_fdinfo	= retained_show_fdinfo,
#endif
};

/**
 * bpf_prog_retained_fd - a file that tells what is kept of a program
 * @id: of the program that has ended
 * @wait: for one that has not ended yet, but has given up its id
 *
 * BPF_OBJ_GET_INFO_BY_FD answers on the file as it did for the program, but for
 * the instructions of the verifier. It keeps that, and nothing else.
 *
 * Context: process, may sleep.
 * Return: a file descriptor, or
 *  -EPERM, -EACCES: it takes what BPF_PROG_GET_FD_BY_ID takes
 *  -ENOENT: nothing is kept: no event with attr.bpf_retain was open when it
 *	ended, it was evicted, or it lives
 *  -EAGAIN: not yet, without @wait
 *  -ERESTARTSYS: a signal, with @wait
 */
int bpf_prog_retained_fd(u32 id, bool wait)
{
	union bpf_attr attr = { .prog_id = id };
	struct bpf_prog_retained *r;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	err = security_bpf(BPF_PROG_GET_FD_BY_ID, &attr, sizeof(attr), false);
	if (err)
		return err;

	r = wait ? retain_wait_for(id) : retain_get(id);
	if (r == ERR_PTR(-EBUSY))
		r = ERR_PTR(-EAGAIN);
	if (IS_ERR(r))
		return PTR_ERR(r);

	err = security_bpf_prog(r->prog);
	if (!err) {
		/* From then on another thread may close the file, and with it r is gone */
		WRITE_ONCE(r->asked, true);
		err = anon_inode_getfd("bpf-prog-retained", &bpf_prog_retained_fops,
				       r->prog, O_RDONLY | O_CLOEXEC);
	}
	if (err < 0)
		retained_put(r);
	return err;
}

/* Nobody wants them any more, unless somebody came meanwhile. */
static void retain_drop_some(struct list_head *gone)
{
	int i;

	guard(spinlock_irqsave)(&retain_lock);
	for (i = 0; i < RETAIN_BATCH && !retain_users; i++)
		if (!retain_remove_oldest(gone))
			return;
}

static void retain_drop_all(struct work_struct *work)
{
	LIST_HEAD(gone);

	while (retain_drop_some(&gone), !list_empty(&gone))
		retained_put_list(&gone);
}

static DECLARE_WORK(retain_drop_work, retain_drop_all);

/**
 * bpf_prog_retain_start - what programs leave is wanted from now on
 *
 * Context: process, may sleep.
 */
void bpf_prog_retain_start(void)
{
	scoped_guard(spinlock_irqsave, &retain_lock)
		retain_users++;
	static_branch_deferred_inc(&bpf_prog_retain_key);
}

/**
 * bpf_prog_retain_stop - end of a bpf_prog_retain_start()
 *
 * With the last one goes what is kept.
 *
 * Context: task or softirq; does not sleep.
 */
void bpf_prog_retain_stop(void)
{
	static_branch_slow_dec_deferred(&bpf_prog_retain_key);
	guard(spinlock_irqsave)(&retain_lock);
	if (!--retain_users)
		schedule_work(&retain_drop_work);
}

/**
 * bpf_prog_retain_get_counts - what became of programs that ended
 * @counts: since boot, and what is kept now
 *
 * Context: task or softirq; does not sleep.
 */
void bpf_prog_retain_get_counts(struct bpf_prog_retain_counts *counts)
{
	guard(spinlock_irqsave)(&retain_lock);
	*counts = retain_counts;
	counts->bytes = retain_bytes;
}

/* A smaller budget holds at once. */
static int retain_kb_handler(const struct ctl_table *table, int write, void *buffer,
			     size_t *lenp, loff_t *ppos)
{
	int err = proc_douintvec_minmax(table, write, buffer, lenp, ppos);

	if (!err && write)
		retain_evict();
	return err;
}

static const unsigned int retain_kb_max = INT_MAX >> 10;

static const struct ctl_table retain_sysctls[] = {
	{
		.procname	= "perf_bpf_retain_kb",
		.data		= &sysctl_retain_kb,
		.maxlen		= sizeof(sysctl_retain_kb),
		.mode		= 0644,
		.proc_handler	= retain_kb_handler,
		.extra1		= SYSCTL_ZERO,
		.extra2		= (void *)&retain_kb_max,
	},
};

static int __init retain_init(void)
{
	register_sysctl_init("kernel", retain_sysctls);
	return 0;
}
late_initcall(retain_init);
