// SPDX-License-Identifier: GPL-2.0
/*
 * Retained information of unloaded BPF programs.
 *
 * A profiler learns of a program from PERF_RECORD_BPF_EVENT, and then looks up
 * its code, line info and BTF by its id. About half of the programs that live
 * only for milliseconds are unloaded by then. So, while an event with
 * attr.bpf_retain is open, the data behind bpf_prog_info outlives the program,
 * up to a limit in bytes. Nothing else does: no map, no executable memory, no
 * attachment and no module. A BTF with a kptr to a type of a module pins the module,
 * so that it is not retained.
 *
 *   bpf_prog_put_deferred()	begin: PENDING	before the id is released, so that
 *     |					a lookup finds program or entry
 *     | grace periods
 *   bpf_prog_retain_work()	fill: READY	or dropped, if out of memory or if
 *     |					the last event was closed
 *   bpf_prog_free()		UNLOAD record, with PERF_BPF_EVENT_F_RETAINED
 *     |
 *   evicted, or last event closed: removed from the table; files that are open
 *   keep the entry
 *
 * begin runs where the last reference is put, maybe in softirq, and only
 * allocates a small struct; fill may sleep. It copies the code, the line info and
 * the like, so that who profiles pays for them, and not who loaded the program. Of
 * the BTF it takes the reference.
 *
 * If the limit is exceeded, the oldest program is evicted of the user who has most,
 * so that one who unloads programs in a loop only evicts their own.
 *
 * A READY entry has a stand-in struct bpf_prog with its own aux, in which only
 * the fields that bpf_prog_info and LSMs read are set. It never runs.
 */

#include <linux/anon_inodes.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/jump_label_ratelimit.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
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

/* Limit for all retained programs, in KiB: kernel.perf_bpf_retain_kb */
static unsigned int sysctl_retain_kb __read_mostly = 16384;

/*
 * retain_lock protects everything below, and ->hash, ->order and ->pending of the
 * entries in the table. The table holds a reference to each entry.
 *
 * It is taken with interrupts off. A tracing program may run inside the critical
 * section and put the last reference to another program. bpf_prog_put() would then
 * wait for the lock on the CPU that holds it; with interrupts off it defers. On
 * PREEMPT_RT, where they stay on, that is as possible here as with prog_idr_lock.
 */
static DEFINE_SPINLOCK(retain_lock);
static DEFINE_HASHTABLE(retain_table, 10);
static LIST_HEAD(retain_shares);
static unsigned int retain_users;		/* open events with attr.bpf_retain */
static LIST_HEAD(retain_payers);		/* these, the last one first */
static size_t retain_bytes;
static struct bpf_prog_retain_counts retain_counts;

static DECLARE_WAIT_QUEUE_HEAD(retain_wait);	/* for entries that are PENDING */

/* Entries removed per critical section: unloading a program waits for the lock. */
#define RETAIN_BATCH	64

/* Best effort: fail rather than make others wait, or trigger the OOM killer. */
#define GFP_RETAIN	(GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN)

/*
 * The cgroup that pays, if any: that of the task whose event was opened last, of those
 * that are open. Return: with a reference.
 */
static struct mem_cgroup *retain_get_memcg(void)
{
	struct bpf_prog_retain_user *user;

	guard(spinlock_irqsave)(&retain_lock);
	user = list_first_entry_or_null(&retain_payers, struct bpf_prog_retain_user, node);
	return user && mem_cgroup_tryget(user->memcg) ? user->memcg : NULL;
}

static struct bpf_prog_retain_share *retain_share_new(struct user_struct *user)
{
	struct bpf_prog_retain_share *share = kzalloc_obj(*share, GFP_RETAIN);

	if (!share)
		return NULL;
	INIT_LIST_HEAD(&share->node);
	INIT_LIST_HEAD(&share->order);
	share->user = get_uid(user);
	return share;
}

static void retain_share_free(struct bpf_prog_retain_share *share)
{
	if (!share)
		return;
	free_uid(share->user);
	kfree(share);
}

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

static void retained_free_aux(struct bpf_prog_aux *aux)
{
	if (!aux)
		return;
	kvfree(aux->linfo);
	kvfree(aux->jited_linfo);
	kvfree(aux->func_info);
	kfree(aux);
}

static void retained_free(struct bpf_prog_retained *r)
{
	struct bpf_prog_aux *aux;

	if (r->prog) {
		aux = r->prog->aux;
		security_bpf_prog_free(r->prog);
		btf_put(aux->btf);
		free_uid(aux->user);
		mutex_destroy(&aux->used_maps_mutex);
		retained_free_aux(aux);
		kfree(r->prog);
	}
	retain_share_free(r->share);
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

/* Put entries that were removed from the table. May sleep. */
static void retained_put_list(struct list_head *gone)
{
	struct bpf_prog_retained *r, *next;

	list_for_each_entry_safe(r, next, gone, order) {
		list_del_init(&r->order);
		retained_put(r);
		cond_resched();
	}
}

/* Copy code, tags and statistics of @prog, which is not torn down yet. */
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
static void retained_take_security(struct bpf_prog_aux *to, struct bpf_prog_aux *from)
{
	swap(to->security, from->security);
}
#else
static void retained_take_security(struct bpf_prog_aux *to, struct bpf_prog_aux *from) { }
#endif

/* Copy the array of @nr members that @from points to, if any. */
static int retained_copy_array(struct bpf_prog_retained *r, void *to, const void *from,
			       u32 nr, size_t size)
{
	void **copy = to;

	if (!from)
		return 0;
	*copy = kvmemdup(from, nr * size, GFP_RETAIN);
	if (!*copy)
		return -ENOMEM;
	r->size += nr * size;
	return 0;
}

static int retained_copy_info(struct bpf_prog_retained *r, struct bpf_prog_aux *to,
			      const struct bpf_prog_aux *from)
{
	to->func_info_cnt = from->func_info_cnt;
	to->nr_linfo = from->nr_linfo;
	return retained_copy_array(r, &to->func_info, from->func_info,
				   from->func_info_cnt, sizeof(*from->func_info)) ?:
	       retained_copy_array(r, &to->linfo, from->linfo,
				   from->nr_linfo, sizeof(*from->linfo)) ?:
	       retained_copy_array(r, &to->jited_linfo, from->jited_linfo,
				   from->nr_linfo, sizeof(*from->jited_linfo));
}

/* Allocate the stand-in, and copy what is neither code nor referenced. */
static int retained_copy_prog(struct bpf_prog_retained *r, const struct bpf_prog *from)
{
	struct bpf_prog *prog = kzalloc_obj(*prog, GFP_RETAIN);
	struct bpf_prog_aux *aux = kzalloc_obj(*aux, GFP_RETAIN);

	if (!prog || !aux || retained_copy_info(r, aux, from->aux)) {
		retained_free_aux(aux);
		kfree(prog);
		return -ENOMEM;
	}
	r->size += sizeof(*prog) + sizeof(*aux);

	prog->type = from->type;
	prog->expected_attach_type = from->expected_attach_type;
	prog->gpl_compatible = from->gpl_compatible;
	prog->sleepable = from->sleepable;
	prog->jited = from->jited;
	prog->jited_len = from->jited_len;
	memcpy(prog->digest, from->digest, sizeof(from->digest));
	prog->aux = aux;

	mutex_init(&aux->used_maps_mutex);
	aux->prog = prog;
	aux->retained = r;
	aux->id = r->id;
	aux->event_id = r->id;
	aux->func_cnt = from->aux->func_cnt;
	aux->real_func_cnt = from->aux->real_func_cnt;
	aux->load_time = from->aux->load_time;
	aux->verified_insns = from->aux->verified_insns;
	aux->attach_btf_id = from->aux->attach_btf_id;
	aux->sig = from->aux->sig;
	memcpy(aux->name, from->aux->name, sizeof(aux->name));
	aux->used_map_cnt = r->nr_map_ids;
	r->prog = prog;
	return 0;
}

/* Move to the stand-in what @prog no longer needs. Cannot fail. */
static void retained_take(struct bpf_prog_retained *r, struct bpf_prog *prog)
{
	struct bpf_prog_aux *from = prog->aux, *aux = r->prog->aux;

	if (from->btf && !btf_holds_module(from->btf))
		swap(aux->btf, from->btf);
	swap(aux->user, from->user);
	retained_take_security(aux, from);
}

/* Retain @prog in @r, at the expense of who profiles. Return: 0 or -ENOMEM. */
static int retained_fill(struct bpf_prog_retained *r, struct bpf_prog *prog)
{
	struct mem_cgroup *memcg = retain_get_memcg();
	struct mem_cgroup *old = set_active_memcg(memcg);
	int err;

	r->size = sizeof(*r);
	r->share = retain_share_new(prog->aux->user);
	err = r->share ? 0 : -ENOMEM;
	err = err ?: retained_copy(r, prog) ?:
		     retained_copy_map_ids(r, prog) ?:
		     retained_copy_prog(r, prog);
	if (!err)
		retained_take(r, prog);

	set_active_memcg(old);
	mem_cgroup_put(memcg);
	return err;
}

static size_t retain_budget(void)
{
	return (size_t)READ_ONCE(sysctl_retain_kb) << 10;
}

/* Let @r join the share of its user. It has brought one, in case there is none. */
static void retain_share_join(struct bpf_prog_retained *r)
{
	struct bpf_prog_retain_share *share;

	lockdep_assert_held(&retain_lock);

	list_for_each_entry(share, &retain_shares, node) {
		if (share->user != r->share->user)
			continue;
		retain_share_free(r->share);
		r->share = share;
		return;
	}
	list_add_tail(&r->share->node, &retain_shares);
}

static void retain_share_reduce(struct bpf_prog_retain_share *share, size_t size)
{
	lockdep_assert_held(&retain_lock);

	retain_bytes -= size;
	share->bytes -= size;
	if (share->bytes)
		return;
	list_del(&share->node);
	retain_share_free(share);
}

/*
 * A BTF shared by several retained programs counts once. It is the first of them
 * whose user is charged.
 */
static void retain_charge(struct bpf_prog_retained *r)
{
	size_t size = r->size;

	lockdep_assert_held(&retain_lock);

	if (r->prog->aux->btf)
		size += btf_retain(r->prog->aux->btf, r->share);
	r->share->bytes += size;
	retain_bytes += size;
	retain_counts.nr_kept++;
}

static void retain_uncharge(struct bpf_prog_retained *r)
{
	struct bpf_prog_retain_share *share = NULL;
	size_t size = 0;

	lockdep_assert_held(&retain_lock);

	if (r->prog->aux->btf)
		size = btf_unretain(r->prog->aux->btf, &share);
	if (size)
		retain_share_reduce(share, size);
	retain_share_reduce(r->share, r->size);
	r->share = NULL;
	retain_counts.nr_kept--;
}

/* Of the user who has most. Return: NULL if nothing is retained. */
static struct bpf_prog_retained *retain_oldest(void)
{
	struct bpf_prog_retain_share *share, *most = NULL;

	lockdep_assert_held(&retain_lock);

	list_for_each_entry(share, &retain_shares, node)
		if (!list_empty(&share->order) && (!most || share->bytes > most->bytes))
			most = share;
	return most ? list_first_entry(&most->order, struct bpf_prog_retained, order) :
		      NULL;
}

/*
 * Don't evict others for a program that exceeds the limit on its own.
 * Return: whether it is retained.
 */
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
	retain_share_join(r);
	retain_charge(r);
	list_add_tail(&r->order, &r->share->order);
	return true;
}

/* Move an entry from the table to @gone. Return: NULL if there is none. */
static struct bpf_prog_retained *retain_remove_oldest(struct list_head *gone)
{
	struct bpf_prog_retained *r;

	lockdep_assert_held(&retain_lock);

	r = retain_oldest();
	if (!r)
		return NULL;
	hash_del(&r->hash);
	list_move_tail(&r->order, gone);
	retain_uncharge(r);
	return r;
}

/* Evict up to RETAIN_BATCH entries. Return: whether there may be more to evict. */
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
		if (!READ_ONCE(r->opened))
			retain_counts.nr_evicted++;
	}
	return true;
}

/* Evict entries until the rest is within the limit. May sleep. */
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
 * bpf_prog_retain_begin - announce that a program is about to release its id
 * @prog: the program, whose last reference has been put
 *
 * From here on bpf_prog_retained_fd() finds the program, and waits until
 * bpf_prog_retain_fill() has retained it.
 *
 * Context: Process or softirq. Takes a spinlock_t, so not under a raw spinlock.
 */
void bpf_prog_retain_begin(struct bpf_prog *prog)
{
	struct bpf_prog_retained *r;
	unsigned long flags;

	if (!static_branch_unlikely(&bpf_prog_retain_key.key))
		return;
	/* Offloaded programs have no code in the kernel */
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
		prog->aux->retaining = r;
		r = NULL;
	}
	spin_unlock_irqrestore(&retain_lock, flags);

	kfree(r);
}

/**
 * bpf_prog_retain_fill - retain the data behind a program's bpf_prog_info
 * @prog: a program that bpf_prog_retain_begin() has added to the table; it can no
 *	longer run, and is about to be freed
 *
 * Context: Process. May sleep.
 * Return: whether the program's LSM blob and user were moved; if so, the caller
 *	must not free them.
 */
bool bpf_prog_retain_fill(struct bpf_prog *prog)
{
	struct bpf_prog_retained *r = prog->aux->retaining;
	bool taken, more = false;
	LIST_HEAD(gone);
	int err = 0;

	if (READ_ONCE(retain_users) && retain_budget())
		err = retained_fill(r, prog);
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
		if (!hash_hashed(&r->hash))
			prog->aux->retaining = NULL;
	}

	wake_up_all(&retain_wait);
	retained_put_list(&gone);
	if (more)
		retain_evict();
	return taken;
}

/* The most recent entry with @id: ids are reused. */
static struct bpf_prog_retained *retain_find(u32 id)
{
	struct bpf_prog_retained *r;

	lockdep_assert_held(&retain_lock);

	hash_for_each_possible(retain_table, r, hash, id)
		if (r->id == id)
			return r;
	return NULL;
}

/* Return: a reference, or ERR_PTR(-ENOENT), or ERR_PTR(-EAGAIN) while PENDING. */
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
 * As retain_get_ended(), but -EBUSY in the short window in which neither lookup
 * finds the program: its last reference is put, and begin() has not run. If the id
 * is no longer ending, begin() has already run; look once more.
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
		/* There is no wakeup for the end of that window */
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
 * bpf_prog_retained_fd - open a file for the retained information of a program
 * @id: id of the unloaded program
 * @wait: wait for a program that has released its id, but is not retained yet
 *
 * BPF_OBJ_GET_INFO_BY_FD works on the file as it did on the program, except that
 * there are no xlated instructions. The file keeps this information after it is
 * evicted, and nothing else.
 *
 * Context: Process. May sleep.
 * Return: a file descriptor, or
 *  -EPERM, -EACCES: no permission; the checks are those of BPF_PROG_GET_FD_BY_ID
 *  -ENOENT: not retained: no event with attr.bpf_retain was open when the program
 *	was unloaded, or it was evicted, or it is still loaded
 *  -EAGAIN: not retained yet, without @wait
 *  -ERESTARTSYS: interrupted by a signal, with @wait
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
		/* Before the file exists: another thread may close it and free r */
		WRITE_ONCE(r->opened, true);
		err = anon_inode_getfd("bpf-prog-retained", &bpf_prog_retained_fops,
				       r->prog, O_RDONLY | O_CLOEXEC);
	}
	if (err < 0)
		retained_put(r);
	return err;
}

/* Remove up to RETAIN_BATCH entries, unless an event was opened meanwhile. */
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
 * bpf_prog_retain_start - retain programs that are unloaded from now on
 *
 * Nests. The memory is charged to the cgroup of the task that called this last, of
 * those that have not called bpf_prog_retain_stop().
 *
 * Context: Process. May sleep.
 * Return: for bpf_prog_retain_stop(). NULL is no error: others pay then.
 */
struct bpf_prog_retain_user *bpf_prog_retain_start(void)
{
	struct bpf_prog_retain_user *user = kzalloc_obj(*user, GFP_KERNEL_ACCOUNT);

	if (user)
		user->memcg = get_mem_cgroup_from_current();
	scoped_guard(spinlock_irqsave, &retain_lock) {
		retain_users++;
		if (user)
			list_add(&user->node, &retain_payers);
	}
	static_branch_deferred_inc(&bpf_prog_retain_key);
	return user;
}

/**
 * bpf_prog_retain_stop - undo one bpf_prog_retain_start()
 * @user: what that returned
 *
 * The last call drops all programs that are retained.
 *
 * Context: Process or softirq. Takes a spinlock_t, so not under a raw spinlock.
 */
void bpf_prog_retain_stop(struct bpf_prog_retain_user *user)
{
	bool last;

	static_branch_slow_dec_deferred(&bpf_prog_retain_key);
	scoped_guard(spinlock_irqsave, &retain_lock) {
		last = !--retain_users;
		if (user)
			list_del(&user->node);
	}
	if (user)
		mem_cgroup_put(user->memcg);
	kfree(user);
	if (last)
		schedule_work(&retain_drop_work);
}

/**
 * bpf_prog_retain_get_counts - read the counters of retained programs
 * @counts: filled with what is retained now, and what was lost since boot
 *
 * Context: Process or softirq. Takes a spinlock_t, so not under a raw spinlock.
 */
void bpf_prog_retain_get_counts(struct bpf_prog_retain_counts *counts)
{
	guard(spinlock_irqsave)(&retain_lock);
	*counts = retain_counts;
	counts->bytes = retain_bytes;
}

/* A smaller limit takes effect at once. */
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
