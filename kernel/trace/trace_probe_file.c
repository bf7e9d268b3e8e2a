// SPDX-License-Identifier: GPL-2.0
/*
 * Which of several functions of a name is from this source file?
 *
 * .BTF.func has the paths of the source files: see kernel/bpf/btf_func.c.
 * SYM@FILE is the function whose path ends with FILE, also if it is the only one of its name:
 * in another configuration there may be more. Without it there are no paths.
 */
#include <linux/btf_func.h>
#include <linux/cred.h>
#include <linux/kallsyms.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "trace_btf.h"
#include "trace_probe.h"
#include "trace_probe_target.h"

/**
 * probe_target_place - how a target with a file is shown
 * @target: a target
 *
 * Return: [MOD:]SYM[+OFF]@FILE, to be freed, or NULL if there is no memory.
 */
char *probe_target_place(const struct probe_target *target)
{
	const char *mod = target->module ?: "", *colon = target->module ? ":" : "";

	if (target->offset)
		return kasprintf(GFP_KERNEL, "%s%s%s+%lu@%s", mod, colon, target->symbol,
				 target->offset, target->file);
	return kasprintf(GFP_KERNEL, "%s%s%s@%s", mod, colon, target->symbol, target->file);
}

#ifdef CONFIG_PROBE_EVENTS_BTF_ARGS

/* Find the path of the source file of the function at @addr, as btf_func_file(). */
static int source_file(unsigned long addr, char *file, size_t size)
{
	struct btf *owner = btf_of_text(addr);
	int ret = owner ? btf_func_file(owner, addr, file, size) : -ENOENT;

	btf_put(owner);
	return ret;
}

/* Return MOD:SYM@FILE, without @FILE if that is not known, to be freed. */
char *probe_name_with_file(unsigned long addr, const char *object, const char *symbol)
{
	char file[128];

	if (source_file(addr, file, sizeof(file)))
		return kasprintf(GFP_KERNEL, "%s:%s", object, symbol);
	return kasprintf(GFP_KERNEL, "%s:%s@%s", object, symbol, file);
}

/* Print where the function @name is: @FILE if that is known, else its address. */
static int print_place(char *buf, int size, unsigned long addr, const char *name)
{
	char before[KSYM_SYMBOL_LEN];
	char file[128];

	if (!source_file(addr, file, sizeof(file)))
		return scnprintf(buf, size, "%s@%s", name, file);
	if (!kallsyms_lookup(addr - 1, NULL, NULL, NULL, before))
		strscpy(before, "?");
	if (!kallsyms_show_value(current_cred()))
		return scnprintf(buf, size, "after %s", before);
	return scnprintf(buf, size, "0x%lx after %s", addr, before);
}

/* List the functions @name: how to choose one. */
void probe_list_funcs(char *detail, int size, const struct probe_funcs *funcs)
{
	char *place __free(kfree) = kmalloc(KSYM_SYMBOL_LEN, GFP_KERNEL);
	int i, len = 0;

	for (i = 0; place && i < funcs->nr; i++) {
		if (len + print_place(place, KSYM_SYMBOL_LEN, funcs->addrs[i], funcs->symbol) + 16 >
		    size)
			break;
		len += scnprintf(detail + len, size - len, "%s%s", i ? ", " : "", place);
	}
	if (i < funcs->nr)
		scnprintf(detail + len, size - len, " and %u more", funcs->nr - i);
}

/* Is @file the end of @path, from the beginning of a name on? */
static bool path_ends_with(const char *path, const char *file)
{
	size_t len = strlen(path), end = strlen(file);

	return len >= end && !strcmp(path + len - end, file) &&
	       (len == end || path[len - end - 1] == '/' || *file == '/');
}

/*
 * Keep the functions that are from @file. Return how many these are, or -ENODATA if
 * the files are not known.
 */
static int keep_file(struct probe_funcs *funcs, const char *file)
{
	unsigned int i, nr = 0, nodata = 0;
	char path[256];
	int ret;

	for (i = 0; i < funcs->nr; i++) {
		ret = source_file(funcs->addrs[i], path, sizeof(path));
		nodata += ret == -ENODATA;
		if (!ret && path_ends_with(path, file))
			funcs->addrs[nr++] = funcs->addrs[i];
	}
	if (nodata && nodata == funcs->nr)
		return -ENODATA;
	if (nr)
		funcs->nr = nr;
	return nr;
}

static void log_file(struct probe_target *target, const struct probe_funcs *funcs, int err)
{
	char *detail __free(kfree) = kzalloc(PROBE_TYPES_DETAIL, GFP_KERNEL);

	if (detail && funcs->nr)
		probe_list_funcs(detail, PROBE_TYPES_DETAIL, funcs);
	__trace_probe_log_err(target->file - 1 - target->buf, err, detail);
}

/**
 * probe_target_find_file - find the function of a target SYM@FILE
 * @target: a target; without FILE, nothing is done
 *
 * Logs errors as probe_target_parse().
 * Context: Process. Holds dyn_event_ops_mutex.
 * Return: 0, with the address in @target, -EINVAL or -ENOMEM.
 */
int probe_target_find_file(struct probe_target *target)
{
	struct probe_funcs *funcs;
	int nr;

	if (!target->file)
		return 0;
	funcs = probe_target_funcs(target);
	if (!funcs)
		return -ENOMEM;
	nr = keep_file(funcs, target->file);
	if (nr == 1) {
		target->addr = funcs->addrs[0] + target->offset;
		return 0;
	}
	if (!probe_target_is_loaded(target))
		log_file(target, funcs, TP_ERR_MOD_NOT_LOADED);
	else if (nr == -ENODATA)
		log_file(target, funcs, TP_ERR_TARGET_FILE);
	else
		log_file(target, funcs, nr ? TP_ERR_FILE_AMBIGUOUS : TP_ERR_FILE_NO_FUNC);
	return -EINVAL;
}

/* Log that a target is several symbols, and which these are. */
void probe_target_log_ambiguous(struct probe_target *target)
{
	char *detail __free(kfree) = kzalloc(PROBE_TYPES_DETAIL, GFP_KERNEL);
	const struct probe_funcs *funcs = probe_target_funcs(target);

	if (detail && funcs && funcs->nr)
		probe_list_funcs(detail, PROBE_TYPES_DETAIL, funcs);
	__trace_probe_log_err(0, TP_ERR_NON_UNIQ_SYMBOL, detail);
}

#else /* !CONFIG_PROBE_EVENTS_BTF_ARGS */

char *probe_name_with_file(unsigned long addr, const char *object, const char *symbol)
{
	return kasprintf(GFP_KERNEL, "%s:%s", object, symbol);
}

int probe_target_find_file(struct probe_target *target)
{
	if (!target->file)
		return 0;
	trace_probe_log_err(target->file - 1 - target->buf, TARGET_FILE);
	return -EINVAL;
}

void probe_target_log_ambiguous(struct probe_target *target)
{
	trace_probe_log_err(0, NON_UNIQ_SYMBOL);
}

#endif
