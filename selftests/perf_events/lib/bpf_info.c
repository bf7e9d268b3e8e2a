// SPDX-License-Identifier: GPL-2.0
/* Two functions, four lines, BTF and a map: see bpf_info.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_info.h"
#include "bpf_raw.h"
#include "btf_lookup.h"

int info_copy__read(struct info_copy *c, int fd, bool hidden)
{
	union bpf_attr attr = {
		.info = {
			.bpf_fd = fd,
			.info_len = sizeof(c->info),
			.info = (unsigned long)&c->info,
		},
	};

	memset(c, 0, sizeof(*c));
	c->info = (struct bpf_prog_info) {
		.jited_prog_len = sizeof(c->code),
		.jited_prog_insns = (unsigned long)c->code,
		.nr_jited_ksyms = INFO_MAX,
		.jited_ksyms = (unsigned long)c->ksyms,
		.nr_jited_func_lens = INFO_MAX,
		.jited_func_lens = (unsigned long)c->lens,
		.nr_prog_tags = INFO_MAX,
		.prog_tags = (unsigned long)c->tags,
		.func_info_rec_size = sizeof(*c->funcs),
		.nr_func_info = INFO_MAX,
		.func_info = (unsigned long)c->funcs,
		.line_info_rec_size = sizeof(*c->lines),
		.nr_line_info = INFO_MAX,
		.line_info = (unsigned long)c->lines,
		.jited_line_info_rec_size = sizeof(*c->jited_lines),
		.nr_jited_line_info = INFO_MAX,
		.jited_line_info = (unsigned long)c->jited_lines,
		.nr_map_ids = INFO_MAX,
		.map_ids = (unsigned long)c->maps,
		.nr_hidden_funcs = hidden ? BPF_PROG_INFO_HIDDEN_FUNCS : 0,
	};
	return bpf_raw(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

bool info_copy__has_address(const struct info_copy *c)
{
	int i;

	for (i = 0; i < INFO_MAX; i++)
		if (c->ksyms[i] || c->jited_lines[i])
			return true;
	return false;
}

struct info_btf {
	struct btf_header hdr;
	struct { struct btf_type t; __u32 bits; } t_int;
	struct btf_type proto, main, sub;
	char strs[64];
};

/* Offsets in the strings */
enum { S_INT = 1, S_MAIN = 5, S_SUB = 15, S_FILE = 24, S_LINE = 31 };

int info_btf__load(size_t more)
{
	const struct info_btf b = {
		.hdr = {
			.magic = BTF_MAGIC,
			.version = BTF_VERSION,
			.hdr_len = sizeof(b.hdr),
			.type_len = offsetof(struct info_btf, strs) - sizeof(b.hdr),
			.str_off = offsetof(struct info_btf, strs) - sizeof(b.hdr),
			.str_len = sizeof(b.strs) + more,
		},
		.t_int = { { S_INT, BTF_KIND_INT << 24, { 4 } },
			   (BTF_INT_SIGNED << 24) | 32 },
		.proto = { 0, BTF_KIND_FUNC_PROTO << 24, { 1 } },
		.main = { S_MAIN, (BTF_KIND_FUNC << 24) | BTF_FUNC_GLOBAL, { 2 } },
		.sub = { S_SUB, (BTF_KIND_FUNC << 24) | BTF_FUNC_STATIC, { 2 } },
		.strs = "\0int\0" INFO_PROG_NAME "\0told_sub\0told.c\0return 0;",
	};
	union bpf_attr attr = { .btf_size = sizeof(b) + more };
	char *buf = calloc(1, attr.btf_size);
	int fd;

	if (!buf)
		return -ENOMEM;
	memcpy(buf, &b, sizeof(b));
	attr.btf = (unsigned long)buf;
	fd = bpf_raw(BPF_BTF_LOAD, &attr);
	free(buf);
	return fd;
}

int info_prog__load_with(int bpf_throw)
{
	int map = bpf_raw_value_map(sizeof(__u64)), btf = info_btf__load(0), prog;
	const struct bpf_func_info funcs[] = { { 0, 3 }, { 9, 4 } };
	const struct bpf_line_info lines[] = {
		{ 0, S_FILE, S_LINE, 10 << 10 | 1 }, { 3, S_FILE, S_LINE, 11 << 10 | 2 },
		{ 7, S_FILE, S_LINE, 12 << 10 | 1 }, { 9, S_FILE, S_LINE, 20 << 10 | 1 },
	};
	const struct bpf_insn insns[] = {
		BPF_RAW_LD_IMM64_LO(BPF_REG_1, BPF_PSEUDO_MAP_VALUE, map),
		BPF_RAW_LD_IMM64_HI(0),
		BPF_RAW_INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_6, BPF_REG_1, 0, 0),
		BPF_RAW_CALL_SUBPROG(5),
		BPF_RAW_INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_6, 0, 2, 0),
		BPF_RAW_MOV_IMM(BPF_REG_1, 0),
		bpf_throw ? BPF_RAW_CALL_KFUNC(bpf_throw) : BPF_RAW_MOV_IMM(BPF_REG_0, 0),
		BPF_RAW_MOV_IMM(BPF_REG_0, 0),
		BPF_RAW_EXIT(),
		BPF_RAW_MOV_IMM(BPF_REG_0, 0),		/* 9: told_sub */
		BPF_RAW_EXIT(),
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SCHED_CLS,
		.prog_name = INFO_PROG_NAME,
		.prog_btf_fd = btf,
		.func_info = (unsigned long)funcs,
		.func_info_cnt = 2,
		.func_info_rec_size = sizeof(*funcs),
		.line_info = (unsigned long)lines,
		.line_info_cnt = 4,
		.line_info_rec_size = sizeof(*lines),
	};

	if (map < 0)
		prog = map;
	else if (btf < 0)
		prog = btf;
	else
		prog = bpf_raw_load(&attr, insns, sizeof(insns) / sizeof(*insns));
	close_fd(&map);
	close_fd(&btf);
	return prog;
}

int info_prog__load(bool *throws)
{
	static int id;		/* the same for all, and slow to find */
	int prog;

	if (!id)
		id = btf_vmlinux_id("bpf_throw", BTF_KIND_FUNC);
	*throws = id > 0;
	prog = info_prog__load_with(*throws ? id : 0);
	if (prog == -ENOTSUPP_KERNEL && *throws) {
		*throws = false;
		prog = info_prog__load_with(0);
	}
	return prog;
}

int info_prog__load_lines(int nr)
{
	struct bpf_insn *insns = calloc(nr, sizeof(*insns));
	struct bpf_line_info *lines = calloc(nr, sizeof(*lines));
	int btf = info_btf__load(0), prog, i;
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.prog_name = "told_lines",
		.prog_btf_fd = btf,
		.line_info = (unsigned long)lines,
		.line_info_cnt = nr,
		.line_info_rec_size = sizeof(*lines),
	};

	for (i = 0; insns && lines && i < nr; i++) {
		insns[i] = (struct bpf_insn)BPF_RAW_MOV_IMM(BPF_REG_0, 0);
		lines[i] = (struct bpf_line_info){ i, S_FILE, S_LINE, (i + 1) << 10 | 1 };
	}
	if (!insns || !lines) {
		prog = -ENOMEM;
	} else if (btf < 0) {
		prog = btf;
	} else {
		insns[nr - 1] = (struct bpf_insn)BPF_RAW_EXIT();
		prog = bpf_raw_load(&attr, insns, nr);
	}
	close_fd(&btf);
	free(lines);
	free(insns);
	return prog;
}

int info_prog__run(int prog, unsigned int repeat)
{
	static char packet[64];
	union bpf_attr attr = {
		.test = {
			.prog_fd = prog,
			.data_in = (unsigned long)packet,
			.data_size_in = sizeof(packet),
			.repeat = repeat,
		},
	};

	return bpf_raw(BPF_PROG_TEST_RUN, &attr);
}
