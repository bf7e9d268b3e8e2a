/* SPDX-License-Identifier: GPL-2.0 */
/* A set of kernel text, and in what do two sets differ? */
#ifndef SELFTESTS_PERF_EVENTS_KSYM_SET_H
#define SELFTESTS_PERF_EVENTS_KSYM_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "ksym_ring.h"

#define KSYM_SAY_LEN	2048

struct ksym_text {
	__u64 addr;
	__u32 len;		/* 0: not known */
	__u16 type;		/* PERF_RECORD_KSYMBOL_TYPE_* */
	bool early;		/* replayed, and its REGISTER has to follow */
	char *name;
};

struct ksym_set {
	struct ksym_text *texts;
	size_t nr, max;
};

/* Return: 0 or -errno. */
int ksym_set__add(struct ksym_set *set, __u64 addr, __u32 len, __u16 type, const char *name);
void ksym_set__del(struct ksym_set *set, size_t i);
void ksym_set__clear(struct ksym_set *set);

/* By address, then by name. */
void ksym_set__sort(struct ksym_set *set);

bool ksym_text__is(const struct ksym_text *t, const struct ksym_rec *rec);
bool ksym_set__has(const struct ksym_set *set, const struct ksym_rec *rec);

/*
 * Add what /proc/kallsyms lists and neither vmlinux nor a module owns. It has
 * no lengths. Return: 0 or -errno.
 */
int ksym_set__read_kallsyms(struct ksym_set *set);

/* Add @from, sorted, without texts of @without_type. Return: 0 or -errno. */
int ksym_set__copy(struct ksym_set *to, const struct ksym_set *from, int without_type);

/*
 * Compare two sorted sets. Return: in how many texts they differ; @say, of
 * KSYM_SAY_LEN bytes, names the first few.
 */
int ksym_set__diff(const struct ksym_set *a, const char *a_name,
		   const struct ksym_set *b, const char *b_name, char *say);

#endif
