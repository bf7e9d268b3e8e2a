/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_KALLSYMS_DYNAMIC_H
#define _LINUX_KALLSYMS_DYNAMIC_H

#include <linux/rbtree.h>
#include <linux/rbtree_latch.h>
#include <linux/types.h>
#include <uapi/linux/perf_event.h>

/**
 * enum kallsym_dyn_type - what a piece of dynamic kernel text is
 * @KALLSYM_DYN_BPF: a function or an image that BPF made
 * @KALLSYM_DYN_OOL: code moved out of line: an ftrace trampoline, a page of
 *	kprobe or optprobe slots
 * @KALLSYM_DYN_CBPF: a classic BPF filter
 * @KALLSYM_DYN_THUNK: a page of thunks that the kernel branches through
 * @KALLSYM_DYN_MODULE: core or init text of a module: &struct kallsym_dyn_module
 *
 * The values are those of &enum perf_record_ksymbol_type.
 */
enum kallsym_dyn_type {
	KALLSYM_DYN_BPF		= PERF_RECORD_KSYMBOL_TYPE_BPF,
	KALLSYM_DYN_OOL		= PERF_RECORD_KSYMBOL_TYPE_OOL,
	KALLSYM_DYN_CBPF	= PERF_RECORD_KSYMBOL_TYPE_CBPF,
	KALLSYM_DYN_THUNK	= PERF_RECORD_KSYMBOL_TYPE_THUNK,
	KALLSYM_DYN_MODULE	= PERF_RECORD_KSYMBOL_TYPE_MODULE,
};

/* The symbol is in a struct bpf_prog_aux */
#define KALLSYM_DYN_BPF_PROG	0x1
/* Listed and reported, but looked up elsewhere */
#define KALLSYM_DYN_LIST_ONLY	0x2
/* The code is complete when it is registered, and perf is told what it is */
#define KALLSYM_DYN_CODE	0x4
/* Init text of a module: it goes before the core text does */
#define KALLSYM_DYN_INIT_TEXT	0x8

/**
 * struct kallsym_dyn - a range of kernel text that came into being after boot
 * @start: address of the first byte
 * @end: address behind the last byte
 * @name: the symbol; the owner keeps it for as long as the structure
 * @modname: what /proc/kallsyms prints in brackets
 * @type: an &enum kallsym_dyn_type
 * @flags: KALLSYM_DYN_BPF_PROG, KALLSYM_DYN_LIST_ONLY, KALLSYM_DYN_CODE,
 *	KALLSYM_DYN_INIT_TEXT
 * @seq: the order of registrations; 0 while it is not registered
 * @tnode: in the tree by address
 * @snode: in the tree by @seq
 *
 * An owner of text embeds one, zeroed, and fills in the first six.
 */
struct kallsym_dyn {
	unsigned long		start;
	unsigned long		end;
	const char		*name;
	const char		*modname;
	u16			type;
	u16			flags;
	u64			seq;
	struct latch_tree_node	tnode;
	struct rb_node		snode;
};

/**
 * struct kallsym_dyn_module - core or init text of a module
 * @sym: its range, with the name of the module
 * @build_id: BUILD_ID_SIZE_MAX bytes, or NULL if it has none
 */
struct kallsym_dyn_module {
	struct kallsym_dyn	sym;
	const unsigned char	*build_id;
};

typedef int (*kallsym_dyn_fn)(const struct kallsym_dyn *sym, void *data);

#ifdef CONFIG_KALLSYMS_DYNAMIC

void kallsym_dyn_register(struct kallsym_dyn *sym);
bool kallsym_dyn_unregister(struct kallsym_dyn *sym);
struct kallsym_dyn *kallsym_dyn_find(unsigned long addr);
bool is_kallsym_dyn_address(unsigned long addr);
int kallsym_dyn_lookup(unsigned long addr, unsigned long *size,
		       unsigned long *off, char *name);
int kallsym_dyn_walk(u64 *seq, kallsym_dyn_fn fn, void *data);

/**
 * kallsym_dyn_registered() - is the symbol registered?
 * @sym: the symbol
 *
 * Context: any; whoever registers and unregisters @sym orders it with that.
 */
static inline bool kallsym_dyn_registered(const struct kallsym_dyn *sym)
{
	return sym->seq;
}

#else /* !CONFIG_KALLSYMS_DYNAMIC */

static inline bool is_kallsym_dyn_address(unsigned long addr)
{
	return false;
}

static inline int kallsym_dyn_lookup(unsigned long addr, unsigned long *size,
				     unsigned long *off, char *name)
{
	return 0;
}

static inline int kallsym_dyn_walk(u64 *seq, kallsym_dyn_fn fn, void *data)
{
	return 0;
}

#endif /* CONFIG_KALLSYMS_DYNAMIC */

#endif /* _LINUX_KALLSYMS_DYNAMIC_H */
