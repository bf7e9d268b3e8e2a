// SPDX-License-Identifier: GPL-2.0
/*
 * What may a BPF program on a perf event read of the sample, and how?
 *
 * Its context, struct bpf_perf_event_data, is nowhere in memory. The verifier
 * asks which loads of it are allowed, then replaces each by loads of what the
 * kernel has: the registers, the sample, the event.
 *
 * The sample is on a stack, and whoever makes it writes the fields that were
 * asked for and no other; sample_flags tells which. So what is loaded is put
 * aside again unless the flag is there: programs get 0, never what an earlier
 * call left on that stack. With dst, src the registers of the program's load:
 *
 *	dst = src->data
 *	ax = dst->sample_flags
 *	dst = dst->weight
 *	if (ax & PERF_SAMPLE_WEIGHT_TYPE) goto +1
 *	dst = 0
 *
 * dst and src may be the same register: src is read but once, at first.
 */

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/filter.h>
#include <linux/perf_event.h>

#include "bpf_perf_sample.h"

enum pe_field_kind {
	PE_SAMPLE,		/* in the sample, always */
	PE_SAMPLE_IF,		/* in the sample, if it has @flags */
	PE_POINTER_IF,		/* ditto, behind a pointer that may be NULL */
	PE_EVENT,		/* in the event */
	PE_PRIMARY_EVENT,	/* in the event or, if it was inherited, its parent */
};

/* A field of struct bpf_perf_event_data behind the registers. */
struct pe_field {
	u16			off;
	u8			size;
	u8			kind;
	u16			target;	/* offset in the sample or the event */
	u16			member;	/* PE_POINTER_IF: offset behind the pointer */
	u32			flags;	/* PERF_SAMPLE_*: any of them will do */
};

/* Where the low half of a u64 is */
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

#define SAMPLE(_field, _target, _flags)						\
	PE_FIELD(data._field, PE_SAMPLE_IF, perf_sample_data, _target, PERF_SAMPLE_##_flags)
#define EVENT(_field, _kind, _target)						\
	PE_FIELD(data._field, _kind, perf_event, _target, 0)

/* bpf_overflow_handler() sees to it that addr is there */
static const struct pe_field pe_fields[] = {
	PE_FIELD(sample_period, PE_SAMPLE, perf_sample_data, period, 0),
	PE_FIELD(addr, PE_SAMPLE, perf_sample_data, addr, 0),
	PE_FIELD(data.sample_flags, PE_SAMPLE, perf_sample_data, sample_flags, 0),
	SAMPLE(ip, ip, IP),
	SAMPLE(pid, tid_entry.pid, TID),
	SAMPLE(tid, tid_entry.tid, TID),
	SAMPLE(time, time, TIME),
	EVENT(id, PE_PRIMARY_EVENT, id),
	EVENT(stream_id, PE_EVENT, id),
	SAMPLE(cpu, cpu_entry.cpu, CPU),
	EVENT(event_type, PE_EVENT, orig_type),
	EVENT(event_config, PE_EVENT, attr.config),
	SAMPLE(weight, weight.full, WEIGHT_TYPE),
	SAMPLE(weight1, weight.var1_dw, WEIGHT_TYPE),
	SAMPLE(weight2, weight.var2_w, WEIGHT_TYPE),
	SAMPLE(weight3, weight.var3_w, WEIGHT_TYPE),
	SAMPLE(data_src, data_src.val, DATA_SRC),
	SAMPLE(txn, txn, TRANSACTION),
	SAMPLE(phys_addr, phys_addr, PHYS_ADDR),
	SAMPLE(data_page_size, data_page_size, DATA_PAGE_SIZE),
	SAMPLE(code_page_size, code_page_size, CODE_PAGE_SIZE),
	SAMPLE(cgroup, cgroup, CGROUP),
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
	/* struct pt_regs of 32 bits may leave what follows it so */
	return sizeof(unsigned long) == 4 && size == 8 && off % size == 4;
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

	/* Padding is no field. */
	field = pe_find_field(off);
	if (!field || off + size > field->off + field->size)
		return false;
	/*
	 * On 32 bits the verifier cuts parts out of a word, and the rewrite loads
	 * the field: they have the low word in common, if it is the first one.
	 */
	if (field->size > sizeof(long) && size != field->size &&
	    (LOW_U32 || off + size > field->off + sizeof(long)))
		return false;

	bpf_ctx_record_field_size(info, field->size);
	return bpf_ctx_narrow_access_ok(off, size, field->size);
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
