// SPDX-License-Identifier: GPL-2.0
/*
 * Where is a function of the running kernel, where was it inlined, and what does BTF know
 * of its arguments there? For machines without debug information of the kernel.
 *
 *	/proc/kallsyms			the functions, and where sections begin
 *	/sys/kernel/btf/vmlinux		arguments of functions whose name is unique
 *	.BTF.func			arguments of the others, by address
 *	.BTF.inline			where functions were inlined, and their arguments there
 *
 * The last two are there if the kernel was built with CONFIG_DEBUG_INFO_BTF_FUNC and with
 * CONFIG_DEBUG_INFO_BTF_INLINE. See Documentation/bpf/btf_func.rst.
 */
#include <api/fs/fs.h>
#include <bpf/btf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <symbol/kallsyms.h>
#include <unistd.h>
#include "btf-place.h"
#include "debug.h"
#include "probe-event.h"
#include "string2.h"
#include "symbol.h"

#define MODULE_NAME_SIZE	64	/* MODULE_NAME_LEN of 64-bit kernels is less */

struct text_symbol {
	u64	address;
	char	*name;
};

struct kernel_btf {
	char			module[MODULE_NAME_SIZE];	/* "" for vmlinux */
	struct btf		*vmlinux;	/* also the base of a module's */
	struct btf		*btf;
	struct btf		*func;		/* .BTF.func or NULL */
	struct btf		*inlined;	/* .BTF.inline or NULL */
	struct text_symbol	*symbols;	/* by address */
	size_t			nr_symbols;
};

/* Files */

static void copy_module_name(const char *module, char *name, size_t size)
{
	scnprintf(name, size, "%s", module ?: "");
	strreplace(name, '-', '_');
}

/* Of .BTF.func or .BTF.inline */
static void section_path(const char *module, const char *kind, char *path, size_t size)
{
	if (*module)
		scnprintf(path, size, "%s/module/%s/btf_%s", sysfs__mountpoint(), module, kind);
	else
		scnprintf(path, size, "%s/kernel/btf/vmlinux.%s", sysfs__mountpoint(), kind);
}

bool kernel_btf__is_there(const char *module)
{
	char name[MODULE_NAME_SIZE], path[PATH_MAX];

	if (module && !strcmp(module, "vmlinux"))
		return false;
	copy_module_name(module, name, sizeof(name));
	scnprintf(path, sizeof(path), "%s/kernel/btf/%s", sysfs__mountpoint() ?: "",
		  *name ? name : "vmlinux");
	return !access(path, R_OK);
}

bool kernel_btf__has_inlined(const char *module)
{
	char name[MODULE_NAME_SIZE], path[PATH_MAX];

	copy_module_name(module, name, sizeof(name));
	section_path(name, "inline", path, sizeof(path));
	return !access(path, R_OK);
}

/* One that this perf cannot read is as good as none. */
static struct btf *load_section(const struct kernel_btf *kbtf, const char *kind)
{
	char path[PATH_MAX];
	struct btf *btf;

	section_path(kbtf->module, kind, path, sizeof(path));
	if (access(path, R_OK))
		return NULL;
	btf = btf__parse_split(path, kbtf->btf);
	if (!btf)
		pr_debug("%s is not read: %s\n", path, strerror(errno));
	return btf;
}

/* "\t[MODULE]", or NULL for vmlinux */
static bool is_in(const char *owner, const char *module)
{
	size_t len = strlen(module);

	if (!owner)
		return !len;
	return len && !strncmp(owner + 2, module, len) && owner[2 + len] == ']';
}

/* kallsyms__parse() */
static int add_symbol(void *ctx, const char *name, char type, u64 address)
{
	struct kernel_btf *kbtf = ctx;
	const char *module = strchr(name, '\t');
	size_t len = module ? (size_t)(module - name) : strlen(name);
	struct text_symbol *symbol;

	if (!strchr("tTwW", type) || !address || is_ignored_kernel_symbol(name))
		return 0;
	if (!is_in(module, kbtf->module))
		return 0;
	/* Doubled when a power of two is full */
	if (!(kbtf->nr_symbols & (kbtf->nr_symbols - 1))) {
		symbol = reallocarray(kbtf->symbols, kbtf->nr_symbols ? 2 * kbtf->nr_symbols : 1,
				      sizeof(*symbol));
		if (!symbol)
			return -ENOMEM;
		kbtf->symbols = symbol;
	}
	symbol = &kbtf->symbols[kbtf->nr_symbols];
	symbol->address = address;
	symbol->name = strndup(name, len);
	if (!symbol->name)
		return -ENOMEM;
	kbtf->nr_symbols++;
	return 0;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct text_symbol *one = a, *other = b;

	if (one->address != other->address)
		return one->address < other->address ? -1 : 1;
	return strcmp(one->name, other->name);
}

/* Those that perf has loaded, of which it leaves out what shares an address, do not do. */
static int read_symbols(struct kernel_btf *kbtf)
{
	int err = kallsyms__parse("/proc/kallsyms", kbtf, add_symbol);

	if (err)
		return err;
	if (!kbtf->nr_symbols)
		return -EACCES;
	qsort(kbtf->symbols, kbtf->nr_symbols, sizeof(*kbtf->symbols), compare_symbols);
	return 0;
}

void kernel_btf__delete(struct kernel_btf *kbtf)
{
	btf__free(kbtf->func);
	btf__free(kbtf->inlined);
	if (kbtf->btf != kbtf->vmlinux)
		btf__free(kbtf->btf);
	btf__free(kbtf->vmlinux);
	for (size_t i = 0; i < kbtf->nr_symbols; i++)
		free(kbtf->symbols[i].name);
	free(kbtf->symbols);
	free(kbtf);
}

/* Only root reads where a module's sections are. Without these, another function is found. */
static bool may_read_sections(const struct kernel_btf *kbtf)
{
	char path[PATH_MAX];

	scnprintf(path, sizeof(path), "%s/module/%s/sections/.text", sysfs__mountpoint(),
		  kbtf->module);
	return (!kbtf->func && !kbtf->inlined) || !access(path, R_OK) || errno == ENOENT;
}

/**
 * kernel_btf__new - Read BTF and symbols of the running kernel, or of a module
 * @module: its name, or NULL for vmlinux
 *
 * Return: them, or NULL with errno set; it is EACCES if addresses are hidden.
 */
struct kernel_btf *kernel_btf__new(const char *module)
{
	struct kernel_btf *kbtf = zalloc(sizeof(*kbtf));
	int err;

	if (!kbtf)
		return NULL;
	copy_module_name(module, kbtf->module, sizeof(kbtf->module));
	kbtf->vmlinux = btf__load_vmlinux_btf();
	kbtf->btf = kbtf->vmlinux;
	if (kbtf->vmlinux && *kbtf->module)
		kbtf->btf = btf__load_module_btf(kbtf->module, kbtf->vmlinux);
	err = kbtf->btf ? read_symbols(kbtf) : -errno;
	if (err) {
		kernel_btf__delete(kbtf);
		errno = -err;
		return NULL;
	}
	kbtf->func = load_section(kbtf, "func");
	kbtf->inlined = load_section(kbtf, "inline");
	if (*kbtf->module && !may_read_sections(kbtf)) {
		kernel_btf__delete(kbtf);
		errno = EACCES;
		return NULL;
	}
	return kbtf;
}

/* Symbols and sections */

static u64 address_of(const struct kernel_btf *kbtf, const char *name)
{
	for (size_t i = 0; i < kbtf->nr_symbols; i++) {
		if (!strcmp(kbtf->symbols[i].name, name))
			return kbtf->symbols[i].address;
	}
	return 0;
}

static size_t count_symbols(const struct kernel_btf *kbtf, const char *name)
{
	size_t nr = 0;

	for (size_t i = 0; i < kbtf->nr_symbols; i++)
		nr += !strcmp(kbtf->symbols[i].name, name);
	return nr;
}

/* The last one that begins at an address or before it, or NULL */
static const struct text_symbol *find_symbol(const struct kernel_btf *kbtf, u64 address)
{
	size_t low = 0, high = kbtf->nr_symbols;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (kbtf->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &kbtf->symbols[low - 1] : NULL;
}

/* Where ".text" is, or 0 if that is not known, or the section is gone */
static u64 section_address(const struct kernel_btf *kbtf, const char *section)
{
	char path[PATH_MAX];
	u64 address = 0;
	FILE *file;

	if (!*kbtf->module)
		return strcmp(section, ".text") ? 0 : address_of(kbtf, "_stext");
	scnprintf(path, sizeof(path), "%s/module/%s/sections/%s", sysfs__mountpoint(), kbtf->module,
		  section);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%" SCNx64, &address) != 1)
		address = 0;
	fclose(file);
	return address;
}

/* Functions */

/*
 * "func.text" is the LOCSEC for ".text"; that of .BTF.inline may be named as the section. Code
 * of a module's .init.text is gone.
 */
static const char *section_of(const struct btf *btf, const struct btf_type *type,
			      const char *prefix)
{
	const char *name = btf_kind(type) == BTF_KIND_LOCSEC ?
			   btf__name_by_offset(btf, type->name_off) : NULL;

	if (name && strstarts(name, prefix))
		name += strlen(prefix);
	else if (strcmp(prefix, "inline"))
		return NULL;
	return name && *name == '.' && strcmp(name, ".init.text") && strcmp(name, ".exit.text") ?
	       name : NULL;
}

typedef int (*loc_fn_t)(const struct btf *btf, const struct btf_loc *loc, u64 address, void *ctx);

/* Until one is not 0 */
static int visit_locs(const struct kernel_btf *kbtf, const struct btf *btf, const char *prefix,
		      loc_fn_t fn, void *ctx)
{
	u32 id = btf ? btf__type_cnt(kbtf->btf) : 0;
	int err = 0;

	for (; btf && id < btf__type_cnt(btf) && !err; id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);
		const struct btf_loc *locs = (const struct btf_loc *)(type + 1);
		const char *section = section_of(btf, type, prefix);
		u64 start = section ? section_address(kbtf, section) : 0;

		for (u32 i = 0; start && i < btf_vlen(type) && !err; i++)
			err = fn(btf, &locs[i], start + locs[i].offset, ctx);
	}
	return err;
}

static const char *func_name(const struct btf *btf, u32 id)
{
	return btf__name_by_offset(btf, btf__type_by_id(btf, id)->name_off) ?: "";
}

static const struct btf_type *func_proto(const struct btf *btf, u32 func)
{
	return btf__type_by_id(btf, btf__type_by_id(btf, func)->type);
}

/* Does .BTF.func say that nothing is known? That is void f(...) */
static bool is_unknown(const struct btf_type *proto)
{
	return !proto->type && btf_vlen(proto) == 1 && !btf_params(proto)[0].type;
}

/* The entry of a symbol, or the first other one of its address that is known */
struct entry {
	u64		address;
	const char	*name;
	u32		named;
	u32		any;
};

static int find_entry(const struct btf *btf, const struct btf_loc *loc, u64 address, void *ctx)
{
	struct entry *entry = ctx;

	if (address != entry->address)
		return 0;
	if (!strcmp(func_name(btf, loc->func), entry->name))
		entry->named = loc->func;
	else if (!entry->any && !is_unknown(func_proto(btf, loc->func)))
		entry->any = loc->func;
	return 0;
}

/* A FUNC of the object itself, or of vmlinux, where that of a module is if it is the same */
static u32 find_func(const struct kernel_btf *kbtf, const char *name)
{
	int id = -ENOENT;

	for (u32 own = btf__type_cnt(kbtf->vmlinux); own < btf__type_cnt(kbtf->btf); own++) {
		if (btf_is_func(btf__type_by_id(kbtf->btf, own)) &&
		    !strcmp(func_name(kbtf->btf, own), name))
			return own;
	}
	id = btf__find_by_name_kind(kbtf->vmlinux, name, BTF_KIND_FUNC);
	return id > 0 ? id : 0;
}

static void set_func(struct btf_place *place, const struct btf *btf, u32 func)
{
	place->btf = btf;
	place->func = func;
	place->proto = func_proto(btf, func);
	if (is_unknown(place->proto)) {
		place->proto = NULL;
		place->unknown = "it is in assembly, or in another language";
	}
}

/* As btf_func_find() in the kernel. Without .BTF.func a name has to be unique. */
static void find_prototype(const struct kernel_btf *kbtf, struct btf_place *place)
{
	struct entry entry = { .address = place->address, .name = place->symbol, };
	u32 func;

	visit_locs(kbtf, kbtf->func, "func", find_entry, &entry);
	if (entry.named) {
		set_func(place, kbtf->func, entry.named);
		return;
	}
	func = find_func(kbtf, place->symbol);
	if (func && (kbtf->func || count_symbols(kbtf, place->symbol) == 1))
		set_func(place, kbtf->btf, func);
	else if (entry.any)
		set_func(place, kbtf->func, entry.any);
	else
		place->unknown = func ? "several functions have this name" : "it is not in BTF";
}

/* Places */

/* Is a symbol no function: what is before one for patches and CFI, or its cold part? */
static bool is_no_function(const char *symbol)
{
	return strstarts(symbol, "__pfx_") || strstarts(symbol, "__cfi_") ||
	       strstr(symbol, ".cold");
}

/* The name in the source, without the suffix of a clone as foo.isra.0() */
static char *source_name(const char *symbol)
{
	const char *suffix = strchr(symbol, '.');

	return suffix > symbol ? strndup(symbol, suffix - symbol) : strdup(symbol);
}

/* A clone of a function of this name, whose arguments are known */
static bool is_known_clone(const struct btf_place *place)
{
	if (!place->proto && !probe_conf.quiet_args)
		pr_warning("%s is left out: %s.\n", place->symbol, place->unknown);
	return place->proto;
}

static int visit_functions(const struct kernel_btf *kbtf, const char *pattern,
			   btf_place_fn_t fn, void *ctx)
{
	int err = 0;

	for (size_t i = 0; i < kbtf->nr_symbols && !err; i++) {
		const struct text_symbol *symbol = &kbtf->symbols[i];
		char *name = source_name(symbol->name);
		struct btf_place place = {
			.address = symbol->address,
			.symbol = symbol->name,
			.symbol_address = symbol->address,
			.function = name,
		};

		if (!name)
			return -ENOMEM;
		if (!is_no_function(symbol->name) &&
		    (strglobmatch(symbol->name, pattern) || strglobmatch(name, pattern))) {
			find_prototype(kbtf, &place);
			if (strglobmatch(symbol->name, pattern) || is_known_clone(&place))
				err = fn(kbtf, &place, ctx);
		}
		free(name);
	}
	return err;
}

struct site_finder {
	const struct kernel_btf	*kbtf;
	const char		*pattern;
	u32			func;		/* the last one */
	bool			matches;
	btf_place_fn_t		fn;
	void			*ctx;
};

static int find_site(const struct btf *btf, const struct btf_loc *loc, u64 address, void *ctx)
{
	struct site_finder *finder = ctx;
	const struct text_symbol *symbol;
	struct btf_place place = { .address = address, .btf = btf, };

	if (loc->func != finder->func) {
		finder->func = loc->func;
		finder->matches = strglobmatch(func_name(btf, loc->func), finder->pattern);
	}
	symbol = finder->matches ? find_symbol(finder->kbtf, address) : NULL;
	if (!symbol)
		return 0;
	place.function = func_name(btf, loc->func);
	place.symbol = symbol->name;
	place.symbol_address = symbol->address;
	place.func = loc->func;
	place.proto = func_proto(btf, loc->func);
	/* Of id 0, as of parameters of which none is there, that is void: not NULL */
	place.locs = btf__type_by_id(btf, loc->loc_proto);
	return finder->fn(finder->kbtf, &place, finder->ctx);
}

/**
 * kernel_btf__visit_places - Call a function for each place of kernel functions
 * @kbtf: has them
 * @pattern: of their names, a glob; clones as foo.isra.0 are functions of the source's name
 * @inlined: also where they were inlined
 * @fn: gets each place; anything but 0 ends it
 * @ctx: for @fn
 *
 * A place may come more than once, as a function may have several symbols.
 *
 * Return: 0, what @fn returned, or -ENOMEM.
 */
int kernel_btf__visit_places(const struct kernel_btf *kbtf, const char *pattern, bool inlined,
			     btf_place_fn_t fn, void *ctx)
{
	struct site_finder finder = { .kbtf = kbtf, .pattern = pattern, .fn = fn, .ctx = ctx, };
	int err = visit_functions(kbtf, pattern, fn, ctx);

	if (!err && inlined)
		err = visit_locs(kbtf, kbtf->inlined, "inline", find_site, &finder);
	return err;
}

/*
 * In a module it is relative to the closest symbol before it whose name is unique there, or an
 * address, as in try_to_find_absolute_address(), if there is none.
 */
static int set_symbol(const struct kernel_btf *kbtf, const struct btf_place *place,
		      struct probe_trace_point *point)
{
	const struct text_symbol *base = NULL;
	u64 address = place->address;

	if (!*kbtf->module) {
		point->symbol = strdup("_text");
		point->offset = place->address - address_of(kbtf, "_text");
		return point->symbol ? 0 : -ENOMEM;
	}
	do {
		base = find_symbol(kbtf, address);
		address = base ? base->address - 1 : 0;
	} while (base && count_symbols(kbtf, base->name) > 1);
	if (!base)
		return asprintf(&point->symbol, "0x%" PRIx64, place->address) < 0 ? -ENOMEM : 0;
	point->symbol = strdup(base->name);
	point->offset = place->address - base->address;
	point->module = strdup(kbtf->module);
	return point->symbol && point->module ? 0 : -ENOMEM;
}

/**
 * kernel_btf__set_point - Make a place the point of a probe event
 * @kbtf: has the place
 * @place: of a function
 * @point: zeroed; gets no symbol if the kernel allows no probe there
 *
 * Return: 0 or -ENOMEM.
 */
int kernel_btf__set_point(const struct kernel_btf *kbtf, const struct btf_place *place,
			  struct probe_trace_point *point)
{
	point->address = place->address;
	point->realname = strdup(place->function);
	point->function = strdup(place->symbol);
	point->function_offset = place->address - place->symbol_address;
	if (!point->realname || !point->function)
		return -ENOMEM;
	/* No symbol: it is left out */
	if (!*kbtf->module && kprobe_warn_out_range(place->symbol, place->address))
		return 0;
	return set_symbol(kbtf, place, point);
}
