// SPDX-License-Identifier: GPL-2.0
/* A BPF program calls bpf_snprintf(), whose format has to be in a frozen map. */
#include "bpf_load.h"
#include "symbolize.h"

static int format_map(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_RDONLY_PROG);
	int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, sizeof(int), sizeof("%pS"), 1, &opts);

	if (map >= 0 && (bpf_map_update_elem(map, &zero, "%pS", BPF_ANY) || bpf_map_freeze(map)))
		close_fd(&map);
	return map;
}

int symbolize(__u64 addr, char *buf, __u32 size)
{
	int format = format_map(), out = value_map(size), err;
	const struct bpf_insn insns[] = {
		BPF_LD_IMM64(BPF_REG_1, addr),
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_1, -8),
		BPF_LD_MAP_VALUE(BPF_REG_1, out, 0),
		BPF_MOV64_IMM(BPF_REG_2, size),
		BPF_LD_MAP_VALUE(BPF_REG_3, format, 0),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_4, -8),
		BPF_MOV64_IMM(BPF_REG_5, 8),
		BPF_EMIT_CALL(BPF_FUNC_snprintf),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	err = run_once(insns, ARRAY_SIZE(insns), out, buf);
	close_fd(&out);
	close_fd(&format);
	return err;
}
