// SPDX-License-Identifier: GPL-2.0
/*
 * What a probe is on, and which types the function there has.
 *
 * A name does not tell the function: in a small kernel nine are called type_show(),
 * and a module may have one more. BTF has at most one FUNC of a name in each object,
 * which is the core kernel or a module, and it has no addresses. So types are found
 * from the address:
 *
 *   target -> address -> the object that owns it, and its symbol there
 *          -> the FUNC of exactly that name in the object's BTF
 *
 * A module's BTF has only what differs from that of the core kernel: a FUNC that it lacks
 * is there, with the same prototype. Two cases cannot be seen: a function of a module that
 * has no debug information, or whose arguments are not where the ABI has them, so that
 * pahole left it out, and, with a pahole before 1.25, a name that
 * another function has as well which is inlined everywhere.
 *
 * There are none, for a reason that the user is told, if
 *
 * - the address is not the entry of a function, or in text that has no BTF, as that
 *   of BPF programs and trampolines;
 * - several objects have functions of this name, which an fprobe event is all on.
 *   Then the caller makes a probe for each object.
 *
 * With CONFIG_DEBUG_INFO_BTF_FUNC, btf_func_find() knows the arguments of the function
 * at each address, and an event on several functions of one object has types if they all
 * have the same. Without it, there are none, too, if
 *
 * - the symbol has a suffix (.isra.0, .constprop.0, .part.0): the compiler changed the
 *   arguments, and BTF has those of the source;
 * - the object has several functions of this name. A pahole before 1.25 takes the
 *   prototype of any of them, and later ones write a FUNC only if the prototypes are
 *   the same, or none at all.
 */
#include <linux/btf.h>
#include <linux/btf_func.h>
#include <linux/cred.h>
#include <linux/ctype.h>
#include <linux/ftrace.h>
#include <linux/glob.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include <asm/sections.h>

#include "trace_btf.h"
#include "trace_probe.h"
#include "trace_probe_target.h"

/*
 * The target of a uprobe is PATH:OFFSET. SYM@FILE has a path too, but no offset after it,
 * and the colon of MOD:SYM@FILE is before it.
 */
bool probe_target_is_uprobe(const char *spec)
{
	const char *slash = strrchr(spec, '/');

	if (!slash || !strchr(spec, ':'))
		return false;
	return !strchr(spec, '@') || strchr(slash, ':');
}

bool probe_target_is_core(const struct probe_target *target)
{
	return target->module && !strcmp(target->module, PROBE_TARGET_CORE);
}

bool probe_target_is_pattern(const struct probe_target *target)
{
	return target->symbol && strpbrk(target->symbol, "*?[");
}

/* Is it just a symbol? */
bool probe_target_is_name(const struct probe_target *target)
{
	return target->symbol && !target->module && !target->offset && !target->file;
}

/* Split MOD: from @text. Return what follows, or NULL if MOD is empty. */
static char *split_module(struct probe_target *target, char *text)
{
	char *colon = strchr(text, ':');

	if (!colon)
		return text;
	*colon = '\0';
	target->module = text;
	return *text ? colon + 1 : NULL;
}

/* SYM[+OFF] or ADDR, in @text, which is kept. */
static int parse_place(struct probe_target *target, char *text)
{
	long offset = 0;
	char *sign;

	if (!target->module && !kstrtoul(text, 0, &target->addr))
		return 0;

	/* A glob pattern may contain a hyphen. */
	sign = strpbrk(text, target->all ? "+" : "+-");
	if (sign) {
		if (kstrtol(sign, 0, &offset) || offset < 0 || offset > UINT_MAX)
			return -EINVAL;
		*sign = '\0';
	}
	if (!*text)
		return -EINVAL;
	target->symbol = text;
	target->offset = offset;
	return 0;
}

/* No source file is named so. */
static bool ends_with_offset(const char *file)
{
	const char *sign = strrchr(file, '+');
	unsigned long offset;

	return sign && !kstrtoul(sign + 1, 0, &offset);
}

/**
 * probe_target_parse - parse what a probe is on
 * @target: the result, for probe_target_free()
 * @spec: [MOD:]SYM[+OFF][@FILE][%return], ADDR[%return] or [MOD:]SYM%inline
 * @all: is it on all functions SYM?
 *
 * Logs errors at the argument that trace_probe_log_set_index() has set.
 * Context: Process. Holds dyn_event_ops_mutex.
 * Return: 0, -EINVAL or -ENOMEM.
 */
int probe_target_parse(struct probe_target *target, const char *spec, bool all)
{
	char *text, *percent, *at;

	*target = (struct probe_target){ .all = all };
	text = kstrdup(spec, GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	target->buf = text;

	at = strchr(text, '@');
	percent = at ? strrchr(at, '%') : strchr(text, '%');
	if (percent) {
		target->is_return = !strcmp(percent, "%return");
		target->is_inline = !strcmp(percent, "%inline");
		if (!target->is_return && !target->is_inline) {
			trace_probe_log_err(percent - text, BAD_ADDR_SUFFIX);
			goto err;
		}
		*percent = '\0';
	}

	if (at) {
		*at = '\0';
		target->file = at + 1;
	}
	text = split_module(target, text);
	if (!text || parse_place(target, text)) {
		trace_probe_log_err(0, BAD_PROBE_ADDR);
		goto err;
	}
	if (target->is_inline && (all || at || !target->symbol || target->offset ||
				  probe_target_is_pattern(target))) {
		trace_probe_log_err(percent - target->buf, TARGET_INLINE);
		goto err;
	}
	if (at && (!target->symbol || probe_target_is_pattern(target))) {
		trace_probe_log_err(at - target->buf, TARGET_NO_FILE);
		goto err;
	}
	if (at && !*target->file) {
		trace_probe_log_err(at - target->buf, TARGET_FILE);
		goto err;
	}
	if (at && (strchr(target->symbol, '%') || ends_with_offset(target->file))) {
		trace_probe_log_err(at - target->buf, TARGET_ORDER);
		goto err;
	}
	return 0;
err:
	probe_target_free(target);
	return -EINVAL;
}

/**
 * probe_target_from_func - make the target of a perf event's kprobe
 * @target: the result, for probe_target_free()
 * @func: [MOD:]SYM[@FILE]
 *
 * Context: Process.
 * Return: 0, -ENOENT, -EINVAL or -ENOMEM.
 */
int probe_target_from_func(struct probe_target *target, const char *func)
{
	int ret;

	if (strchr(func, '@')) {
		ret = probe_target_parse(target, func, false);
		return ret ?: target->is_return || target->offset ? -EINVAL : 0;
	}
	*target = (struct probe_target){ .buf = kstrdup(func, GFP_KERNEL) };
	if (!target->buf)
		return -ENOMEM;
	target->symbol = split_module(target, target->buf);
	return target->symbol && *target->symbol ? 0 : -ENOENT;
}

static void free_funcs(struct probe_funcs *funcs)
{
	if (funcs)
		kfree(funcs->addrs);
	kfree(funcs);
}

DEFINE_FREE(free_funcs, struct probe_funcs *, free_funcs(_T))

void probe_target_free(struct probe_target *target)
{
	free_funcs(target->funcs);
	btf_sites_free(target->sites);
	module_put(target->sites_module);
	kfree(target->buf);
	*target = (struct probe_target){};
}

/**
 * probe_target_name - the symbol as kprobes take it
 * @target: a target with a symbol
 *
 * The core kernel is searched first, so that its symbols need no prefix.
 * Return: [MOD:]SYM, to be freed, or NULL if there is no memory.
 */
char *probe_target_name(const struct probe_target *target)
{
	if (!target->module || probe_target_is_core(target))
		return kstrdup(target->symbol, GFP_KERNEL);
	return kasprintf(GFP_KERNEL, "%s:%s", target->module, target->symbol);
}

/* [MOD:]SYM%inline, to be freed, or NULL if there is no memory. */
char *probe_target_inline(const struct probe_target *target)
{
	return kasprintf(GFP_KERNEL, "%s%s%s%%inline", target->module ?: "",
			 target->module ? ":" : "", target->symbol);
}

/* From this version on pahole leaves out functions whose prototypes differ. */
#define PAHOLE_CONSISTENT_FUNC	125

/* Copy the name of the object that owns @addr, or return -ENOENT: it is no text. */
static int object_name(unsigned long addr, char *name)
{
	struct module *mod;

	if (core_kernel_text(addr) || is_kernel_inittext(addr)) {
		strscpy(name, PROBE_TARGET_CORE, MODULE_NAME_LEN);
		return 0;
	}
	guard(rcu)();
	mod = __module_text_address(addr);
	if (!mod)
		return -ENOENT;
	strscpy(name, module_name(mod), MODULE_NAME_LEN);
	return 0;
}

static int add_addr(struct probe_funcs *funcs, unsigned long addr)
{
	unsigned int size = funcs->size ? funcs->size * 2 : 4;
	unsigned long *addrs;

	if (funcs->nr == funcs->size) {
		addrs = krealloc_array(funcs->addrs, size, sizeof(*addrs), GFP_KERNEL);
		if (!addrs)
			return -ENOMEM;
		funcs->addrs = addrs;
		funcs->size = size;
	}
	funcs->addrs[funcs->nr++] = addr;
	return 0;
}

static int add_symbol(void *data, unsigned long addr)
{
	struct probe_funcs *funcs = data;
	char object[MODULE_NAME_LEN];

	if (!funcs->nr_symbols++)
		funcs->first = addr;
	if (object_name(addr, object) || (funcs->traced && !ftrace_location(addr)))
		return 0;
	if (strcmp(object, funcs->object)) {
		strscpy(funcs->object, object);
		funcs->nr_objects++;
	}
	return add_addr(funcs, addr);
}

static int add_module_symbol(void *data, const char *name, unsigned long addr)
{
	struct probe_funcs *funcs = data;

	return strcmp(name, funcs->symbol) ? 0 : add_symbol(data, addr);
}

/*
 * Find the functions @symbol in @module, in the core kernel, or with NULL in both. An
 * fprobe is on all that ftrace can trace, a kprobe on that of the core kernel first,
 * unless they are searched @everywhere, for one of a source file.
 * Return NULL if there is no memory.
 */
static struct probe_funcs *find_funcs(const char *module, const char *symbol, bool fprobe,
				      bool everywhere)
{
	struct probe_funcs *funcs __free(free_funcs) = kzalloc_obj(*funcs);
	bool core = module && !strcmp(module, PROBE_TARGET_CORE);

	if (!funcs)
		return NULL;
	funcs->symbol = symbol;
	funcs->traced = fprobe;
	if ((!module || core) &&
	    kallsyms_on_each_match_symbol(add_symbol, symbol, funcs) == -ENOMEM)
		return NULL;
	if (core || (!module && !everywhere && funcs->nr_symbols))
		return_ptr(funcs);
	if (module_kallsyms_on_each_symbol(module, add_module_symbol, funcs) == -ENOMEM)
		return NULL;
	return_ptr(funcs);
}

/* Search once; the target keeps the result. */
struct probe_funcs *probe_target_funcs(struct probe_target *target)
{
	if (!target->funcs)
		target->funcs = find_funcs(target->module, target->symbol, target->all,
					   target->all || target->file);
	return target->funcs;
}

/* Is the object loaded that MOD: names, if any? */
bool probe_target_is_loaded(const struct probe_target *target)
{
	if (!target->module || probe_target_is_core(target))
		return true;
#ifdef CONFIG_MODULES
	guard(rcu)();
	return find_module(target->module);
#else
	return false;
#endif
}

/**
 * probe_target_check - is a kprobe's target one symbol?
 * @target: the target
 *
 * Context: Process.
 * Return: 0, also if its module is not loaded; -ENOENT: no such symbol;
 * -EADDRNOTAVAIL: there are several; -ENOMEM.
 */
int probe_target_check(struct probe_target *target)
{
	const struct probe_funcs *funcs;

	if (!target->symbol || target->file)
		return 0;
	if (!probe_target_is_loaded(target))
		return 0;
	funcs = probe_target_funcs(target);
	if (!funcs)
		return -ENOMEM;
	if (funcs->nr_symbols > 1)
		return -EADDRNOTAVAIL;
	return funcs->nr_symbols ? 0 : -ENOENT;
}

/* Log that there is no such function; it may be one that was inlined everywhere. */
void probe_target_log_missing(struct probe_target *target)
{
	const struct probe_funcs *funcs = target->symbol ? probe_target_funcs(target) : NULL;
	char detail[32];

	if (!funcs || funcs->nr_symbols || probe_target_find_sites(target)) {
		trace_probe_log_err(0, BAD_PROBE_ADDR);
		return;
	}
	snprintf(detail, sizeof(detail), "%u places", target->sites->nr);
	__trace_probe_log_err(0, TP_ERR_TARGET_INLINED, detail);
}

/* The address of a target, which is the first one if it has several; 0: it has none. */
unsigned long probe_target_address(struct probe_target *target)
{
	const struct probe_funcs *funcs;

	if (!target->symbol || target->file)
		return target->addr;
	funcs = probe_target_funcs(target);
	/* A symbol as _text is no function, but what is at an offset may be one. */
	return funcs && funcs->first ? funcs->first + target->offset : 0;
}

/**
 * probe_target_object - name the object that a target's first function is in
 * @target: a target with a symbol
 * @object: gets the name of a module, or "vmlinux"
 *
 * Context: Process.
 * Return: 0, or -ENOENT.
 */
int probe_target_object(struct probe_target *target, char object[MODULE_NAME_LEN])
{
	const struct probe_funcs *funcs = probe_target_funcs(target);

	return funcs && funcs->nr ? object_name(funcs->addrs[0], object) : -ENOENT;
}

static int add_place(void *data, const char *name, unsigned long addr)
{
	struct probe_places *places = data;
	unsigned int size = places->size ? places->size * 2 : 4;
	struct probe_place *all;
	char object[MODULE_NAME_LEN];

	if (!glob_match(places->pattern, name) || !ftrace_location(addr) ||
	    object_name(addr, object))
		return 0;
	if (places->nr == PROBE_PLACES_MAX)
		return -E2BIG;
	if (places->nr == places->size) {
		all = krealloc_array(places->all, size, sizeof(*all), GFP_KERNEL);
		if (!all)
			return -ENOMEM;
		places->all = all;
		places->size = size;
	}
	all = &places->all[places->nr];
	all->symbol = kstrdup(name, GFP_KERNEL);
	if (!all->symbol)
		return -ENOMEM;
	strscpy(all->object, object);
	places->nr++;
	return 0;
}

/* By name, and the core kernel first */
static int cmp_places(const void *va, const void *vb)
{
	const struct probe_place *a = va, *b = vb;
	int ret = strcmp(a->symbol, b->symbol);

	if (!ret)
		ret = !strcmp(b->object, PROBE_TARGET_CORE) - !strcmp(a->object, PROBE_TARGET_CORE);
	return ret ?: strcmp(a->object, b->object);
}

static void sort_places(struct probe_places *places)
{
	struct probe_place *all = places->all;
	unsigned int i, nr = 0;

	sort(all, places->nr, sizeof(*all), cmp_places, NULL);
	for (i = 0; i < places->nr; i++) {
		if (nr && !cmp_places(&all[nr - 1], &all[i]))
			kfree(all[i].symbol);
		else
			all[nr++] = all[i];
	}
	places->nr = nr;
}

/**
 * probe_target_places - list the functions that an fprobe's target may mean
 * @target: a target with a symbol, which may be a pattern
 * @places: the result, for probe_places_free(): each name in each object once, sorted
 *
 * Context: Process. May sleep.
 * Return: 0, -E2BIG: there are more than PROBE_PLACES_MAX, or -ENOMEM.
 */
int probe_target_places(struct probe_target *target, struct probe_places *places)
{
	const struct probe_funcs *funcs;
	unsigned int i;
	int ret = 0;

	*places = (struct probe_places){ .pattern = target->symbol };
	if (!probe_target_is_pattern(target)) {
		funcs = probe_target_funcs(target);
		for (i = 0; funcs && i < funcs->nr && !ret; i++)
			ret = add_place(places, target->symbol, funcs->addrs[i]);
	} else {
		if (!target->module || probe_target_is_core(target))
			ret = kallsyms_on_each_symbol(add_place, places);
		if (!ret && IS_ENABLED(CONFIG_MODULES) && !probe_target_is_core(target))
			ret = module_kallsyms_on_each_symbol(target->module, add_place, places);
	}
	if (ret < 0)
		return ret;
	sort_places(places);
	return 0;
}

void probe_places_free(struct probe_places *places)
{
	while (places->nr)
		kfree(places->all[--places->nr].symbol);
	kfree(places->all);
}

/**
 * probe_addr_name - name the function at an address, to recognize it later
 * @addr: an address of the core kernel or of a module
 *
 * Context: Process.
 * Return: MOD:SYM, with @FILE if that is known, to be freed, or NULL if there is no
 * function or no memory.
 */
char *probe_addr_name(unsigned long addr)
{
	char *symbol __free(kfree) = kmalloc(KSYM_NAME_LEN, GFP_KERNEL);
	char object[MODULE_NAME_LEN];
	unsigned long offset;

	if (!symbol || object_name(addr, object) ||
	    !kallsyms_lookup(addr, NULL, &offset, NULL, symbol))
		return NULL;
	return probe_name_with_file(addr - offset, object, symbol);
}

/* Get the module that is at @addr, to be put, or NULL: none, or it is going. */
struct module *probe_addr_get_module(unsigned long addr)
{
	struct module *mod;

	guard(rcu)();
	mod = __module_text_address(addr);
	return mod && try_module_get(mod) ? mod : NULL;
}

/* Get the module that MOD:SYM names, to be put, or NULL: none, or it is going. */
struct module *probe_target_get_module(const struct probe_target *target)
{
	struct module *mod = NULL;

#ifdef CONFIG_MODULES
	guard(rcu)();
	if (target->module)
		mod = find_module(target->module);
#endif
	return mod && try_module_get(mod) ? mod : NULL;
}

#ifdef CONFIG_PROBE_EVENTS_BTF_ARGS

static bool is_entry(unsigned long addr, unsigned long offset)
{
	/* The call of ftrace may come after a landing pad, as x86's ENDBR. */
	if (!offset || ftrace_location(addr - offset) == addr)
		return true;
#ifdef CONFIG_KPROBES
	return !kprobe_on_func_entry((kprobe_opcode_t *)addr, NULL, 0);
#else
	return false;
#endif
}

static int no_types(struct probe_types *types, int err)
{
	types->err = err;
	return -ENOENT;
}

/* Find what BTF says of the function @name at @addr, as btf_func_find(). */
int probe_find_func(unsigned long addr, const char *name, struct btf_func *func, u32 *owner_id)
{
	struct btf *owner = btf_of_text(addr);
	int ret;

	if (!owner)
		return -ENOENT;
	*owner_id = btf_obj_id(owner);
	ret = btf_func_find(owner, addr, name, func);
	btf_put(owner);
	return ret;
}

/* List MOD:SYM of each object. */
static void list_objects(struct probe_types *types, const struct probe_funcs *funcs)
{
	char object[MODULE_NAME_LEN], last[MODULE_NAME_LEN] = "";
	int i, len = 0;

	for (i = 0; i < funcs->nr; i++) {
		if (object_name(funcs->addrs[i], object) || !strcmp(object, last))
			continue;
		if (len + strlen(object) + strlen(funcs->symbol) + 8 > sizeof(types->detail)) {
			scnprintf(types->detail + len, sizeof(types->detail) - len, ", ...");
			return;
		}
		len += scnprintf(types->detail + len, sizeof(types->detail) - len,
				 "%s%s:%s", len ? ", " : "", object, funcs->symbol);
		strscpy(last, object);
	}
}

/*
 * If BTF has no addresses: the types of the function @name at @addr. @funcs are those
 * of that name.
 */
static int types_by_name(unsigned long addr, const char *name, const struct probe_funcs *funcs,
			 struct probe_types *types)
{
	struct btf_func *func = &types->func;

	if (funcs->nr == 1 || CONFIG_PAHOLE_VERSION >= PAHOLE_CONSISTENT_FUNC)
		func->proto = btf_find_func_proto(addr, name, &func->btf);
	if (func->proto)
		return 0;
	if (strchr(name, '.'))
		return no_types(types, TP_ERR_BTF_SUFFIX);
	if (funcs->nr == 1)
		return no_types(types, TP_ERR_NO_BTF_ENTRY);
	probe_list_funcs(types->detail, sizeof(types->detail), funcs);
	return no_types(types, TP_ERR_BTF_AMBIGUOUS);
}

/* Does the function @name at @addr have the same arguments as @types? */
static bool has_types(unsigned long addr, const char *name, const struct probe_types *types)
{
	struct btf_func func;
	u32 owner_id;
	bool same;

	if (probe_find_func(addr, name, &func, &owner_id))
		return false;
	same = func.optimized == types->func.optimized &&
	       btf_same_proto(func.btf, func.proto, types->func.btf, types->func.proto);
	btf_put(func.btf);
	return same;
}

/* The types of all functions @funcs of one object, if these are the same. */
static int types_of_all(const char *name, const struct probe_funcs *funcs,
			struct probe_types *types)
{
	unsigned int i;

	for (i = 1; i < funcs->nr && has_types(funcs->addrs[i], name, types); i++)
		;
	if (i == funcs->nr)
		return 0;
	btf_put(types->func.btf);
	types->func = (struct btf_func){};
	probe_list_funcs(types->detail, sizeof(types->detail), funcs);
	return no_types(types, TP_ERR_BTF_DIFFER);
}

/* The types of the function @name at @addr. @funcs are those of that name in its object. */
static int types_at(unsigned long addr, const char *name, const struct probe_funcs *funcs,
		    struct probe_types *types)
{
	int ret = probe_find_func(addr, name, &types->func, &types->owner_id);

	if (ret == -ENODATA)
		return types_by_name(addr, name, funcs, types);
	return ret ? no_types(types, TP_ERR_NO_BTF_ENTRY) : 0;
}

static int types_in_object(unsigned long addr, const char *name, struct probe_types *types)
{
	struct probe_funcs *funcs __free(free_funcs) = NULL;
	char object[MODULE_NAME_LEN];

	if (object_name(addr, object))
		return no_types(types, TP_ERR_NO_BTF_ENTRY);
	funcs = find_funcs(object, name, false, false);
	if (!funcs)
		return no_types(types, TP_ERR_NO_BTF_ENTRY);
	return types_at(addr, name, funcs, types);
}

/* The types of the function at @addr, if that is its entry. */
static int types_of_addr(unsigned long addr, struct probe_types *types)
{
	char *name __free(kfree) = kmalloc(KSYM_NAME_LEN, GFP_KERNEL);
	unsigned long offset;

	if (!name || !kallsyms_lookup(addr, NULL, &offset, NULL, name))
		return no_types(types, TP_ERR_NO_BTF_ENTRY);
	if (!is_entry(addr, offset))
		return no_types(types, TP_ERR_BTF_NOT_ENTRY);
	return types_in_object(addr - offset, name, types);
}

/**
 * probe_target_types - find the prototype of the function that a target is
 * @target: the target
 * @types: the result. Its BTF is to be put.
 *
 * Context: Process. Takes no lock that probe events take.
 * Return: 0, or -ENOENT and the reason in @types.
 */
int probe_target_types(struct probe_target *target, struct probe_types *types)
{
	const struct probe_funcs *funcs;
	unsigned long addr;

	*types = (struct probe_types){};
	if (!target->symbol || target->offset || target->file) {
		addr = probe_target_address(target);
		return addr ? types_of_addr(addr, types) : no_types(types, TP_ERR_NO_BTF_ENTRY);
	}
	if (probe_target_is_pattern(target))
		return no_types(types, TP_ERR_BTF_PATTERN);

	funcs = probe_target_funcs(target);
	if (!funcs)
		return no_types(types, TP_ERR_NO_BTF_ENTRY);
	if (!funcs->nr_symbols)
		return no_types(types, probe_target_is_loaded(target) ? TP_ERR_BAD_PROBE_ADDR :
							TP_ERR_MOD_NOT_LOADED);
	if (funcs->nr_objects > 1) {
		list_objects(types, funcs);
		return no_types(types, TP_ERR_BTF_OBJECTS);
	}
	if (funcs->nr && !target->all)
		return types_at(funcs->addrs[0], target->symbol, funcs, types);
	if (funcs->nr > 1 && !probe_find_func(funcs->addrs[0], target->symbol, &types->func,
					      &types->owner_id))
		return types_of_all(target->symbol, funcs, types);
	/* BTF may also mean a function of that name which cannot be traced. */
	return types_in_object(funcs->nr ? funcs->addrs[0] : funcs->first, target->symbol, types);
}

/* The BTF of the object whose inlined functions a target may mean, or NULL */
static struct btf *btf_of_sites(const struct probe_target *target)
{
	struct btf *btf;

	if (target->sites_module)
		return btf_get_module_btf(target->sites_module);
	if (target->module && !probe_target_is_core(target))
		return NULL;
	btf = bpf_get_btf_vmlinux();
	if (IS_ERR_OR_NULL(btf))
		return NULL;
	btf_get(btf);
	return btf;
}

/**
 * probe_target_find_sites - find where the function of a target was inlined
 * @target: a target with a symbol; it keeps the result, and the module
 *
 * Without MOD these are the places in the core kernel.
 * Context: Process. May sleep.
 * Return: 0; -ENOENT: it was not inlined; -ENODATA: it is not known where, as the object was
 * built without CONFIG_DEBUG_INFO_BTF_INLINE; -ENOMEM.
 */
int probe_target_find_sites(struct probe_target *target)
{
	struct btf_sites *sites;
	struct btf *btf;

	if (target->sites)
		return 0;
	if (!target->sites_module)
		target->sites_module = probe_target_get_module(target);
	btf = btf_of_sites(target);
	if (!btf)
		return -ENODATA;
	sites = btf_func_sites(btf, target->symbol);
	btf_put(btf);
	if (IS_ERR(sites))
		return PTR_ERR(sites);
	target->sites = sites;
	return 0;
}

/**
 * probe_site_types - find the prototype of a function that was inlined
 * @target: the target, whose places were found
 * @site: one of these
 * @types: the result. Its BTF is to be put.
 *
 * Context: Process.
 */
void probe_site_types(struct probe_target *target, const struct btf_site *site,
		      struct probe_types *types)
{
	struct btf *btf = target->sites->btf;

	*types = (struct probe_types){
		.func.btf = btf,
		.func.id = site->func,
		.func.proto = btf_type_by_id(btf, btf_type_by_id(btf, site->func)->type),
		.owner_id = btf_obj_id(btf),
	};
	btf_get(btf);
}

/**
 * probe_target_btf - get the BTF of the object that a target is in
 * @target: the target
 *
 * Context: Process.
 * Return: the BTF, with a reference, or NULL if there is none, or several objects.
 */
struct btf *probe_target_btf(struct probe_target *target)
{
	const struct probe_funcs *funcs;
	unsigned long addr;

	if (target->is_inline)
		return btf_of_sites(target);
	if (target->symbol && !target->file) {
		funcs = probe_target_funcs(target);
		if (!funcs || funcs->nr_objects > 1)
			return NULL;
	}
	addr = probe_target_address(target);
	return addr ? btf_of_text(addr) : NULL;
}

/* A register that holds no argument of the source has such a name: see scripts/btf_func. */
bool probe_param_has_name(const char *name)
{
	return !strstarts(name, "__arg") || !isdigit(name[5]);
}

/*
 * If BTF has no addresses: find the prototype of the function @name at @addr. That
 * several have the name costs a search that sleeps, unless pahole has looked.
 */
static void find_proto(unsigned long addr, const char *name, struct btf_func *func)
{
	struct probe_types *types __free(kfree) = NULL;

	if (CONFIG_PAHOLE_VERSION >= PAHOLE_CONSISTENT_FUNC) {
		func->proto = btf_find_func_proto(addr, name, &func->btf);
		return;
	}
	if (irqs_disabled())
		return;
	types = kzalloc_obj(*types);
	if (types && !types_in_object(addr, name, types))
		*func = types->func;
}

/**
 * probe_addr_proto - find the prototype of a function that was traced
 * @addr: the address of its symbol, or where ftrace has patched it
 * @btf_p: the BTF of the result, to be put
 *
 * Context: Process; with interrupts disabled only for functions of the core kernel after it
 * has booted, for which it takes no lock then.
 * Return: the FUNC_PROTO, or NULL.
 */
const struct btf_type *probe_addr_proto(unsigned long addr, struct btf **btf_p)
{
	struct btf_func func = {};
	char name[KSYM_NAME_LEN];
	unsigned long offset;
	struct btf *owner;

	if (irqs_disabled() &&
	    (system_state < SYSTEM_FREEING_INITMEM || !core_kernel_text(addr)))
		return NULL;
	if (!kallsyms_lookup(addr, NULL, &offset, NULL, name))
		return NULL;
	owner = btf_of_text(addr);
	if (!owner)
		return NULL;
	if (btf_func_find(owner, addr - offset, name, &func) == -ENODATA)
		find_proto(addr - offset, name, &func);
	btf_put(owner);
	*btf_p = func.btf;
	return func.proto;
}

#endif /* CONFIG_PROBE_EVENTS_BTF_ARGS */
