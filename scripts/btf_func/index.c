// SPDX-License-Identifier: GPL-2.0
/*
 * The sections .BTF.func and .BTF.func_index: see include/linux/btf_func_index.h
 */
#define _GNU_SOURCE	/* mempcpy() */
#include <errno.h>
#include <string.h>

#include "../../include/linux/btf_func_index.h"
#include "btf_func.h"

void index__add(struct index *index, const struct place *at, unsigned int id, bool optimized)
{
	/* A power of two is full. */
	if (!(index->nr & (index->nr - 1)))
		index->entries = xrealloc(index->entries, (index->nr ? index->nr * 2 : 1) *
					  sizeof(*index->entries));
	index->entries[index->nr++] = (struct index_entry){
		.at = *at,
		.id = id,
		.optimized = optimized,
	};
}

static void write_file(const char *elf, const char *suffix, const void *data, size_t size)
{
	char *path = xmalloc(strlen(elf) + strlen(suffix) + 1);
	FILE *file;

	sprintf(path, "%s%s", elf, suffix);
	file = fopen(path, "w");
	if (!file || fwrite(data, 1, size, file) != size || fclose(file))
		fatal("%s: %s", path, strerror(errno));
	free(path);
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
static bool sections_have_names(const struct index *index, struct object *obj)
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
			warn("%s: several sections %s: no .BTF.func_index", obj->path, name);
			return false;
		}
	}
	return true;
}

/* Write the entries, which are sorted by place, with the sections that they are in. */
static void *pack(const struct index *index, struct object *obj, size_t *size)
{
	struct btf_func_section *sections = NULL, *sec = NULL;
	struct btf_func_entry *entries = xcalloc(index->nr, sizeof(*entries));
	char *names = NULL;
	const char *name;
	struct btf_func_index head = {
		.magic = BTF_FUNC_INDEX_MAGIC,
		.version = BTF_FUNC_INDEX_VERSION,
		.nr_entries = index->nr,
	};
	unsigned int last = 0;
	char *data, *p;
	size_t i;

	for (i = 0; i < index->nr; i++) {
		const struct index_entry *e = &index->entries[i];

		if (e->at.sec != last) {
			last = e->at.sec;
			sections = xrealloc(sections, (head.nr_sections + 1) * sizeof(*sections));
			sec = &sections[head.nr_sections++];
			*sec = (struct btf_func_section){
				.name = head.str_len,
				.size = object__section_size(obj, last),
				.first = i,
			};
			name = object__section_name(obj, last);
			names = xrealloc(names, head.str_len + strlen(name) + 1);
			strcpy(names + head.str_len, name);
			head.str_len += strlen(name) + 1;
		}
		sec->nr++;
		entries[i] = (struct btf_func_entry){
			.offset = e->at.offset,
			.id = e->id | (e->optimized ? BTF_FUNC_OPTIMIZED : 0),
		};
	}
	*size = sizeof(head) + head.nr_sections * sizeof(*sections) +
		index->nr * sizeof(*entries) + head.str_len;
	data = xmalloc(*size);
	p = mempcpy(data, &head, sizeof(head));
	p = mempcpy(p, sections, head.nr_sections * sizeof(*sections));
	p = mempcpy(p, entries, index->nr * sizeof(*entries));
	if (names)
		memcpy(p, names, head.str_len);
	free(names);
	free(sections);
	free(entries);
	return data;
}

/*
 * Write both as files, for gen-btf.sh: ELF.BTF.func and ELF.BTF.func_index. An index
 * without entries is written, too: it says that .BTF is right for each function.
 */
void index__write(const struct index *index, struct object *obj, struct btf *btf)
{
	const void *raw;
	unsigned int btf_size;
	size_t size;
	void *data;

	if (!sections_have_names(index, obj))
		return;
	data = pack(index, obj, &size);
	raw = btf__raw_data(btf, &btf_size);
	if (!raw)
		fatal("%s: no memory for BTF", obj->path);
	/* Without types and strings it would be no valid BTF. */
	if (btf_size > sizeof(struct btf_header))
		write_file(obj->path, ".BTF.func", raw, btf_size);
	write_file(obj->path, ".BTF.func_index", data, size);
	free(data);
}

/* Read the section of the object into aligned memory, to be freed. */
static struct btf_func_index *read_section(struct object *obj)
{
	struct btf_func_index *head;
	size_t size = 0;
	void *data;

	data = object__section_data(obj, ".BTF.func_index", &size);
	if (!data)
		fatal("%s: no section .BTF.func_index", obj->path);
	head = xmalloc(size + sizeof(*head));
	memcpy(head, data, size);
	if (size < sizeof(*head) || head->magic != BTF_FUNC_INDEX_MAGIC ||
	    head->version != BTF_FUNC_INDEX_VERSION || head->flags ||
	    size != sizeof(*head) + head->nr_sections * sizeof(struct btf_func_section) +
		    head->nr_entries * sizeof(struct btf_func_entry) + head->str_len)
		fatal("%s: .BTF.func_index is not of this version, or truncated", obj->path);
	return head;
}

static bool is_func(struct btf *btf, unsigned int id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	return t && btf_is_func(t);
}

/* Read what the object has, and check it as the kernel does. */
void index__read(struct index *index, struct object *obj, struct btf *btf)
{
	struct btf_func_index *head = read_section(obj);
	const struct btf_func_section *sec;
	const struct btf_func_entry *e;
	const char *names;
	unsigned int i, j;

	*index = (struct index){};
	sec = (void *)(head + 1);
	e = (void *)(sec + head->nr_sections);
	names = (void *)(e + head->nr_entries);
	if (head->str_len && names[head->str_len - 1])
		fatal("%s: .BTF.func_index: names do not end", obj->path);
	for (i = 0; i < head->nr_sections; i++) {
		struct place at = {};

		if (sec[i].name >= head->str_len)
			fatal("%s: .BTF.func_index: section %u: wrong name", obj->path, i);
		at.sec = section_of_name(obj, names + sec[i].name);
		if (!at.sec)
			fatal("%s: .BTF.func_index: no section %s", obj->path,
			      names + sec[i].name);
		if (sec[i].size != object__section_size(obj, at.sec))
			fatal("%s: .BTF.func_index: section %u: wrong size", obj->path, i);
		if (sec[i].first != index->nr || sec[i].nr > head->nr_entries - index->nr)
			fatal("%s: .BTF.func_index: section %u: wrong entries", obj->path, i);
		for (j = 0; j < sec[i].nr; j++, e++) {
			if (e->offset < at.offset || e->offset >= sec[i].size)
				fatal("%s: .BTF.func_index: entry %zu: wrong offset", obj->path,
				      index->nr);
			if (e->id & BTF_FUNC_FILE ?
			    !btf__name_by_offset(btf, e->id & ~BTF_FUNC_FILE) :
			    e->id && !is_func(btf, e->id & ~BTF_FUNC_OPTIMIZED))
				fatal("%s: .BTF.func_index: entry %zu: wrong id", obj->path,
				      index->nr);
			at.offset = e->offset;
			index__add(index, &at, e->id & ~BTF_FUNC_OPTIMIZED,
				   e->id & BTF_FUNC_OPTIMIZED);
		}
	}
	free(head);
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
 *  1. the entry of its address and its name
 *  2. none, if there is an entry of its address that says so
 *  3. what .BTF has for its name
 *  4. an entry of its address: the symbol is another name of that function
 *
 * Return its id, or 0: there is none.
 */
int index__resolve(const struct index *index, struct types *types, const struct symbol *sym)
{
	const struct index_entry *e = first_at(index, &sym->at), *end = index->entries + index->nr;
	int exact = types__find_base_func(types, sym->name), alias = 0;
	bool unknown = false;

	for (; e < end && !place__cmp(&e->at, &sym->at); e++) {
		if (e->id & BTF_FUNC_FILE)
			continue;
		if (!e->id)
			unknown = true;
		else if (!strcmp(types__name(types, btf__type_by_id(types->btf, e->id)), sym->name))
			return e->id;
		else if (!alias)
			alias = e->id;
	}
	if (exact)
		return unknown ? 0 : exact;
	return alias;
}
