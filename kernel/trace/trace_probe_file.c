// SPDX-License-Identifier: GPL-2.0
/*
 * Which of several functions of a name is from this source file?
 *
 * The function index of BTF has the paths of the source files of functions whose name is not
 * unique in their object: see kernel/bpf/btf_func.c. SYM@FILE is the one whose path ends
 * with FILE. Without the index there are no paths.
 */
#include <linux/btf_func.h>
#include <linux/cred.h>
#include <linux/kallsyms.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "trace_probe.h"
#include "trace_probe_target.h"

/* Replace what an event's name cannot have and SYM@FILE may. */
void probe_target_event_name(char *name)
{
	strreplace(name, '@', '_');
	strreplace(name, '/', '_');
	strreplace(name, '-', '_');
}

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

/* Copy the path of the source file of the function @name at @addr, or return -ENOENT. */
static int source_file(unsigned long addr, const char *name, char *file, size_t size)
{
	struct btf_func func;
	const char *tag;
	u32 owner_id, nr = 0;
	int ret;

	ret = probe_find_func(addr, name, &func, &owner_id);
	if (ret)
		return ret;
	tag = btf_func_tag(&func, "file:", &nr);
	/* It is the end of a long path that counts. */
	if (tag)
		strscpy(file, tag + max_t(ssize_t, strlen(tag) - size + 1, 0), size);
	btf_put(func.btf);
	return tag ? 0 : -ENOENT;
}

/* Return MOD:SYM@FILE, without @FILE if that is not known, to be freed. */
char *probe_name_with_file(unsigned long addr, const char *object, const char *symbol)
{
	char file[128];

	if (source_file(addr, symbol, file, sizeof(file)))
		return kasprintf(GFP_KERNEL, "%s:%s", object, symbol);
	return kasprintf(GFP_KERNEL, "%s:%s@%s", object, symbol, file);
}

/* Print where the function @name is: @FILE if that is known, else its address. */
static int print_place(char *buf, int size, unsigned long addr, const char *name)
{
	char before[KSYM_SYMBOL_LEN];
	char file[128];

	if (!source_file(addr, name, file, sizeof(file)))
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
		ret = source_file(funcs->addrs[i], funcs->symbol, path, sizeof(path));
		nodata += ret == -ENODATA;
		if (!ret && path_ends_with(path, file))
			funcs->addrs[nr++] = funcs->addrs[i];
	}
	if (!nr && nodata)
		return -ENODATA;
	if (nr)
		funcs->nr = nr;
	return nr;
}

static void log_file(struct probe_target *target, const struct probe_funcs *funcs, int err)
{
	char *detail __free(kfree) = kzalloc(PROBE_TYPES_DETAIL, GFP_KERNEL);

	if (detail && funcs->nr > 1)
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
	if (nr == -ENODATA)
		log_file(target, funcs, TP_ERR_TARGET_FILE);
	else if (!nr && funcs->nr == 1)
		log_file(target, funcs, TP_ERR_FILE_NOT_KNOWN);
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
