/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What can be said about KSYMBOL records: do they contradict each other, does
 * /proc/kallsyms agree, is there code from the start to the end.
 */
#ifndef SELFTESTS_PERF_EVENTS_KSYM_CHECK_H
#define SELFTESTS_PERF_EVENTS_KSYM_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_raw.h"
#include "ksym_ring.h"

#define FILLING		0xcc	/* int3 */
#define CHUNK		64	/* unit of allocation of BPF text */
#define MAX_LIVE	512

/* Return: 1 if /proc/kallsyms has @name at @addr, 0 if not, or -errno. */
static inline int kallsyms_has(const char *name, __u64 addr)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[KSYM_NAME_LEN + 128], sym[KSYM_NAME_LEN];
	int found = 0;
	__u64 val;

	if (!f)
		return -errno;
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%llx %*c %511s", &val, sym) == 2 &&
			val == addr && !strcmp(sym, name);
	fclose(f);
	return found;
}

/*
 * What is registered at one time: the records of the rings are played in their
 * order. What was there before the rings were opened is not known.
 */
struct live_text {
	const struct ksym_rec *recs[MAX_LIVE];
	int nr;
	char bad[2 * KSYM_NAME_LEN + 256];
};

static inline bool ranges_overlap(const struct ksym_body *a,
				  const struct ksym_body *b)
{
	return a->addr < b->addr + b->len && b->addr < a->addr + a->len;
}

static inline bool live_text__complain(struct live_text *live, const char *what,
				       const struct ksym_rec *a,
				       const struct ksym_rec *b)
{
	snprintf(live->bad, sizeof(live->bad),
		 "%s: %s at 0x%llx+%u, %s at 0x%llx+%u", what,
		 a->name, a->k.addr, a->k.len, b->name, b->k.addr, b->k.len);
	return false;
}

static inline bool live_text__register(struct live_text *live,
				       const struct ksym_rec *rec)
{
	int i;

	for (i = 0; i < live->nr; i++)
		if (ranges_overlap(&live->recs[i]->k, &rec->k))
			return live_text__complain(live, "overlap",
						   live->recs[i], rec);
	if (live->nr == MAX_LIVE)
		return live_text__complain(live, "more text than MAX_LIVE",
					   rec, rec);
	live->recs[live->nr++] = rec;
	return true;
}

static inline bool live_text__unregister(struct live_text *live,
					 const struct ksym_rec *rec)
{
	int i;

	for (i = 0; i < live->nr; i++) {
		if (live->recs[i]->k.addr != rec->k.addr)
			continue;
		if (live->recs[i]->k.len != rec->k.len ||
		    strcmp(live->recs[i]->name, rec->name))
			return live_text__complain(live,
						   "UNREGISTER is not REGISTER",
						   live->recs[i], rec);
		live->recs[i] = live->recs[--live->nr];
		return true;
	}
	return true;
}

/* Return: what is wrong with the records of @rings, or NULL. */
static inline const char *records_wrong(const struct ksym_rings *rings)
{
	static struct live_text live;
	const struct ksym_rec *rec;
	size_t i;

	live.nr = 0;
	for (i = 0; i < rings->nr_recs; i++) {
		rec = &rings->recs[i];
		if (rec->type != PERF_RECORD_KSYMBOL)
			continue;
		if (ksym_rec__is(rec, false) ?
		    !live_text__register(&live, rec) :
		    !live_text__unregister(&live, rec))
			return live.bad;
	}
	return NULL;
}

/*
 * x86-64 functions that are JITed end with "ret", with "ret; int3" against
 * straight-line speculation, or with "jmp return_thunk". Return: what is wrong
 * with the end of @len bytes at @code, of which @size are readable, or NULL.
 */
static inline const char *end_wrong(const __u8 *code, size_t len, size_t size)
{
	bool ret = code[len - 1] == 0xc3;
	bool ret_int3 = len > 1 && code[len - 2] == 0xc3 &&
			code[len - 1] == 0xcc;
	bool jmp = len > 4 && code[len - 5] == 0xe9;
	size_t i;

	if (!ret && !ret_int3 && !jmp)
		return "the last byte is not the end of a return";
	for (i = len; i < size; i++)
		if (code[i] != FILLING)
			return "something else than filling follows the end";
	return NULL;
}

static inline const char *text_end_wrong(const struct ksym_rec *rec)
{
	__u64 end = rec->k.addr + rec->k.len;
	size_t size = (end + CHUNK - 1) / CHUNK * CHUNK - rec->k.addr;
	const char *bad = "kernel text is not readable";
	__u8 *code;

	if (!rec->k.len)
		return "it is empty";
	code = malloc(size);
	if (code && !bpf_raw_read_kernel(rec->k.addr, code, size))
		bad = end_wrong(code, rec->k.len, size);
	free(code);
	return bad;
}

#endif
