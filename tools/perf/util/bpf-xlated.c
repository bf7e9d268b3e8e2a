// SPDX-License-Identifier: GPL-2.0
/*
 * Print the BPF instructions of a program as the verifier left them for the JIT ("xlated"),
 * in the format of `bpftool prog dump xlated` and of the verifier's log.
 *
 * Calls have no addresses. That of a helper or a kfunc has the distance from __bpf_call_base
 * in imm. That of a function of the program has an index of jited_ksyms in imm, and the
 * number of instructions to it in off, or 0 if that is too far, see
 * prepare_dump_pseudo_call() in the kernel.
 */
#include "bpf-xlated.h"
#include "bpf-event.h"
#include "bpf-utils.h"
#include "disasm.h"
#include "dso.h"
#include "env.h"
#include "machine.h"
#include "map.h"
#include "maps.h"
#include "symbol.h"

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/kernel.h>
#include "../../../kernel/bpf/disasm.h"

/* What print_bpf_insn() writes to */
struct insn_printer {
	const struct bpf_xlated	*xlated;
	char			*buf;
	size_t			size;
	size_t			len;
	/* name of a function, or description of a constant */
	char			name[KSYM_NAME_LEN + 16];
};

/* Return: the address, 0 if it is not known. */
static u64 machine__bpf_call_base(struct machine *machine)
{
	struct map *map = machine__kernel_map(machine);
	struct symbol *sym = map ? map__find_symbol_by_name(map, "__bpf_call_base") : NULL;

	return sym ? map__unmap_ip(map, sym->start) : 0;
}

/**
 * map__bpf_xlated - find the BPF instructions of a function's program
 * @map: map of the function
 * @xlated: filled in
 *
 * Return: 0, or -ENODATA if the recording does not have them.
 */
int map__bpf_xlated(struct map *map, struct bpf_xlated *xlated)
{
	const struct bpf_prog_info_node *node = dso__bpf_prog(map__dso(map))->info;

	if (!node || !(node->info_linear->arrays & (1UL << PERF_BPIL_XLATED_INSNS)))
		return -ENODATA;

	xlated->map = map;
	xlated->info = &node->info_linear->info;
	xlated->insns = (const void *)(uintptr_t)xlated->info->xlated_prog_insns;
	xlated->nr = xlated->info->xlated_prog_len / sizeof(struct bpf_insn);
	if (!xlated->insns || !xlated->nr)
		return -ENODATA;
	return 0;
}

static __printf(2, 3) void insn_printer__print(void *data, const char *fmt, ...)
{
	struct insn_printer *printer = data;
	va_list ap;

	va_start(ap, fmt);
	printer->len += vscnprintf(printer->buf + printer->len, printer->size - printer->len,
				   fmt, ap);
	va_end(ap);
}

/* There, a kfunc may be too far away for imm, which is its BTF id. */
static bool has_far_kfuncs(struct dso *dso)
{
	switch (perf_env__e_machine(dso__bpf_prog(dso)->env, /*e_flags=*/NULL)) {
	case EM_LOONGARCH:
	case EM_PPC64:
	case EM_S390:
		return true;
	default:
		return false;
	}
}

/* Return: 0 if it is not known */
static u64 bpf_xlated__callee(const struct bpf_xlated *xlated, const struct bpf_insn *insn)
{
	const u64 *addrs = (const u64 *)(uintptr_t)xlated->info->jited_ksyms;
	u32 index = insn->imm;
	u64 base;

	if (insn->src_reg == BPF_PSEUDO_CALL)
		return addrs && index < xlated->info->nr_jited_ksyms ? addrs[index] : 0;

	/* 0: the kernel hides addresses */
	if (!insn->imm ||
	    (insn->src_reg == BPF_PSEUDO_KFUNC_CALL && has_far_kfuncs(map__dso(xlated->map))))
		return 0;
	base = machine__bpf_call_base(maps__machine(map__kmaps(xlated->map)));
	return base ? base + insn->imm : 0;
}

static const char *insn_printer__call(void *data, const struct bpf_insn *insn)
{
	struct insn_printer *printer = data;
	u64 addr = bpf_xlated__callee(printer->xlated, insn);
	char *name = addr ? map__bpf_target_name(printer->xlated->map, addr) : NULL;
	const char *known = name && !strchr(name, '+') ? name : NULL;
	bool is_own = insn->src_reg == BPF_PSEUDO_CALL;

	if (is_own)	/* after "call pc" */
		scnprintf(printer->name, sizeof(printer->name), "%+d%s%s", insn->off,
			  known ? "#" : "", known ?: "");
	else if (known)
		scnprintf(printer->name, sizeof(printer->name), "%s", known);
	free(name);
	return is_own || known ? printer->name : NULL;
}

static const char *insn_printer__imm(void *data, const struct bpf_insn *insn, __u64 full_imm)
{
	struct insn_printer *printer = data;
	char *buf = printer->name;
	size_t size = sizeof(printer->name);

	switch (insn->src_reg) {
	case BPF_PSEUDO_MAP_FD:
		scnprintf(buf, size, "map[id:%d]", insn->imm);
		break;
	case BPF_PSEUDO_MAP_VALUE:
		scnprintf(buf, size, "map[id:%d][0]+%d", insn->imm, insn[1].imm);
		break;
	case BPF_PSEUDO_FUNC:
		scnprintf(buf, size, "subprog[%+d]", insn->imm);
		break;
	default:
		scnprintf(buf, size, "0x%llx", (unsigned long long)full_imm);
	}
	return buf;
}

/**
 * bpf_xlated__scnprintf - print an instruction
 * @xlated: has the instruction
 * @i: its number, less than xlated->nr
 * @buf: gets "   12: (bf) r6 = r1"
 * @size: of @buf
 *
 * Return: by how much to increase @i for the next instruction, 1 or 2.
 */
u32 bpf_xlated__scnprintf(const struct bpf_xlated *xlated, u32 i, char *buf, size_t size)
{
	const struct bpf_insn *insn = &xlated->insns[i];
	struct insn_printer printer = {
		.xlated	= xlated,
		.buf	= buf,
		.size	= size,
	};
	const struct bpf_insn_cbs cbs = {
		.cb_print	= insn_printer__print,
		.cb_call	= insn_printer__call,
		.cb_imm		= insn_printer__imm,
		.private_data	= &printer,
	};
	bool is_wide = insn->code == (BPF_LD | BPF_IMM | BPF_DW);

	insn_printer__print(&printer, "%5u: ", i);
	if (is_wide && i + 1 == xlated->nr)
		insn_printer__print(&printer, "(%02x) cut off", insn->code);
	else
		print_bpf_insn(&cbs, insn, /*allow_ptr_leaks=*/true);
	return is_wide ? 2 : 1;
}
