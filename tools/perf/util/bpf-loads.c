// SPDX-License-Identifier: GPL-2.0
/* Merge the loads of a BPF function. See bpf-loads.h. */
#include "bpf-loads.h"
#include "bpf-code.h"
#include "dso.h"
#include "hashmap.h"
#include "machine.h"
#include "map.h"
#include "map_symbol.h"
#include "maps.h"
#include "mutex.h"
#include "symbol.h"
#include "symbol_conf.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/err.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* perf top may run for days: do not keep functions that nothing refers to any more. */
#define BPF_LOADS_PRUNE_MIN	1024

/**
 * struct bpf_func_code - one code of a function
 * @func: the function
 * @next: an older one
 * @map: of the first load, NULL when the function is no longer in the table
 * @code_map: of the first load whose code is known, or NULL
 * @replaced: what @map was when it turned out that its code is another. Hist entries
 *	      may have its symbol. It cannot happen twice: by then @code_map is known.
 * @index: number of older codes of the same size
 * @nr_loads: number of loads
 */
struct bpf_func_code {
	struct bpf_func		*func;
	struct bpf_func_code	*next;
	struct map		*map;
	struct map		*code_map;
	struct map		*replaced;
	unsigned int		index;
	unsigned int		nr_loads;
};

/**
 * struct bpf_func - a function, as it is in the table of a machine
 * @refcnt: the table, and the dso of each load, which points to its code
 * @codes: the newest code
 * @first: the oldest code
 * @pinned: an annotated function calls it, so that its symbol must stay
 * @name: "bpf_prog_<tag>_<name>"
 */
struct bpf_func {
	refcount_t		refcnt;
	struct bpf_func_code	*codes;
	struct bpf_func_code	first;
	bool			pinned;
	char			name[];
};

/*
 * Protects the tables of all machines, and the functions in them. In perf top a thread
 * adds loads while another one annotates.
 */
static struct mutex loads_mutex;

static void init_loads_mutex(void)
{
	mutex_init(&loads_mutex);
}

static void lock_loads(void)
	EXCLUSIVE_LOCK_FUNCTION(loads_mutex)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, init_loads_mutex);
	mutex_lock(&loads_mutex);
}

static void unlock_loads(void)
	UNLOCK_FUNCTION(loads_mutex)
{
	mutex_unlock(&loads_mutex);
}

/*
 * Of "bpf_prog_<tag>_<name>", as there may be many: the tag is a hash of 16 digits already,
 * and programs with the same instructions differ in the end of the name.
 */
static size_t bpf_func__hash(long key, void *ctx __maybe_unused)
{
	const char *name = (const char *)key;
	size_t len = strlen(name);
	u64 tag[2], end;

	if (len < strlen("bpf_prog_") + sizeof(tag))
		return str_hash(name);
	memcpy(tag, name + strlen("bpf_prog_"), sizeof(tag));
	memcpy(&end, name + len - sizeof(end), sizeof(end));
	end = (end * 31 + tag[0]) * 31 + tag[1];
	return end ^ end >> 32;
}

static bool bpf_func__equal(long key1, long key2, void *ctx __maybe_unused)
{
	return !strcmp((const char *)key1, (const char *)key2);
}

static struct bpf_func_code *bpf_func__add_code(struct bpf_func *func, struct map *map)
{
	struct bpf_func_code *code = func->codes ? zalloc(sizeof(*code)) : &func->first;

	if (!code)
		return NULL;
	code->func = func;
	code->map = map__get(map);
	for (struct bpf_func_code *old = func->codes; old; old = old->next)
		code->index += map__size(old->map) == map__size(map);
	code->next = func->codes;
	func->codes = code;
	return code;
}

static void bpf_func__put(struct bpf_func *func)
{
	struct bpf_func_code *code, *next;

	if (!refcount_dec_and_test(&func->refcnt))
		return;
	for (code = func->codes; code; code = next) {
		next = code->next;
		if (code != &func->first)
			free(code);
	}
	free(func);
}

/* The function is no longer in the table: do not hold maps, whose dsos hold the function. */
static void bpf_func__unlink(struct bpf_func *func)
{
	for (struct bpf_func_code *code = func->codes; code; code = code->next) {
		map__zput(code->map);
		map__zput(code->code_map);
		map__zput(code->replaced);
	}
	bpf_func__put(func);
}

static struct bpf_func *bpf_loads__find(const struct bpf_loads *loads, const char *name)
{
	struct bpf_func *func;

	return loads->funcs && hashmap__find(loads->funcs, name, &func) ? func : NULL;
}

static unsigned int map__nr_refs(struct map *map)
{
	return refcount_read(map__refcnt(map));
}

/* Does anything but the table, and the dsos that it holds, refer to the function? */
static bool bpf_func__is_used(const struct bpf_func *func)
{
	unsigned int nr_dsos = 0;

	for (struct bpf_func_code *code = func->codes; code; code = code->next) {
		bool one_map = RC_CHK_EQUAL(code->code_map, code->map);

		if (code->replaced || map__nr_refs(code->map) > (one_map ? 2 : 1) ||
		    (code->code_map && !one_map && map__nr_refs(code->code_map) > 1))
			return true;
		nr_dsos += code->code_map && !one_map ? 2 : 1;
	}
	return func->pinned || refcount_read(&func->refcnt) > 1 + nr_dsos;
}

static void bpf_loads__prune(struct bpf_loads *loads)
{
	struct hashmap_entry *cur, *tmp;
	size_t bkt;

	if (hashmap__size(loads->funcs) < max_t(size_t, loads->prune_at, BPF_LOADS_PRUNE_MIN))
		return;

	hashmap__for_each_entry_safe(loads->funcs, cur, tmp, bkt) {
		struct bpf_func *func = cur->pvalue;

		if (!bpf_func__is_used(func)) {
			hashmap__delete(loads->funcs, func->name, NULL, NULL);
			bpf_func__unlink(func);
		}
	}
	loads->prune_at = 2 * hashmap__size(loads->funcs);
}

static struct bpf_func *bpf_loads__add(struct bpf_loads *loads, const char *name)
{
	struct bpf_func *func;

	if (!loads->funcs) {
		struct hashmap *funcs = hashmap__new(bpf_func__hash, bpf_func__equal, NULL);

		if (IS_ERR(funcs))
			return NULL;
		loads->funcs = funcs;
	}
	bpf_loads__prune(loads);

	func = zalloc(sizeof(*func) + strlen(name) + 1);
	if (!func)
		return NULL;
	refcount_set(&func->refcnt, 1);
	strcpy(func->name, name);
	if (hashmap__add(loads->funcs, func->name, func)) {
		free(func);
		return NULL;
	}
	return func;
}

/**
 * dso__put_bpf_func - a dso that may be of a BPF function is deleted
 * @dso: any
 */
void dso__put_bpf_func(struct dso *dso)
{
	struct bpf_func_code *code = dso__bpf_prog(dso)->code;

	if (code)
		bpf_func__put(code->func);
	dso__bpf_prog(dso)->code = NULL;
}

static void bpf_func_code__add_load(struct bpf_func_code *code, struct map *map)
{
	refcount_inc(&code->func->refcnt);
	dso__bpf_prog(map__dso(map))->code = code;
	code->nr_loads++;
}

/* Called when the code of a load is not that of @code, which is known. */
static void bpf_func_code__remove_load(struct bpf_func_code *code, struct map *map)
{
	code->nr_loads--;
	if (RC_CHK_EQUAL(code->map, map)) {
		code->replaced = code->map;
		code->map = map__get(code->code_map);
	}
	dso__put_bpf_func(map__dso(map));
}

static int __machine__add_bpf_load(struct machine *machine, struct map *map)
{
	const char *name = dso__short_name(map__dso(map));
	struct bpf_func *func = bpf_loads__find(&machine->bpf_loads, name);
	struct bpf_func_code *code;

	if (!func)
		func = bpf_loads__add(&machine->bpf_loads, name);
	if (!func)
		return -ENOMEM;

	for (code = func->codes; code; code = code->next) {
		if (map__size(code->map) == map__size(map))
			break;
	}
	if (!code)
		code = bpf_func__add_code(func, map);
	if (!code)
		return -ENOMEM;

	bpf_func_code__add_load(code, map);
	return 0;
}

/**
 * machine__add_bpf_load - add the map of a BPF function
 * @machine: where it is loaded
 * @map: with a dso named "bpf_prog_<tag>_<name>"
 *
 * The program info comes later. Until then, assume that the load has the code of
 * the last load of this size. See map__link_bpf_load().
 *
 * Return: 0 or -ENOMEM.
 */
int machine__add_bpf_load(struct machine *machine, struct map *map)
{
	int err;

	lock_loads();
	err = __machine__add_bpf_load(machine, map);
	unlock_loads();
	return err;
}

static bool bpf_func_code__is_of(const struct bpf_func_code *code, struct map *map)
{
	return map__size(code->map) == map__size(map) &&
	       (!code->code_map ||
		dso__has_same_bpf_code(map__dso(code->code_map), map__dso(map)));
}

/* Find the code of a load whose program info is known, or add one. */
static struct bpf_func_code *bpf_func__find_code(struct bpf_func *func, struct map *map)
{
	struct bpf_func_code *code;

	for (code = func->codes; code; code = code->next) {
		if (bpf_func_code__is_of(code, map))
			return code;
	}
	return bpf_func__add_code(func, map);
}

static void __map__link_bpf_load(struct map *map)
{
	struct bpf_func_code *old = dso__bpf_prog(map__dso(map))->code, *code = old;
	struct bpf_code unused;

	if (!old || !old->map || dso__bpf_code(map__dso(map), &unused))
		return;

	if (!bpf_func_code__is_of(old, map)) {
		code = bpf_func__find_code(old->func, map);
		if (!code)
			return;
		bpf_func_code__add_load(code, map);
		bpf_func_code__remove_load(old, map);
		dso__bpf_prog(map__dso(map))->code = code;
	}
	if (!code->code_map)
		code->code_map = map__get(map);
}

/**
 * map__link_bpf_load - handle that the program info of a BPF function is known
 * @map: after machine__add_bpf_load(), with the id of the program in its dso
 *
 * If the load was assigned to other code, assign it to its own. Samples of before, in
 * a pipe or in perf top, stay where they were counted.
 */
void map__link_bpf_load(struct map *map)
{
	lock_loads();
	__map__link_bpf_load(map);
	unlock_loads();
}

/**
 * machine__exit_bpf_loads - forget all BPF functions
 * @machine: any
 */
void machine__exit_bpf_loads(struct machine *machine)
{
	struct bpf_loads *loads = &machine->bpf_loads;
	struct hashmap_entry *cur;
	size_t bkt;

	if (!loads->funcs)
		return;
	lock_loads();
	hashmap__for_each_entry(loads->funcs, cur, bkt)
		bpf_func__unlink(cur->pvalue);
	hashmap__free(loads->funcs);
	loads->funcs = NULL;
	unlock_loads();
}

/* The code that the map is of, unless other text has cut the map since. */
static struct bpf_func_code *map__bpf_func_code(const struct map *map)
{
	struct bpf_func_code *code = dso__bpf_prog(map__dso(map))->code;

	return code && code->map && map__size(code->map) == map__size(map) ? code : NULL;
}

static void __map_symbol__merge_bpf_loads(struct map_symbol *ms)
{
	struct bpf_func_code *code = ms->sym && !symbol_conf.separate_bpf_loads ?
				     map__bpf_func_code(ms->map) : NULL;

	if (!code)
		return;
	ms->sym = dso__first_symbol(map__dso(code->map));
	ms->map = code->code_map ?: code->map;
}

/**
 * map_symbol__merge_bpf_loads - count a sample for all loads of its BPF function
 * @ms: where the sample is; changed in place, without a reference to the new map
 *
 * Offsets in the function remain valid. Does nothing if @ms is not in a BPF function, or
 * if the user asked for each load.
 *
 * Called by the thread that processes events, and adds loads: the map stays until the
 * next event.
 */
void map_symbol__merge_bpf_loads(struct map_symbol *ms)
{
	const struct bpf_func_code *code;

	if (!ms->map || !dso__is_bpf_prog(map__dso(ms->map)))
		return;

	/* no other thread adds loads, so that it needs no lock to see that there is one only */
	code = dso__bpf_prog(map__dso(ms->map))->code;
	if (!code || code->nr_loads == 1)
		return;

	lock_loads();
	__map_symbol__merge_bpf_loads(ms);
	unlock_loads();
}

/**
 * map_symbol__get_merged_bpf_loads - map_symbol__merge_bpf_loads(), with references
 * @ms: holds a reference to its map, before and after
 *
 * Called by any thread.
 */
void map_symbol__get_merged_bpf_loads(struct map_symbol *ms)
{
	struct map_symbol merged = *ms;

	if (!ms->map || !dso__is_bpf_prog(map__dso(ms->map)))
		return;

	lock_loads();
	__map_symbol__merge_bpf_loads(&merged);
	if (!RC_CHK_EQUAL(merged.map, ms->map)) {
		struct map *old = ms->map;

		ms->map = map__get(merged.map);
		map__put(old);
	}
	ms->sym = merged.sym;
	unlock_loads();
}

/**
 * bpf_func__has_name - compare the name of a BPF function without the tag
 * @symbol_name: of any symbol; that of a BPF function is "bpf_prog_<tag>_<name>"
 * @name: as in the program's source
 */
bool bpf_func__has_name(const char *symbol_name, const char *name)
{
	const size_t tag_len = 2 * BPF_TAG_SIZE, len = strlen("bpf_prog_") + tag_len + 1;
	const char *tag = symbol_name + strlen("bpf_prog_");

	/* most are of another length: asked for each sample of perf annotate */
	if (strlen(symbol_name) != len + strlen(name) || strcmp(symbol_name + len, name))
		return false;
	return strstarts(symbol_name, "bpf_prog_") && tag[tag_len] == '_' &&
	       strspn(tag, "0123456789abcdef") >= tag_len;
}

/**
 * machine__has_bpf_func - was a BPF function of this name loaded?
 * @machine: any
 * @name: with or without "bpf_prog_<tag>_"
 */
bool machine__has_bpf_func(const struct machine *machine, const char *name)
{
	const struct bpf_loads *loads = &machine->bpf_loads;
	struct hashmap_entry *cur;
	bool found = false;
	size_t bkt;

	lock_loads();
	if (loads->funcs) {
		hashmap__for_each_entry(loads->funcs, cur, bkt)
			found = found || !strcmp(cur->pkey, name) ||
				bpf_func__has_name(cur->pkey, name);
	}
	unlock_loads();
	return found;
}

/**
 * machine__find_bpf_func - find a BPF function by its name
 * @machine: where it was loaded, even if it no longer is
 * @name: "bpf_prog_<tag>_<name>"
 * @func: map and symbol are set, with a reference to the map
 *
 * The symbol stays as long as the machine.
 *
 * Return: true, or false if no function has the name, or if the loads of the function
 * have several codes.
 */
bool machine__find_bpf_func(struct machine *machine, const char *name, struct map_symbol *func)
{
	struct bpf_func_code *code;
	struct bpf_func *found;

	lock_loads();
	found = bpf_loads__find(&machine->bpf_loads, name);
	code = found && !found->codes->next ? found->codes : NULL;
	if (code) {
		found->pinned = true;
		func->map = map__get(code->code_map ?: code->map);
		func->sym = dso__first_symbol(map__dso(code->map));
	}
	unlock_loads();
	return code;
}

/* NULL if loads are not merged, or @dso is not of a BPF function */
static const struct bpf_func_code *dso__mergeable_code(const struct dso *dso)
{
	if (!dso || !dso__is_bpf_prog(dso) || symbol_conf.separate_bpf_loads)
		return NULL;
	return dso__bpf_prog((struct dso *)dso)->code;
}

/**
 * dso__cmp_bpf_func - compare the functions of two dsos
 * @left: of any type, or NULL
 * @right: of any type, or NULL
 *
 * Return: 0 if they are equal, or loads of one BPF function. Otherwise an order, in
 * which the loads of a function are one.
 */
int dso__cmp_bpf_func(const struct dso *left, const struct dso *right)
{
	const struct bpf_func_code *left_code, *right_code;

	if (RC_CHK_EQUAL(left, right))
		return 0;

	left_code = dso__mergeable_code(left);
	right_code = dso__mergeable_code(right);
	if (!left_code != !right_code)
		return left_code ? -1 : 1;
	if (!left || !right)
		return left ? 1 : -1;
	if (!left_code)
		return RC_CHK_ACCESS(left) < RC_CHK_ACCESS(right) ? -1 : 1;
	if (left_code->func == right_code->func)
		return 0;
	return left_code->func < right_code->func ? -1 : 1;
}

/**
 * dso__cmp_bpf_code - compare the codes of two dsos
 * @left: of any type, or NULL
 * @right: of any type, or NULL
 *
 * Return: as dso__cmp_bpf_func(), but loads of a function are equal only if their code is.
 */
int dso__cmp_bpf_code(const struct dso *left, const struct dso *right)
{
	const struct bpf_func_code *left_code, *right_code;
	int cmp = dso__cmp_bpf_func(left, right);

	if (cmp || RC_CHK_EQUAL(left, right))
		return cmp;

	left_code = dso__mergeable_code(left);
	right_code = dso__mergeable_code(right);
	if (left_code == right_code)
		return 0;
	return left_code < right_code ? -1 : 1;
}

/**
 * dso__bpf_code_index - tell codes of one function and size apart
 * @dso: any
 *
 * Return: a number that is the same for loads with the same code, 0 for other dsos.
 */
unsigned int dso__bpf_code_index(struct dso *dso)
{
	const struct bpf_func_code *code = dso__bpf_prog(dso)->code;

	return code ? code->index : 0;
}

/**
 * map_symbol__nr_other_code - count the loads of a BPF function that have other code
 * @ms: the function
 *
 * Return: their number, 0 if @ms is not in a BPF function or if loads are not merged.
 */
unsigned int map_symbol__nr_other_code(const struct map_symbol *ms)
{
	struct bpf_func_code *own, *code;
	unsigned int nr = 0;

	if (symbol_conf.separate_bpf_loads)
		return 0;

	lock_loads();
	own = map__bpf_func_code(ms->map);
	for (code = own ? own->func->codes : NULL; code; code = code->next)
		nr += code == own ? 0 : code->nr_loads;
	unlock_loads();
	return nr;
}
