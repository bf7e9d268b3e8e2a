// SPDX-License-Identifier: GPL-2.0
/* The table of fields, in the order of the struct. */
#include "sample_ctx.h"

#define CTX_FIELD(MEMBER, FLAGS)						\
	{ #MEMBER, offsetof(struct bpf_perf_event_data, MEMBER),		\
	  sizeof(((struct bpf_perf_event_data *)0)->MEMBER), FLAGS }

const struct ctx_field ctx_fields[NR_CTX_FIELDS] = {
	CTX_FIELD(sample_period, 0),
	CTX_FIELD(addr, PERF_SAMPLE_ADDR),
	CTX_FIELD(data.sample_flags, 0),
	CTX_FIELD(data.ip, PERF_SAMPLE_IP),
	CTX_FIELD(data.pid, PERF_SAMPLE_TID),
	CTX_FIELD(data.tid, PERF_SAMPLE_TID),
	CTX_FIELD(data.time, PERF_SAMPLE_TIME),
	CTX_FIELD(data.id, 0),
	CTX_FIELD(data.stream_id, 0),
	CTX_FIELD(data.cpu, PERF_SAMPLE_CPU),
	CTX_FIELD(data.event_type, 0),
	CTX_FIELD(data.event_config, 0),
	CTX_FIELD(data.weight, WEIGHT_TYPES),
	CTX_FIELD(data.weight1, WEIGHT_TYPES),
	CTX_FIELD(data.weight2, WEIGHT_TYPES),
	CTX_FIELD(data.weight3, WEIGHT_TYPES),
	CTX_FIELD(data.data_src, PERF_SAMPLE_DATA_SRC),
	CTX_FIELD(data.txn, PERF_SAMPLE_TRANSACTION),
	CTX_FIELD(data.phys_addr, PERF_SAMPLE_PHYS_ADDR),
	CTX_FIELD(data.data_page_size, PERF_SAMPLE_DATA_PAGE_SIZE),
	CTX_FIELD(data.code_page_size, PERF_SAMPLE_CODE_PAGE_SIZE),
	CTX_FIELD(data.cgroup, PERF_SAMPLE_CGROUP),
	CTX_FIELD(data.callchain_nr, PERF_SAMPLE_CALLCHAIN),
	CTX_FIELD(data.branch_nr, PERF_SAMPLE_BRANCH_STACK),
	CTX_FIELD(data.raw_size, PERF_SAMPLE_RAW),
};

const struct ctx_field *ctx_field_at(unsigned int off)
{
	unsigned int i;

	for (i = 0; i < NR_CTX_FIELDS; i++) {
		const struct ctx_field *field = &ctx_fields[i];

		if (off >= field->off && off < field->off + field->size)
			return field;
	}
	return NULL;
}

__u8 bpf_size_of(unsigned int bytes)
{
	return bytes == 8 ? BPF_DW : bytes == 4 ? BPF_W : bytes == 2 ? BPF_H : BPF_B;
}

int load_perf_prog(const struct bpf_insn *insns, __u32 cnt)
{
	return bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "read_sample", "GPL", insns, cnt, NULL);
}
