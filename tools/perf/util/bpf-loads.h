/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which BPF functions are the same one, loaded several times?
 *
 * A program that is attached to many points, or started again and again, is loaded
 * as often. Each load has its own id, and each of its functions its own address, map,
 * dso and symbol. Users see one function in the source, and want one line in
 * perf report, one branch in the call graph and one annotated listing.
 *
 * Two functions are loads of one if they have the same name, which contains the tag:
 * a hash of the program's instructions. A tag does not tell the machine code: the
 * verifier removes instructions that the constants in read-only maps make dead,
 * and the JIT may run with other options. Samples are only added up by their offset in
 * the function if the loads also have the same size and the same lines at the same
 * offsets, "the same code" below. Loads with other code have an entry of their own.
 *
 *	name ──> bpf_func ──> bpf_func_code ──> bpf_func_code ──> NULL
 *			        │     │
 *	       map of the first load  map of the first load with program info
 *	       its symbol counts the samples of all loads
 *	                              its code is disassembled
 *
 * Only the users that add up samples merge loads. Everybody else, like the decoders
 * of instruction traces and perf script, uses the bytes and addresses of each load.
 */
#ifndef __PERF_BPF_LOADS_H
#define __PERF_BPF_LOADS_H

#include <linux/types.h>

struct dso;
struct machine;
struct map;
struct map_symbol;

/**
 * struct bpf_loads - the BPF functions of a machine
 * @funcs: struct bpf_func by name, or NULL before the first one
 * @prune_at: number of functions at which to look for unused ones
 */
struct bpf_loads {
	struct hashmap	*funcs;
	size_t		prune_at;
};

int machine__add_bpf_load(struct machine *machine, struct map *map);
void map__link_bpf_load(struct map *map);
void machine__exit_bpf_loads(struct machine *machine);

void map_symbol__merge_bpf_loads(struct map_symbol *ms);
void map_symbol__get_merged_bpf_loads(struct map_symbol *ms);
bool bpf_func__has_name(const char *symbol_name, const char *name);
bool machine__has_bpf_func(const struct machine *machine, const char *name);
bool machine__find_bpf_func(struct machine *machine, const char *name,
			    struct map_symbol *func);
int dso__cmp_bpf_func(const struct dso *left, const struct dso *right);
int dso__cmp_bpf_code(const struct dso *left, const struct dso *right);
unsigned int dso__bpf_code_index(struct dso *dso);
void dso__put_bpf_func(struct dso *dso);
unsigned int map_symbol__nr_other_code(const struct map_symbol *ms);

#endif /* __PERF_BPF_LOADS_H */
