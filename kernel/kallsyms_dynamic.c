// SPDX-License-Identifier: GPL-2.0
/*
 * Registry of dynamic kernel text: its address ranges and symbols
 *
 * JITs, tracers and code patching generate kernel text at run time. Each piece
 * is registered before it can first run, and unregistered when it can no longer
 * run. %pS, /proc/kallsyms, kernel_text_address() and PERF_RECORD_KSYMBOL all
 * use this registry, so they agree.
 *
 * The ranges do not overlap, and are kept in a latched tree. There are three kinds
 * of readers:
 *
 *  - Lookups by address can come from any context, including NMI. They search the
 *    tree under RCU and take no lock.
 *  - Walks over all symbols go by address: where the last symbol ended, they search
 *    for the next one. So they can stop and resume at any time, miss no symbol that
 *    is registered throughout, and show none twice.
 *  - perf gets a record for each change: REGISTER after the symbol was inserted,
 *    UNREGISTER after it was erased, both before the owner goes on. The owner frees
 *    the text after that, so the records of one address are in order. A snapshot
 *    writes its record of a symbol under the lock, when the symbol is in the tree:
 *    before it is erased, and so before its UNREGISTER.
 *
 * The lock covers a change of the tree and one record of a snapshot. The live records
 * are written without it, as there can be any number of events.
 */

#include <linux/bottom_half.h>
#include <linux/cache.h>
#include <linux/cleanup.h>
#include <linux/irqflags.h>
#include <linux/kallsyms.h>
#include <linux/kallsyms_dynamic.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/preempt.h>
#include <linux/spinlock.h>
#include <linux/string.h>

/* Serializes changes of the tree */
static DEFINE_SPINLOCK(kallsym_dyn_lock);
static struct latch_tree_root kallsym_dyn_tree __cacheline_aligned;

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
	return container_of(node, struct kallsym_dyn, node);
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
 * @sym: symbol that is not registered, of two bytes or more, see &struct kallsym_dyn
 *
 * Call this before the text can first run. The range must not overlap with
 * other registered ranges. After kallsym_dyn_unregister() do not register @sym
 * again before a grace period, as lookups may still be at its node.
 *
 * Context: Process or softirq, with interrupts on. Takes a spinlock_t, so not
 * under a raw spinlock.
 */
void kallsym_dyn_register(struct kallsym_dyn *sym)
{
	/* A single byte has no room for the cursor of a snapshot */
	if (WARN_ON_ONCE(sym->registered || sym->start >= sym->end - 1))
		return;

	sym->registered = true;
	sym->task_ended = false;
	scoped_guard(kallsym_dyn_changes)
		latch_tree_insert(&sym->node, &kallsym_dyn_tree, &kallsym_dyn_ops);
	kallsym_dyn_report_begin(sym, PERF_SB_ALL);
}

/**
 * kallsym_dyn_end_task() - report the end of text to events of the current task
 * @sym: the symbol; nothing is done if it is not registered
 *
 * For text that the current task gives up, but that may run for some more time.
 * kallsym_dyn_unregister() leaves events of tasks out then: it runs in an
 * arbitrary task.
 *
 * Context: Process or softirq, where nothing is reported. The caller serializes
 * this with registration of @sym.
 */
void kallsym_dyn_end_task(struct kallsym_dyn *sym)
{
	if (!sym->registered)
		return;

	sym->task_ended = true;
	if (in_task())
		kallsym_dyn_report_end(sym, PERF_SB_TASK);
}

/* A softirq interrupts any task, which has nothing to do with the text. */
static unsigned int kallsym_dyn_end_events(const struct kallsym_dyn *sym)
{
	return sym->task_ended || in_serving_softirq() ? PERF_SB_CPU : PERF_SB_ALL;
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
 */
void kallsym_dyn_unregister(struct kallsym_dyn *sym)
{
	if (!sym->registered)
		return;

	scoped_guard(kallsym_dyn_changes)
		latch_tree_erase(&sym->node, &kallsym_dyn_tree, &kallsym_dyn_ops);
	kallsym_dyn_report_end(sym, kallsym_dyn_end_events(sym));
	sym->registered = false;
}

static struct kallsym_dyn *kallsym_dyn_at(unsigned long addr)
{
	struct latch_tree_node *node;

	node = latch_tree_find((void *)addr, &kallsym_dyn_tree, &kallsym_dyn_ops);
	return node ? kallsym_dyn_entry(node) : NULL;
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
	struct kallsym_dyn *sym = kallsym_dyn_at(addr);

	/* mod_tree finds the text of modules */
	if (sym)
		return sym->type == KALLSYM_DYN_MODULE ? NULL : sym;

	/* Only BPF functions end in a call */
	sym = kallsym_dyn_at(addr - 1);
	return sym && sym->type == KALLSYM_DYN_BPF ? sym : NULL;
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
	sym = kallsym_dyn_at(addr);
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

struct kallsym_dyn_search {
	unsigned long			addr;
	const struct kallsym_dyn	*found;
};

/*
 * Find the first symbol that ends above an address: the last node at which the search
 * turns left. A search that is repeated because the tree changed may leave the result of
 * the first attempt: a symbol that was inserted or erased meanwhile.
 */
static __always_inline int kallsym_dyn_comp_end(void *key, struct latch_tree_node *node)
{
	struct kallsym_dyn_search *search = key;
	const struct kallsym_dyn *sym = kallsym_dyn_entry(node);

	if (sym->end <= search->addr)
		return 1;

	search->found = sym;
	return -1;
}

static const struct latch_tree_ops kallsym_dyn_next_ops = {
	.comp = kallsym_dyn_comp_end,
};

/**
 * kallsym_dyn_next() - get the first symbol that ends above an address
 * @addr: where to start: 0, or the end of the last symbol
 *
 * Context: Any, including NMI. RCU must be watching, and the caller must be in an RCU
 * read-side critical section while it uses the result, which may be unregistered
 * meanwhile.
 * Return: the symbol, or NULL if there is none.
 */
const struct kallsym_dyn *kallsym_dyn_next(unsigned long addr)
{
	struct kallsym_dyn_search search = { .addr = addr };

	latch_tree_find(&search, &kallsym_dyn_tree, &kallsym_dyn_next_ops);
	return search.found;
}

/**
 * kallsym_dyn_with_next() - call a function for the first symbol that ends above an
 *	address
 * @addr: where to start: 0, or the end of the last symbol
 * @fn: called with the registry's lock held, so it must not sleep, register or
 *	unregister
 * @data: passed to @fn
 *
 * The symbol stays registered, and its UNREGISTER is not written, until @fn returns.
 *
 * Context: Process or softirq, with interrupts on. Takes a spinlock_t, so not
 * under a raw spinlock.
 * Return: the result of @fn, or 0 if there is no symbol.
 */
int kallsym_dyn_with_next(unsigned long addr, kallsym_dyn_fn fn, void *data)
{
	const struct kallsym_dyn *sym;

	guard(spinlock_bh)(&kallsym_dyn_lock);
	sym = kallsym_dyn_next(addr);
	return sym ? fn(sym, data) : 0;
}
