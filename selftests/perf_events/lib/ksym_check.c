// SPDX-License-Identifier: GPL-2.0
/*
 * The records are replayed in their order to know which text is registered at
 * one time. Text that is older than the rings is not known.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ksym_check.h"

#define MAX_LIVE	512

struct live_text {
	const struct ksym_rec *recs[MAX_LIVE];
	int nr;
	char bad[2 * KSYM_NAME_LEN + 256];
};

int kallsyms_has(const char *name, __u64 addr)
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

static bool ranges_overlap(const struct ksym_body *a, const struct ksym_body *b)
{
	return a->addr < b->addr + b->len && b->addr < a->addr + a->len;
}

static bool complain(struct live_text *live, const char *what,
		     const struct ksym_rec *a, const struct ksym_rec *b)
{
	snprintf(live->bad, sizeof(live->bad),
		 "%s: %s at 0x%llx+%u, %s at 0x%llx+%u", what,
		 a->name, a->k.addr, a->k.len, b->name, b->k.addr, b->k.len);
	return false;
}

static bool register_text(struct live_text *live, const struct ksym_rec *rec)
{
	int i;

	for (i = 0; i < live->nr; i++)
		if (ranges_overlap(&live->recs[i]->k, &rec->k))
			return complain(live, "overlap", live->recs[i], rec);
	if (live->nr == MAX_LIVE)
		return complain(live, "more text than MAX_LIVE", rec, rec);
	live->recs[live->nr++] = rec;
	return true;
}

static bool unregister_text(struct live_text *live, const struct ksym_rec *rec)
{
	int i;

	for (i = 0; i < live->nr; i++) {
		if (live->recs[i]->k.addr != rec->k.addr)
			continue;
		if (live->recs[i]->k.len != rec->k.len ||
		    strcmp(live->recs[i]->name, rec->name))
			return complain(live, "UNREGISTER is not REGISTER",
					live->recs[i], rec);
		live->recs[i] = live->recs[--live->nr];
		return true;
	}
	return true;
}

const char *records_wrong(const struct ksym_rings *rings)
{
	static struct live_text live;
	const struct ksym_rec *rec;
	size_t i;

	live.nr = 0;
	for (i = 0; i < rings->nr_recs; i++) {
		rec = &rings->recs[i];
		if (rec->type != PERF_RECORD_KSYMBOL)
			continue;
		if (ksym_rec__is(rec, false) ? !register_text(&live, rec) :
					       !unregister_text(&live, rec))
			return live.bad;
	}
	return NULL;
}
