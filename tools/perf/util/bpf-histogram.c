// SPDX-License-Identifier: GPL-2.0
/* Histograms by powers of 2, which BPF programs count in arrays of integers. */
#include <inttypes.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <string.h>
#include "bpf-histogram.h"

#define BAR_WIDTH	40

/* An array of integers may be anything, so that its name has to say what it is. */
bool bpf_histogram__has_name(const char *name)
{
	return !strcmp(name, "hist") || str_ends_with(name, "_hist");
}

/* 2^10: "1K" */
static const char *power_of_2(int exponent, char *buf, size_t size)
{
	static const char * const units[] = { "", "K", "M", "G", "T", "P", "E" };

	scnprintf(buf, size, "%d%s", 1 << exponent % 10, units[exponent / 10]);
	return buf;
}

static void print_slot(const u64 *slots, int nr, bool last, u64 most, FILE *fp)
{
	static const char full[] = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@";
	int width = (double)slots[nr] / most * BAR_WIDTH;
	char from[8], to[8], range[24];

	scnprintf(range, sizeof(range), "[%s, %s)",
		  nr ? power_of_2(nr, from, sizeof(from)) : "0",
		  last ? "..." : power_of_2(nr + 1, to, sizeof(to)));
	fprintf(fp, "  %-14s %12" PRIu64 " |%.*s%*s|\n", range, slots[nr], width, full,
		BAR_WIDTH - width, "");
}

/**
 * bpf_histogram__fprintf - Print a histogram by powers of 2
 * @slots: [N] is how many values were in [2^N, 2^(N+1)), [0] also has those that were 0,
 *	and the last one those that were greater
 * @nr: number of @slots, up to %BPF_HISTOGRAM_MAX_SLOTS
 * @fp: where to
 *
 * From the first slot that is not 0 to the last one.
 */
void bpf_histogram__fprintf(const u64 *slots, int nr, FILE *fp)
{
	int first = 0, last = nr - 1;
	u64 most = 0;

	while (nr && !slots[nr - 1])
		nr--;
	while (first < nr && !slots[first])
		first++;
	if (!nr)
		fprintf(fp, "  all elements are 0\n");
	for (int i = first; i < nr; i++)
		most = max(most, slots[i]);
	for (int i = first; i < nr; i++)
		print_slot(slots, i, i == last, most, fp);
}
