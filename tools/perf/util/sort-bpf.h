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
extern struct sort_entry sort_bpf_loads;
extern struct sort_entry sort_bpf_loaded;
extern struct sort_entry sort_bpf_ended;
extern struct sort_entry sort_bpf_runs;
extern struct sort_entry sort_bpf_run_time;
extern struct sort_entry sort_bpf_hot_line;

unsigned int sort_entry__bpf_column(const struct sort_entry *entry);
bool bpf_columns__need_totals(unsigned int columns);
void hists__calc_bpf_col_len(struct hists *hists, const struct hist_entry *he);

#endif /* __PERF_SORT_BPF_H */
