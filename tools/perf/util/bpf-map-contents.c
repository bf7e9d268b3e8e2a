// SPDX-License-Identifier: GPL-2.0
/*
 * What the maps of a BPF object hold, as C:
 *
 *	Maps of prog, for task-clock:
 *	counts[(u32)3] = (u64)42
 *	total[(u32)0] = (struct sum){.hits = (u64)7,.bytes = (u64)512,}
 *	per_cpu[(u32)0] on CPU 1 = (u64)5
 *	variable = (int)6
 *
 * Types are those of the map's BTF; bytes are printed where there is none. Elements of arrays
 * that are 0, and those of CPUs, are left out: most of them are.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/kernel.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "bpf-map-contents.h"

struct printer {
	const struct bpf_map	*map;
	const char		*name;
	const struct btf	*btf;
	struct btf_dump		*types;		/* NULL: no BTF */
	FILE			*fp;
	int			nr_cpus;	/* 0: one value for all */
	int			nr_printed;
	int			err;		/* the first of the map */
	void			*key;
	void			*next_key;
	void			*value;
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
	LIBBPF_OPTS(btf_dump_type_data_opts, opts, .compact = true, .emit_zeroes = true,
		    .emit_strings = true);
	int err = -ENOENT;

	if (printer->types && type)
		err = btf_dump__dump_type_data(printer->types, type, data, size, &opts);
	if (err < 0)
		print_bytes(data, size, printer->fp);
}

static void print_value(struct printer *printer, const void *value, int cpu)
{
	fprintf(printer->fp, "%s[", printer->name);
	print_data(printer, bpf_map__btf_key_type_id(printer->map), printer->key,
		   bpf_map__key_size(printer->map));
	fprintf(printer->fp, cpu < 0 ? "] = " : "] on CPU %d = ", cpu);
	print_data(printer, bpf_map__btf_value_type_id(printer->map), value,
		   bpf_map__value_size(printer->map));
	fprintf(printer->fp, "\n");
	printer->nr_printed++;
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

/* A program may remove the key in the meantime. */
static bool read_value(struct printer *printer, const void *key)
{
	if (!bpf_map_lookup_elem(bpf_map__fd(printer->map), key, printer->value))
		return true;
	if (errno != ENOENT && !printer->err)
		printer->err = errno;
	return false;
}

static void print_entry(struct printer *printer)
{
	size_t size = bpf_map__value_size(printer->map);

	if (!read_value(printer, printer->key))
		return;
	if (!printer->nr_cpus) {
		if (!is_array(printer->map) || !is_zero(printer->value, size))
			print_value(printer, printer->value, -1);
		return;
	}
	for (int cpu = 0; cpu < printer->nr_cpus; cpu++) {
		const void *value = printer->value + cpu * roundup(size, 8);

		if (!is_zero(value, size))
			print_value(printer, value, cpu);
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

/* A key that a program removes in the meantime begins the walk anew: as many steps as entries */
static void print_entries(struct printer *printer)
{
	int fd = bpf_map__fd(printer->map);
	const void *key = NULL;

	for (__u32 i = 0; i < bpf_map__max_entries(printer->map); i++) {
		if (bpf_map_get_next_key(fd, key, printer->next_key)) {
			if (errno != ENOENT && !printer->err)
				printer->err = errno;
			break;
		}
		memcpy(printer->key, printer->next_key, bpf_map__key_size(printer->map));
		key = printer->key;
		print_entry(printer);
	}
	if (!printer->nr_printed && !printer->err)
		fprintf(printer->fp, "%s: %s\n", printer->name,
			is_array(printer->map) ? "all elements are 0" : "no entries");
}

static const struct btf_type *section_of_variables(const struct printer *printer)
{
	const struct btf_type *section;

	if (!printer->btf)
		return NULL;
	section = btf__type_by_id(printer->btf, bpf_map__btf_value_type_id(printer->map));
	return section && btf_is_datasec(section) ? section : NULL;
}

/* Global variables are a map of one entry, whose type is their section. */
static void print_variables(struct printer *printer)
{
	const struct btf_type *section = section_of_variables(printer), *var;
	const struct btf_var_secinfo *info;
	__u32 zero = 0;
	int nr;

	if (!read_value(printer, &zero))
		return;
	if (!section) {
		fprintf(printer->fp, "%s = ", printer->name);
		print_bytes(printer->value, bpf_map__value_size(printer->map), printer->fp);
		fprintf(printer->fp, "\n");
		return;
	}
	info = btf_var_secinfos(section);
	nr = btf_vlen(section);
	for (int i = 0; i < nr; i++, info++) {
		var = btf__type_by_id(printer->btf, info->type);
		fprintf(printer->fp, "%s = ", btf__name_by_offset(printer->btf, var->name_off));
		print_data(printer, var->type, printer->value + info->offset, info->size);
		fprintf(printer->fp, "\n");
	}
}

static void print_map(struct printer *printer)
{
	const struct bpf_map *map = printer->map;
	size_t size = roundup(bpf_map__value_size(map), 8);

	printer->err = 0;
	printer->nr_printed = 0;
	printer->nr_cpus = is_per_cpu(map) ? libbpf_num_possible_cpus() : 0;
	printer->key = malloc(bpf_map__key_size(map));
	printer->next_key = malloc(bpf_map__key_size(map));
	printer->value = calloc(max(printer->nr_cpus, 1), size);
	if (!printer->key || !printer->next_key || !printer->value)
		printer->err = ENOMEM;
	else if (printer->nr_cpus < 0)
		printer->err = -printer->nr_cpus;
	else if (bpf_map__is_internal(map))
		print_variables(printer);
	else
		print_entries(printer);
	if (printer->err)
		fprintf(printer->fp, "%s: cannot be read: %s\n", printer->name,
			strerror(printer->err));
	free(printer->key);
	free(printer->next_key);
	free(printer->value);
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
