// SPDX-License-Identifier: GPL-2.0
/*
 * Tracing programs on functions by address
 *
 * attach_btf_id is a FUNC, and a tracing program is attached to the first symbol of its
 * name. So of several functions that share a name one can be reached, those of which
 * pahole wrote no FUNC cannot, and neither can clones as foo.isra.0().
 *
 * .BTF.func has FUNCs of just these, and the index tells where they are. Their ids go on
 * where those of the object's BTF end. So attach_btf_id may be one of these, too;
 * attach_btf_obj_fd is the object's BTF as ever, and so is the id that user space sees.
 *
 * A clone is passed what the index says, in registers. What else is on its stack is not
 * known, so it may not be called from a trampoline, which would not copy that: fentry is
 * allowed, fexit, fmod_ret and fsession are not.
 */
#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/btf.h>
#include <linux/btf_func.h>
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/module.h>

#include "btf_func.h"

/**
 * bpf_attach_btf - find the BTF object that an attach_btf_id is in
 * @btf: BTF of vmlinux or of a module, or NULL. Its reference is used up.
 * @id: attach_btf_id
 *
 * Context: Process. May sleep.
 * Return: @btf, or .BTF.func of its object, to be put.
 */
struct btf *bpf_attach_btf(struct btf *btf, u32 id)
{
	struct btf *func_btf;

	if (!btf || id < btf_nr_types(btf))
		return btf;
	func_btf = btf_func_get_btf(btf);
	if (!func_btf)
		return btf;
	btf_put(btf);
	return func_btf;
}

static bool calls_function(const struct bpf_prog *prog)
{
	return prog->expected_attach_type != BPF_TRACE_FENTRY &&
	       prog->expected_attach_type != BPF_TRACE_FENTRY_MULTI;
}

/**
 * bpf_attach_func_address - find the function that a FUNC of .BTF.func describes
 * @log: of the verifier, or NULL
 * @prog: the program to be attached there
 * @btf: .BTF.func
 * @id: of the FUNC
 * @addr: the address
 *
 * A module has to be pinned.
 *
 * Context: Process. May sleep.
 * Return: 0; -ENOENT if there is not one such function, or it cannot be traced; -EOPNOTSUPP
 * if @prog may not be attached to a clone.
 */
int bpf_attach_func_address(struct bpf_verifier_log *log, const struct bpf_prog *prog,
			    const struct btf *btf, u32 id, unsigned long *addr)
{
	const char *name = btf_name_by_offset(btf, btf_type_by_id(btf, id)->name_off);
	bool optimized;

	*addr = btf_func_address(btf, id, &optimized);
	if (!*addr || !ftrace_location(*addr)) {
		bpf_log(log, "Function %s cannot be traced, or its address is not known\n", name);
		return -ENOENT;
	}
	if (optimized && calls_function(prog)) {
		bpf_log(log, "The compiler changed the arguments of %s: only fentry can be attached\n",
			name);
		return -EOPNOTSUPP;
	}
	return 0;
}

/**
 * bpf_attach_set_id - find the id that a function has in sets of BTF_ID()
 * @btf: BTF of vmlinux or of a module, or .BTF.func
 * @id: of a FUNC
 *
 * Context: Any.
 * Return: the id of the FUNC of that name in .BTF, or @id.
 */
u32 bpf_attach_set_id(const struct btf *btf, u32 id)
{
	const struct btf *owner = btf_func_owner(btf);
	const struct btf_type *t = btf_type_by_id(btf, id);
	s32 exact;

	if (!owner || !t)
		return id;
	exact = btf_func_find_exact(owner, btf_name_by_offset(btf, t->name_off));
	return exact > 0 ? exact : id;
}

static unsigned long first_of_name(const struct btf *owner, const char *name)
{
	struct module *mod;
	unsigned long addr;

	if (btf_is_vmlinux(owner))
		return kallsyms_lookup_name(name);
	mod = btf_try_get_module(owner);
	addr = mod ? find_kallsyms_symbol_value(mod, name) : 0;
	module_put(mod);
	return addr;
}

/**
 * bpf_attach_key_id - find the id that stands for a function in the key of its trampoline
 * @btf: BTF of vmlinux or of a module, or .BTF.func of it
 * @id: of a FUNC
 *
 * A function has one trampoline. So if the FUNC of the same name in .BTF would lead to the same
 * function, the trampoline is that one's. If they have other arguments,
 * bpf_trampoline_get() refuses the second one.
 *
 * Context: Process. May sleep.
 * Return: the id of the FUNC in .BTF, or @id.
 */
u32 bpf_attach_key_id(struct btf *btf, u32 id)
{
	struct btf *owner = btf_func_owner(btf);
	const char *name;
	bool optimized;
	s32 exact;

	if (!owner)
		return id;
	name = btf_name_by_offset(btf, btf_type_by_id(btf, id)->name_off);
	exact = btf_func_find_exact(owner, name);
	if (exact > 0 && first_of_name(owner, name) == btf_func_address(btf, id, &optimized))
		return exact;
	return id;
}
