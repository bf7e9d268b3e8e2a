// SPDX-License-Identifier: GPL-2.0
/*
 * Set global variables of a BPF object file from the command line, before it is loaded:
 *
 *	const volatile int min_size;	-e FILE.bpf.o/min_size=4096/
 *
 * A variable is a number, an enum, a bool or an array of char.
 */
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "bpf-variables.h"
#include "debug.h"

struct variable {
	const struct btf	*btf;
	const struct btf_type	*type;		/* without const, typedef, ... */
	bool			is_folded;	/* the compiler has used its value */
	void			*data;
	__u32			size;
};

static bool is_settable(const struct bpf_map *map)
{
	const char *name = bpf_map__name(map);

	return bpf_map__is_internal(map) &&
	       (strstr(name, ".rodata") || strstr(name, ".data") || strstr(name, ".bss"));
}

static bool has_modifier(const struct btf *btf, __u32 id, __u16 kind)
{
	const struct btf_type *type = btf__type_by_id(btf, id);

	for (; btf_is_mod(type) || btf_is_typedef(type); type = btf__type_by_id(btf, type->type)) {
		if (btf_kind(type) == kind)
			return true;
	}
	return btf_is_array(type) && has_modifier(btf, btf_array(type)->type, kind);
}

static bool find_in_map(struct variable *var, struct bpf_map *map, const char *name)
{
	const struct btf_type *section = btf__type_by_id(var->btf,
							 bpf_map__btf_value_type_id(map));
	const struct btf_var_secinfo *info;
	size_t size;
	void *data = (void *)bpf_map__initial_value(map, &size);

	if (!data || !section || !btf_is_datasec(section))
		return false;
	info = btf_var_secinfos(section);
	for (__u32 i = 0; i < btf_vlen(section); i++, info++) {
		const struct btf_type *type = btf__type_by_id(var->btf, info->type);

		if (strcmp(btf__name_by_offset(var->btf, type->name_off), name) ||
		    info->offset + info->size > size)
			continue;
		var->is_folded = has_modifier(var->btf, type->type, BTF_KIND_CONST) &&
				 !has_modifier(var->btf, type->type, BTF_KIND_VOLATILE);
		var->type = btf__type_by_id(var->btf, btf__resolve_type(var->btf, type->type));
		var->data = data + info->offset;
		var->size = info->size;
		return true;
	}
	return false;
}

static bool find_variable(struct variable *var, const struct bpf_object *obj, const char *name)
{
	struct bpf_map *map;

	var->btf = bpf_object__btf(obj);
	bpf_object__for_each_map(map, obj) {
		if (var->btf && is_settable(map) && find_in_map(var, map, name))
			return true;
	}
	return false;
}

static int set_number(const struct variable *var, __u64 number, bool is_signed)
{
	int bits = var->size * 8;

	__s64 extended = (__s64)(number << (64 - bits)) >> (64 - bits);

	if (is_signed && (__s64)number != extended)
		return -ERANGE;
	if (!is_signed && bits < 64 && number >> bits)
		return -ERANGE;
	/* The object has the byte order of this machine, or libbpf does not load it */
	if (__BYTE_ORDER == __BIG_ENDIAN)
		memcpy(var->data, (char *)&number + sizeof(number) - var->size, var->size);
	else
		memcpy(var->data, &number, var->size);
	return 0;
}

static int parse_number(const struct variable *var, const char *value, bool is_signed)
{
	__u64 number;
	char *end;

	errno = 0;
	number = is_signed ? (__u64)strtoll(value, &end, 0) : strtoull(value, &end, 0);
	if (end == value || *end || (!is_signed && strchr(value, '-')))
		return -EINVAL;
	if (errno || var->size > sizeof(number))
		return -ERANGE;
	return set_number(var, number, is_signed);
}

static int set_bool(const struct variable *var, const char *value)
{
	bool yes = !strcmp(value, "1") || !strcmp(value, "true");

	if (!yes && strcmp(value, "0") && strcmp(value, "false"))
		return -EINVAL;
	return set_number(var, yes, /*is_signed=*/false);
}

static int set_int(const struct variable *var, const char *value)
{
	__u8 encoding = btf_int_encoding(var->type);

	if (encoding & BTF_INT_BOOL)
		return set_bool(var, value);
	return parse_number(var, value, encoding & BTF_INT_SIGNED);
}

static int set_enum(const struct variable *var, const char *value)
{
	bool is_signed = btf_kflag(var->type);

	for (__u32 i = 0; i < btf_vlen(var->type); i++) {
		bool is_64 = btf_is_enum64(var->type);
		__u32 name = is_64 ? btf_enum64(var->type)[i].name_off
				   : btf_enum(var->type)[i].name_off;
		__u64 number = is_64 ? btf_enum64_value(&btf_enum64(var->type)[i])
				     : (__u64)(__s64)btf_enum(var->type)[i].val;

		if (strcmp(btf__name_by_offset(var->btf, name), value))
			continue;
		return set_number(var, is_signed || is_64 ? number : (__u32)number, is_signed);
	}
	return parse_number(var, value, is_signed);
}

static bool is_text(const struct variable *var)
{
	const struct btf_type *element;

	if (!btf_is_array(var->type))
		return false;
	element = btf__type_by_id(var->btf, btf__resolve_type(var->btf,
							      btf_array(var->type)->type));
	return btf_is_int(element) && element->size == 1 &&
	       !strcmp(btf__name_by_offset(var->btf, element->name_off), "char");
}

static int set_text(const struct variable *var, const char *value)
{
	if (strlen(value) >= var->size)
		return -ERANGE;
	memset(var->data, 0, var->size);
	memcpy(var->data, value, strlen(value));
	return 0;
}

static int set_value(const struct variable *var, const char *value)
{
	if (var->is_folded)
		return -EROFS;
	if (btf_is_int(var->type))
		return set_int(var, value);
	if (btf_is_any_enum(var->type))
		return set_enum(var, value);
	if (is_text(var))
		return set_text(var, value);
	return -EOPNOTSUPP;
}

static const char *why_not(int err)
{
	switch (err) {
	case -EROFS:
		return "the compiler has used its value already; declare it 'const volatile'";
	case -ERANGE:
		return "does not fit into the variable";
	case -EOPNOTSUPP:
		return "only numbers, enums, bool and arrays of char can be set";
	default:
		return "is not a value of its type";
	}
}

/* @assignment: "VARIABLE=VALUE" */
static int assign(struct bpf_object *obj, const char *path, char *assignment)
{
	char *value = strchr(assignment, '=');
	struct variable var;
	int err;

	if (!value) {
		pr_err("%s: '%s' is not VARIABLE=VALUE\n", path, assignment);
		return -EINVAL;
	}
	*value++ = '\0';
	if (!find_variable(&var, obj, assignment)) {
		pr_err("%s: there is no global variable '%s'%s\n", path, assignment,
		       var.btf ? "; it may be optimized out, 'const volatile' keeps it" :
		       ", as the file has no BTF; build it with -g");
		return -ENOENT;
	}
	err = set_value(&var, value);
	if (err)
		pr_err("%s: %s=%s: %s\n", path, assignment, value, why_not(err));
	return err;
}

/**
 * bpf_variables__set - Set global variables of a BPF object
 * @obj: not loaded yet
 * @path: of its file, for messages
 * @values: "VARIABLE=VALUE[,VARIABLE=VALUE]..."
 *
 * Return: 0 or -errno, with a message printed.
 */
int bpf_variables__set(struct bpf_object *obj, const char *path, const char *values)
{
	char *copy = strdup(values), *next = copy, *assignment;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (assignment = strsep(&next, ",")))
		err = assign(obj, path, assignment);
	free(copy);
	return err;
}
