// SPDX-License-Identifier: GPL-2.0
/*
 * The BPF programs of an object file, and the probe points that they ask for.
 *
 * The name of a program's section says where it runs and what it is given:
 *
 *	SEC("func=vfs_r* file->f_inode->i_ino count")
 *	int prog(void *ctx, int err, u64 ino, u64 count)
 *
 *	SEC name := [KEY=VALUE;]... [EVENT=]POINT [ARGUMENT]...
 *
 * The last part is what perf probe --add takes, and is handled by the same code: globs,
 * FUNC@FILE, FUNC:LINE, FUNC%return, FILE:LINE. Keys are in the table below.
 *
 *	file -> programs -> points (perf probe) -> layouts -> one prologue for each
 *
 * Points where the arguments are fetched by the same instructions have one layout. A
 * layout is what takes an instance of the program and a probe event of its own: loading
 * a program is cheap, closing a perf event takes tens of milliseconds.
 *
 * A point where an argument cannot be fetched is an error that lists all such points,
 * and those that could be fetched, unless the section has partial=yes.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <dwarf-regs.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "../../../kernel/bpf/disasm.h"
#include "bpf-object.h"
#include "bpf-prologue.h"
#include "bpf-variables.h"
#include "debug.h"
#include "event.h"
#include "probe-event.h"
#include "symbol_conf.h"

#define MAX_EVENT_NAME_LEN 64	/* in kernel/trace/trace.h, with the end of the string */
#define NAME_RESERVE	8	/* of that, for "_" and, if the name is used, "__NUMBER" */
#define MAX_POINTS	1024	/* of a program, unless it has max= */
#define CTX_AND_ERR	2	/* parameters in front of the arguments */

/* Every message names the file, the program and its section. --quiet does not hide errors. */
void perf_bpf_prog__err(const struct perf_bpf_object *object,
			const struct perf_bpf_prog *prog, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	eprintf(/*level=*/-1, verbose, "%s: %s, SEC(\"%s\"): %s\n", object->path,
		bpf_program__name(prog->prog), bpf_program__section_name(prog->prog), text);
}

/* Section names */

static int parse_yes_no(const char *value, bool *yes)
{
	if (strcmp(value, "yes") && strcmp(value, "no"))
		return -EINVAL;
	*yes = !strcmp(value, "yes");
	return 0;
}

static int set_target(struct perf_bpf_prog *prog, const char *target, bool uprobes)
{
	if (prog->pev.target)
		return -EEXIST;
	/* As perf probe -x and -m: a path is made absolute, a module's name is kept */
	if (uprobes || strchr(target, '/'))
		prog->pev.target = realpath(target, NULL);
	else
		prog->pev.target = strdup(target);
	prog->pev.uprobes = uprobes;
	return prog->pev.target ? 0 : -errno;
}

static int set_exec(struct perf_bpf_prog *prog, const char *value)
{
	return set_target(prog, value, true);
}

static int set_module(struct perf_bpf_prog *prog, const char *value)
{
	return set_target(prog, value, false);
}

static int set_inlines(struct perf_bpf_prog *prog, const char *value)
{
	bool inlines;
	int err = parse_yes_no(value, &inlines);

	prog->no_inlines = !err && !inlines;
	return err;
}

static int set_max(struct perf_bpf_prog *prog, const char *value)
{
	char *end;
	long max = strtol(value, &end, 10);

	if (*end || max < 1 || max > INT_MAX)
		return -EINVAL;
	prog->max_points = max;
	return 0;
}

static int set_partial(struct perf_bpf_prog *prog, const char *value)
{
	return parse_yes_no(value, &prog->partial);
}

static const struct key {
	const char	*name;
	const char	*values;
	int		(*set)(struct perf_bpf_prog *prog, const char *value);
} keys[] = {
	{ "exec", "the path of a program or library", set_exec },
	{ "module", "the name or path of a kernel module", set_module },
	{ "inlines", "yes or no", set_inlines },
	{ "max", "a number of points", set_max },
	{ "partial", "yes or no", set_partial },
};

static bool is_key(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		size_t len = strlen(keys[i].name);

		if (!strncmp(text, keys[i].name, len) && text[len] == '=')
			return true;
	}
	return false;
}

/* @text: "KEY=VALUE" */
static int set_key(const struct perf_bpf_object *object, struct perf_bpf_prog *prog, char *text)
{
	char *value = strchr(text, '=');
	char sbuf[STRERR_BUFSIZE];

	if (value)
		*value++ = '\0';
	for (size_t i = 0; value && i < ARRAY_SIZE(keys); i++) {
		int err;

		if (strcmp(text, keys[i].name))
			continue;
		err = keys[i].set(prog, value);
		if (err)
			perf_bpf_prog__err(object, prog, "%s=%s: %s; %s= takes %s", text, value,
					   err == -EEXIST ? "a program or module is named already" :
					   str_error_r(-err, sbuf, sizeof(sbuf)), text,
					   keys[i].values);
		return err;
	}
	perf_bpf_prog__err(object, prog,
			   "'%s' is not known before ';'. Keys are exec=, module=, inlines=, max= and partial=; a pattern of source lines is not supported",
			   text);
	return -EINVAL;
}

static int parse_definition(const struct perf_bpf_object *object, struct perf_bpf_prog *prog,
			    const char *definition)
{
	int err;

	if (is_key(definition)) {
		perf_bpf_prog__err(object, prog,
				   "there is no probe point; a ';' ends '%s', and FUNCTION or FILE:LINE follows",
				   definition);
		return -EINVAL;
	}
	err = parse_perf_probe_command(definition, &prog->pev);
	if (err) {
		perf_bpf_prog__err(object, prog,
				   "'%s' is not a probe definition; see PROBE SYNTAX in perf-probe(1)",
				   definition);
		return err;
	}
	if (prog->pev.group) {
		perf_bpf_prog__err(object, prog,
				   "the group of the event is always %s, do not name another",
				   PERF_BPF_EVENT_GROUP);
		return -EINVAL;
	}
	for (int i = 0; i < prog->pev.nargs; i++) {
		const char *var = prog->pev.args[i].var;

		if (strcmp(var, "$params") && strcmp(var, "$vars"))
			continue;
		perf_bpf_prog__err(object, prog,
				   "%s is not supported, as it differs from point to point; name the variables",
				   var);
		return -EINVAL;
	}
	if (prog->pev.nargs <= BPF_PROLOGUE_MAX_ARGS)
		return 0;
	perf_bpf_prog__err(object, prog, "%d arguments, a program takes up to %d of a point",
			   prog->pev.nargs, BPF_PROLOGUE_MAX_ARGS);
	return -E2BIG;
}

static int parse_section(const struct perf_bpf_object *object, struct perf_bpf_prog *prog)
{
	char *section = strdup(bpf_program__section_name(prog->prog));
	char *part = section, *end;
	int err = 0;

	if (!section)
		return -ENOMEM;
	while (!err && (end = strchr(part, ';'))) {
		*end = '\0';
		err = set_key(object, prog, part);
		part = end + 1;
	}
	if (!err)
		err = parse_definition(object, prog, skip_spaces(part));
	free(section);
	return err;
}

/* Return: what is wrong with a parameter, or NULL. */
static const char *check_parameter(const struct btf *btf, __u32 id, int nr)
{
	const struct btf_type *type = btf__type_by_id(btf, btf__resolve_type(btf, id));
	bool pointer = type && btf_is_ptr(type);
	bool number = type && (btf_is_int(type) || btf_is_any_enum(type));

	if (nr == 0)
		return pointer ? NULL : "has to be a pointer, to the context";
	if (nr == 1)
		return number ? NULL : "has to be an integer, the error flag";
	return number || pointer ? NULL : "has to be an integer or a pointer";
}

/*
 * A program that takes more arguments than the section names would read garbage, and one
 * without the error flag would take that for the first argument.
 */
static int check_parameters(const struct perf_bpf_object *object, struct perf_bpf_prog *prog)
{
	const struct btf *btf = bpf_object__btf(object->obj);
	const struct btf_type *func, *proto;
	int id, nr;

	id = btf ? btf__find_by_name_kind(btf, bpf_program__name(prog->prog), BTF_KIND_FUNC)
		 : -ENOENT;
	if (id < 0)
		return 0;	/* the verifier refuses a register that is not set */
	func = btf__type_by_id(btf, id);
	proto = btf__type_by_id(btf, func->type);
	nr = btf_vlen(proto);
	for (int i = 0; i < nr; i++) {
		const char *wrong = check_parameter(btf, btf_params(proto)[i].type, i);

		if (!wrong)
			continue;
		perf_bpf_prog__err(object, prog, "parameter %d of the program %s", i + 1, wrong);
		return -EINVAL;
	}
	/* The context alone, as programs have it that are for no arguments */
	if (nr <= 1 || nr == prog->pev.nargs + CTX_AND_ERR)
		return 0;
	perf_bpf_prog__err(object, prog,
			   "the program has %d parameters, but is given the context, an error flag and %d argument%s",
			   nr, prog->pev.nargs, prog->pev.nargs == 1 ? "" : "s");
	return -EINVAL;
}

static int perf_bpf_prog__init(const struct perf_bpf_object *object,
			       struct perf_bpf_prog *prog, struct bpf_program *bpf_prog)
{
	int err;

	prog->prog = bpf_prog;
	prog->main_cnt = bpf_program__insn_cnt(bpf_prog);
	prog->max_points = MAX_POINTS;
	err = parse_section(object, prog);
	if (!err)
		err = check_parameters(object, prog);
	if (!err)
		err = bpf_program__set_type(bpf_prog, BPF_PROG_TYPE_KPROBE);
	return err;
}

/* Points and layouts */

static u64 kernel_symbol(const char *name, void *ctx __maybe_unused)
{
	u64 address;

	/* Another kernel's file is only looked at, and says nothing of addresses here */
	if (symbol_conf.ignore_vmlinux_buildid ||
	    kallsyms__get_symbol_start("/proc/kallsyms", name, &address))
		return 0;
	return address;
}

static void *grow(void *array, int nr, size_t size)
{
	/* Doubled when a power of two is full */
	return nr & (nr - 1) ? array : reallocarray(array, nr ? 2 * nr : 1, size);
}

static int add_skipped(struct perf_bpf_prog *prog, struct probe_trace_event *point,
		       const char *why)
{
	struct perf_bpf_skipped *skipped = grow(prog->skipped, prog->nr_skipped, sizeof(*skipped));

	if (!skipped)
		return -ENOMEM;
	prog->skipped = skipped;
	skipped[prog->nr_skipped].point = point;
	skipped[prog->nr_skipped].why = strdup(why);
	return skipped[prog->nr_skipped++].why ? 0 : -ENOMEM;
}

static bool same_code(const struct bpf_prologue *a, const struct bpf_prologue *b)
{
	return a->cnt == b->cnt && !memcmp(a->insns, b->insns, a->cnt * sizeof(*a->insns));
}

/* A probe event prints the same types at all of its points. */
static bool same_types(const struct probe_trace_event *a, const struct probe_trace_event *b)
{
	for (int i = 0; i < a->nargs; i++) {
		if (strcmp(a->args[i].type ?: "", b->args[i].type ?: ""))
			return false;
	}
	return true;
}

static struct perf_bpf_layout *find_layout(struct perf_bpf_prog *prog,
					   const struct probe_trace_event *point,
					   const struct bpf_prologue *prologue)
{
	struct perf_bpf_layout **layouts, *layout;

	for (int i = 0; i < prog->nr_layouts; i++) {
		layout = prog->layouts[i];
		if (same_code(&layout->prologue, prologue) &&
		    same_types(layout->points[0], point))
			return layout;
	}
	layouts = grow(prog->layouts, prog->nr_layouts, sizeof(*layouts));
	if (!layouts)
		return NULL;
	prog->layouts = layouts;
	layout = zalloc(sizeof(*layout));
	if (!layout)
		return NULL;
	layout->prologue = *prologue;
	layout->event_fd = -1;
	layouts[prog->nr_layouts++] = layout;
	return layout;
}

static int add_to_layout(struct perf_bpf_prog *prog, struct probe_trace_event *point,
			 const struct bpf_prologue *prologue)
{
	struct perf_bpf_layout *layout = find_layout(prog, point, prologue);
	struct probe_trace_event **points;

	if (!layout)
		return -ENOMEM;
	points = grow(layout->points, layout->nr_points, sizeof(*points));
	if (!points)
		return -ENOMEM;
	layout->points = points;
	points[layout->nr_points++] = point;
	return 0;
}

/* Say which argument perf probe has given up, as the point does not have it. */
static bool is_argument_missing(const struct perf_bpf_prog *prog,
				const struct probe_trace_event *point, char *why, size_t size)
{
	char magic[32];

	snprintf(magic, sizeof(magic), "\\0x%lx", probe_conf.magic_num);
	for (int i = 0; i < point->nargs; i++) {
		const char *var = prog->pev.args[i].var;

		if (strcmp(point->args[i].value, magic))
			continue;
		snprintf(why, size, point->args[i].err == -ENODATA ?
			 "BTF does not tell where '%s' is in this function" :
			 point->args[i].err == -ENOTSUP || point->args[i].err == -EINVAL ?
			 "the type or the place of '%s' is not supported" :
			 "there is no '%s', or it is optimized out", var);
		return true;
	}
	return false;
}

static int add_point(struct perf_bpf_prog *prog, struct probe_trace_event *point)
{
	const struct bpf_prologue_target target = {
		.e_machine = EM_HOST,
		.user = prog->pev.uprobes,
		.retprobe = point->point.retprobe,
		.symbol = prog->pev.uprobes ? NULL : kernel_symbol,
	};
	struct bpf_prologue prologue;
	char why[256];
	int err;

	if (!point->point.symbol && !prog->pev.uprobes)
		return add_skipped(prog, point, "the kernel does not allow a probe there");
	if (is_argument_missing(prog, point, why, sizeof(why)))
		return add_skipped(prog, point, why);
	err = bpf_prologue__generate(&prologue, &target, point->args, point->nargs);
	if (err == -ENOMEM)
		return err;
	if (err)
		return add_skipped(prog, point, prologue.error);
	return add_to_layout(prog, point, &prologue);
}

/* perf probe's own settings are global. */
static int convert_points(struct perf_bpf_prog *prog)
{
	const struct probe_conf saved = probe_conf;
	int err;

	probe_conf.max_probes = prog->max_points;
	probe_conf.no_inlines = prog->no_inlines;
	probe_conf.quiet_args = true;
	err = convert_perf_probe_events(&prog->pev, 1);
	probe_conf = saved;
	return err;
}

/* "vfs_read+12", or "inlined FUNCTION at vfs_read+12" */
int perf_bpf_point__scnprintf(const struct probe_trace_event *point, char *buf, size_t size)
{
	const struct probe_trace_point *at = &point->point;
	const char *function = at->function ?: at->symbol;
	int len = 0;

	if (at->realname && (!function || strcmp(at->realname, function)))
		len = scnprintf(buf, size, "inlined %s at ", at->realname);
	if (function)
		return len + scnprintf(buf + len, size - len, "%s+%lu", function,
				       at->function ? at->function_offset : at->offset);
	return len + scnprintf(buf + len, size - len, "0x%" PRIx64, at->address);
}

static void fprintf_skipped(const struct perf_bpf_prog *prog, FILE *fp)
{
	char at[256];

	for (int i = 0; i < prog->nr_skipped; i++) {
		perf_bpf_point__scnprintf(prog->skipped[i].point, at, sizeof(at));
		fprintf(fp, "#   skipped: %s: %s\n", at, prog->skipped[i].why);
	}
}

static void fprintf_found(const struct perf_bpf_layout *layout, FILE *fp)
{
	char at[256];

	for (int i = 0; i < layout->nr_points; i++) {
		perf_bpf_point__scnprintf(layout->points[i], at, sizeof(at));
		fprintf(fp, "#   found: %s\n", at);
	}
}

static int check_skipped(const struct perf_bpf_object *object, const struct perf_bpf_prog *prog)
{
	int nr = prog->pev.ntevs - prog->nr_skipped;

	if (!prog->nr_skipped || (prog->partial && nr))
		return 0;
	fprintf_skipped(prog, stderr);
	for (int i = 0; i < prog->nr_layouts; i++)
		fprintf_found(prog->layouts[i], stderr);
	perf_bpf_prog__err(object, prog, "%d of %d points cannot be probed%s", prog->nr_skipped,
			   prog->pev.ntevs,
			   nr ? "; to probe the others, begin the section with partial=yes;" : "");
	return -ENODATA;
}

static int find_points(const struct perf_bpf_object *object, struct perf_bpf_prog *prog)
{
	char sbuf[STRERR_BUFSIZE];
	int err = convert_points(prog);

	/* Found in debug information, or in the symbols alone */
	if (err == -ERANGE || err == -E2BIG) {
		perf_bpf_prog__err(object, prog,
				   "more than %d points; name them more narrowly, or begin the section with max=NUMBER;",
				   prog->max_points);
		return err;
	}
	if (err == -ENOENT || (!err && !prog->pev.ntevs)) {
		perf_bpf_prog__err(object, prog,
				   "no such function, no code on that line, or an argument that no point has. perf probe -F shows functions, -L FUNCTION lines, -V FUNCTION variables");
		return -ENOENT;
	}
	if (err == -ENODEV) {
		perf_bpf_prog__err(object, prog, "no such point%s", prog->pev.uprobes ? "" :
				   ", or the kernel allows no probe there (/sys/kernel/debug/kprobes/blacklist)");
		return err;
	}
	if (err == -ENODATA) {
		perf_bpf_prog__err(object, prog,
				   "no debug information. Build with -g, or for the kernel install it or name its vmlinux (--vmlinux FILE of perf record and perf probe, before the event)");
		return err;
	}
	if (err) {
		perf_bpf_prog__err(object, prog, "no point is found: %s",
				   str_error_r(-err, sbuf, sizeof(sbuf)));
		return err;
	}
	for (int i = 0; i < prog->pev.ntevs; i++) {
		err = add_point(prog, &prog->pev.tevs[i]);
		if (err)
			return err;
	}
	return check_skipped(object, prog);
}

/* Names of events */

static bool is_event_name_shared(const struct perf_bpf_object *object,
				 const struct perf_bpf_prog *prog)
{
	for (int i = 0; i < object->nr_progs; i++) {
		const struct perf_bpf_prog *other = &object->progs[i];

		if (other != prog && other->pev.event &&
		    !strcmp(other->pev.event, prog->pev.event))
			return true;
	}
	return false;
}

/* A function of C, that is, or its clone: its name may be in one of an event. */
static bool is_event_name(const char *function)
{
	while (isalnum(*function) || *function == '_' || *function == '.')
		function++;
	return !*function;
}

/* The only function that has points of a layout, NULL if there are several */
static const char *function_of_layout(const struct perf_bpf_layout *layout)
{
	const char *function = NULL;

	for (int i = 0; i < layout->nr_points; i++) {
		const struct probe_trace_point *at = &layout->points[i]->point;
		const char *other = at->function ?: at->symbol;

		if (!other || (function && strcmp(function, other)))
			return NULL;
		function = other;
	}
	return function;
}

/* NAME_FUNCTION if that is one event only, and no longer than events may be; or NAME_NUMBER */
static char *name_of_several(const struct perf_bpf_prog *prog, int nr, const char *name)
{
	const char *function = function_of_layout(prog->layouts[nr]);
	char *event;

	for (int i = 0; function && i < prog->nr_layouts; i++) {
		const char *other = i == nr ? NULL : function_of_layout(prog->layouts[i]);

		if (other && !strcmp(function, other))
			function = NULL;
	}
	if (function && is_event_name(function) &&
	    strlen(name) + strlen(function) < MAX_EVENT_NAME_LEN - NAME_RESERVE) {
		if (asprintf(&event, "%s_%s", name, function) < 0)
			return NULL;
		/* as clones have in their names */
		strreplace(event, '.', '_');
		return event;
	}
	return asprintf(&event, "%s_%d", name, nr + 1) < 0 ? NULL : event;
}

static int name_point(struct probe_trace_event *point, const char *event)
{
	free(point->group);
	free(point->event);
	point->group = strdup(PERF_BPF_EVENT_GROUP);
	point->event = strdup(event);
	return point->group && point->event ? 0 : -ENOMEM;
}

/**
 * perf_bpf_layout__set_event - Name the event of a layout
 * @layout: of a program
 * @event: without the group
 *
 * Return: 0, -ENAMETOOLONG with a message printed, or -ENOMEM.
 */
int perf_bpf_layout__set_event(struct perf_bpf_layout *layout, const char *event)
{
	char *copy;
	int err = 0;

	if (strlen(event) >= MAX_EVENT_NAME_LEN) {
		pr_err("%s: longer than %d characters, which events may have; begin the section with a shorter NAME=\n",
		       event, MAX_EVENT_NAME_LEN - 1);
		return -ENAMETOOLONG;
	}
	copy = strdup(event);
	if (!copy)
		return -ENOMEM;
	free(layout->event);
	layout->event = copy;
	for (int i = 0; i < layout->nr_points && !err; i++)
		err = name_point(layout->points[i], event);
	return err;
}

/* The event is named as the section says, or as the program. */
static int name_events(const struct perf_bpf_object *object, struct perf_bpf_prog *prog)
{
	const char *name = prog->pev.event && !is_event_name_shared(object, prog) ?
			   prog->pev.event : bpf_program__name(prog->prog);
	int err = 0;

	for (int i = 0; i < prog->nr_layouts && !err; i++) {
		char *event = prog->nr_layouts == 1 ? strdup(name) :
			      name_of_several(prog, i, name);

		if (!event)
			return -ENOMEM;
		err = perf_bpf_layout__set_event(prog->layouts[i], event);
		free(event);
	}
	return err;
}

/* Print */

static __printf(2, 3) void print_to_file(void *fp, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(fp, fmt, ap);
	va_end(ap);
}

static void fprintf_insns(const struct bpf_prologue *prologue, FILE *fp)
{
	const struct bpf_insn_cbs cbs = {
		.cb_print = print_to_file,
		.private_data = fp,
	};

	for (int i = 0; i < prologue->cnt; i++) {
		const struct bpf_insn *insn = &prologue->insns[i];

		fprintf(fp, "#   %3d: ", i);
		print_bpf_insn(&cbs, insn, true);
		fprintf(fp, "\n");
		if (insn->code == (BPF_LD | BPF_IMM | BPF_DW))
			i++;
	}
}

static int fprintf_layout(const struct perf_bpf_layout *layout, unsigned int flags, FILE *fp)
{
	for (int i = 0; i < layout->nr_points; i++) {
		char *command = synthesize_probe_trace_command(layout->points[i]);
		char at[256];

		if (!command)
			return -ENOMEM;
		perf_bpf_point__scnprintf(layout->points[i], at, sizeof(at));
		fprintf(fp, "# %s:\n%s\n", at, command);
		free(command);
	}
	if (flags & PERF_BPF_OBJECT_INSNS)
		fprintf_insns(&layout->prologue, fp);
	return 0;
}

static int fprintf_prog(const struct perf_bpf_prog *prog, unsigned int flags, FILE *fp)
{
	int err = 0;

	fprintf(fp, "# %s, SEC(\"%s\"): %d point%s, %d instance%s\n",
		bpf_program__name(prog->prog), bpf_program__section_name(prog->prog),
		prog->pev.ntevs - prog->nr_skipped,
		prog->pev.ntevs - prog->nr_skipped == 1 ? "" : "s", prog->nr_layouts,
		prog->nr_layouts == 1 ? "" : "s");
	fprintf_skipped(prog, fp);
	for (int i = 0; i < prog->nr_layouts && !err; i++)
		err = fprintf_layout(prog->layouts[i], flags, fp);
	return err;
}

/**
 * perf_bpf_object__fprintf - Print the probe events of a file
 * @object: after perf_bpf_object__find_points()
 * @flags: %PERF_BPF_OBJECT_INSNS also prints the instructions in front of each instance
 * @fp: where to
 *
 * The lines that do not begin with # are what perf record -e FILE writes to tracefs.
 *
 * Return: 0 or -ENOMEM.
 */
int perf_bpf_object__fprintf(const struct perf_bpf_object *object, unsigned int flags,
			     FILE *fp)
{
	int err = 0;

	for (int i = 0; i < object->nr_progs && !err; i++)
		err = fprintf_prog(&object->progs[i], flags, fp);
	return err;
}

/* The kernel's symbols may not be readable, and are not needed for programs alone. */
static bool is_user_only(const struct perf_bpf_object *object)
{
	for (int i = 0; i < object->nr_progs; i++) {
		if (!object->progs[i].pev.uprobes)
			return false;
	}
	return true;
}

/**
 * perf_bpf_object__find_points - Find the probe points of all programs
 * @object: from perf_bpf_object__open()
 *
 * Reads debug information, which takes seconds for a glob over the kernel. Errors are
 * printed with the program, point and argument.
 *
 * Return: 0, -ENODATA if a point cannot be probed, -ERANGE for too many, or the error of
 * init_probe_symbol_maps() or convert_perf_probe_events().
 */
int perf_bpf_object__find_points(struct perf_bpf_object *object)
{
	const bool allow_aliases = symbol_conf.allow_aliases;
	int err = init_probe_symbol_maps(is_user_only(object));

	if (err < 0)
		return err;
	err = 0;
	for (int i = 0; i < object->nr_progs && !err; i++) {
		err = find_points(object, &object->progs[i]);
		if (!err)
			err = name_events(object, &object->progs[i]);
	}
	exit_probe_symbol_maps();
	/* perf probe wants several symbols of an address, samples do not */
	symbol_conf.allow_aliases = allow_aliases;
	return err;
}

/* Not one whose section is libbpf's, as SEC("tp/..."), and not an optional one, SEC("?...") */
static bool is_at_probe_point(const struct bpf_program *prog)
{
	return bpf_program__type(prog) == BPF_PROG_TYPE_UNSPEC && bpf_program__autoload(prog);
}

static int add_progs(struct perf_bpf_object *object)
{
	struct bpf_program *prog;
	int nr = 0, err;

	bpf_object__for_each_program(prog, object->obj)
		nr += is_at_probe_point(prog);
	if (!nr) {
		pr_err("%s: has no BPF program at a probe point, as SEC(\"func=FUNCTION\"). Programs of libbpf's sections are attached beside such ones, SEC(\"perf_event\") is for --bpf-prog\n",
		       object->path);
		return -ENOENT;
	}
	object->progs = calloc(nr, sizeof(*object->progs));
	if (!object->progs)
		return -ENOMEM;
	bpf_object__for_each_program(prog, object->obj) {
		if (!is_at_probe_point(prog))
			continue;
		err = perf_bpf_prog__init(object, &object->progs[object->nr_progs++], prog);
		if (err)
			return err;
	}
	return 0;
}

/**
 * perf_bpf_object__open - Read the programs of a BPF object file
 * @path: of the file
 * @values: of its variables, "VARIABLE=VALUE,...", or NULL
 *
 * Return: the object, or NULL with errno set and a message printed.
 */
struct perf_bpf_object *perf_bpf_object__open(const char *path, const char *values)
{
	struct perf_bpf_object *object = zalloc(sizeof(*object));
	char sbuf[STRERR_BUFSIZE];
	int err;

	if (!object)
		return NULL;
	object->path = strdup(path);
	if (!object->path) {
		err = -ENOMEM;
		goto out;
	}
	object->obj = bpf_object__open(path);
	if (!object->obj) {
		err = -errno;
		libbpf_strerror(err, sbuf, sizeof(sbuf));
		pr_err("%s: cannot be opened as a BPF object file: %s\n", path, sbuf);
		goto out;
	}
	err = values ? bpf_variables__set(object->obj, path, values) : 0;
	if (!err)
		err = add_progs(object);
	if (!err)
		return object;
out:
	perf_bpf_object__close(object);
	errno = -err;
	return NULL;
}

void perf_bpf_layout__delete(struct perf_bpf_layout *layout)
{
	free(layout->event);
	free(layout->points);
	free(layout);
}

static void perf_bpf_prog__exit(struct perf_bpf_prog *prog)
{
	for (int i = 0; i < prog->nr_layouts; i++)
		perf_bpf_layout__delete(prog->layouts[i]);
	for (int i = 0; i < prog->nr_skipped; i++)
		free(prog->skipped[i].why);
	free(prog->layouts);
	free(prog->skipped);
	cleanup_perf_probe_events(&prog->pev, 1);
}

void perf_bpf_object__close(struct perf_bpf_object *object)
{
	if (!object)
		return;
	for (int i = 0; i < object->nr_progs; i++)
		perf_bpf_prog__exit(&object->progs[i]);
	free(object->progs);
	bpf_object__close(object->obj);
	free(object->path);
	free(object);
}
