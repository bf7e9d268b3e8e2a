// SPDX-License-Identifier: GPL-2.0
/* Sets are arrays, which ksym_set__diff() and /proc/kallsyms leave sorted. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ksym_set.h"

int ksym_set__add(struct ksym_set *set, __u64 addr, __u32 len, __u16 type, const char *name)
{
	struct ksym_text *texts = set->texts;
	char *copy = strdup(name);

	if (copy && set->nr == set->max) {
		set->max = set->max ? 2 * set->max : 256;
		texts = realloc(texts, set->max * sizeof(*texts));
	}
	if (!copy || !texts) {
		free(copy);
		return -ENOMEM;
	}
	set->texts = texts;
	set->texts[set->nr++] = (struct ksym_text){
		.addr = addr, .len = len, .type = type, .name = copy,
	};
	return 0;
}

void ksym_set__del(struct ksym_set *set, size_t i)
{
	free(set->texts[i].name);
	set->texts[i] = set->texts[--set->nr];
}

void ksym_set__clear(struct ksym_set *set)
{
	while (set->nr)
		free(set->texts[--set->nr].name);
	free(set->texts);
	memset(set, 0, sizeof(*set));
}

static int ksym_text__cmp(const void *a, const void *b)
{
	const struct ksym_text *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return strcmp(x->name, y->name);
}

void ksym_set__sort(struct ksym_set *set)
{
	if (set->nr)
		qsort(set->texts, set->nr, sizeof(*set->texts), ksym_text__cmp);
}

/*
 * Is @mod no real module? The names that ftrace keeps of a module's freed init
 * text have the name of that module, and are not dynamic text.
 */
static bool kallsyms_is_dynamic(const char *mod)
{
	return !strcmp(mod, "bpf") || !strncmp(mod, "__builtin__", 11);
}

int ksym_set__read_kallsyms(struct ksym_set *set)
{
	char line[2 * KSYM_NAME_LEN], name[KSYM_NAME_LEN], mod[64];
	FILE *f = fopen("/proc/kallsyms", "re");
	int err = 0;
	__u64 addr;

	if (!f)
		return -errno;
	while (!err && fgets(line, sizeof(line), f)) {
		if (!strchr(line, '[') ||
		    sscanf(line, "%llx %*c %511s [%63[^]]", &addr, name, mod) != 3 ||
		    !kallsyms_is_dynamic(mod))
			continue;
		err = ksym_set__add(set, addr, 0, 0, name);
	}
	fclose(f);
	ksym_set__sort(set);
	return err;
}

bool ksym_text__is(const struct ksym_text *t, const struct ksym_rec *rec)
{
	return t->addr == rec->k.addr && !strcmp(t->name, rec->name) &&
	       (!t->len || !rec->k.len || t->len == rec->k.len);
}

bool ksym_set__has(const struct ksym_set *set, const struct ksym_rec *rec)
{
	size_t i;

	for (i = 0; i < set->nr; i++)
		if (ksym_text__is(&set->texts[i], rec))
			return true;
	return false;
}

static void ksym_say(char *say, const char *what, const char *where,
		     const struct ksym_text *t, int nr)
{
	size_t len = strlen(say);

	if (nr < 4)
		snprintf(say + len, KSYM_SAY_LEN - len, "\n#   only in %s, not in %s: %s 0x%llx+%u",
			 what, where, t->name, t->addr, t->len);
}

int ksym_set__diff(const struct ksym_set *a, const char *a_name,
		   const struct ksym_set *b, const char *b_name, char *say)
{
	int cmp, diff = 0, only_a = 0, only_b = 0;
	size_t i = 0, j = 0;

	say[0] = '\0';
	while (i < a->nr || j < b->nr) {
		cmp = i == a->nr ? 1 : j == b->nr ? -1 :
		      ksym_text__cmp(&a->texts[i], &b->texts[j]);
		if (cmp < 0)
			ksym_say(say, a_name, b_name, &a->texts[i], only_a++);
		else if (cmp > 0)
			ksym_say(say, b_name, a_name, &b->texts[j], only_b++);
		else if (a->texts[i].len && b->texts[j].len &&
			 a->texts[i].len != b->texts[j].len)
			ksym_say(say, "this length", b_name, &a->texts[i], diff++);
		i += cmp <= 0;
		j += cmp >= 0;
	}
	return only_a + only_b + diff;
}

int ksym_set__copy(struct ksym_set *to, const struct ksym_set *from, int without_type)
{
	int err = 0;
	size_t i;

	for (i = 0; i < from->nr && !err; i++)
		if (from->texts[i].type != without_type)
			err = ksym_set__add(to, from->texts[i].addr,
					    from->texts[i].len,
					    from->texts[i].type,
					    from->texts[i].name);
	ksym_set__sort(to);
	return err;
}
