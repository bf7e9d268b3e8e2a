// SPDX-License-Identifier: GPL-2.0
/*
 * Probe points in the kernel without debug information: BTF tells arguments of functions, and
 * where these were inlined (btf-place.c, btf-arg.c). What probe-finder.c makes of debug
 * information is made of that here, so that all that comes behind it is the same.
 */
#include <bpf/btf.h>
#include <dwarf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <stdlib.h>
#include <string.h>
#include "btf-place.h"
#include "debug.h"
#include "probe-arg.h"
#include "probe-btf.h"
#include "probe-event.h"
#include "probe-finder.h"
#include "strbuf.h"
#include "strlist.h"
#include "symbol_conf.h"

/* What of a probe BTF does not know, or NULL. @variables: those that are there */
static const char *find_lack(struct perf_probe_event *pev, bool variables)
{
	const struct perf_probe_point *point = &pev->point;

	if (point->line || point->lazy_line)
		return "lines of the source";
	if (point->file)
		return "source files";
	if (point->offset && variables)
		return "variables at an offset in a function";
	if (point->retprobe && variables)
		return "variables where a function returns";
	return NULL;
}

/* Has the running kernel BTF of this target, and are its registers known? */
static bool has_btf(const struct perf_probe_event *pev)
{
	return !pev->uprobes && (!pev->target || !strchr(pev->target, '/')) &&
	       !symbol_conf.vmlinux_name && !*symbol_conf.symfs &&
	       btf_place__knows_registers() && kernel_btf__is_there(pev->target);
}

/**
 * probe_btf__suits - May BTF know the point of a probe and its arguments?
 * @pev: of the user
 *
 * It knows where functions of the running kernel begin, and not their lines.
 */
bool probe_btf__suits(struct perf_probe_event *pev)
{
	const struct perf_probe_point *point = &pev->point;

	return point->function && strncmp(point->function, "0x", 2) && !point->offset &&
	       !point->retprobe && !find_lack(pev, false) && has_btf(pev);
}

/**
 * probe_btf__explain - Say why BTF does not serve a user who has no debug information
 * @pev: of the user
 * @variables: of that point are wanted
 */
void probe_btf__explain(struct perf_probe_event *pev, bool variables)
{
	const char *lack = find_lack(pev, variables);

	if (lack && has_btf(pev))
		pr_err("BTF has functions and their parameters. Only debug information has %s.\n",
		       lack);
}

/* Arguments */

struct event_finder {
	struct perf_probe_event		*pev;
	struct probe_trace_event	*tevs;
	int				ntevs;
	const char			*unknown;	/* why arguments of one are not known */
};

static void warn_unknown(const struct btf_place *place)
{
	if (!probe_conf.quiet_args)
		pr_warning("BTF does not tell the arguments of %s(): %s. Debug information of the kernel may.\n",
			   place->symbol, place->unknown);
}

static int convert_arg(const struct btf_place *place, struct perf_probe_event *pev,
		       struct perf_probe_arg *pvar, struct probe_trace_arg *tvar)
{
	int err;

	if (!is_c_varname(pvar->var))
		return copy_to_probe_trace_arg(tvar, pvar);
	err = probe_trace_arg__set_name(tvar, pvar);
	if (err)
		return err;
	if (!place->proto) {
		tvar->err = -ENODATA;
		return 0;
	}
	err = btf_place__convert_arg(place, pvar, tvar);
	if (!err || err == -ENOMEM)
		return err;
	/* It may be somewhere else */
	clear_probe_trace_arg_value(tvar);
	if (err == -ENOENT) {
		if (btf_place__find_param(place, pvar->var) < 0 &&
		    !btf_place__is_removed(place, pvar->var))
			tvar->err = -ENXIO;
		return 0;
	}
	if (!may_skip_trace_arg(pev, err))
		return err;
	if (!probe_conf.quiet_args)
		pr_warning("Argument '%s' cannot be fetched in %s at 0x%" PRIx64 ".\n", tvar->name,
			   place->symbol, place->address);
	tvar->err = err;
	return 0;
}

/* $params: those that are there */
static int expand_params(const struct btf_place *place, struct perf_probe_arg *args, int nr)
{
	int nr_params = place->proto ? btf_vlen(place->proto) : 0;

	for (int i = 0; i < nr_params && nr < MAX_PROBE_ARGS; i++) {
		if (btf_place__has_param(place, i))
			args[nr++].var = (char *)btf_place__param_name(place, i);
	}
	return nr;
}

static int convert_args(const struct btf_place *place, struct perf_probe_event *pev,
			struct probe_trace_event *tev)
{
	struct perf_probe_arg *args = calloc(MAX_PROBE_ARGS, sizeof(*args));
	int nr = 0, err = 0;

	if (!args)
		return -ENOMEM;
	for (int i = 0; i < pev->nargs && nr < MAX_PROBE_ARGS; i++) {
		if (!strcmp(pev->args[i].var, PROBE_ARG_PARAMS))
			nr = expand_params(place, args, nr);
		else
			args[nr++] = pev->args[i];
	}
	tev->args = calloc(nr, sizeof(*tev->args));
	if (nr && !tev->args)
		err = -ENOMEM;
	for (int i = 0; i < nr && !err; i++, tev->nargs++)
		err = convert_arg(place, pev, &args[i], &tev->args[i]);
	free(args);
	return err;
}

static int too_many(void)
{
	pr_warning("More than %d places: see --max-probes and --no-inlines.\n",
		   probe_conf.max_probes);
	return -ERANGE;
}

static bool is_found(const struct event_finder *finder, u64 address)
{
	for (int i = 0; i < finder->ntevs; i++) {
		if (finder->tevs[i].point.address == address)
			return true;
	}
	return false;
}

static int add_event(const struct kernel_btf *kbtf, const struct btf_place *place, void *ctx)
{
	struct event_finder *finder = ctx;
	struct probe_trace_event *tev = &finder->tevs[finder->ntevs];
	int err;

	if (is_found(finder, place->address))
		return 0;
	if (finder->ntevs == probe_conf.max_probes)
		return too_many();
	finder->ntevs++;
	err = kernel_btf__set_point(kbtf, place, &tev->point);
	if (err)
		return err;
	tev->lang = DW_LANG_C;
	if (!place->proto && perf_probe_with_var(finder->pev)) {
		finder->unknown = place->unknown;
		warn_unknown(place);
	}
	return convert_args(place, finder->pev, tev);
}

static int count_refused(const struct event_finder *finder)
{
	int nr = 0;

	for (int i = 0; i < finder->ntevs; i++)
		nr += !finder->tevs[i].point.symbol;
	return nr;
}

/* fill_empty_trace_arg() has no value for one, and there is none in any function */
static void print_no_param(const struct event_finder *finder)
{
	for (int i = 0; i < finder->ntevs; i++) {
		const struct probe_trace_event *tev = &finder->tevs[i];

		for (int j = 0; j < tev->nargs; j++) {
			if (tev->args[j].value || tev->args[j].err != -ENXIO)
				continue;
			pr_err("'%s' is not a parameter of %s(). Only debug information has other variables, and that of the kernel is not found.\n",
			       tev->nargs == finder->pev->nargs ? finder->pev->args[j].var :
			       tev->args[j].name, tev->point.realname);
			return;
		}
	}
}

static int check_events(struct event_finder *finder)
{
	struct perf_probe_event *pev = finder->pev;
	int err;

	if (!finder->ntevs)
		return 0;
	if (count_refused(finder) == finder->ntevs)
		return -ENODEV;
	if (!pev->nargs)
		return 0;
	err = fill_empty_trace_arg(pev, finder->tevs, finder->ntevs);
	if (err == -ENODATA && probe_conf.quiet_args)
		pr_err("BTF does not tell the arguments of %s: %s.\n", pev->point.function,
		       finder->unknown);
	if (err != -ENXIO)
		return err;
	print_no_param(finder);
	return -ENOENT;
}

static bool wants_variables(const struct perf_probe_event *pev)
{
	for (int i = 0; i < pev->nargs; i++) {
		if (!strcmp(pev->args[i].var, PROBE_ARG_VARS))
			return true;
	}
	return false;
}

static int find_events(const struct kernel_btf *kbtf, struct event_finder *finder)
{
	const struct perf_probe_event *pev = finder->pev;
	int err;

	if (wants_variables(pev)) {
		pr_err("Only debug information has $vars, and that of the kernel is not found. BTF has $params.\n");
		return -ENODATA;
	}
	finder->tevs = calloc(probe_conf.max_probes, sizeof(*finder->tevs));
	if (!finder->tevs)
		return -ENOMEM;
	err = kernel_btf__visit_places(kbtf, pev->point.function, !probe_conf.no_inlines,
				       add_event, finder);
	return err ?: check_events(finder);
}

static void print_load_error(int err)
{
	if (err == EACCES)
		pr_err("The addresses in /proc/kallsyms cannot be read: see /proc/sys/kernel/kptr_restrict, and be root.\n");
	else
		pr_err("BTF of the kernel or of the module cannot be read: %s\n", strerror(err));
}

/**
 * probe_btf__find_trace_events - Find a kernel function and its arguments in BTF
 * @pev: for which probe_btf__suits()
 * @tevs: gets the points: where the function begins, and where it was inlined
 *
 * Without arguments that is asked for only if BTF knows where functions were inlined.
 *
 * Return: the number of points; 0 if there is none; -ENOENT if they have no such parameter;
 * -ENODATA if BTF does not tell their arguments; -ENODEV if the kernel allows no probe; -ERANGE
 * for too many points; or another error. Errors have printed why.
 */
int probe_btf__find_trace_events(struct perf_probe_event *pev, struct probe_trace_event **tevs)
{
	struct event_finder finder = { .pev = pev, };
	struct kernel_btf *kbtf;
	int err;

	/* Registers that the user names are those of where a function begins. */
	if (!perf_probe_with_var(pev) && (pev->nargs || !kernel_btf__has_inlined(pev->target)))
		return 0;
	kbtf = kernel_btf__new(pev->target);
	if (!kbtf) {
		err = -errno;
		if (!perf_probe_with_var(pev))
			return 0;
		print_load_error(-err);
		return err;
	}
	err = find_events(kbtf, &finder);
	kernel_btf__delete(kbtf);
	if (!err && finder.ntevs) {
		*tevs = finder.tevs;
		return finder.ntevs;
	}
	for (int i = 0; i < finder.ntevs; i++)
		clear_probe_trace_event(&finder.tevs[i]);
	free(finder.tevs);
	return err;
}

/* Variables */

struct variable_finder {
	struct variable_list	*vls;
	int			nr;
};

static int add_variables(const struct kernel_btf *kbtf __maybe_unused,
			 const struct btf_place *place, void *ctx)
{
	struct variable_finder *finder = ctx;
	struct variable_list *vl;
	struct perf_probe_arg args[MAX_PROBE_ARGS] = {};
	int nr = expand_params(place, args, 0), err = 0;

	for (int i = 0; i < finder->nr; i++) {
		if (finder->vls[i].point.address == place->address)
			return 0;
	}
	if (finder->nr == probe_conf.max_probes)
		return too_many();
	vl = &finder->vls[finder->nr++];
	vl->point.address = place->address;
	if (!place->proto)
		warn_unknown(place);
	vl->point.symbol = strdup(place->symbol);
	vl->point.offset = place->address - place->symbol_address;
	vl->vars = strlist__new(NULL, NULL);
	if (!vl->point.symbol || !vl->vars)
		return -ENOMEM;
	for (int i = 0; i < nr && !err; i++) {
		struct strbuf buf = STRBUF_INIT;

		err = btf_place__describe_param(place, btf_place__find_param(place, args[i].var),
						&buf);
		if (!err && strlist__add(vl->vars, buf.buf) == -ENOMEM)
			err = -ENOMEM;
		strbuf_release(&buf);
	}
	return err;
}

/**
 * probe_btf__find_variables - Find the parameters of a kernel function in BTF
 * @pev: for which probe_btf__suits()
 * @vls: gets the points, each with those parameters that are there
 *
 * Return: the number of points, or an error, with a message printed.
 */
int probe_btf__find_variables(struct perf_probe_event *pev, struct variable_list **vls)
{
	struct variable_finder finder = {};
	struct kernel_btf *kbtf = kernel_btf__new(pev->target);
	int err;

	if (!kbtf) {
		err = -errno;
		print_load_error(-err);
		return err;
	}
	finder.vls = calloc(probe_conf.max_probes, sizeof(*finder.vls));
	err = finder.vls ? kernel_btf__visit_places(kbtf, pev->point.function,
						    !probe_conf.no_inlines, add_variables,
						    &finder) : -ENOMEM;
	kernel_btf__delete(kbtf);
	if (!err) {
		*vls = finder.vls;
		return finder.nr;
	}
	for (int i = 0; i < finder.nr; i++) {
		free(finder.vls[i].point.symbol);
		strlist__delete(finder.vls[i].vars);
	}
	free(finder.vls);
	return err;
}
