// SPDX-License-Identifier: GPL-2.0
/*
 * Which functions need an entry?
 *
 * Those for which the kernel would find another prototype, or none: index__resolve() says
 * how it searches. All symbols of an address are looked at together.
 */
#include <string.h>

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

/* Of the symbols at one address */
struct group {
	const struct symbol *alias;	/* another name of this function: */
	struct function *func;
	struct function *any;		/* one of which the file is known */
	const char *file;		/* where another file begins: to be told once */
};

static void add_entry(struct index *index, struct types *types, struct group *group,
		      const struct symbol *sym, const char *name, const struct proto *proto,
		      struct function *func)
{
	const char *file = group->file ?: sym->ambiguous ? cached_path(func) : NULL;
	int id = types__add_func(types, proto, name, file);

	index__add(index, &sym->at, id,
		   proto->optimized ? types__add_locations(types, proto) : 0);
	group->file = NULL;
}

static void add_unknown(struct index *index, struct types *types, struct group *group,
			const struct symbol *sym)
{
	index__add(index, &sym->at, types__add_unknown(types, sym->name, group->file), 0);
	group->file = NULL;
}

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

	if (!read_truth(functions, sym, &func, &proto))
		return;
	group->any = group->any ?: func;
	if (!types__find_base_func(types, sym->name) && is_alias(sym, func)) {
		group->alias = sym;
		group->func = func;
	}
	proto__free(&proto);
}

static void add_named(struct object *obj, struct index *index, struct group *group,
		      struct functions *functions, struct types *types, const struct symbol *sym)
{
	struct function *func;
	struct proto proto;
	int exact = types__find_base_func(types, sym->name);
	bool needed;

	if (!read_truth(functions, sym, &func, &proto)) {
		/*
		 * What .BTF has for this name is another function, or was made up. What is
		 * rarely run of one function may be empty, and another one begin there.
		 */
		if (exact || (symbol__is_cold(sym->name) && group->any))
			add_unknown(index, types, group, sym);
		return;
	}
	if (exact)
		needed = group->file || sym->ambiguous ||
			 types__compare(types, &proto, exact) != SAME;
	else
		needed = !is_alias(sym, func) && !types__has_set_only(types, obj, sym->name);
	if (needed)
		add_entry(index, types, group, sym, sym->name, &proto, func);
	proto__free(&proto);
}

/* An alias needs one FUNC at its address, that of the function. */
static void add_alias(struct object *obj, struct index *index, struct group *group,
		      struct types *types)
{
	const char *name = group->func->name;
	struct proto proto;

	if (types__has_set_only(types, obj, name) || !proto__read(&proto, group->func, name))
		return;
	add_entry(index, types, group, group->alias, name, &proto, group->func);
	proto__free(&proto);
}

/* Does another file begin here, or code of which it is not known? */
static const char *file_mark(struct object *obj, const struct group *group,
			     const struct place *at)
{
	static unsigned int last_sec;
	static char *last;
	const char *path = group->any ? cached_path(group->any) : "";
	bool other;

	/* The symbol of a section's end; code that is gone when somebody asks for it */
	if (at->offset >= object__section_size(obj, at->sec) ||
	    !strcmp(object__section_name(obj, at->sec), ".init.text") ||
	    !strcmp(object__section_name(obj, at->sec), ".exit.text"))
		return NULL;
	/* At the begin of a section it is not known. */
	other = strcmp(path, at->sec == last_sec ? last : "");
	free(last);
	last = xstrdup(path);
	last_sec = at->sec;
	return other ? path : NULL;
}

void generate(struct object *obj, struct functions *functions, struct types *types,
	      struct index *index)
{
	const struct symbol *sym = obj->symbols, *last = sym + obj->nr_symbols, *end, *s;

	for (; sym < last; sym = end) {
		struct group group = {};
		size_t before = index->nr;

		for (end = sym; end < last && !place__cmp(&end->at, &sym->at); end++)
			look_at(&group, functions, types, end);
		group.file = file_mark(obj, &group, &sym->at);
		for (s = sym; s < end; s++)
			add_named(obj, index, &group, functions, types, s);
		if (group.alias && index->nr == before)
			add_alias(obj, index, &group, types);
		if (group.file)
			add_unknown(index, types, &group, sym);
	}
}
