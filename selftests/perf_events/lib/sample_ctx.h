/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which fields has struct bpf_perf_event_data behind the registers, and which
 * PERF_SAMPLE_* flags make them valid? Instructions that read them.
 */
#ifndef SELFTESTS_PERF_EVENTS_SAMPLE_CTX_H
#define SELFTESTS_PERF_EVENTS_SAMPLE_CTX_H

#include <stddef.h>
#include <linux/bpf_perf_event.h>
#include <linux/perf_event.h>

#include "bpf_load.h"

#define CTX_SIZE	sizeof(struct bpf_perf_event_data)
#define CTX_REGS_END	offsetof(struct bpf_perf_event_data, sample_period)
#define CTX_DATA	offsetof(struct bpf_perf_event_data, data)
#define WEIGHT_TYPES	(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)
#define NR_CTX_FIELDS	25

struct ctx_field {
	const char *name;
	unsigned int off, size;
	__u64 flags;	/* any of them makes it valid; 0: always valid */
};

extern const struct ctx_field ctx_fields[NR_CTX_FIELDS];

/* Return: the field that the byte at @off belongs to, or NULL. */
const struct ctx_field *ctx_field_at(unsigned int off);

/* Return: BPF_DW, BPF_W, BPF_H or BPF_B. */
__u8 bpf_size_of(unsigned int bytes);

/* Load a program for perf events of @cnt instructions. Return: an fd or -errno. */
int load_perf_prog(const struct bpf_insn *insns, __u32 cnt);

#endif
