/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_SORT_BPF_H
#define __PERF_SORT_BPF_H

#include <stdbool.h>

struct hist_entry;
struct hists;
struct sort_entry;

extern struct sort_entry sort_bpf_id;
extern struct sort_entry sort_bpf_prog;
extern struct sort_entry sort_bpf_tag;
extern struct sort_entry sort_bpf_type;

bool sort_entry__is_bpf(const struct sort_entry *entry);
bool sort_entry__separates_bpf_loads(const struct sort_entry *entry);
void hists__calc_bpf_col_len(struct hists *hists, struct hist_entry *he);

#endif /* __PERF_SORT_BPF_H */
