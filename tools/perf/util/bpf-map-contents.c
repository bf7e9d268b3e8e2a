// SPDX-License-Identifier: GPL-2.0
/*
 * What the maps of a BPF object hold, as C:
 *
 *	Maps of prog, for task-clock:
 *	counts[(u32)3] = (u64)42
 *	total[(u32)0] = (struct sum){.hits = (u64)7,.bytes = (u64)512,}
 *	per_cpu[(u32)0] on CPU 1 = (u64)5
 *	variable = (int)6
 *	size_hist =
 *	  [4K, 8K)                 12 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
 *
 * Types are those of the map's BTF; bytes are printed where there is none. Elements of arrays
 * that are 0, and those of CPUs, are left out: most of them are. Entries of other maps are
 * sorted by their values, the greatest first, if these are integers, or else by their keys.
 * Arrays of integers whose name says so are printed as histograms.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "bpf-histogram.h"
#include "bpf-map-contents.h"
#include "bpf-utils.h"

struct entry {
	s64			number;		/* to sort by */
	const void		*key;
	/* one, or those of the CPUs, and the key behind */
	char			values[] __aligned(8);
};

struct printer {
	const struct bpf_map	*map;
	const char		*name;
	const struct btf	*btf;
	struct btf_dump		*types;		/* NULL: no BTF */
	FILE			*fp;
	int			nr_cpus;	/* 0: one value for all */
	size_t			stride;		/* from CPU to CPU, in bytes */
	int			err;		/* the first of the map */
	const struct btf_type	*key;		/* to sort by, if these are integers */
	struct entry		**entries;
	int			nr_entries;
};

static void print_text(void *fp, const char *fmt, va_list ap)
{
	vfprintf(fp, fmt, ap);
}

static void print_bytes(const unsigned char *data, size_t size, FILE *fp)
{
	for (size_t i = 0; i < size; i++)
		fprintf(fp, "%s%02x", i ? " " : "", data[i]);
}

static void print_data(const struct printer *printer, __u32 type, const void *data, size_t size)
{
	LIBBPF_OPTS(btf_dump_type_data_opts, opts, .compact = true, .emit_zeroes = true);
	int err = -ENOENT;

#ifdef HAVE_LIBBPF_STRINGS_SUPPORT
	opts.emit_strings = true;
#endif
	if (printer->types && type)
		err = btf_dump__dump_type_data(printer->types, type, data, size, &opts);
	if (err < 0)
		print_bytes(data, size, printer->fp);
}

static void print_key(const struct printer *printer, const void *key)
{
	fprintf(printer->fp, "%s[", printer->name);
	print_data(printer, bpf_map__btf_key_type_id(printer->map), key,
		   bpf_map__key_size(printer->map));
}

static void print_value(const struct printer *printer, const struct entry *entry, int cpu)
{
	print_key(printer, entry->key);
	fprintf(printer->fp, cpu < 0 ? "] = " : "] on CPU %d = ", cpu);
	print_data(printer, bpf_map__btf_value_type_id(printer->map),
		   entry->values + max(cpu, 0) * printer->stride,
		   bpf_map__value_size(printer->map));
	fprintf(printer->fp, "\n");
}

static bool is_zero(const unsigned char *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (data[i])
			return false;
	}
	return true;
}

static bool is_array(const struct bpf_map *map)
{
	const enum bpf_map_type type = bpf_map__type(map);

	return type == BPF_MAP_TYPE_ARRAY || type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

static const struct btf_type *resolve_type(const struct printer *printer, __u32 id)
{
	int resolved = printer->btf ? btf__resolve_type(printer->btf, id) : -ENOENT;

	return resolved < 0 ? NULL : btf__type_by_id(printer->btf, resolved);
}

/* Return: the type of integers, or NULL for another one. */
static const struct btf_type *type_of_number(const struct printer *printer, __u32 id)
{
	const struct btf_type *type = resolve_type(printer, id);

	return type && btf_is_int(type) && type->size <= sizeof(u64) ? type : NULL;
}

static s64 read_number(const void *data, const struct btf_type *type)
{
	const bool is_big_endian = __BYTE_ORDER == __BIG_ENDIAN;
	int unused = 64 - type->size * 8;
	u64 number = 0;

	memcpy((void *)&number + (is_big_endian ? unused / 8 : 0), data, type->size);
	if (btf_int_encoding(type) & BTF_INT_SIGNED)
		return (s64)(number << unused) >> unused;
	return number;
}

/* Of the integers at @values, one of each CPU */
static s64 sum_of_cpus(const struct printer *printer, const void *values,
		       const struct btf_type *type)
{
	s64 sum = 0;

	for (int cpu = 0; cpu < max(printer->nr_cpus, 1); cpu++)
		sum += read_number(values + cpu * printer->stride, type);
	return sum;
}

/* Return: true if @type is an array of integers, which is printed then. */
static bool print_histogram(const struct printer *printer, __u32 type_id, const void *key,
			    const void *values)
{
	const struct btf_type *type = resolve_type(printer, type_id);
	const struct btf_array *array;
	const struct btf_type *slot;
	u64 slots[BPF_HISTOGRAM_MAX_SLOTS];

	/* As many programs have it: struct { __u64 slots[N]; } */
	if (type && btf_is_struct(type) && btf_vlen(type) == 1)
		type = resolve_type(printer, btf_members(type)[0].type);
	if (!type || !btf_is_array(type))
		return false;
	array = btf_array(type);
	slot = type_of_number(printer, array->type);
	if (!slot || array->nelems > ARRAY_SIZE(slots))
		return false;
	for (__u32 i = 0; i < array->nelems; i++)
		slots[i] = sum_of_cpus(printer, values + i * slot->size, slot);
	if (key)
		print_key(printer, key);
	fprintf(printer->fp, key ? "] =\n" : "%s =\n", printer->name);
	bpf_histogram__fprintf(slots, array->nelems, printer->fp);
	return true;
}

/* The same for a map that is an array of integers */
static bool print_map_as_histogram(const struct printer *printer)
{
	const struct btf_type *slot = type_of_number(printer,
						     bpf_map__btf_value_type_id(printer->map));
	__u32 nr = bpf_map__max_entries(printer->map);
	u64 slots[BPF_HISTOGRAM_MAX_SLOTS] = {};

	if (!slot || !is_array(printer->map) || nr > ARRAY_SIZE(slots))
		return false;
	for (int i = 0; i < printer->nr_entries; i++)
		slots[*(const u32 *)printer->entries[i]->key] =
			sum_of_cpus(printer, printer->entries[i]->values, slot);
	fprintf(printer->fp, "%s =\n", printer->name);
	bpf_histogram__fprintf(slots, nr, printer->fp);
	return true;
}

static void print_entry(const struct printer *printer, const struct entry *entry)
{
	if (bpf_histogram__has_name(printer->name) &&
	    print_histogram(printer, bpf_map__btf_value_type_id(printer->map), entry->key,
			    entry->values))
		return;
	if (!printer->nr_cpus)
		print_value(printer, entry, -1);
	for (int cpu = 0; cpu < printer->nr_cpus; cpu++) {
		if (!is_zero((void *)entry->values + cpu * printer->stride,
			     bpf_map__value_size(printer->map)))
			print_value(printer, entry, cpu);
	}
}

static bool is_per_cpu(const struct bpf_map *map)
{
	const enum bpf_map_type type = bpf_map__type(map);

	return type == BPF_MAP_TYPE_PERCPU_ARRAY || type == BPF_MAP_TYPE_PERCPU_HASH ||
	       type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

/* Others have no values that can be read from here. */
static bool has_values(const struct bpf_map *map)
{
	const enum bpf_map_type type = bpf_map__type(map);

	return type == BPF_MAP_TYPE_ARRAY || type == BPF_MAP_TYPE_HASH ||
	       type == BPF_MAP_TYPE_LRU_HASH || type == BPF_MAP_TYPE_LPM_TRIE ||
	       is_per_cpu(map);
}

static struct entry *new_entry(const struct printer *printer)
{
	size_t size = max(printer->nr_cpus, 1) * printer->stride;
	struct entry *entry = zalloc(sizeof(*entry) + size + bpf_map__key_size(printer->map));

	if (entry)
		entry->key = entry->values + size;
	return entry;
}

static int add_entry(struct printer *printer, struct entry *entry)
{
	int nr = printer->nr_entries;

	if (!(nr & (nr - 1))) {
		struct entry **entries = reallocarray(printer->entries, nr ? 2 * nr : 1,
						      sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		printer->entries = entries;
	}
	printer->entries[printer->nr_entries++] = entry;
	return 0;
}

/* A program may remove the key in the meantime: then the walk begins anew. */
static int read_entry(struct printer *printer, const void *prev, void *key)
{
	int fd = bpf_map__fd(printer->map), err = 0;
	struct entry *entry;

	if (bpf_map_get_next_key(fd, prev, key))
		return -errno;
	entry = new_entry(printer);
	if (!entry)
		return -ENOMEM;
	memcpy((void *)entry->key, key, bpf_map__key_size(printer->map));
	if (bpf_map_lookup_elem(fd, key, entry->values))
		err = errno == ENOENT ? -EAGAIN : -errno;
	else if (is_array(printer->map) &&
		 is_zero((void *)entry->values, max(printer->nr_cpus, 1) * printer->stride))
		err = -EAGAIN;
	else
		err = add_entry(printer, entry);
	if (err)
		free(entry);
	return err == -EAGAIN ? 0 : err;
}

/* As many steps as there may be entries */
static void read_entries(struct printer *printer)
{
	void *key = malloc(bpf_map__key_size(printer->map)), *prev = NULL;
	int err = key ? 0 : -ENOMEM;

	for (__u32 i = 0; i < bpf_map__max_entries(printer->map) && !err; i++) {
		err = read_entry(printer, prev, key);
		prev = key;
	}
	printer->err = err == -ENOENT ? 0 : err;
	free(key);
}

static int compare_entries(const void *a, const void *b, void *printer_)
{
	const struct entry *x = *(const struct entry **)a, *y = *(const struct entry **)b;
	const struct printer *printer = printer_;

	if (x->number != y->number)
		return x->number > y->number ? -1 : 1;
	if (printer->key)
		return read_number(x->key, printer->key) < read_number(y->key, printer->key) ?
		       -1 : 1;
	return memcmp(x->key, y->key, bpf_map__key_size(printer->map));
}

/* Those that were read twice, as the walk began anew: @number is 0 so far, so by their keys */
static void drop_duplicates(struct printer *printer)
{
	size_t size = bpf_map__key_size(printer->map);
	int nr = 0;

	qsort_r(printer->entries, printer->nr_entries, sizeof(*printer->entries),
		compare_entries, printer);
	for (int i = 0; i < printer->nr_entries; i++) {
		struct entry *entry = printer->entries[i];

		if (nr && !memcmp(entry->key, printer->entries[nr - 1]->key, size))
			free(entry);
		else
			printer->entries[nr++] = entry;
	}
	printer->nr_entries = nr;
}

static void sort_entries(struct printer *printer)
{
	const struct bpf_map *map = printer->map;
	const struct btf_type *value = type_of_number(printer, bpf_map__btf_value_type_id(map));

	if (is_array(map))
		return;
	printer->key = NULL;
	drop_duplicates(printer);
	printer->key = type_of_number(printer, bpf_map__btf_key_type_id(map));
	for (int i = 0; i < printer->nr_entries && value; i++)
		printer->entries[i]->number = sum_of_cpus(printer, printer->entries[i]->values,
							  value);
	qsort_r(printer->entries, printer->nr_entries, sizeof(*printer->entries),
		compare_entries, printer);
}

static void print_entries(struct printer *printer)
{
	bool printed = false;

	read_entries(printer);
	sort_entries(printer);
	if (!printer->nr_entries && !printer->err)
		fprintf(printer->fp, "%s: %s\n", printer->name,
			is_array(printer->map) ? "all elements are 0" : "no entries");
	else if (bpf_histogram__has_name(printer->name))
		printed = print_map_as_histogram(printer);
	for (int i = 0; i < printer->nr_entries; i++) {
		if (!printed)
			print_entry(printer, printer->entries[i]);
		free(printer->entries[i]);
	}
	free(printer->entries);
	printer->entries = NULL;
	printer->nr_entries = 0;
}

static const struct btf_type *section_of_variables(const struct printer *printer)
{
	const struct btf_type *section;

	if (!printer->btf)
		return NULL;
	section = btf__type_by_id(printer->btf, bpf_map__btf_value_type_id(printer->map));
	return section && btf_is_datasec(section) ? section : NULL;
}

static void print_variable(struct printer *printer, const struct btf_var_secinfo *info,
			   const void *section)
{
	const struct btf_type *var = btf__type_by_id(printer->btf, info->type);

	printer->name = btf__name_by_offset(printer->btf, var->name_off);
	if (bpf_histogram__has_name(printer->name) &&
	    print_histogram(printer, var->type, /*key=*/NULL, section + info->offset))
		return;
	fprintf(printer->fp, "%s = ", printer->name);
	print_data(printer, var->type, section + info->offset, info->size);
	fprintf(printer->fp, "\n");
}

/* Global variables are a map of one entry, whose type is their section. */
static void print_variables(struct printer *printer)
{
	const struct btf_type *section = section_of_variables(printer);
	struct entry *entry = new_entry(printer);

	if (!entry || bpf_map_lookup_elem(bpf_map__fd(printer->map), entry->key, entry->values)) {
		printer->err = entry ? -errno : -ENOMEM;
	} else if (section) {
		for (int i = 0; i < (int)btf_vlen(section); i++)
			print_variable(printer, &btf_var_secinfos(section)[i], entry->values);
	} else {
		fprintf(printer->fp, "%s = ", printer->name);
		print_bytes((void *)entry->values, bpf_map__value_size(printer->map), printer->fp);
		fprintf(printer->fp, "\n");
	}
	free(entry);
}

static void print_map(struct printer *printer)
{
	const struct bpf_map *map = printer->map;

	printer->err = 0;
	printer->stride = roundup(bpf_map__value_size(map), 8);
	printer->nr_cpus = is_per_cpu(map) ? libbpf_num_possible_cpus() : 0;
	if (printer->nr_cpus < 0)
		printer->err = printer->nr_cpus;
	else if (bpf_map__is_internal(map))
		print_variables(printer);
	else
		print_entries(printer);
	if (printer->err)
		fprintf(printer->fp, "%s: cannot be read: %s\n", bpf_map__name(map),
			strerror(-printer->err));
}

/* .rodata cannot have changed. */
static bool is_constant(const struct bpf_map *map)
{
	return bpf_map__is_internal(map) && (bpf_map__map_flags(map) & BPF_F_RDONLY_PROG);
}

/**
 * fprintf_bpf_maps - print what the maps of an object hold
 * @obj: loaded
 * @event: that its program is for, for the heading
 * @fp: where to
 *
 * Maps of types without values, as ring buffers, are named only.
 */
void fprintf_bpf_maps(const struct bpf_object *obj, const char *event, FILE *fp)
{
	LIBBPF_OPTS(btf_dump_opts, opts);
	const struct btf *btf = bpf_object__btf(obj);
	struct printer printer = {
		.btf = btf,
		.types = btf ? btf_dump__new(btf, print_text, fp, &opts) : NULL,
		.fp = fp,
	};
	struct bpf_map *map;

	fprintf(fp, "Maps of %s, for %s:\n", bpf_object__name(obj), event);
	bpf_object__for_each_map(map, obj) {
		if (is_constant(map) || bpf_map__fd(map) < 0)
			continue;
		printer.map = map;
		printer.name = bpf_map__name(map);
		if (has_values(map))
			print_map(&printer);
		else
			fprintf(fp, "%s: its contents cannot be printed (map type %s)\n",
				printer.name,
				libbpf_bpf_map_type_str(bpf_map__type(map)) ?: "unknown");
	}
	btf_dump__free(printer.types);
}
