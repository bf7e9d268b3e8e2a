// SPDX-License-Identifier: GPL-2.0
/*
 * Context accesses of BPF programs of perf events: checks and rewriting.
 *
 * struct bpf_perf_event_data does not exist in memory. The verifier asks which
 * loads from it are allowed, and rewrites each to loads from the structures that
 * the kernel has: the registers, the sample and the event.
 *
 * The sample is on the stack of the PMU's handler, and only the fields that
 * sample_flags names are initialized. So a loaded value is discarded unless its
 * flag is set: programs read 0, and never leftover stack contents. With dst and
 * src the registers of the program's load:
 *
 *	dst = src->data
 *	ax = dst->sample_flags
 *	dst = dst->weight
 *	if (ax & PERF_SAMPLE_WEIGHT_TYPE) goto +1
 *	dst = 0
 *
 * dst and src may be the same register: src is read only by the first load.
 */

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/filter.h>
#include <linux/perf_event.h>

#include "bpf_perf_sample.h"

enum pe_field_kind {
	PE_SAMPLE,		/* in the sample, always initialized */
	PE_SAMPLE_IF,		/* in the sample, if any of @flags is set */
	PE_POINTER_IF,		/* ditto, through a pointer that may be NULL */
	PE_EVENT,		/* in the event */
	PE_PRIMARY_EVENT,	/* in the event or, if it is inherited, its parent */
};

/* A field of struct bpf_perf_event_data after the registers */
struct pe_field {
	u16			off;
	u8			size;
	u8			kind;
	u16			target;	/* offset in the sample or the event */
	u16			member;	/* PE_POINTER_IF: offset in what it points to */
	u32			flags;	/* PERF_SAMPLE_*: one of them must be set */
};

/* Offset of the low half of a u64 */
#ifdef __LITTLE_ENDIAN
#define LOW_U32		0
#else
#define LOW_U32		sizeof(u32)
#endif

#define PE_FIELD(_field, _kind, _struct, _target, _flags)			\
{										\
	.off = offsetof(struct bpf_perf_event_data, _field),			\
	.size = sizeof_field(struct bpf_perf_event_data, _field),		\
	.kind = _kind,								\
	.target = offsetof(struct _struct, _target) +				\
		  BUILD_BUG_ON_ZERO(sizeof_field(struct bpf_perf_event_data, _field) != \
				    sizeof_field(struct _struct, _target)),	\
	.flags = _flags,							\
}

#define PE_COUNT(_field, _pointer, _member, _flags)				\
{										\
	.off = offsetof(struct bpf_perf_event_data, data._field),		\
	.size = sizeof_field(struct bpf_perf_event_data, data._field) +	\
		BUILD_BUG_ON_ZERO(sizeof_field(struct bpf_perf_event_data, data._field) != \
				  sizeof(u32)),					\
	.kind = PE_POINTER_IF,							\
	.target = offsetof(struct perf_sample_data, _pointer),			\
	.member = _member,							\
	.flags = _flags,							\
}

#define PE_SAMPLE_FIELD(_field, _target, _flags)				\
	PE_FIELD(data._field, PE_SAMPLE_IF, perf_sample_data, _target, PERF_SAMPLE_##_flags)
#define PE_EVENT_FIELD(_field, _kind, _target)					\
	PE_FIELD(data._field, _kind, perf_event, _target, 0)

/* addr is always initialized: bpf_overflow_handler() sets it to 0 if need be */
static const struct pe_field pe_fields[] = {
	PE_FIELD(sample_period, PE_SAMPLE, perf_sample_data, period, 0),
	PE_FIELD(addr, PE_SAMPLE, perf_sample_data, addr, 0),
	PE_FIELD(data.sample_flags, PE_SAMPLE, perf_sample_data, sample_flags, 0),
	PE_SAMPLE_FIELD(ip, ip, IP),
	PE_SAMPLE_FIELD(pid, tid_entry.pid, TID),
	PE_SAMPLE_FIELD(tid, tid_entry.tid, TID),
	PE_SAMPLE_FIELD(time, time, TIME),
	PE_EVENT_FIELD(id, PE_PRIMARY_EVENT, id),
	PE_EVENT_FIELD(stream_id, PE_EVENT, id),
	PE_SAMPLE_FIELD(cpu, cpu_entry.cpu, CPU),
	PE_EVENT_FIELD(event_type, PE_EVENT, orig_type),
	PE_EVENT_FIELD(event_config, PE_EVENT, attr.config),
	PE_SAMPLE_FIELD(weight, weight.full, WEIGHT_TYPE),
	PE_SAMPLE_FIELD(weight1, weight.var1_dw, WEIGHT_TYPE),
	PE_SAMPLE_FIELD(weight2, weight.var2_w, WEIGHT_TYPE),
	PE_SAMPLE_FIELD(weight3, weight.var3_w, WEIGHT_TYPE),
	PE_SAMPLE_FIELD(data_src, data_src.val, DATA_SRC),
	PE_SAMPLE_FIELD(txn, txn, TRANSACTION),
	PE_SAMPLE_FIELD(phys_addr, phys_addr, PHYS_ADDR),
	PE_SAMPLE_FIELD(data_page_size, data_page_size, DATA_PAGE_SIZE),
	PE_SAMPLE_FIELD(code_page_size, code_page_size, CODE_PAGE_SIZE),
	PE_SAMPLE_FIELD(cgroup, cgroup, CGROUP),
	PE_COUNT(callchain_nr, callchain,
		 offsetof(struct perf_callchain_entry, nr) + LOW_U32, PERF_SAMPLE_CALLCHAIN),
	PE_COUNT(branch_nr, br_stack,
		 offsetof(struct perf_branch_stack, nr) + LOW_U32, PERF_SAMPLE_BRANCH_STACK),
	PE_COUNT(raw_size, raw, offsetof(struct perf_raw_record, size), PERF_SAMPLE_RAW),
};

static const struct pe_field *pe_find_field(int off)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(pe_fields); i++) {
		const struct pe_field *field = &pe_fields[i];

		if (off >= field->off && off < field->off + field->size)
			return field;
	}
	return NULL;
}

static bool pe_is_aligned(int off, int size)
{
	if (off % size == 0)
		return true;
	/* sample_period and addr may follow registers of 4 bytes */
	return sizeof(unsigned long) == 4 && size == 8 && off % size == 4;
}

/*
 * On 32-bit, the verifier turns a narrow load into one of the aligned 4 bytes around
 * it, and pe_convert_field() returns the low half of a u64 for its first 4 bytes.
 */
static bool pe_narrow_access_ok(const struct pe_field *field, int off, int size)
{
	bool low_half_first = !bpf_ctx_narrow_access_offset(0, 1, sizeof(u64));

	if (sizeof(long) != 8 && field->size == 8 && size != 8 &&
	    (!low_half_first || off + size > field->off + 4))
		return false;

	return bpf_ctx_narrow_access_ok(off, size, field->size);
}

bool pe_prog_is_valid_access(int off, int size, enum bpf_access_type type,
			     const struct bpf_prog *prog,
			     struct bpf_insn_access_aux *info)
{
	const struct pe_field *field;

	if (off < 0 || type != BPF_READ || !pe_is_aligned(off, size))
		return false;

	if (off < offsetofend(struct bpf_perf_event_data, regs))
		return size == sizeof(long);

	/* Padding is not in the table. */
	field = pe_find_field(off);
	if (!field || off + size > field->off + field->size)
		return false;
	/*
	 * C for BPF has a long of 8 bytes, so where the registers have 4, programs
	 * have the offsets of other fields, and would read these without an error.
	 */
	if (sizeof(long) != 8 && off >= offsetof(struct bpf_perf_event_data, data))
		return false;

	bpf_ctx_record_field_size(info, field->size);
	return pe_narrow_access_ok(field, off, size);
}

static u8 pe_load_size(int bytes)
{
	return bytes == 8 ? BPF_DW : bytes == 4 ? BPF_W : BPF_H;
}

static u32 pe_convert_field(const struct pe_field *field, u8 dst, u8 src,
			    struct bpf_insn *insn)
{
	const bool of_event = field->kind == PE_EVENT || field->kind == PE_PRIMARY_EVENT;
	const struct bpf_insn *start = insn;
	u8 size = pe_load_size(field->size);

	*insn++ = BPF_LDX_MEM(BPF_FIELD_SIZEOF(struct bpf_perf_event_data_kern, data), dst, src,
			      of_event ? offsetof(struct bpf_perf_event_data_kern, event) :
					 offsetof(struct bpf_perf_event_data_kern, data));
	if (field->kind == PE_PRIMARY_EVENT) {
		*insn++ = BPF_LDX_MEM(BPF_FIELD_SIZEOF(struct perf_event, parent), BPF_REG_AX, dst,
				      offsetof(struct perf_event, parent));
		*insn++ = BPF_JMP_IMM(BPF_JEQ, BPF_REG_AX, 0, 1);
		*insn++ = BPF_MOV64_REG(dst, BPF_REG_AX);
	}
	if (!field->flags) {
		*insn++ = BPF_LDX_MEM(size, dst, dst, field->target);
		return insn - start;
	}

	*insn++ = BPF_LDX_MEM(BPF_DW, BPF_REG_AX, dst,
			      offsetof(struct perf_sample_data, sample_flags));
	if (field->kind == PE_POINTER_IF)
		size = BPF_SIZEOF(void *);
	*insn++ = BPF_LDX_MEM(size, dst, dst, field->target);
	*insn++ = BPF_JMP_IMM(BPF_JSET, BPF_REG_AX, field->flags, 1);
	*insn++ = BPF_MOV64_IMM(dst, 0);
	if (field->kind == PE_POINTER_IF) {
		*insn++ = BPF_JMP_IMM(BPF_JEQ, dst, 0, 1);
		*insn++ = BPF_LDX_MEM(BPF_W, dst, dst, field->member);
	}
	return insn - start;
}

u32 pe_prog_convert_ctx_access(enum bpf_access_type type,
			       const struct bpf_insn *si,
			       struct bpf_insn *insn_buf,
			       struct bpf_prog *prog, u32 *target_size)
{
	const struct pe_field *field = pe_find_field(si->off);
	struct bpf_insn *insn = insn_buf;

	if (field) {
		*target_size = field->size;
		return pe_convert_field(field, si->dst_reg, si->src_reg, insn);
	}

	*insn++ = BPF_LDX_MEM(BPF_FIELD_SIZEOF(struct bpf_perf_event_data_kern, regs),
			      si->dst_reg, si->src_reg,
			      offsetof(struct bpf_perf_event_data_kern, regs));
	*insn++ = BPF_LDX_MEM(BPF_SIZEOF(long), si->dst_reg, si->dst_reg, si->off);
	return insn - insn_buf;
}
