// SPDX-License-Identifier: GPL-2.0
/*
 * Where is this register in the context of a BPF program on a kprobe or uprobe?
 *
 * The context is bpf_user_pt_regs_t: struct pt_regs on x86-64 and struct user_pt_regs on
 * arm64 (arch/<arch>/include/uapi/asm/ptrace.h), whose layouts are ABI. The names are
 * those of probe events in tracefs, as perf probe finds them for a DWARF register number
 * (get_dwarf_regstr()); tables are indexed by offset in units of a register.
 */
#include <elf.h>
#include <errno.h>
#include <linux/kernel.h>
#include <stdlib.h>
#include <string.h>
#include "bpf-regs.h"

struct bpf_regs {
	const char *const *names;	/* in the order of the structure */
	unsigned int nr_names;
	const char *const *args;	/* of a function, by the calling convention */
	unsigned int nr_args;
	const char *stack;
	const char *retval;
};

static const char *const x86_64_names[] = {
	"%r15", "%r14", "%r13", "%r12", "%bp", "%bx", "%r11", "%r10", "%r9", "%r8",
	"%ax", "%cx", "%dx", "%si", "%di", "%orig_ax", "%ip", "%cs", "%flags", "%sp", "%ss",
};

static const char *const x86_64_args[] = {
	"%di", "%si", "%dx", "%cx", "%r8", "%r9",
};

static const char *const arm64_names[] = {
	"%x0", "%x1", "%x2", "%x3", "%x4", "%x5", "%x6", "%x7", "%x8", "%x9",
	"%x10", "%x11", "%x12", "%x13", "%x14", "%x15", "%x16", "%x17", "%x18", "%x19",
	"%x20", "%x21", "%x22", "%x23", "%x24", "%x25", "%x26", "%x27", "%x28", "%x29",
	"%lr", "%sp", "%pc", "%pstate",
};

static const char *const arm64_args[] = {
	"%x0", "%x1", "%x2", "%x3", "%x4", "%x5", "%x6", "%x7",
};

static const struct bpf_regs x86_64_regs = {
	.names = x86_64_names,
	.nr_names = ARRAY_SIZE(x86_64_names),
	.args = x86_64_args,
	.nr_args = ARRAY_SIZE(x86_64_args),
	.stack = "%sp",
	.retval = "%ax",
};

static const struct bpf_regs arm64_regs = {
	.names = arm64_names,
	.nr_names = ARRAY_SIZE(arm64_names),
	.args = arm64_args,
	.nr_args = ARRAY_SIZE(arm64_args),
	.stack = "%sp",
	.retval = "%x0",
};

static const struct bpf_regs *regs_of(u16 e_machine)
{
	switch (e_machine) {
	case EM_X86_64:
		return &x86_64_regs;
	case EM_AARCH64:
		return &arm64_regs;
	default:
		return NULL;
	}
}

static const char *arg_name(const struct bpf_regs *regs, const char *nr)
{
	char *end;
	unsigned long arg = strtoul(nr, &end, 10);

	return *end || arg < 1 || arg > regs->nr_args ? NULL : regs->args[arg - 1];
}

/* The register that "$stack", "$retval" or "$argN" stands for, NULL if there is none */
static const char *special_name(const struct bpf_regs *regs, const char *name)
{
	if (!strcmp(name, "$stack"))
		return regs->stack;
	if (!strcmp(name, "$retval"))
		return regs->retval;
	if (!strncmp(name, "$arg", 4))
		return arg_name(regs, name + 4);
	return NULL;
}

/**
 * bpf_regs__offset - Find a register in the context of a BPF program
 * @e_machine: the machine that the program runs on, EM_* of <elf.h>
 * @name: as in probe events: "%REG", "$stack", "$retval", or "$argN", which is an integer
 *	or pointer argument at the entry of a function
 *
 * Return: its offset in bytes, -ENOENT if no register of the context is meant,
 * -EOPNOTSUPP if the registers of @e_machine are not known here.
 */
int bpf_regs__offset(u16 e_machine, const char *name)
{
	const struct bpf_regs *regs = regs_of(e_machine);

	if (!regs)
		return -EOPNOTSUPP;
	if (*name == '$')
		name = special_name(regs, name);
	for (unsigned int i = 0; name && i < regs->nr_names; i++) {
		if (!strcmp(regs->names[i], name))
			return i * sizeof(u64);
	}
	return -ENOENT;
}
