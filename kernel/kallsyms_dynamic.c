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
 *  - Walks over all symbols follow the registration numbers. A number never
 *    changes and is never reused, so a walk can stop and resume. It misses no
 *    symbol that is registered throughout, and shows none twice.
 *  - perf gets a record for each change. Records are written under the lock that
 *    orders the changes. Otherwise the REGISTER of a symbol could follow its
 *    UNREGISTER, or the REGISTER of a new symbol at the same address.
 */

#include <linux/cache.h>
#include <linux/export.h>
#include <linux/kallsyms.h>
#include <linux/kallsyms_dynamic.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/string.h>

static DEFINE_SPINLOCK(kallsym_dyn_lock);
static struct latch_tree_root kallsym_dyn_tree __cacheline_aligned;
static struct rb_root kallsym_dyn_order = RB_ROOT;
static u64 kallsym_dyn_seq;

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
	return rb_entry(a, struct kallsym_dyn, snode)->seq <
	       rb_entry(b, struct kallsym_dyn, snode)->seq;
}

static void kallsym_dyn_report(const struct kallsym_dyn *sym, bool unregister)
{
	if (sym->type == KALLSYM_DYN_MODULE && !unregister)
		perf_event_module(sym);
	else
		perf_event_ksymbol(sym->type, sym->start, sym->end - sym->start,
				   unregister, sym->name);
}

/* TEXT_POKE records of the code, after REGISTER and before UNREGISTER. */
static void kallsym_dyn_report_code(const struct kallsym_dyn *sym, bool unregister)
{
	const void *code = (const void *)sym->start;
	size_t len = sym->end - sym->start;

	if (!(sym->flags & KALLSYM_DYN_CODE))
		return;

	if (unregister)
		perf_event_text_poke(code, code, len, NULL, 0);
	else
		perf_event_text_poke(code, NULL, 0, code, len);
}

/**
 * kallsym_dyn_register() - register the symbol of dynamic kernel text
 * @sym: symbol that is not registered, see &struct kallsym_dyn
 *
 * Call this before the text can first run. The range must not overlap with
 * other registered ranges.
 *
 * Context: Process or softirq. Takes a spinlock_t, so not under a raw spinlock,
 * and on PREEMPT_RT not with interrupts off.
 */
void kallsym_dyn_register(struct kallsym_dyn *sym)
{
	if (WARN_ON_ONCE(sym->seq || sym->end <= sym->start))
		return;

	guard(spinlock_irqsave)(&kallsym_dyn_lock);
	sym->seq = ++kallsym_dyn_seq;
	rb_add(&sym->snode, &kallsym_dyn_order, kallsym_dyn_seq_less);
	if (!(sym->flags & KALLSYM_DYN_LIST_ONLY))
		latch_tree_insert(&sym->tnode, &kallsym_dyn_tree, &kallsym_dyn_ops);
	kallsym_dyn_report(sym, false);
	kallsym_dyn_report_code(sym, false);
}

/**
 * kallsym_dyn_unregister() - unregister the symbol of dynamic kernel text
 * @sym: the symbol; nothing is done if it is not registered
 *
 * Call this when the text can no longer run, but still exists. Lookups that
 * have already started may use @sym and its name, so free both only after an
 * RCU grace period.
 *
 * Context: Process or softirq. Takes a spinlock_t, so not under a raw spinlock,
 * and on PREEMPT_RT not with interrupts off.
 * Return: true if @sym was registered, so that there are lookups to wait for.
 */
bool kallsym_dyn_unregister(struct kallsym_dyn *sym)
{
	guard(spinlock_irqsave)(&kallsym_dyn_lock);
	if (!sym->seq)
		return false;

	kallsym_dyn_report_code(sym, true);
	kallsym_dyn_report(sym, true);
	if (!(sym->flags & KALLSYM_DYN_LIST_ONLY))
		latch_tree_erase(&sym->tnode, &kallsym_dyn_tree, &kallsym_dyn_ops);
	rb_erase(&sym->snode, &kallsym_dyn_order);
	sym->seq = 0;

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

/* The first symbol with a registration number greater than @seq, or NULL. */
static struct kallsym_dyn *kallsym_dyn_next(u64 seq)
{
	struct rb_node *node = kallsym_dyn_order.rb_node;
	struct kallsym_dyn *found = NULL;

	while (node) {
		struct kallsym_dyn *sym = rb_entry(node, struct kallsym_dyn, snode);

		if (sym->seq > seq) {
			found = sym;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}

	return found;
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
 * Context: Process or softirq. Takes a spinlock_t, so not under a raw spinlock,
 * and on PREEMPT_RT not with interrupts off.
 * Return: 0 if all symbols were visited, or the non-zero result of @fn that
 * stopped the walk.
 */
int kallsym_dyn_walk(u64 *seq, kallsym_dyn_fn fn, void *data)
{
	const struct kallsym_dyn *sym;
	int ret;

	do {
		guard(spinlock_irqsave)(&kallsym_dyn_lock);
		sym = kallsym_dyn_next(*seq);
		ret = sym ? fn(sym, data) : 0;
		if (sym && ret >= 0)
			*seq = sym->seq;
	} while (sym && !ret);

	return ret;
}
