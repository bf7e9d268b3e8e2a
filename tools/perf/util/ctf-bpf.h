/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_CTF_BPF_H
#define __PERF_CTF_BPF_H

#include <stdbool.h>

struct bt_ctf_event;
struct bt_ctf_event_class;
struct machine;
struct perf_sample;
struct perf_session;

bool ctf_bpf__is_needed(struct perf_session *session);
int ctf_bpf__add_types(struct bt_ctf_event_class *event_class, bool has_callchain);
int ctf_bpf__add_values(struct bt_ctf_event_class *event_class, struct bt_ctf_event *event,
			struct perf_sample *sample, struct machine *machine);

#endif /* __PERF_CTF_BPF_H */
