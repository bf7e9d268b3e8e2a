// SPDX-License-Identifier: GPL-2.0
/*
 * Code in front of a BPF program on a probe that fetches the arguments of the point.
 *
 * The same argument is in a register at one probe point, on the stack at another and
 * behind two pointers at a third. perf probe says where (struct probe_trace_arg), and
 * this file makes the instructions that fetch it there, so that the program is a plain
 * C function of its arguments:
 *
 *	int prog(void *ctx, int err, u64 arg1, u64 arg2, u64 arg3)
 *
 *		r6 = r1				the context stays in r6
 *		r3 = *(u64 *)(r6 + offset)	for each argument in memory: its base,
 *		r3 += offset			and for each pointer on the way
 *		probe_read(slot, 8, r3)
 *		if r0 != 0 goto failed
 *		r3 = *(u64 *)slot
 *		...
 *		r3 = argument 1, r4 = argument 2, r5 = argument 3, each of its own type
 *		r2 = 0
 *		goto start
 *	failed:	r2 = 1, r3 = r4 = r5 = 0
 *	start:	r1 = r6
 *
 * Arguments in memory wait in slots of the stack, at r10 - 8, - 16 and - 24, as calls
 * overwrite r1 to r5. The program may use the same bytes afterwards. Arguments in
 * registers and constants are loaded last and need neither slot nor call; without an
 * argument in memory nothing can fail and the code ends with r2 = 0.
 *
 * What is fetched equals what a probe event prints for the same argument, with two
 * exceptions: a string is the address of its first byte, which the program reads with
 * bpf_probe_read_kernel_str() or bpf_probe_read_user_str(), and $argN is refused where
 * the function returns, as the event has kept it from the entry.
 */
#include <errno.h>
#include <linux/ctype.h>
#include <linux/filter.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bpf-prologue.h"
#include "bpf-regs.h"
#include "probe-event.h"

#define MAX_DEREFS	16
#define NO_REG		(-1)

struct fetch_type {
	u8	size;		/* bits that are loaded: 8, 16, 32, 64 */
	u8	width;		/* bits of the value: less for a bit-field */
	u8	shift;		/* of a bit-field, from the least significant bit */
	bool	is_signed;
	bool	is_string;
};

struct fetch_deref {
	long	offset;		/* bytes, added to the pointer that is read through */
	bool	user;
};

/* Where an argument is: a register or a constant, and pointers to go through from there */
struct fetch {
	struct fetch_type	type;
	int			reg;	/* offset in the context, or NO_REG */
	u64			value;	/* without a register */
	struct fetch_deref	derefs[MAX_DEREFS];
	int			nr_derefs;
};

struct generator {
	struct bpf_prologue			*prologue;
	const struct bpf_prologue_target	*target;
	int					arg;	/* that is being read, from 0 */
	const char				*name;
	bool					full;
	int					failed[BPF_PROLOGUE_MAX_ARGS * MAX_DEREFS];
	int					nr_failed; /* jumps that go there */
};

/* Return: @err, which is negative; the message is in the prologue. */
static int __printf(3, 4) fail(struct generator *gen, int err, const char *fmt, ...)
{
	char *to = gen->prologue->error;
	size_t left = sizeof(gen->prologue->error);
	va_list ap;
	int said;

	said = scnprintf(to, left, "argument %d ('%s'): ", gen->arg + 1, gen->name);
	va_start(ap, fmt);
	vscnprintf(to + said, left - said, fmt, ap);
	va_end(ap);
	return err;
}

/* Types */

static bool is_load_size(unsigned long bits)
{
	return bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

static bool parse_bitfield(const char *str, struct fetch_type *type)
{
	unsigned int width, shift, size;
	char rest;

	if (sscanf(str, "b%u@%u/%u%c", &width, &shift, &size, &rest) != 3)
		return false;
	if (!is_load_size(size) || !width || width > size || shift > size - width)
		return false;
	*type = (struct fetch_type){ .size = size, .width = width, .shift = shift };
	return true;
}

static bool parse_integer(const char *str, struct fetch_type *type)
{
	unsigned long size;
	char *end;

	if (!strchr("usx", str[0]) || !isdigit(str[1]))
		return false;
	size = strtoul(str + 1, &end, 10);
	if (*end || !is_load_size(size))
		return false;
	*type = (struct fetch_type){ .size = size, .width = size, .is_signed = *str == 's' };
	return true;
}

static int parse_type(struct generator *gen, const char *str, struct fetch_type *type)
{
	*type = (struct fetch_type){ .size = 64, .width = 64 };
	if (!str || !strcmp(str, "symbol"))
		return 0;
	if (!strcmp(str, "string") || !strcmp(str, "ustring")) {
		type->is_string = true;
		return 0;
	}
	if (!strcmp(str, "char")) {
		*type = (struct fetch_type){ .size = 8, .width = 8 };
		return 0;
	}
	if (parse_bitfield(str, type) || parse_integer(str, type))
		return 0;
	return fail(gen, -EOPNOTSUPP,
		    "no BPF program can be given a value of type '%s'; types are u8 to u64, s8 to s64, x8 to x64, char, symbol, string, ustring, and bit-fields as b3@5/32",
		    str);
}

/* Places */

static int add_deref(struct generator *gen, struct fetch *fetch, long offset, bool user)
{
	if (fetch->nr_derefs == MAX_DEREFS)
		return fail(gen, -E2BIG, "more than %d pointers to go through", MAX_DEREFS);
	fetch->derefs[fetch->nr_derefs++] = (struct fetch_deref){
		.offset = offset,
		.user = user || gen->target->user,
	};
	return 0;
}

/* "%REG", "$stack", "$retval" or "$argN" */
static int parse_register(struct generator *gen, const char *str, struct fetch *fetch)
{
	/* A probe event keeps it from the entry, which a BPF program cannot see */
	if (gen->target->retprobe && strstarts(str, "$arg"))
		return fail(gen, -EOPNOTSUPP, "'%s' is not there when the function returns", str);
	fetch->reg = bpf_regs__offset(gen->target->e_machine, str);
	if (fetch->reg == -EOPNOTSUPP)
		return fail(gen, -EOPNOTSUPP,
			    "registers are known on x86-64 and arm64 only, not on ELF machine %u",
			    gen->target->e_machine);
	if (fetch->reg < 0)
		return fail(gen, -EINVAL, "BPF programs do not see '%s' on this machine", str);
	return 0;
}

/* "\IMM" */
static int parse_immediate(struct generator *gen, const char *str, struct fetch *fetch)
{
	char *end;

	errno = 0;
	fetch->value = strtoull(str + 1, &end, 0);
	if (errno || end == str + 1 || *end)
		return fail(gen, -EINVAL, "'%s' is not a constant number", str);
	return 0;
}

/* "$stackN" */
static int parse_stack_entry(struct generator *gen, const char *str, struct fetch *fetch)
{
	unsigned int nr;
	char rest;
	int err;

	if (sscanf(str, "$stack%u%c", &nr, &rest) != 1 || nr > 4096)
		return fail(gen, -EINVAL, "'%s' is not an entry of the stack", str);
	err = parse_register(gen, "$stack", fetch);
	return err ?: add_deref(gen, fetch, nr * sizeof(u64), false);
}

/* The memory at "@ADDR", "@SYM", "@SYM+OFFS" */
static int parse_address(struct generator *gen, const char *str, struct fetch *fetch,
			 bool has_offset)
{
	char *name, *sign, *end;
	long offset = 0;
	int err = 0;

	name = strdup(str + 1);
	if (!name)
		return -ENOMEM;
	sign = strpbrk(name, "+-");
	if (sign) {
		offset = strtol(sign, &end, 0);
		if (*end || sign == name)
			err = fail(gen, -EINVAL, "'%s' is not an address", str);
		*sign = '\0';
	}
	if (!err && isdigit(*name)) {
		fetch->value = strtoull(name, &end, 0);
		if (*end)
			err = fail(gen, -EINVAL, "'%s' is not an address", str);
	} else if (!err) {
		if (gen->target->symbol)
			fetch->value = gen->target->symbol(name, gen->target->ctx);
		if (!fetch->value)
			err = fail(gen, -ENOENT, "the address of symbol '%s' is not known", name);
	}
	free(name);
	/* perf probe has it in the first reference, where the memory's address ends */
	if (!err && !has_offset)
		err = add_deref(gen, fetch, offset, false);
	return err;
}

static int parse_base(struct generator *gen, const char *str, struct fetch *fetch,
		      bool has_offset)
{
	fetch->reg = NO_REG;
	if (*str == '\\')
		return parse_immediate(gen, str, fetch);
	if (*str == '@')
		return parse_address(gen, str, fetch, has_offset);
	if (!strncmp(str, "$stack", 6) && str[6])
		return parse_stack_entry(gen, str, fetch);
	if (!strcmp(str, "$comm"))
		return fail(gen, -EOPNOTSUPP,
			    "the program reads it itself, with bpf_get_current_comm()");
	if (*str == '%' || *str == '$')
		return parse_register(gen, str, fetch);
	return fail(gen, -EINVAL, "'%s' is not known in a probe event", str);
}

/* "+8(+u16(%di))", as a user may write it: the outermost comes first, is read last. */
static int parse_nested(struct generator *gen, const char *str, struct fetch *fetch,
			bool has_offset)
{
	struct fetch_deref nested[MAX_DEREFS];
	const char *from = str;
	char *base, *end;
	int nr = 0, err;

	for (; *str == '+' || *str == '-'; str = end + 1) {
		bool user = str[1] == 'u';
		long offset = strtol(str + 1 + user, &end, 0);

		if (end == str + 1 + user || *end != '(')
			return fail(gen, -EINVAL, "'%s' is not an offset and a place", from);
		if (nr == MAX_DEREFS)
			return fail(gen, -E2BIG, "more than %d pointers to go through",
				    MAX_DEREFS);
		nested[nr].user = user;
		nested[nr++].offset = *str == '-' ? -offset : offset;
	}
	base = strndup(str, strcspn(str, ")"));
	if (!base)
		return -ENOMEM;
	if (strspn(str + strlen(base), ")") != (size_t)nr || str[strlen(base) + nr])
		err = fail(gen, -EINVAL, "the brackets of '%s' do not match", from);
	else
		err = parse_base(gen, base, fetch, has_offset);
	free(base);
	while (!err && nr--)
		err = add_deref(gen, fetch, nested[nr].offset, nested[nr].user);
	return err;
}

static int parse_arg(struct generator *gen, const struct probe_trace_arg *arg,
		     struct fetch *fetch)
{
	int err;

	memset(fetch, 0, sizeof(*fetch));
	if (!arg->value)
		return fail(gen, -EINVAL, "has no place");
	err = parse_type(gen, arg->type, &fetch->type);
	if (err)
		return err;
	err = parse_nested(gen, arg->value, fetch, !!arg->ref);
	for (struct probe_trace_arg_ref *ref = arg->ref; !err && ref; ref = ref->next)
		err = add_deref(gen, fetch, ref->offset, ref->user_access);
	if (!err && fetch->type.is_string && !fetch->nr_derefs)
		err = fail(gen, -EINVAL, "a string has to be in memory, as in +0(%s):string",
			   arg->value);
	return err;
}

/* Instructions */

static void emit(struct generator *gen, struct bpf_insn insn)
{
	if (gen->prologue->cnt == BPF_PROLOGUE_MAX_INSNS) {
		gen->full = true;
		return;
	}
	gen->prologue->insns[gen->prologue->cnt++] = insn;
}

static void emit_const(struct generator *gen, int reg, u64 value)
{
	const struct bpf_insn wide[] = { BPF_LD_IMM64(reg, value) };

	if ((s64)value == (s32)value) {
		emit(gen, BPF_MOV64_IMM(reg, (s32)value));
		return;
	}
	emit(gen, wide[0]);
	emit(gen, wide[1]);
}

static void emit_base(struct generator *gen, int reg, const struct fetch *fetch)
{
	if (fetch->reg == NO_REG)
		emit_const(gen, reg, fetch->value);
	else
		emit(gen, BPF_LDX_MEM(BPF_DW, reg, BPF_REG_6, fetch->reg));
}

static void emit_add(struct generator *gen, int reg, long offset)
{
	if (!offset)
		return;
	if (offset == (s32)offset) {
		emit(gen, BPF_ALU64_IMM(BPF_ADD, reg, offset));
		return;
	}
	emit_const(gen, BPF_REG_0, offset);
	emit(gen, BPF_ALU64_REG(BPF_ADD, reg, BPF_REG_0));
}

/* Read @bytes at the address in r3 to the stack at @slot; if that fails, goto failed. */
static void emit_read(struct generator *gen, int slot, int bytes, bool user)
{
	emit(gen, BPF_MOV64_REG(BPF_REG_1, BPF_REG_10));
	emit(gen, BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, slot));
	emit(gen, BPF_MOV64_IMM(BPF_REG_2, bytes));
	/* As a kprobe event does: user memory if the address is one of user space */
	emit(gen, BPF_EMIT_CALL(user ? BPF_FUNC_probe_read_user : BPF_FUNC_probe_read));
	gen->failed[gen->nr_failed++] = gen->prologue->cnt;
	emit(gen, BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 0));
}

static bool is_in_memory(const struct fetch *fetch)
{
	return fetch->nr_derefs > fetch->type.is_string;
}

/* Fetch what is in memory to its slot. A string's own bytes are not read. */
static void emit_fetch(struct generator *gen, const struct fetch *fetch, int slot)
{
	int reads = fetch->nr_derefs - fetch->type.is_string;

	emit_base(gen, BPF_REG_3, fetch);
	for (int i = 0; i < reads; i++) {
		bool last = i == fetch->nr_derefs - 1;

		emit_add(gen, BPF_REG_3, fetch->derefs[i].offset);
		emit_read(gen, slot, last ? fetch->type.size / 8 : 8, fetch->derefs[i].user);
		if (i < reads - 1)
			emit(gen, BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_10, slot));
	}
}

static void emit_load_slot(struct generator *gen, int reg, const struct fetch *fetch, int slot)
{
	switch (fetch->type.size) {
	case 8:
		emit(gen, BPF_LDX_MEM(BPF_B, reg, BPF_REG_10, slot));
		break;
	case 16:
		emit(gen, BPF_LDX_MEM(BPF_H, reg, BPF_REG_10, slot));
		break;
	case 32:
		emit(gen, BPF_LDX_MEM(BPF_W, reg, BPF_REG_10, slot));
		break;
	default:
		emit(gen, BPF_LDX_MEM(BPF_DW, reg, BPF_REG_10, slot));
		break;
	}
}

/* Cut the value out of 64 bits, of which @valid are set and the others zero. */
static void emit_narrow(struct generator *gen, int reg, const struct fetch_type *type,
			int valid)
{
	int left = 64 - type->shift - type->width;

	if (type->width == 64 ||
	    (!type->is_signed && !type->shift && type->width == valid))
		return;
	if (left)
		emit(gen, BPF_ALU64_IMM(BPF_LSH, reg, left));
	emit(gen, BPF_ALU64_IMM(type->is_signed ? BPF_ARSH : BPF_RSH, reg, 64 - type->width));
}

/* The argument to its register, of its own width and sign. */
static void emit_arg(struct generator *gen, int reg, const struct fetch *fetch, int slot)
{
	bool in_memory = is_in_memory(fetch);

	if (in_memory)
		emit_load_slot(gen, reg, fetch, slot);
	else
		emit_base(gen, reg, fetch);
	if (fetch->type.is_string)
		emit_add(gen, reg, fetch->derefs[fetch->nr_derefs - 1].offset);
	else
		emit_narrow(gen, reg, &fetch->type, in_memory ? fetch->type.size : 64);
}

/* What the program sees when an argument could not be read. */
static void emit_failed(struct generator *gen, int nargs)
{
	struct bpf_insn *insns = gen->prologue->insns;

	if (!gen->nr_failed)
		return;
	emit(gen, BPF_JMP_A(nargs + 1));
	for (int i = 0; i < gen->nr_failed && !gen->full; i++)
		insns[gen->failed[i]].off = gen->prologue->cnt - gen->failed[i] - 1;
	emit(gen, BPF_MOV64_IMM(BPF_REG_2, 1));
	for (int i = 0; i < nargs; i++)
		emit(gen, BPF_MOV64_IMM(BPF_REG_3 + i, 0));
}

static int slot_of(int arg)
{
	return -8 * (arg + 1);
}

/**
 * bpf_prologue__generate - Make the code that fetches the arguments of a probe point
 * @prologue: filled in; on error, @prologue->error says which argument and why
 * @target: the machine, the address space, and how symbols are found
 * @args: as perf probe finds them (convert_perf_probe_events()) or a user writes them
 * @nargs: how many, up to %BPF_PROLOGUE_MAX_ARGS
 *
 * The code is position independent: it goes before the first instruction of a program
 * of type BPF_PROG_TYPE_KPROBE. Two points with the same code have the same layout of
 * arguments and can share an instance of the program.
 *
 * Return: 0, -E2BIG for too many arguments or pointers, -EINVAL for a place that does
 * not exist, -EOPNOTSUPP for a type, register or machine that is not supported, -ENOENT
 * for an unknown symbol, -ENOMEM.
 */
int bpf_prologue__generate(struct bpf_prologue *prologue,
			   const struct bpf_prologue_target *target,
			   const struct probe_trace_arg *args, int nargs)
{
	struct generator gen = { .prologue = prologue, .target = target };
	struct fetch fetches[BPF_PROLOGUE_MAX_ARGS];

	prologue->cnt = 0;
	prologue->error[0] = '\0';
	if (nargs > BPF_PROLOGUE_MAX_ARGS) {
		scnprintf(prologue->error, sizeof(prologue->error),
			  "%d arguments: a BPF program takes up to three of a probe point",
			  nargs);
		return -E2BIG;
	}
	for (int i = 0; i < nargs; i++) {
		int err;

		gen.arg = i;
		gen.name = args[i].name ?: args[i].value;
		err = parse_arg(&gen, &args[i], &fetches[i]);
		if (err)
			return err;
	}

	emit(&gen, BPF_MOV64_REG(BPF_REG_6, BPF_REG_1));
	for (int i = 0; i < nargs; i++) {
		if (is_in_memory(&fetches[i]))
			emit_fetch(&gen, &fetches[i], slot_of(i));
	}
	for (int i = 0; i < nargs; i++)
		emit_arg(&gen, BPF_REG_3 + i, &fetches[i], slot_of(i));
	emit(&gen, BPF_MOV64_IMM(BPF_REG_2, 0));
	emit_failed(&gen, nargs);
	emit(&gen, BPF_MOV64_REG(BPF_REG_1, BPF_REG_6));
	if (gen.full) {
		scnprintf(prologue->error, sizeof(prologue->error),
			  "the arguments take more than %d instructions to fetch",
			  BPF_PROLOGUE_MAX_INSNS);
		return -E2BIG;
	}
	return 0;
}
