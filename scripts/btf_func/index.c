// SPDX-License-Identifier: GPL-2.0
/*
 * Which function is at which address: the LOCSECs of .BTF.func and .BTF.inline
 */
#include <string.h>

#include "btf_func.h"

void index__add(struct index *index, const struct place *at, unsigned int func,
		unsigned int loc_proto)
{
	/* A power of two is full. */
	if (!(index->nr & (index->nr - 1)))
		index->entries = xrealloc(index->entries, (index->nr ? index->nr * 2 : 1) *
					  sizeof(*index->entries));
	index->entries[index->nr++] = (struct index_entry){
		.at = *at,
		.func = func,
		.loc_proto = loc_proto,
	};
}

static int entry__cmp(const void *a, const void *b)
{
	const struct index_entry *ea = a, *eb = b;

	if (ea->at.sec != eb->at.sec)
		return ea->at.sec < eb->at.sec ? -1 : 1;
	if (ea->func != eb->func)
		return ea->func < eb->func ? -1 : 1;
	return place__cmp(&ea->at, &eb->at) ?:
	       (ea->loc_proto < eb->loc_proto ? -1 : ea->loc_proto > eb->loc_proto);
}

/* Sort the entries as a LOCSEC has them. */
void index__sort(struct index *index)
{
	qsort(index->entries, index->nr, sizeof(*index->entries), entry__cmp);
}

/* Return the number of the first section of a name, or 0. */
static unsigned int section_of_name(struct object *obj, const char *name)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(obj->elf, scn))) {
		if (!strcmp(object__section_name(obj, elf_ndxscn(scn)), name))
			return elf_ndxscn(scn);
	}
	return 0;
}

/* The kernel finds a section by its name, so that has to be unique. */
static bool sections_have_names(const struct index *index, struct object *obj,
				const char *kind)
{
	unsigned int sec, last = 0;
	const char *name;
	size_t i;

	for (i = 0; i < index->nr; i++) {
		sec = index->entries[i].at.sec;
		if (sec == last)
			continue;
		last = sec;
		name = object__section_name(obj, sec);
		if (section_of_name(obj, name) != sec) {
			warn("%s: several sections %s: no .BTF.%s", obj->path, name, kind);
			return false;
		}
	}
	return true;
}

/* The LOCSEC for functions in ".text" is "func.text", that for inlined ones "inline.text". */
static int add_section(struct object *obj, struct btf *btf, unsigned int sec, const char *kind)
{
	const char *section = object__section_name(obj, sec);
	char *name = xmalloc(strlen(kind) + strlen(section) + 1);
	int id;

	sprintf(name, "%s%s", kind, section);
	id = btf__add_locsec(btf, name);
	free(name);
	return id;
}

/*
 * Add the entries to @btf. They are sorted by section. Return false if there are none, or the
 * kernel could not find their sections.
 */
bool index__add_sections(const struct index *index, struct object *obj, struct btf *btf,
			 const char *kind)
{
	const struct index_entry *e;
	unsigned int sec = 0;
	int err = 0;

	if (!index->nr || !sections_have_names(index, obj, kind))
		return false;
	for (e = index->entries; e < index->entries + index->nr && err >= 0; e++) {
		if (e->at.sec != sec) {
			sec = e->at.sec;
			err = add_section(obj, btf, sec, kind);
		}
		if (err >= 0)
			err = btf__add_locsec_loc(btf, e->func, e->loc_proto, e->at.offset);
	}
	if (err < 0)
		fatal("%s: no memory for BTF", obj->path);
	return true;
}

static bool is_func(struct btf *btf, unsigned int id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	return t && btf_is_func(t);
}

static bool is_loc_proto(struct btf *btf, unsigned int id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	return !id || (t && btf_is_loc_proto(t));
}

/* Read the entries of a section, and check them as the kernel does. */
static void read_section(struct index *index, struct object *obj, struct btf *btf,
			 const struct btf_type *t)
{
	const char *name = btf__name_by_offset(btf, t->name_off) + strlen(KIND_FUNC);
	const struct btf_loc *loc = btf_locsec_locs(t), *end = loc + btf_vlen(t);
	struct place at = { .sec = section_of_name(obj, name) };
	unsigned int func = 0;

	if (!at.sec)
		fatal("%s: .BTF.func: no section %s", obj->path, name);
	for (; loc < end; loc++) {
		if (loc->offset < at.offset || loc->offset >= object__section_size(obj, at.sec))
			fatal("%s: .BTF.func: entry %zu: wrong offset", obj->path, index->nr);
		if (loc->func <= func || !is_func(btf, loc->func) ||
		    !is_loc_proto(btf, loc->loc_proto))
			fatal("%s: .BTF.func: entry %zu: wrong id", obj->path, index->nr);
		at.offset = loc->offset;
		func = loc->func;
		index__add(index, &at, func, loc->loc_proto);
	}
}

/* Read what the object has. */
void index__read(struct index *index, struct object *obj, struct btf *btf)
{
	unsigned int id = btf__type_cnt(btf__base_btf(btf));
	const struct btf_type *t;

	*index = (struct index){};
	for (; id < btf__type_cnt(btf); id++) {
		t = btf__type_by_id(btf, id);
		if (btf_is_locsec(t) && !strncmp(btf__name_by_offset(btf, t->name_off), KIND_FUNC,
						 strlen(KIND_FUNC)))
			read_section(index, obj, btf, t);
	}
}

static const struct index_entry *first_at(const struct index *index, const struct place *at)
{
	size_t low = 0, high = index->nr, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (place__cmp(&index->entries[mid].at, at) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return &index->entries[low];
}

/*
 * Find the FUNC of a symbol as the kernel does, in this order:
 *
 *  1. the entry of its address and its name; that may say that nothing is known
 *  2. what .BTF has for its name
 *  3. an entry of its address: the symbol is another name of that function
 *
 * Return its id, or 0: there is none.
 */
int index__resolve(const struct index *index, struct types *types, const struct symbol *sym)
{
	const struct index_entry *e = first_at(index, &sym->at), *end = index->entries + index->nr;
	int exact = types__find_base_func(types, sym->name), alias = 0;
	bool unknown;

	for (; e < end && !place__cmp(&e->at, &sym->at); e++) {
		unknown = types__is_unknown(types, e->func);
		if (!strcmp(types__name(types, btf__type_by_id(types->btf, e->func)), sym->name))
			return unknown ? 0 : e->func;
		if (!alias && !unknown)
			alias = e->func;
	}
	return exact ?: alias;
}
