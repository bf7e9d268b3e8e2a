// SPDX-License-Identifier: GPL-2.0
/*
 * Which kernel text came into being after boot, and what is its name?
 *
 * JITs, tracers and patching make kernel text at run time. Each piece is
 * registered here before it can first run, and unregistered when it can no
 * longer run. What %pS, /proc/kallsyms, kernel_text_address() and perf's
 * PERF_RECORD_KSYMBOL say of it all comes from here, so they agree.
 *
 * Three kinds of readers:
 *
 *  - Lookups by address come from any context, NMI included. They walk a
 *    latched tree under RCU and take no lock.
 *  - Walks over all symbols go by the order of registration, which never
 *    changes and is never used again: a walk that stops goes on where it was,
 *    misses no symbol that was there throughout, and shows none twice.
 *  - perf gets a record with each change. Records are written under the lock
 *    that orders the changes, or the REGISTER of an old symbol could follow
 *    the UNREGISTER of it, or a new one at the same address.
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

static __always_inline struct kallsym_dyn *sym_of(struct latch_tree_node *node)
{
	return container_of(node, struct kallsym_dyn, tnode);
}

static __always_inline bool sym_less(struct latch_tree_node *a,
				     struct latch_tree_node *b)
{
	return sym_of(a)->start < sym_of(b)->start;
}

static __always_inline int sym_comp(void *key, struct latch_tree_node *node)
{
	unsigned long addr = (unsigned long)key;
	const struct kallsym_dyn *sym = sym_of(node);

	if (addr < sym->start)
		return -1;

	return addr >= sym->end;
}

static const struct latch_tree_ops kallsym_dyn_ops = {
	.less = sym_less,
	.comp = sym_comp,
};

static bool order_less(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct kallsym_dyn, snode)->seq <
	       rb_entry(b, struct kallsym_dyn, snode)->seq;
}

static void report(const struct kallsym_dyn *sym, bool unregister)
{
	if (sym->type == KALLSYM_DYN_MODULE && !unregister)
		perf_event_module(sym);
	else
		perf_event_ksymbol(sym->type, sym->start, sym->end - sym->start,
				   unregister, sym->name);
}

/* Its bytes as TEXT_POKE: they come after REGISTER and go before UNREGISTER. */
static void report_code(const struct kallsym_dyn *sym, bool unregister)
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
 * kallsym_dyn_register() - make a piece of kernel text known
 * @sym: its description, see &struct kallsym_dyn; not registered
 *
 * To be called before the text can first run. The text may not overlap with
 * other text that is known.
 *
 * Context: task or softirq, interrupts on, or off but on PREEMPT_RT; not under a
 * raw spinlock, nor in a hardirq or NMI. Does not sleep.
 */
void kallsym_dyn_register(struct kallsym_dyn *sym)
{
	if (WARN_ON_ONCE(sym->seq || sym->end <= sym->start))
		return;

	guard(spinlock_irqsave)(&kallsym_dyn_lock);
	sym->seq = ++kallsym_dyn_seq;
	rb_add(&sym->snode, &kallsym_dyn_order, order_less);
	if (!(sym->flags & KALLSYM_DYN_LIST_ONLY))
		latch_tree_insert(&sym->tnode, &kallsym_dyn_tree, &kallsym_dyn_ops);
	report(sym, false);
	report_code(sym, false);
}

/**
 * kallsym_dyn_unregister() - a piece of kernel text can no longer run
 * @sym: what was registered; one that is not is left alone
 *
 * The text is still there. Lookups that began before may still use @sym and
 * its name: both may be freed after an RCU grace period.
 *
 * Context: task or softirq, interrupts on, or off but on PREEMPT_RT; not under a
 * raw spinlock, nor in a hardirq or NMI. Does not sleep.
 * Return: was it registered, so that there is something to wait for?
 */
bool kallsym_dyn_unregister(struct kallsym_dyn *sym)
{
	guard(spinlock_irqsave)(&kallsym_dyn_lock);
	if (!sym->seq)
		return false;

	report_code(sym, true);
	report(sym, true);
	if (!(sym->flags & KALLSYM_DYN_LIST_ONLY))
		latch_tree_erase(&sym->tnode, &kallsym_dyn_tree, &kallsym_dyn_ops);
	rb_erase(&sym->snode, &kallsym_dyn_order);
	sym->seq = 0;

	return true;
}

static bool may_end_in_call(const struct kallsym_dyn *sym)
{
	return sym->type == KALLSYM_DYN_BPF;
}

/**
 * kallsym_dyn_find() - the dynamic text at an address
 * @addr: an address in the text, or a return address
 *
 * A call may be the last instruction of a BPF function, and its return address
 * then lies behind the function. It counts to it, unless other text begins right
 * there. All other text ends in something else; and what ends with a page may
 * have none behind it, where who was told that it is text would read.
 *
 * Context: any, NMI included, with RCU watching, in an RCU read-side critical
 * section for as long as the result is used.
 * Return: the symbol, or NULL if @addr is in no dynamic text.
 */
struct kallsym_dyn *kallsym_dyn_find(unsigned long addr)
{
	struct latch_tree_node *node;

	node = latch_tree_find((void *)addr, &kallsym_dyn_tree, &kallsym_dyn_ops);
	if (node)
		return sym_of(node);

	node = latch_tree_find((void *)(addr - 1), &kallsym_dyn_tree,
			       &kallsym_dyn_ops);

	return node && may_end_in_call(sym_of(node)) ? sym_of(node) : NULL;
}

/**
 * is_kallsym_dyn_address() - is this an address in dynamic text?
 * @addr: as of kallsym_dyn_find()
 *
 * Context: any, NMI included, with RCU watching.
 */
bool is_kallsym_dyn_address(unsigned long addr)
{
	guard(rcu)();
	return kallsym_dyn_find(addr);
}

/**
 * kallsym_dyn_lookup() - describe an address in dynamic text
 * @addr: as of kallsym_dyn_find()
 * @size: set to the size of the text in bytes, unless NULL
 * @off: set to the offset of @addr in it in bytes, unless NULL
 * @name: set to the symbol; KSYM_NAME_LEN bytes
 *
 * Context: any, NMI included, with RCU watching.
 * Return: the length of the symbol, or 0 if @addr is in no dynamic text;
 * nothing is set then.
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

/* The first symbol that was registered after @seq. */
static struct kallsym_dyn *first_after(u64 seq)
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
 * kallsym_dyn_walk() - call a function for each symbol, in order
 * @seq: where to begin: 0, or what an earlier walk left here; set to the
 *	number of the last symbol for which @fn did not fail
 * @fn: called with the lock held: it may not sleep, nor register, unregister
 *	or walk. Returns 0 to go on, a positive number to end the walk, a
 *	negative one to end it before this symbol.
 * @data: passed to @fn
 *
 * The lock is dropped between two calls. Each symbol that is registered from
 * the beginning to the end of the walk is visited once.
 *
 * Context: task or softirq, interrupts on, or off but on PREEMPT_RT; not under a
 * raw spinlock, nor in a hardirq or NMI. Does not sleep.
 * Return: 0 when all symbols were visited, else what @fn returned, which ends
 * the walk.
 */
int kallsym_dyn_walk(u64 *seq, kallsym_dyn_fn fn, void *data)
{
	const struct kallsym_dyn *sym;
	int ret;

	do {
		guard(spinlock_irqsave)(&kallsym_dyn_lock);
		sym = first_after(*seq);
		ret = sym ? fn(sym, data) : 0;
		if (sym && ret >= 0)
			*seq = sym->seq;
	} while (sym && !ret);

	return ret;
}
