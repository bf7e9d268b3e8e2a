/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __TRACE_PROBE_TARGET_H
#define __TRACE_PROBE_TARGET_H

#include <linux/cleanup.h>
#include <linux/moduleparam.h>
#include <linux/types.h>

struct btf;
struct btf_type;
struct module;

/* The core kernel's name in a target; it is no module. */
#define PROBE_TARGET_CORE	"vmlinux"

/*
 * What a probe is on: [MOD:]SYM[+OFF][%return] or ADDR[%return].
 *
 * A kprobe without a module is in the core kernel, or in a module if the core kernel
 * has no such symbol. An fprobe is on all functions SYM, which may be a glob pattern.
 */
struct probe_target {
	const char	*module;	/* MOD, or NULL */
	const char	*symbol;	/* SYM, or NULL if it is an address */
	unsigned long	addr;		/* ADDR */
	unsigned long	offset;		/* OFF in bytes */
	bool		is_return;	/* has %return */
	bool		all;		/* is on all functions SYM */
	char		*buf;
	struct probe_funcs *funcs;	/* that were found */
};

int probe_target_parse(struct probe_target *target, const char *spec, bool all);
int probe_target_from_func(struct probe_target *target, const char *func);
void probe_target_free(struct probe_target *target);
DEFINE_FREE(probe_target, struct probe_target, probe_target_free(&_T))

bool probe_target_is_uprobe(const char *spec);
bool probe_target_is_core(const struct probe_target *target);
char *probe_target_name(const struct probe_target *target);
int probe_target_check(struct probe_target *target);
unsigned long probe_target_address(struct probe_target *target);
char *probe_addr_name(unsigned long addr);
struct module *probe_target_get_module(const struct probe_target *target);

#define PROBE_TARGET_OBJECTS	8

int probe_target_objects(struct probe_target *target, char (*objects)[MODULE_NAME_LEN],
			 unsigned int *more);

#define PROBE_TYPES_DETAIL	256

/* The prototype of the function at a target, or why there is none. */
struct probe_types {
	struct btf		*btf;		/* to be put, or NULL */
	const struct btf_type	*proto;		/* FUNC_PROTO */
	int			err;		/* if there is none: TP_ERR_* */
	char			detail[PROBE_TYPES_DETAIL];	/* for its text, or empty */
};

#ifdef CONFIG_PROBE_EVENTS_BTF_ARGS
int probe_target_types(struct probe_target *target, struct probe_types *types);
struct btf *probe_target_btf(struct probe_target *target);
const struct btf_type *probe_addr_proto(unsigned long addr, struct btf **btf_p);
#endif

#endif /* __TRACE_PROBE_TARGET_H */
