// SPDX-License-Identifier: GPL-2.0
/*
 * Tracing programs on functions by address
 *
 * attach_btf_id is a FUNC, and a tracing program is attached to the first symbol of its
 * name. So of several functions that share a name one can be reached, those of which
 * pahole wrote no FUNC cannot, and neither can clones as foo.isra.0().
 *
 * .BTF.func has FUNCs of just these, and its LOCSECs tell where they are. Their ids go on
 * where those of the object's BTF end. So attach_btf_id may be one of these, too;
 * attach_btf_obj_fd is the object's BTF as ever, and so is the id that user space sees.
 *
 * What is on the stack of a clone is not known, so it may not be called from a trampoline,
 * which would not copy that: fentry is allowed, fexit, fmod_ret and fsession are not. And its
 * trampoline restores each register that the ABI has for arguments, whatever the
 * debug information says of them.
 */
#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/btf.h>
#include <linux/btf_func.h>
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>

#include "btf_func.h"

static bool attaches_to_function(enum bpf_attach_type type)
{
	switch (type) {
	case BPF_TRACE_FENTRY:
	case BPF_TRACE_FEXIT:
	case BPF_TRACE_FSESSION:
	case BPF_MODIFY_RETURN:
	case BPF_TRACE_FENTRY_MULTI:
	case BPF_TRACE_FEXIT_MULTI:
	case BPF_TRACE_FSESSION_MULTI:
		return true;
	default:
		return false;
	}
}

/**
 * bpf_attach_btf - find the BTF object that an attach_btf_id is in
 * @btf: BTF of vmlinux or of a module, or NULL. Its reference is used up.
 * @id: attach_btf_id
 * @type: how the program is attached
 *
 * Context: Process. May sleep.
 * Return: @btf, or .BTF.func of its object, to be put.
 */
struct btf *bpf_attach_btf(struct btf *btf, u32 id, enum bpf_attach_type type)
{
	struct btf *func_btf;

	if (!btf || id < btf_nr_types(btf) || !attaches_to_function(type))
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

/*
 * Find the FUNC of the same name in .BTF. That of foo.isra.0() is foo() if @whole is not
 * set. Return 0 if there is none.
 */
static u32 find_in_owner(const struct btf *btf, u32 id, bool whole)
{
	const char *name = btf_name_by_offset(btf, btf_type_by_id(btf, id)->name_off);
	char source[KSYM_NAME_LEN];
	s32 exact;

	if (!whole)
		strscpy(source, name, min(strcspn(name, ".") + 1, sizeof(source)));
	exact = btf_func_find_exact(btf_func_owner(btf), whole ? name : source);
	return exact > 0 ? exact : 0;
}

/* The number of registers with arguments, System V ABI, AMD64, 3.2.3 */
#define NR_ARG_REGS	6

static void take_all_registers(struct btf_func_model *model)
{
	int i, words = 0;

	for (i = 0; i < model->nr_args; i++)
		words += DIV_ROUND_UP(model->arg_size[i], 8);
	for (; words < NR_ARG_REGS && model->nr_args < MAX_BPF_FUNC_ARGS; words++) {
		model->arg_size[model->nr_args] = 8;
		model->arg_flags[model->nr_args++] = 0;
	}
}

/* Code of a module's init functions is gone, and there may be another module's. */
static bool is_there(unsigned long addr, const struct btf *owner, struct module *mod)
{
	if (!addr || !ftrace_location(addr))
		return false;
	return btf_is_vmlinux(owner) ? core_kernel_text(addr) :
				       mod && within_module_core(addr, mod);
}

/**
 * bpf_attach_func_address - find the function that a FUNC of .BTF.func describes
 * @log: of the verifier, or NULL
 * @prog: the program to be attached there
 * @btf: .BTF.func
 * @id: of the FUNC
 * @mod: the module, which is pinned, or NULL
 * @tgt_info: gets the address. The model of the FUNC is in it, and gets more arguments if
 *	it is a clone.
 *
 * Context: Process. May sleep.
 * Return: 0; -ENOENT if there is not one such function, or it cannot be traced; -EOPNOTSUPP
 * if @prog would call a function of whose stack not all is known.
 */
int bpf_attach_func_address(struct bpf_verifier_log *log, const struct bpf_prog *prog,
			    const struct btf *btf, u32 id, struct module *mod,
			    struct bpf_attach_target_info *tgt_info)
{
	const char *name = btf_name_by_offset(btf, btf_type_by_id(btf, id)->name_off);
	bool optimized;

	tgt_info->tgt_addr = btf_func_address(btf, id, &optimized);
	if (!is_there(tgt_info->tgt_addr, btf_func_owner(btf), mod)) {
		bpf_log(log, "Function %s cannot be traced, or its address is not known\n", name);
		return -ENOENT;
	}
	if (calls_function(prog) && optimized) {
		bpf_log(log, "Arguments of %s may be on its stack: only fentry can be attached\n",
			name);
		return -EOPNOTSUPP;
	}
	if (optimized)
		take_all_registers(&tgt_info->fmodel);
	return 0;
}

/**
 * bpf_attach_set_id - find the id that a function has in sets of BTF_ID()
 * @btf: BTF of vmlinux or of a module, or .BTF.func
 * @id: of a FUNC
 *
 * Context: Process. May sleep.
 * Return: the id of the FUNC of that name in .BTF, of a clone without its suffix, or @id.
 */
u32 bpf_attach_set_id(const struct btf *btf, u32 id)
{
	if (!btf_func_owner(btf) || !btf_type_by_id(btf, id))
		return id;
	return find_in_owner(btf, id, false) ?: id;
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
 * function, the trampoline is that one's, or else that of the first FUNC of its address. If
 * they have other arguments, bpf_trampoline_get() refuses the second one.
 *
 * Context: Process. May sleep.
 * Return: the id of that FUNC, or @id.
 */
u32 bpf_attach_key_id(struct btf *btf, u32 id)
{
	struct btf *owner = btf_func_owner(btf);
	unsigned long addr;
	const char *name;
	bool optimized;
	u32 exact;

	if (!owner)
		return id;
	addr = btf_func_address(btf, id, &optimized);
	if (!addr)
		return id;
	name = btf_name_by_offset(btf, btf_type_by_id(btf, id)->name_off);
	exact = find_in_owner(btf, id, true);
	if (exact && addr == first_of_name(owner, name))
		return exact;
	return btf_func_first_id(btf, addr) ?: id;
}
