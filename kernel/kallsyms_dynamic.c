// SPDX-License-Identifier: GPL-2.0
/*
 * Registry of dynamic kernel text: its address ranges and symbols
 *
 * JITs, tracers and code patching generate kernel text at run time. Each piece
 * is registered before it can first run, and unregistered when it can no longer
 * run. %pS, /proc/kallsyms, kernel_text_address() and PERF_RECORD_KSYMBOL all
 * use this registry, so they agree.
 *
 * There are three kinds of readers:
 *
 *  - Lookups by address can come from any context, including NMI. They search a
 *    latched tree under RCU and take no lock.
 *  - Walks over all symbols follow a list under RCU, in the order of registration.
 *    The symbols are numbered in this order. A number is never reused, so a walk
 *    can stop and resume. It misses no symbol that is registered throughout, and
 *    shows none twice. To resume after the last symbol was freed, a walk searches
 *    a tree by number, under the lock.
 *  - perf gets a record for each change. Events of CPUs get it under the lock that
 *    orders the changes. Otherwise the REGISTER of a symbol could follow its
 *    UNREGISTER, or the REGISTER of a new symbol at the same address. Events of the
 *    current task get theirs after that, since they can be many, and anyone can
 *    open them. The order is the same, as an owner frees the text only after
 *    kallsym_dyn_unregister() has returned.
 */

#include <linux/bottom_half.h>
#include <linux/cache.h>
#include <linux/cleanup.h>
#include <linux/irqflags.h>
#include <linux/kallsyms.h>
#include <linux/kallsyms_dynamic.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/rbtree.h>
#include <linux/rculist.h>
#include <linux/spinlock.h>
#include <linux/string.h>

/* Protects all of these against each other's changes */
static DEFINE_SPINLOCK(kallsym_dyn_lock);
static struct latch_tree_root kallsym_dyn_tree __cacheline_aligned;
static LIST_HEAD(kallsym_dyn_list);
static struct rb_root kallsym_dyn_by_seq = RB_ROOT;
static u64 kallsym_dyn_seq;
static unsigned long kallsym_dyn_removals;

/*
 * The trampoline of "ftrace=function" on the command line is registered before
 * interrupts may be enabled, which local_bh_enable() can do. There is one CPU then,
 * and no softirq.
 */
static void kallsym_dyn_lock_changes(void)
{
	if (!early_boot_irqs_disabled)
		local_bh_disable();
	spin_lock(&kallsym_dyn_lock);
}

static void kallsym_dyn_unlock_changes(void)
{
	spin_unlock(&kallsym_dyn_lock);
	if (!early_boot_irqs_disabled)
		local_bh_enable();
}

DEFINE_LOCK_GUARD_0(kallsym_dyn_changes, kallsym_dyn_lock_changes(),
		    kallsym_dyn_unlock_changes())

static __always_inline struct kallsym_dyn *kallsym_dyn_entry(struct latch_tree_node *node)
{
	return container_of(node, struct kallsym_dyn, tnode);
}

static __always_inline bool kallsym_dyn_less(struct latch_tree_node *a,
					     struct latch_tree_node *b)
{
	return kallsym_dyn_entry(a)->start < kallsym_dyn_entry(b)->start;
}

static __always_inline int kallsym_dyn_comp(void *key, struct latch_tree_node *node)
{
	unsigned long addr = (unsigned long)key;
	const struct kallsym_dyn *sym = kallsym_dyn_entry(node);

	if (addr < sym->start)
		return -1;

	return addr >= sym->end;
}

static const struct latch_tree_ops kallsym_dyn_ops = {
	.less = kallsym_dyn_less,
	.comp = kallsym_dyn_comp,
};

static bool kallsym_dyn_seq_less(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct kallsym_dyn, seq_node)->seq <
	       rb_entry(b, struct kallsym_dyn, seq_node)->seq;
}

/* Return: the first symbol that was registered after @seq, or NULL. */
static const struct kallsym_dyn *kallsym_dyn_after(u64 seq)
{
	struct rb_node *node = kallsym_dyn_by_seq.rb_node;
	const struct kallsym_dyn *sym, *found = NULL;

	lockdep_assert_held(&kallsym_dyn_lock);
	while (node) {
		sym = rb_entry(node, struct kallsym_dyn, seq_node);
		if (sym->seq > seq)
			found = sym;
		node = sym->seq > seq ? node->rb_left : node->rb_right;
	}

	return found;
}

static void kallsym_dyn_report(const struct kallsym_dyn *sym, bool unregister,
			       unsigned int events)
{
	if (sym->type == KALLSYM_DYN_MODULE && !unregister)
		perf_event_module(sym, events);
	else
		perf_event_ksymbol_events(sym->type, sym->start,
					  sym->end - sym->start, unregister,
					  sym->name, events);
}

/* TEXT_POKE records of the code, after REGISTER and before UNREGISTER. */
static void kallsym_dyn_report_code(const struct kallsym_dyn *sym, bool unregister,
				    unsigned int events)
{
	if (sym->flags & KALLSYM_DYN_CODE)
		perf_event_ksymbol_code(sym, unregister, events);
}

static void kallsym_dyn_report_begin(const struct kallsym_dyn *sym,
				     unsigned int events)
{
	kallsym_dyn_report(sym, false, events);
	kallsym_dyn_report_code(sym, false, events);
}

static void kallsym_dyn_report_end(const struct kallsym_dyn *sym,
				   unsigned int events)
{
	kallsym_dyn_report_code(sym, true, events);
	kallsym_dyn_report(sym, true, events);
}

/**
 * kallsym_dyn_register() - register the symbol of dynamic kernel text
 * @sym: symbol that is not registered, see &struct kallsym_dyn
 *
 * Call this before the text can first run. The range must not overlap with
 * other registered ranges. After kallsym_dyn_unregister() do not register @sym
 * again before a grace period, as walks may still use it to get to the next one.
 *
 * Context: Process or softirq, with interrupts on. Takes a spinlock_t, so not
 * under a raw spinlock.
 */
void kallsym_dyn_register(struct kallsym_dyn *sym)
{
	if (WARN_ON_ONCE(sym->seq || sym->end <= sym->start))
		return;

	WRITE_ONCE(sym->task_ended, false);
	scoped_guard(kallsym_dyn_changes) {
		sym->seq = ++kallsym_dyn_seq;
		list_add_tail_rcu(&sym->node, &kallsym_dyn_list);
		rb_add(&sym->seq_node, &kallsym_dyn_by_seq, kallsym_dyn_seq_less);
		if (!(sym->flags & KALLSYM_DYN_PERF_ONLY))
			latch_tree_insert(&sym->tnode, &kallsym_dyn_tree,
					  &kallsym_dyn_ops);
		kallsym_dyn_report_begin(sym, PERF_SB_CPU);
	}
	kallsym_dyn_report_begin(sym, PERF_SB_TASK);
}

/**
 * kallsym_dyn_end_task() - report the end of text to events of the current task
 * @sym: the symbol; nothing is done if it is not registered
 *
 * For text that the current task gives up, but that may run for some more time.
 * kallsym_dyn_unregister() leaves events of tasks out then: it runs in an
 * arbitrary task.
 *
 * Context: Process or softirq. The caller serializes this with registration of
 * @sym.
 */
void kallsym_dyn_end_task(struct kallsym_dyn *sym)
{
	if (!sym->seq)
		return;

	WRITE_ONCE(sym->task_ended, true);
	kallsym_dyn_report_end(sym, PERF_SB_TASK);
}

/**
 * kallsym_dyn_unregister() - unregister the symbol of dynamic kernel text
 * @sym: the symbol; nothing is done if it is not registered
 *
 * Call this when the text can no longer run, but still exists. Lookups and walks
 * that began before may still use @sym and its name, so free both only after an
 * RCU grace period.
 *
 * Context: Process or softirq, with interrupts on. Takes a spinlock_t, so not
 * under a raw spinlock. The caller serializes this with registration of @sym.
 * Return: true if @sym was registered, so that there are lookups to wait for.
 */
bool kallsym_dyn_unregister(struct kallsym_dyn *sym)
{
	if (!sym->seq)
		return false;

	scoped_guard(kallsym_dyn_changes) {
		kallsym_dyn_report_end(sym, PERF_SB_CPU);
		if (!(sym->flags & KALLSYM_DYN_PERF_ONLY))
			latch_tree_erase(&sym->tnode, &kallsym_dyn_tree,
					 &kallsym_dyn_ops);
		list_del_rcu(&sym->node);
		rb_erase(&sym->seq_node, &kallsym_dyn_by_seq);
		WRITE_ONCE(sym->seq, 0);
		/* After the list has changed. Pairs with kallsym_dyn_next(). */
		smp_store_release(&kallsym_dyn_removals, kallsym_dyn_removals + 1);
	}
	if (!sym->task_ended)
		kallsym_dyn_report_end(sym, PERF_SB_TASK);

	return true;
}

static bool kallsym_dyn_may_end_in_call(const struct kallsym_dyn *sym)
{
	return sym->type == KALLSYM_DYN_BPF;
}

/**
 * kallsym_dyn_find() - find the symbol of an address in dynamic text
 * @addr: address in the text, or a return address
 *
 * If the last instruction of a BPF function is a call, its return address is the
 * first address after the function. That address counts as part of the function
 * unless other text starts there. Other kinds of text do not end in a call. They
 * may also end with a page and have nothing mapped after it, so a caller that
 * reads the text at @addr would fault.
 *
 * Context: Any, including NMI. RCU must be watching, and the caller must be in
 * an RCU read-side critical section while it uses the result.
 * Return: the symbol, or NULL if @addr is not in dynamic text.
 */
struct kallsym_dyn *kallsym_dyn_find(unsigned long addr)
{
	struct latch_tree_node *node;

	node = latch_tree_find((void *)addr, &kallsym_dyn_tree, &kallsym_dyn_ops);
	if (node)
		return kallsym_dyn_entry(node);

	node = latch_tree_find((void *)(addr - 1), &kallsym_dyn_tree,
			       &kallsym_dyn_ops);

	if (!node || !kallsym_dyn_may_end_in_call(kallsym_dyn_entry(node)))
		return NULL;

	return kallsym_dyn_entry(node);
}

/**
 * is_kallsym_dyn_address() - check if an address is in dynamic text
 * @addr: address in the text, or a return address, see kallsym_dyn_find()
 *
 * Context: Any, including NMI. RCU must be watching.
 * Return: true if kallsym_dyn_find() finds a symbol for @addr.
 */
bool is_kallsym_dyn_address(unsigned long addr)
{
	guard(rcu)();
	return kallsym_dyn_find(addr);
}

/**
 * is_kallsym_dyn_code() - check if an address is in text whose code perf reports
 * @addr: address in the text
 *
 * Context: Any, including NMI. RCU must be watching.
 * Return: true if @addr is in text that is registered with KALLSYM_DYN_CODE.
 */
bool is_kallsym_dyn_code(unsigned long addr)
{
	const struct kallsym_dyn *sym;

	guard(rcu)();
	sym = kallsym_dyn_find(addr);
	return sym && sym->flags & KALLSYM_DYN_CODE;
}

/**
 * kallsym_dyn_lookup() - get symbol name, size and offset for an address
 * @addr: address in the text, or a return address, see kallsym_dyn_find()
 * @size: set to the size of the text in bytes, unless NULL
 * @off: set to the offset of @addr in the text in bytes, unless NULL
 * @name: buffer of KSYM_NAME_LEN bytes for the symbol name
 *
 * Context: Any, including NMI. RCU must be watching.
 * Return: the length of the name, or 0 if @addr is not in dynamic text. Nothing
 * is set in that case.
 */
int kallsym_dyn_lookup(unsigned long addr, unsigned long *size,
		       unsigned long *off, char *name)
{
	const struct kallsym_dyn *sym;

	guard(rcu)();
	sym = kallsym_dyn_find(addr);
	if (!sym)
		return 0;

	if (size)
		*size = sym->end - sym->start;
	if (off)
		*off = addr - sym->start;

	return strscpy(name, sym->name, KSYM_NAME_LEN);
}

/* Set @next to the first symbol behind @sym with a number above @seq, if any. */
static void kallsym_dyn_follow(const struct kallsym_dyn *sym, u64 seq,
			       struct kallsym_dyn_cursor *next)
{
	list_for_each_entry_continue_rcu(sym, &kallsym_dyn_list, node) {
		u64 number = READ_ONCE(sym->seq);

		if (number <= seq)
			continue;
		next->seq = number;
		next->sym = sym;
		return;
	}
}

/* Set @next to the first symbol with a number above @seq, if any. */
static void kallsym_dyn_search(u64 seq, struct kallsym_dyn_cursor *next)
{
	const struct kallsym_dyn *head;

	/* A debugger may have stopped a CPU that holds the lock */
	if (irqs_disabled()) {
		head = list_entry(&kallsym_dyn_list, struct kallsym_dyn, node);
		kallsym_dyn_follow(head, seq, next);
		return;
	}

	guard(spinlock_bh)(&kallsym_dyn_lock);
	next->sym = kallsym_dyn_after(seq);
	if (next->sym)
		next->seq = next->sym->seq;
}

/**
 * kallsym_dyn_next() - get the next symbol, in the order of registration
 * @cur: position; moved to the symbol that is returned, otherwise kept
 *
 * The position may be kept without RCU read lock. If a symbol was unregistered
 * since, the last symbol may have been freed, and its successor is searched for by
 * number.
 *
 * Context: Any. Takes a spinlock_t if interrupts are on, so not under a raw
 * spinlock then. The caller must be in an RCU read-side critical section while it
 * uses the result, which may be unregistered meanwhile.
 * Return: the symbol, or NULL if there is none.
 */
const struct kallsym_dyn *kallsym_dyn_next(struct kallsym_dyn_cursor *cur)
{
	struct kallsym_dyn_cursor next = {
		/* Before the list is read. Pairs with kallsym_dyn_unregister(). */
		.removals = smp_load_acquire(&kallsym_dyn_removals),
	};

	/*
	 * If no removal is seen since, a grace period that waits for one also waits
	 * for this reader: the last symbol exists, and so do all that follow it.
	 */
	if (cur->sym && cur->removals == next.removals)
		kallsym_dyn_follow(cur->sym, cur->seq, &next);
	else
		kallsym_dyn_search(cur->seq, &next);
	if (next.sym)
		*cur = next;

	return next.sym;
}

/**
 * kallsym_dyn_walk() - call a function for each symbol, in registration order
 * @seq: where to start: 0, or the value from an earlier walk. Set to the
 *	registration number of the last symbol for which @fn did not fail.
 * @fn: called with the registry's lock held, so it must not sleep, register,
 *	unregister or walk. Returns 0 to continue, a positive number to stop
 *	after this symbol, or a negative one to stop before it.
 * @data: passed to @fn
 *
 * The lock is dropped between calls of @fn. Each symbol that stays registered
 * during the whole walk is visited once.
 *
 * Context: Process or softirq, with interrupts on. Takes a spinlock_t, so not
 * under a raw spinlock.
 * Return: 0 if all symbols were visited, or the non-zero result of @fn that
 * stopped the walk.
 */
int kallsym_dyn_walk(u64 *seq, kallsym_dyn_fn fn, void *data)
{
	const struct kallsym_dyn *sym;
	int ret;

	do {
		guard(spinlock_bh)(&kallsym_dyn_lock);
		sym = kallsym_dyn_after(*seq);
		if (!sym)
			return 0;

		ret = fn(sym, data);
		if (ret >= 0)
			*seq = sym->seq;
	} while (!ret);

	return ret;
}
