/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __BTF_PLACE_H
#define __BTF_PLACE_H

#include <linux/types.h>
#include <stdbool.h>

struct btf;
struct btf_type;
struct kernel_btf;
struct perf_probe_arg;
struct probe_trace_arg;
struct probe_trace_point;
struct strbuf;

/* Where a function begins, or where it was inlined */
struct btf_place {
	u64			address;
	const char		*symbol;	/* that it is in */
	u64			symbol_address;
	const char		*function;	/* of the source */
	const struct btf	*btf;		/* has the types */
	u32			func;		/* id of the FUNC */
	const struct btf_type	*proto;		/* FUNC_PROTO, NULL if it is not known */
	const char		*unknown;	/* why not */
	const struct btf_type	*locs;		/* LOC_PROTO, NULL where the function begins */
};

typedef int (*btf_place_fn_t)(const struct kernel_btf *kbtf, const struct btf_place *place,
			      void *ctx);

/* btf-place.c: @module is NULL for vmlinux */
bool kernel_btf__is_there(const char *module);
bool kernel_btf__has_inlined(const char *module);
struct kernel_btf *kernel_btf__new(const char *module);
void kernel_btf__delete(struct kernel_btf *kbtf);
int kernel_btf__visit_places(const struct kernel_btf *kbtf, const char *pattern, bool inlined,
			     btf_place_fn_t fn, void *ctx);
int kernel_btf__set_point(const struct kernel_btf *kbtf, const struct btf_place *place,
			  struct probe_trace_point *point);

/* btf-arg.c: @nr is the number of a parameter, from 0 */
bool btf_place__knows_registers(void);
int btf_place__find_param(const struct btf_place *place, const char *name);
bool btf_place__is_removed(const struct btf_place *place, const char *name);
const char *btf_place__param_name(const struct btf_place *place, int nr);
bool btf_place__has_param(const struct btf_place *place, int nr);
int btf_place__convert_arg(const struct btf_place *place, const struct perf_probe_arg *pvar,
			   struct probe_trace_arg *tvar);
int btf_place__describe_param(const struct btf_place *place, int nr, struct strbuf *buf);

#endif /* __BTF_PLACE_H */
