/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __TRACE_PROBE_TARGET_H
#define __TRACE_PROBE_TARGET_H

#include <linux/btf_func.h>
#include <linux/cleanup.h>
#include <linux/moduleparam.h>
#include <linux/types.h>

struct btf;
struct btf_type;
struct module;

/* The core kernel's name in a target; it is no module. */
#define PROBE_TARGET_CORE	"vmlinux"

/*
 * What a probe is on: [MOD:]SYM[+OFF][@FILE][%return] or ADDR[%return].
 *
 * A kprobe without a module is in the core kernel, or in a module if the core kernel
 * has no such symbol. An fprobe is on all functions SYM, which may be a glob pattern.
 * With FILE, the end of its source's path, it is on one function.
 *
 * [MOD:]SYM%inline is on each place where the function was inlined.
 */
struct probe_target {
	const char	*module;	/* MOD, or NULL */
	const char	*symbol;	/* SYM, or NULL if it is an address */
	const char	*file;		/* FILE, or NULL */
	unsigned long	addr;		/* ADDR, or that of SYM[+OFF]@FILE */
	unsigned long	offset;		/* OFF in bytes */
	bool		is_return;	/* has %return */
	bool		is_inline;	/* has %inline */
	bool		all;		/* is on all functions SYM */
	char		*buf;
	struct probe_funcs *funcs;	/* that were found */
	struct btf_sites *sites;	/* where it was inlined */
	struct module	*sites_module;	/* in which module, or NULL */
};

/* The functions of a name, in the order of the search: first the core kernel's. */
struct probe_funcs {
	const char	*symbol;
	bool		traced;		/* only those that ftrace can trace */
	unsigned int	nr_symbols;	/* data too */
	unsigned int	nr;
	unsigned int	nr_objects;
	unsigned long	first;		/* the first symbol */
	unsigned int	size;		/* of the array */
	unsigned long	*addrs;
	/* of the last one that was found */
	char		object[MODULE_NAME_LEN];
};

int probe_target_parse(struct probe_target *target, const char *spec, bool all);
int probe_target_from_func(struct probe_target *target, const char *func);
void probe_target_free(struct probe_target *target);
DEFINE_FREE(probe_target, struct probe_target, probe_target_free(&_T))

bool probe_target_is_uprobe(const char *spec);
bool probe_target_is_name(const struct probe_target *target);
bool probe_target_is_core(const struct probe_target *target);
bool probe_target_is_pattern(const struct probe_target *target);
bool probe_target_is_loaded(const struct probe_target *target);
char *probe_target_name(const struct probe_target *target);
char *probe_target_inline(const struct probe_target *target);
int probe_target_check(struct probe_target *target);
void probe_target_log_missing(struct probe_target *target);
unsigned long probe_target_address(struct probe_target *target);
char *probe_addr_name(unsigned long addr);
struct probe_funcs *probe_target_funcs(struct probe_target *target);
struct module *probe_addr_get_module(unsigned long addr);
struct module *probe_target_get_module(const struct probe_target *target);

int probe_target_object(struct probe_target *target, char object[MODULE_NAME_LEN]);

/* A symbol, and the module that it is in, or "vmlinux" */
struct probe_place {
	char		*symbol;
	char		object[MODULE_NAME_LEN];
};

struct probe_places {
	const char	*pattern;	/* or name */
	struct probe_place *all;
	unsigned int	nr;
	unsigned int	size;		/* of the array */
};

/* Each is an event of its own, of which there can be 64k in all. */
#define PROBE_PLACES_MAX	1024

int probe_target_places(struct probe_target *target, struct probe_places *places);
void probe_places_free(struct probe_places *places);
DEFINE_FREE(probe_places, struct probe_places, probe_places_free(&_T))

#define PROBE_TYPES_DETAIL	256

/* The prototype of the function at a target, or why there is none. */
struct probe_types {
	struct btf_func		func;		/* its BTF is to be put, or NULL */
	u32			owner_id;	/* BTF of the object that the function is in */
	int			err;		/* if there is none: TP_ERR_* */
	char			detail[PROBE_TYPES_DETAIL];	/* for its text, or empty */
};

/* trace_probe_file.c */
char *probe_name_with_file(unsigned long addr, const char *object, const char *symbol);
char *probe_target_place(const struct probe_target *target);
int probe_target_find_file(struct probe_target *target);
void probe_target_log_ambiguous(struct probe_target *target);

#ifdef CONFIG_PROBE_EVENTS_BTF_ARGS
int probe_find_func(unsigned long addr, const char *name, struct btf_func *func, u32 *owner_id);
void probe_list_funcs(char *detail, int size, const struct probe_funcs *funcs);
int probe_target_types(struct probe_target *target, struct probe_types *types);
int probe_target_find_sites(struct probe_target *target);
void probe_site_types(struct probe_target *target, const struct btf_site *site,
		      struct probe_types *types);
struct btf *probe_target_btf(struct probe_target *target);
bool probe_param_has_name(const char *name);
const struct btf_type *probe_addr_proto(unsigned long addr, struct btf **btf_p);
#else
static inline bool probe_param_has_name(const char *name)
{
	return false;
}

static inline int probe_target_find_sites(struct probe_target *target)
{
	return -ENODATA;
}
#endif

#endif /* __TRACE_PROBE_TARGET_H */
