// SPDX-License-Identifier: GPL-2.0
/*
 * Which functions need an entry?
 *
 * Those for which the kernel would find another prototype, or none: index__resolve() says
 * how it searches. All symbols of an address are looked at together.
 */
#include <string.h>

#include "../../include/linux/btf_func_index.h"
#include "btf_func.h"

static void strip_dir(char *path, const char *dir)
{
	char *real = realpath(dir, NULL);
	size_t len;

	if (!real)
		return;
	len = strlen(real);
	if (!strncmp(path, real, len) && path[len] == '/')
		memmove(path, path + len + 1, strlen(path + len + 1) + 1);
	free(real);
}

/*
 * Return the path in the source tree, to be freed. It does not tell where that is. Kbuild runs
 * this where it compiles. The directory in the debug information may be another: a compiler
 * cache has compiled there, and what is there now, if anything, is not this tree.
 */
static char *source_path(const struct function *func)
{
	char *path = realpath(function__unit_name(func), NULL), *named;
	const char **dir;

	if (!path) {
		named = function__path(func);
		path = realpath(named, NULL) ?: xstrdup(named);
		free(named);
	}
	for (dir = source_dirs; *dir; dir++)
		strip_dir(path, *dir);
	return path;
}

/* The functions of a unit are next to each other, mostly. The path is kept until the next call. */
static const char *cached_path(struct function *func)
{
	static Dwarf_Off last_unit;
	static char *path;
	Dwarf_Off unit = dwarf_dieoffset(&func->unit);

	if (!path || unit != last_unit) {
		free(path);
		path = source_path(func);
		last_unit = unit;
	}
	return path;
}

static void add_func(struct index *index, struct types *types, const struct symbol *sym,
		     const char *name, const struct proto *proto, struct function *func)
{
	const char *file = sym->ambiguous ? cached_path(func) : NULL;

	index__add(index, &sym->at, types__add_func(types, proto, name, file), proto->optimized);
}

/* Of the symbols at one address */
struct group {
	bool unknown;		/* .BTF has a FUNC for one of which nothing is known */
	const struct symbol *alias;	/* another name of this function: */
	struct function *func;
	struct function *any;		/* one of which the file is known */
};

/*
 * Another name of the same function, as that of a system call. A clone is none, also if its
 * symbol was given a prefix: what it is passed is told by its suffix.
 */
static bool is_alias(const struct symbol *sym, const struct function *func)
{
	return !function__is_named(func, sym->name) && !symbol__is_clone(sym->name);
}

static bool read_truth(struct functions *functions, const struct symbol *sym,
		       struct function **func, struct proto *proto)
{
	*func = functions__of_symbol(functions, sym);
	return *func && proto__read(proto, *func, sym->name);
}

static void look_at(struct group *group, struct functions *functions, struct types *types,
		    const struct symbol *sym)
{
	struct function *func;
	struct proto proto;
	int exact = types__find_base_func(types, sym->name);

	if (!read_truth(functions, sym, &func, &proto)) {
		group->unknown |= exact;
		return;
	}
	group->any = group->any ?: func;
	if (!exact && is_alias(sym, func)) {
		group->alias = sym;
		group->func = func;
	}
	proto__free(&proto);
}

static void add_named(struct object *obj, struct index *index, const struct group *group,
		      struct functions *functions, struct types *types, const struct symbol *sym)
{
	struct function *func;
	struct proto proto;
	int exact = types__find_base_func(types, sym->name);
	bool needed;

	if (!read_truth(functions, sym, &func, &proto))
		return;
	/*
	 * The kernel denies and allows programs on functions by the FUNC in .BTF. Without it, one
	 * that a set has could not be told from others.
	 */
	if (exact)
		needed = group->unknown || sym->ambiguous ||
			 types__compare(types, &proto, exact) != SAME;
	else
		needed = !is_alias(sym, func) && !object__has_btf_id(obj, sym->name);
	if (needed)
		add_func(index, types, sym, sym->name, &proto, func);
	proto__free(&proto);
}

/* An alias needs one FUNC at its address. That in .BTF will do if it is right. */
static void add_alias(struct index *index, const struct group *group, struct types *types)
{
	const char *name = group->func->name;
	int exact = types__find_base_func(types, name);
	struct proto proto;

	if (!proto__read(&proto, group->func, name))
		return;
	if (exact && types__compare(types, &proto, exact) == SAME)
		index__add(index, &group->alias->at, exact, false);
	else
		add_func(index, types, group->alias, name, &proto, group->func);
	proto__free(&proto);
}

/* Mark where functions of another file begin, or such as have none. */
static void add_file(struct object *obj, struct index *index, const struct group *group,
		     struct types *types, const struct place *at)
{
	static unsigned int last_sec, last;
	int name = btf__add_str(types->btf, group->any ? cached_path(group->any) : "");

	if (name < 0)
		fatal("no memory for BTF");
	/* The symbol of a section's end */
	if (at->offset >= object__section_size(obj, at->sec))
		return;
	/* At the begin of a section it is none. */
	if (name != (at->sec == last_sec ? last : 0))
		index__add(index, at, BTF_FUNC_FILE | name, false);
	last_sec = at->sec;
	last = name;
}

void generate(struct object *obj, struct functions *functions, struct types *types,
	      struct index *index)
{
	const struct symbol *sym = obj->symbols, *last = sym + obj->nr_symbols, *end, *s;

	for (; sym < last; sym = end) {
		struct group group = {};
		size_t before;

		for (end = sym; end < last && !place__cmp(&end->at, &sym->at); end++)
			look_at(&group, functions, types, end);
		add_file(obj, index, &group, types, &sym->at);
		before = index->nr;
		for (s = sym; s < end; s++)
			add_named(obj, index, &group, functions, types, s);
		if (group.alias && index->nr == before)
			add_alias(index, &group, types);
		if (group.unknown)
			index__add(index, &sym->at, 0, false);
	}
}
