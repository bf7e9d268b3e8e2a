// SPDX-License-Identifier: GPL-2.0
/* A BPF program calls bpf_snprintf(), whose format has to be in a frozen map. */
#include <unistd.h>

#include "bpf_raw.h"
#include "symbolize.h"

int symbolize__format_map(const char *format, __u32 size)
{
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = sizeof(__u32),
		.value_size = size,
		.max_entries = 1,
		.map_flags = BPF_F_RDONLY_PROG,
	};
	union bpf_attr freeze = {};
	int fd = bpf_raw(BPF_MAP_CREATE, &map), err;

	if (fd < 0)
		return fd;
	err = bpf_raw_map_update(fd, format);
	freeze.map_fd = fd;
	err = err ?: bpf_raw(BPF_MAP_FREEZE, &freeze);
	if (!err)
		return fd;
	close(fd);
	return err;
}

int symbolize__load(enum bpf_prog_type type, int format_map, int out_map, __u32 size,
		    __u64 addr)
{
	const struct bpf_insn insns[] = {
		BPF_RAW_LD_IMM64_LO(BPF_REG_1, 0, addr),
		BPF_RAW_LD_IMM64_HI(addr),
		BPF_RAW_INSN(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_1,
			     -8, 0),
		BPF_RAW_LD_IMM64_LO(BPF_REG_1, BPF_PSEUDO_MAP_VALUE, out_map),
		BPF_RAW_LD_IMM64_HI(0),
		BPF_RAW_MOV_IMM(BPF_REG_2, size),
		BPF_RAW_LD_IMM64_LO(BPF_REG_3, BPF_PSEUDO_MAP_VALUE, format_map),
		BPF_RAW_LD_IMM64_HI(0),
		BPF_RAW_MOV_REG(BPF_REG_4, BPF_REG_10),
		BPF_RAW_INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_4, 0, 0, -8),
		BPF_RAW_MOV_IMM(BPF_REG_5, 8),
		BPF_RAW_CALL(BPF_FUNC_snprintf),
		BPF_RAW_MOV_IMM(BPF_REG_0, 0),
		BPF_RAW_EXIT(),
	};

	return bpf_raw_load_named(type, "snprintf", insns,
				  sizeof(insns) / sizeof(*insns));
}

int symbolize(__u64 addr, char *buf, __u32 size)
{
	int format, out, prog = -1, err;

	format = symbolize__format_map("%pS", sizeof("%pS"));
	out = bpf_raw_value_map(size);
	err = format < 0 ? format : out < 0 ? out : 0;
	if (!err) {
		prog = symbolize__load(BPF_PROG_TYPE_RAW_TRACEPOINT, format, out, size, addr);
		err = prog < 0 ? prog : bpf_raw_test_run(prog);
	}
	if (!err)
		err = bpf_raw_map_lookup(out, buf);
	close_fd(&prog);
	close_fd(&out);
	close_fd(&format);
	return err;
}
