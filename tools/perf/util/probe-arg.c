// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Arguments of probe points, wherever a finder has found them: in debug information
 * (probe-finder.c) or in BTF (probe-btf.c).
 */
#include <errno.h>
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "debug.h"
#include "probe-arg.h"
#include "probe-event.h"
#include "probe-file.h"
#include "string2.h"

/* Kprobe tracer basic type is up to u64 */
#define MAX_BASIC_TYPE_BITS	64

struct probe_trace_arg_ref *alloc_trace_arg_ref(long offs)
{
	struct probe_trace_arg_ref *ref = zalloc(sizeof(*ref));

	if (ref)
		ref->offset = offs;
	return ref;
}

int probe_trace_arg__set_immediate(struct probe_trace_arg *tvar, long value)
{
	return asprintf(&tvar->value, "\\%ld", value) < 0 ? -ENOMEM : 0;
}

/* Name it as the user does, or as the variable and its fields. */
int probe_trace_arg__set_name(struct probe_trace_arg *tvar, struct perf_probe_arg *pvar)
{
	char *type;

	tvar->name = pvar->name ? strdup(pvar->name) : synthesize_perf_probe_arg(pvar);
	if (!tvar->name)
		return -ENOMEM;
	type = pvar->name ? NULL : strchr(tvar->name, ':');
	if (type)	/* Change type separator to _ */
		*type = '_';
	return 0;
}

/* A type of its own, and not only how to show the variable's */
bool is_type_cast(const char *cast)
{
	return cast && strcmp(cast, "string") != 0 && strcmp(cast, "ustring") &&
	       strcmp(cast, "x") != 0 && strcmp(cast, "s") != 0 && strcmp(cast, "u") != 0;
}

bool is_string_cast(const char *cast)
{
	return cast && (!strcmp(cast, "string") || !strcmp(cast, "ustring"));
}

/**
 * probe_trace_arg__set_number - Set the type of an argument that is a number
 * @tvar: the argument
 * @cast: of the user: "u", "s", "x" or NULL
 * @is_signed: unless @cast says it
 * @bytes: its size
 * @type_name: for messages
 *
 * Return: 0 or -ENOMEM.
 */
int probe_trace_arg__set_number(struct probe_trace_arg *tvar, const char *cast, bool is_signed,
				int bytes, const char *type_name)
{
	bool hex = probe_type_is_available(PROBE_TYPE_X);
	int bits = BYTES_TO_BITS(bytes);
	char prefix;

	if (cast && (strcmp(cast, "u") == 0))
		prefix = 'u';
	else if (cast && (strcmp(cast, "s") == 0))
		prefix = 's';
	else if (cast && (strcmp(cast, "x") == 0) && hex)
		prefix = 'x';
	else
		prefix = is_signed ? 's' : hex ? 'x' : 'u';

	/* Check the bitwidth */
	if (bits > MAX_BASIC_TYPE_BITS) {
		pr_info("%s exceeds max-bitwidth. Cut down to %d bits.\n",
			type_name, MAX_BASIC_TYPE_BITS);
		bits = MAX_BASIC_TYPE_BITS;
	}
	return asprintf(&tvar->type, "%c%d", prefix, bits) < 0 ? -ENOMEM : 0;
}

void print_var_not_found(const char *varname)
{
	pr_err("Failed to find the location of the '%s' variable at this address.\n"
	       " Perhaps it has been optimized out.\n"
	       " Use -V with the --range option to show '%s' location range.\n",
		varname, varname);
}

/*
 * One of several points may have no usable location for an argument: its register or
 * expression is not supported there, or another function of the glob has another
 * variable of this name. The others are probed all the same.
 */
bool may_skip_trace_arg(const struct perf_probe_event *pev, int err)
{
	const char *func = pev->point.function;

	return err == -ENOTSUP || (err == -EINVAL && func && strisglob(func));
}

/* What a point that has no value for an argument records, of the type it has elsewhere */
static int set_magic_value(struct probe_trace_arg *arg, const char *type)
{
	if (asprintf(&arg->value, "\\0x%lx", probe_conf.magic_num) < 0)
		return -ENOMEM;
	/* Note that type can be NULL */
	if (type) {
		arg->type = strdup(type);
		if (!arg->type)
			return -ENOMEM;
	}
	return 0;
}

static struct probe_trace_arg *find_arg_with_value(struct probe_trace_event *tevs, int ntevs,
						   const char *name)
{
	for (int i = 0; i < ntevs; i++) {
		for (int j = 0; j < tevs[i].nargs; j++) {
			struct probe_trace_arg *arg = &tevs[i].args[j];

			if (arg->value && arg->name && !strcmp(arg->name, name))
				return arg;
		}
	}
	return NULL;
}

/* $params and $vars are other arguments, and another number of them, at each point. */
int fill_empty_trace_arg(struct perf_probe_event *pev, struct probe_trace_event *tevs, int ntevs)
{
	int ret;

	if (!ntevs)
		return -ENOENT;

	for (int i = 0; i < ntevs; i++) {
		for (int j = 0; j < tevs[i].nargs; j++) {
			struct probe_trace_arg *arg = &tevs[i].args[j], *other;

			if (arg->value)
				continue;
			other = find_arg_with_value(tevs, ntevs, arg->name);
			if (!other) {
				/* Unless the reason was printed */
				if (!arg->err)
					print_var_not_found(tevs[i].nargs == pev->nargs ?
							    pev->args[j].var : arg->name);
				return arg->err ?: -ENOENT;
			}
			ret = set_magic_value(arg, other->type);
			if (ret < 0)
				return ret;
		}
	}
	return 0;
}
