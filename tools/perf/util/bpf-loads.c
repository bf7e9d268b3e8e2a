// SPDX-License-Identifier: GPL-2.0
/* Share the symbol of a BPF function between its loads. See bpf-loads.h. */
#include "bpf-loads.h"
#include "bpf-code.h"
#include "bpf-event.h"
#include "dso.h"
#include "env.h"
#include "hashmap.h"
#include "ktext-maps.h"
#include "machine.h"
#include "map.h"
#include "map_symbol.h"
#include "maps.h"
#include "mutex.h"
#include "symbol.h"
#include "symbol_conf.h"

#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/string.h>
#include <stdlib.h>
#include <string.h>

/**
 * struct bpf_func - a function of BPF programs, with one code
 * @node: in the table of the machine
 * @nr_dsos: number of dsos that refer to it
 * @nr_loads: number of loads that had samples
 * @hash: of the name
 * @index: tells it from other code of the same name and size
 * @sub_id: which function of the program it is
 * @info: the program of one load, for the code; NULL until one is known
 * @sym: the only symbol in the dso of each load
 */
struct bpf_func {
	struct hlist_node		node;
	u32				nr_dsos;
	u32				nr_loads;
	u32				hash;
	u32				index;
	u32				sub_id;
	struct bpf_prog_info_node	*info;
	struct symbol			*sym;
};

/*
 * Protects the tables of all machines, and the functions in them. In perf top a thread
 * adds loads while another one annotates, and deletes hist entries.
 */
static struct mutex funcs_lock = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Names differ in the tag, which is a hash already, and at the end. */
static u32 hash_name(const char *name, size_t len)
{
	u64 tag, end;

	if (len < strlen("bpf_prog_") + sizeof(tag))
		return str_hash(name);
	memcpy(&tag, name + strlen("bpf_prog_"), sizeof(tag));
	memcpy(&end, name + len - sizeof(end), sizeof(end));
	return ((tag + end) * 0x9e3779b97f4a7c15ULL) >> 32;
}

static struct bpf_func *bpf_func__new(const char *name, u64 size, u32 hash)
{
	struct symbol *sym = symbol__new(/*start=*/0, size, /*binding=*/0, /*type=*/0, name);
	struct bpf_func *func = sym ? malloc(sizeof(*func)) : NULL;

	if (func)
		*func = (struct bpf_func){ .hash = hash, .sym = sym, };
	else if (sym)
		symbol__delete(sym);
	return func;
}

static void bpf_func__put(struct bpf_func *func)
{
	if (!func || --func->nr_dsos)
		return;
	hlist_del_init(&func->node);
	bpf_prog_info_node__put(func->info);
	symbol__delete(func->sym);
	free(func);
}

static void bpf_func__learn_code(struct bpf_func *func, const struct dso_bpf_prog *prog)
{
	if (func->info || !prog->info)
		return;
	func->info = bpf_prog_info_node__get(prog->info);
	func->sub_id = prog->sub_id;
}

/* What is not known is assumed to be the same. */
static bool bpf_func__has_code_of(const struct bpf_func *func, const struct dso_bpf_prog *prog)
{
	return !func->info || !prog->info ||
	       bpil__has_same_code(func->info->info_linear, func->sub_id,
				   prog->info->info_linear, prog->sub_id);
}

/*
 * Find the function that a dso is a load of. As long as its program is not known, that is
 * the newest one with its name and size. Called with funcs_lock held.
 */
static struct bpf_func *machine__findnew_bpf_func(struct machine *machine, struct dso *dso)
{
	const char *name = dso__short_name(dso);
	u32 hash = hash_name(name, dso__short_name_len(dso)), index = 0;
	struct hlist_head *head = &machine->bpf_funcs[hash % BPF_FUNCS_SIZE];
	u64 size = dso__text_end(dso);
	struct bpf_func *func;

	if (symbol_conf.separate_bpf_loads)
		return bpf_func__new(name, size, hash);

	hlist_for_each_entry(func, head, node) {
		if (func->hash != hash || symbol__size(func->sym) != size ||
		    strcmp(func->sym->name, name))
			continue;
		if (bpf_func__has_code_of(func, dso__bpf_prog(dso)))
			return func;
		index = max(index, func->index + 1);
	}

	func = bpf_func__new(name, size, hash);
	if (func) {
		func->index = index;
		hlist_add_head(&func->node, head);
	}
	return func;
}

/* Called with funcs_lock held. */
static int dso__set_bpf_func(struct dso *dso, struct machine *machine)
{
	struct bpf_func *func = machine__findnew_bpf_func(machine, dso);
	struct rb_node *node;

	if (!func)
		return -1;
	func->nr_dsos++;
	bpf_func__learn_code(func, dso__bpf_prog(dso));
	dso__bpf_prog(dso)->func = func;

	/* A tree with one node can have many roots, if nothing is added to it. */
	node = &func->sym->rb_node;
	*dso__symbols(dso) = (struct rb_root_cached){ { node }, node };
	dso__reset_find_symbol_cache(dso);
	dso__set_loaded(dso);
	return 0;
}

/**
 * dso__load_bpf_func - dso__load() for a BPF function
 * @dso: of type DSO_BINARY_TYPE__BPF_PROG_INFO, named "bpf_prog_<tag>_<name>"
 * @map: its map
 *
 * Return: the number of symbols, or -1 if out of memory.
 */
int dso__load_bpf_func(struct dso *dso, struct map *map)
{
	struct machine *machine = maps__machine(map__kmaps(map));
	int err = 0;

	mutex_lock(&funcs_lock);
	if (!dso__loaded(dso)) {
		err = dso__set_bpf_func(dso, machine);
		if (!err)
			dso__bpf_prog(dso)->func->nr_loads++;
	}
	mutex_unlock(&funcs_lock);
	return err ?: 1;
}

/**
 * dso__update_bpf_func - the program of a BPF function is known
 * @dso: of the function
 * @machine: where it is loaded
 *
 * If the dso was loaded before, in a pipe or in perf top, and turns out to have other
 * code, it changes to the function with that code. Hist entries have the symbol of the
 * former one, and samples until now stay there.
 */
void dso__update_bpf_func(struct dso *dso, struct machine *machine)
{
	struct dso_bpf_prog *prog = dso__bpf_prog(dso);
	struct bpf_func *func = prog->func;

	/* not loaded yet, as in a file, or not loaded as a BPF function */
	if (!func)
		return;

	mutex_lock(&funcs_lock);
	if (bpf_func__has_code_of(func, prog)) {
		bpf_func__learn_code(func, prog);
	} else if (!prog->guessed_func && !dso__set_bpf_func(dso, machine)) {
		prog->guessed_func = func;
		prog->func->nr_loads++;
		func->nr_loads--;
	}
	mutex_unlock(&funcs_lock);
}

/**
 * dso__put_bpf_func - drop what the dso of a BPF function refers to
 * @dso: any, which is deleted; has no more symbols if it is of a BPF function
 */
void dso__put_bpf_func(struct dso *dso)
{
	struct dso_bpf_prog *prog = dso__bpf_prog(dso);

	bpf_prog_info_node__put(prog->info);
	if (!prog->func)
		return;
	*dso__symbols(dso) = RB_ROOT_CACHED;
	mutex_lock(&funcs_lock);
	bpf_func__put(prog->guessed_func);
	bpf_func__put(prog->func);
	mutex_unlock(&funcs_lock);
}

/**
 * machine__exit_bpf_funcs - end the table of BPF functions
 * @machine: any; hist entries may still have functions of it
 */
void machine__exit_bpf_funcs(struct machine *machine)
{
	mutex_lock(&funcs_lock);
	for (size_t i = 0; i < ARRAY_SIZE(machine->bpf_funcs); i++) {
		while (!hlist_empty(&machine->bpf_funcs[i]))
			hlist_del_init(machine->bpf_funcs[i].first);
	}
	mutex_unlock(&funcs_lock);
}

static struct bpf_func *map_symbol__bpf_func(const struct map_symbol *ms)
{
	const struct dso_bpf_prog *prog;

	if (!ms->map || !ms->sym)
		return NULL;
	prog = dso__bpf_prog(map__dso(ms->map));
	if (prog->guessed_func && prog->guessed_func->sym == ms->sym)
		return prog->guessed_func;
	return prog->func && prog->func->sym == ms->sym ? prog->func : NULL;
}

/**
 * map_symbol__bpf_code_index - distinguish codes of one function and size
 * @ms: any
 *
 * Return: a number that is the same for loads with the same code, 0 for other text.
 */
unsigned int map_symbol__bpf_code_index(const struct map_symbol *ms)
{
	const struct bpf_func *func = map_symbol__bpf_func(ms);

	return func ? func->index : 0;
}

/**
 * map_symbol__nr_other_code - count the loads of a BPF function that have other code
 * @ms: any
 *
 * Return: the number of those with samples, 0 if @ms is not in a BPF function or if loads
 * are separate.
 */
unsigned int map_symbol__nr_other_code(const struct map_symbol *ms)
{
	const struct bpf_func *own = map_symbol__bpf_func(ms), *func;
	struct machine *machine;
	unsigned int nr = 0;

	if (!own)
		return 0;

	machine = maps__machine(map__kmaps(ms->map));
	mutex_lock(&funcs_lock);
	hlist_for_each_entry(func, &machine->bpf_funcs[own->hash % BPF_FUNCS_SIZE], node) {
		if (func != own && !strcmp(func->sym->name, own->sym->name))
			nr += func->nr_loads;
	}
	mutex_unlock(&funcs_lock);
	return nr;
}

/**
 * bpf_func__has_name - compare the name of a BPF function without the tag
 * @symbol_name: of any symbol; that of a BPF function is "bpf_prog_<tag>_<name>"
 * @name: as in the program's source
 */
bool bpf_func__has_name(const char *symbol_name, const char *name)
{
	const char *tag = symbol_name + strlen("bpf_prog_");
	const size_t tag_len = BPF_FUNC_PREFIX_LEN - strlen("bpf_prog__");

	/* most differ in the length or at the end */
	return strlen(symbol_name) == BPF_FUNC_PREFIX_LEN + strlen(name) &&
	       !strcmp(symbol_name + BPF_FUNC_PREFIX_LEN, name) &&
	       strstarts(symbol_name, "bpf_prog_") && tag[tag_len] == '_' &&
	       strspn(tag, "0123456789abcdef") >= tag_len;
}

/**
 * bpf_func__get_label - write what exports show of a BPF function: boxes are narrow
 * @symbol_name: of any symbol; that of a BPF function is "bpf_prog_<tag>_<name>"
 * @buf: gets "<name> [bpf <tag>]"
 *
 * Return: false if it is no such function.
 */
bool bpf_func__get_label(const char *symbol_name, char buf[BPF_FUNC_LABEL_SIZE])
{
	const size_t tag_len = BPF_FUNC_PREFIX_LEN - strlen("bpf_prog__");
	bool classic = symbol_name[0] == 'c';
	const char *tag = symbol_name + classic + strlen("bpf_prog_");

	if (!strstarts(symbol_name + classic, "bpf_prog_") ||
	    strspn(tag, "0123456789abcdef") != tag_len || tag[tag_len] != '_')
		return false;
	return scnprintf(buf, BPF_FUNC_LABEL_SIZE, "%s [%sbpf %.*s]", tag + tag_len + 1,
			 classic ? "c" : "", (int)tag_len, tag);
}

#ifdef HAVE_LIBBPF_SUPPORT
/* Make a map of a function of a known program, which need not be loaded any more. */
static struct map *map__new_bpf_func(struct map *other, const char *name,
				     struct bpf_prog_info_node *info, u32 sub_id)
{
	struct machine *machine = maps__machine(map__kmaps(other));
	struct map *map = NULL;
	struct bpf_code code;
	struct dso *dso;
	int err;

	if (bpil__code(info->info_linear, sub_id, &code))
		return NULL;
	dso = dso__new_ktext(name, DSO_BINARY_TYPE__BPF_PROG_INFO, code.len);
	if (!dso)
		return NULL;
	dso__set_bpf_prog(dso, machine->env, info, sub_id);

	mutex_lock(&funcs_lock);
	err = dso__set_bpf_func(dso, machine);
	mutex_unlock(&funcs_lock);
	if (!err)
		map = map__new2(code.addr, dso);
	if (map) {
		map__set_end(map, code.addr + code.len);
		map__kmap(map)->kmaps = map__kmaps(other);
	}
	dso__put(dso);
	return map;
}

/**
 * map_symbol__find_bpf_code - change to a load of the same function whose code is known
 * @ms: any; holds a reference to its map, before and after
 *
 * No effect if the code of @ms is known, or that of no load.
 */
void map_symbol__find_bpf_code(struct map_symbol *ms)
{
	const struct bpf_func *func = map_symbol__bpf_func(ms);
	const struct dso_bpf_prog *prog;
	struct map *map;

	prog = func ? dso__bpf_prog(map__dso(ms->map)) : NULL;
	if (!func || !func->info || (prog->func == func && prog->info))
		return;

	map = map__new_bpf_func(ms->map, ms->sym->name, func->info, func->sub_id);
	/* A damaged file may have a length that contradicts its code. */
	if (map && dso__bpf_prog(map__dso(map))->func == func) {
		map__put(ms->map);
		ms->map = map;
	} else {
		map__put(map);
	}
}

/**
 * map__find_bpf_callee - find the function of a BPF program that another one calls
 * @map: of the caller, whose program is known
 * @addr: memory address in any function of the program, in the recorded kernel
 * @callee: map and symbol are set, with a reference to the map
 *
 * Return: false if no function of the program begins at @addr.
 */
bool map__find_bpf_callee(struct map *map, u64 addr, struct map_symbol *callee)
{
	const struct dso_bpf_prog *prog = dso__bpf_prog(map__dso(map));
	struct bpf_code code;
	char *name;
	u32 sub_id;

	if (!prog->info || bpil__find_code(prog->info->info_linear, addr, &sub_id, &code) ||
	    code.addr != addr)
		return false;
	name = dso__bpf_func_name(map__dso(map), addr);
	if (!name)
		return false;
	callee->map = map__new_bpf_func(map, name, prog->info, sub_id);
	callee->sym = callee->map ? dso__first_symbol(map__dso(callee->map)) : NULL;
	free(name);
	return callee->map;
}
#endif /* HAVE_LIBBPF_SUPPORT */
