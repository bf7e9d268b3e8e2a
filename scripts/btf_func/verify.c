// SPDX-License-Identifier: GPL-2.0
/*
 * Does the kernel find the right prototype for each function?
 *
 * Each symbol of the linked object is searched with the algorithm of kernel/bpf/btf_func.c,
 * and what that finds is compared with what the debug information says of the function:
 * the number of arguments, their names and types, and so the registers.
 *
 * That shows that nothing was lost or mixed up on the way. It does not show that proto.c reads
 * the debug information right, as that is what made the sections: it is a test of self-consistency.
 */
#include <string.h>

#include "btf_func.h"

static const char * const difference_names[NR_DIFFERENCES] = {
	[SAME] = "right",
	[NO_FUNC] = "none, though there is debug information",
	[DIFFERENT_COUNT] = "other number of arguments",
	[DIFFERENT_TYPES] = "other types",
	[DIFFERENT_NAMES] = "other names",
};

/* Symbols that are not compared: assembly, labels, rarely run parts, and whatever else */
struct undescribed {
	int all;
	int clones;		/* of the compiler: the debug information lacks these */
};

/* What index__resolve() found, compared with the truth */
static enum difference check(struct object *obj, struct functions *functions,
			     struct types *types, int id, const struct symbol *sym,
			     struct undescribed *undescribed)
{
	struct function *func = functions__of_symbol(functions, sym);
	enum difference diff;
	struct proto proto;

	if (!func || !proto__read(&proto, func, sym->name)) {
		undescribed->all++;
		undescribed->clones += symbol__is_clone(sym->name) && !symbol__is_cold(sym->name);
		return id > 0 ? DIFFERENT_TYPES : SAME;
	}
	if (id > 0)
		diff = types__compare(types, &proto, id);
	else
		diff = types__has_set_only(types, obj, sym->name) ? SAME : NO_FUNC;
	proto__free(&proto);
	return diff;
}

/*
 * Nothing is wrong where nothing is known. Of vmlinux, a twentieth is not described: assembly
 * and rarely run parts. A module may be all assembly or Rust.
 */
static bool is_described(const struct object *obj, size_t undescribed)
{
	size_t described = obj->nr_symbols - undescribed;

	if (obj->relocatable || described * 2 >= obj->nr_symbols)
		return true;
	warn("%s: the debug information describes %zu of %zu functions: is some missing?",
	     obj->path, described, obj->nr_symbols);
	return false;
}

/*
 * Return how many functions have a wrong prototype, or none though they are described.
 * Print @list of these, and a @summary.
 */
int verify(struct object *obj, struct functions *functions, struct types *types,
	   const struct index *index, bool list, bool summary)
{
	struct undescribed undescribed = {};
	int counts[NR_DIFFERENCES] = {};
	enum difference diff;
	size_t i, wrong;

	for (i = 0; i < obj->nr_symbols; i++) {
		const struct symbol *sym = &obj->symbols[i];
		int id = index__resolve(index, types, sym);

		diff = check(obj, functions, types, id, sym, &undescribed);
		counts[diff]++;
		if (diff != SAME && list)
			warn("%s: %s+%#x %s: %s", obj->path,
			     object__section_name(obj, sym->at.sec), sym->at.offset, sym->name,
			     difference_names[diff]);
	}
	wrong = obj->nr_symbols - counts[SAME] + !is_described(obj, undescribed.all);
	if (!summary)
		return wrong;
	printf("%s: %zu symbols, %zu mismatches", obj->path, obj->nr_symbols,
	       obj->nr_symbols - counts[SAME]);
	for (i = SAME + 1; i < NR_DIFFERENCES; i++) {
		if (counts[i])
			printf("; %s: %d", difference_names[i], counts[i]);
	}
	printf("; not described: %d, clones among these: %d\n", undescribed.all,
	       undescribed.clones);
	return wrong;
}

/*
 * Is the section .BTF.inline of the linked object what its debug information makes, @data, or
 * missing if that is NULL? And does that say something? Of a kernel, four fifths of the
 * parameters are known. Whether they are read right is not seen here.
 * Return the number of faults.
 */
int verify_inline(struct object *obj, const struct sites *sites, const void *data, size_t size)
{
	bool poor = !obj->relocatable && sites->nr_known <= sites->nr_params / 4;
	size_t was_size = 0;
	const void *was = object__section_data(obj, ".BTF.inline", &was_size);
	bool same = data ? was && was_size == size && !memcmp(was, data, size) : !was;

	if (!same)
		warn("%s: .BTF.inline is not what the debug information says", obj->path);
	if (poor)
		warn("%s: of %zu parameters of inlined functions %zu are known: is some missing?",
		     obj->path, sites->nr_params, sites->nr_known);
	return !same + poor;
}
