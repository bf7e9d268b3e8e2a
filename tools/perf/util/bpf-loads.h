/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which BPF functions are the same one, loaded several times?
 *
 * A program that is attached to many points, or started again and again, is loaded
 * as often. Each load has its own id, and each of its functions its own address, map
 * and dso. Users see one function in the source, and want one line in perf report, one
 * branch in the call graph and one annotated listing.
 *
 * perf adds up samples by symbol and by offset in the symbol, so the loads of a function
 * share one. It belongs to a struct bpf_func, which the dso of each load refers to:
 *
 *	map ──> dso with id 7 ──┐
 *				├──> bpf_func ──> symbol
 *	map ──> dso with id 9 ──┘
 *
 * Whoever holds a symbol holds a map with it, and so the dso and the function, which goes
 * with the last dso. The table of the machine, by name, does not keep functions. They
 * enter it when their dso is loaded, at the first sample: most never have one.
 *
 * Two functions are loads of one if they have the same name, which contains the tag:
 * a hash of the program's instructions. A tag does not tell the machine code: the
 * verifier removes instructions that the constants in read-only maps make dead,
 * and the JIT may run with other options. Samples are only added up by their offset in
 * the function if the loads also have the same size and the same lines at the same
 * offsets, "the same code" below. Loads with other code are another struct bpf_func.
 *
 * Sort keys that tell loads apart set symbol_conf.separate_bpf_loads: each load has a
 * struct bpf_func of its own then, which is in no table.
 */
#ifndef __PERF_BPF_LOADS_H
#define __PERF_BPF_LOADS_H

#include <linux/compiler.h>
#include <linux/types.h>

/* size of a machine's table */
#define BPF_FUNCS_SIZE		4096

/* length of what precedes the name of a function in that of its symbol */
#define BPF_FUNC_PREFIX_LEN	(sizeof("bpf_prog_0123456789abcdef_") - 1)

/* longer ones are cut */
#define BPF_FUNC_LABEL_SIZE	512

struct dso;
struct machine;
struct map;
struct map_symbol;

int dso__load_bpf_func(struct dso *dso, struct map *map);
void dso__update_bpf_func(struct dso *dso, struct machine *machine);
void dso__put_bpf_func(struct dso *dso);
void machine__exit_bpf_funcs(struct machine *machine);

unsigned int map_symbol__bpf_code_index(const struct map_symbol *ms);
unsigned int map_symbol__nr_other_code(const struct map_symbol *ms);
bool bpf_func__has_name(const char *symbol_name, const char *name);
bool bpf_func__get_label(const char *symbol_name, char buf[BPF_FUNC_LABEL_SIZE]);

#ifdef HAVE_LIBBPF_SUPPORT
void map_symbol__find_bpf_code(struct map_symbol *ms);
bool map__find_bpf_callee(struct map *map, u64 addr, struct map_symbol *callee);
#else
static inline void map_symbol__find_bpf_code(struct map_symbol *ms __maybe_unused)
{
}

static inline bool map__find_bpf_callee(struct map *map __maybe_unused, u64 addr __maybe_unused,
					struct map_symbol *callee __maybe_unused)
{
	return false;
}
#endif

#endif /* __PERF_BPF_LOADS_H */
