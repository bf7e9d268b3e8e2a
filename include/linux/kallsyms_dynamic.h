/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_KALLSYMS_DYNAMIC_H
#define _LINUX_KALLSYMS_DYNAMIC_H

#include <linux/rbtree_latch.h>
#include <linux/types.h>
#include <uapi/linux/perf_event.h>

/**
 * enum kallsym_dyn_type - kind of dynamic kernel text
 * @KALLSYM_DYN_BPF: function of a BPF program, or BPF image
 * @KALLSYM_DYN_OOL: out-of-line code: an ftrace trampoline, or a page of
 *	kprobe or optprobe slots
 * @KALLSYM_DYN_CBPF: classic BPF filter
 * @KALLSYM_DYN_THUNK: page of thunks for branches of the kernel
 * @KALLSYM_DYN_MODULE: core or init text of a module, see &struct kallsym_dyn_module
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

/* The symbol is embedded in a struct bpf_prog_aux */
#define KALLSYM_DYN_BPF_PROG	0x1
/* No other record describes the code: perf reports it as TEXT_POKE */
#define KALLSYM_DYN_CODE	0x2
/* Init text of a module, which is freed before the core text */
#define KALLSYM_DYN_INIT_TEXT	0x4

/**
 * struct kallsym_dyn - symbol of a range of dynamic kernel text
 * @start: address of the first byte
 * @end: address after the last byte
 * @name: symbol name; the owner must keep it as long as the structure
 * @modname: module name, which /proc/kallsyms prints in brackets
 * @type: one of &enum kallsym_dyn_type
 * @flags: KALLSYM_DYN_BPF_PROG, KALLSYM_DYN_CODE,
 *	KALLSYM_DYN_INIT_TEXT
 * @registered: the symbol is in the registry
 * @task_ended: kallsym_dyn_end_task() has reported the end to events of tasks
 * @node: node in the tree by address
 *
 * The owner of the text embeds a zeroed structure and sets the first six
 * members.
 */
struct kallsym_dyn {
	unsigned long		start;
	unsigned long		end;
	const char		*name;
	const char		*modname;
	u16			type;
	u16			flags;
	bool			registered;
	bool			task_ended;
	struct latch_tree_node	node;
};

/**
 * struct kallsym_dyn_module - core or init text of a module
 * @sym: range of the text, with the name of the module
 * @build_id: build ID of the module, BUILD_ID_SIZE_MAX bytes, or NULL
 */
struct kallsym_dyn_module {
	struct kallsym_dyn	sym;
	const unsigned char	*build_id;
};

typedef int (*kallsym_dyn_fn)(const struct kallsym_dyn *sym, void *data);

#ifdef CONFIG_KALLSYMS_DYNAMIC

void kallsym_dyn_register(struct kallsym_dyn *sym);
void kallsym_dyn_end_task(struct kallsym_dyn *sym);
void kallsym_dyn_unregister(struct kallsym_dyn *sym);
struct kallsym_dyn *kallsym_dyn_find(unsigned long addr);
bool is_kallsym_dyn_address(unsigned long addr);
bool is_kallsym_dyn_code(unsigned long addr);
int kallsym_dyn_lookup(unsigned long addr, unsigned long *size,
		       unsigned long *off, char *name);
const struct kallsym_dyn *kallsym_dyn_next(unsigned long addr);
int kallsym_dyn_with_next(unsigned long addr, kallsym_dyn_fn fn, void *data);

/**
 * kallsym_dyn_registered() - check if a symbol is registered
 * @sym: the symbol
 *
 * Context: Any. The caller serializes this with registration of @sym.
 * Return: true if @sym is registered.
 */
static inline bool kallsym_dyn_registered(const struct kallsym_dyn *sym)
{
	return sym->registered;
}

#else /* !CONFIG_KALLSYMS_DYNAMIC */

static inline bool is_kallsym_dyn_address(unsigned long addr)
{
	return false;
}

static inline bool is_kallsym_dyn_code(unsigned long addr)
{
	return false;
}

static inline int kallsym_dyn_lookup(unsigned long addr, unsigned long *size,
				     unsigned long *off, char *name)
{
	return 0;
}

static inline const struct kallsym_dyn *kallsym_dyn_next(unsigned long addr)
{
	return NULL;
}

#endif /* CONFIG_KALLSYMS_DYNAMIC */

#endif /* _LINUX_KALLSYMS_DYNAMIC_H */
