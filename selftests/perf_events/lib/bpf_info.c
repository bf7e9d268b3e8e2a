// SPDX-License-Identifier: GPL-2.0
/* Two functions, four lines, BTF and a map: see bpf_info.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_info.h"
#include "bpf_load.h"

int info_copy__read(struct info_copy *c, int fd, bool hidden)
{
	__u32 len = sizeof(c->info);

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
	return bpf_prog_get_info_by_fd(fd, &c->info, &len);
}

bool info_copy__has_address(const struct info_copy *c)
{
	int i;

	for (i = 0; i < INFO_MAX; i++)
		if (c->ksyms[i] || c->jited_lines[i])
			return true;
	return false;
}

static struct prog_btf info_btf(void)
{
	return load_btf(INFO_PROG_NAME, "told_sub", "told.c", "return 0;");
}

int info_prog__load_with(int bpf_throw)
{
	int map = value_map(sizeof(__u64)), prog;
	struct prog_btf btf = info_btf();
	const struct bpf_func_info funcs[] = { { 0, 3 }, { 9, 4 } };
	const struct bpf_line_info lines[] = {
		{ 0, btf.file, btf.line, 10 << 10 | 1 }, { 3, btf.file, btf.line, 11 << 10 | 2 },
		{ 7, btf.file, btf.line, 12 << 10 | 1 }, { 9, btf.file, btf.line, 20 << 10 | 1 },
	};
	const struct bpf_insn insns[] = {
		BPF_LD_MAP_VALUE(BPF_REG_1, map, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_6, BPF_REG_1, 0),
		BPF_CALL_REL(5),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_6, 0, 2),
		BPF_MOV64_IMM(BPF_REG_1, 0),
		bpf_throw ? BPF_CALL_KFUNC(bpf_throw) : BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
		BPF_MOV64_IMM(BPF_REG_0, 0),		/* 9: told_sub */
		BPF_EXIT_INSN(),
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_btf_fd = btf.fd,
		    .func_info = funcs, .func_info_cnt = ARRAY_SIZE(funcs),
		    .func_info_rec_size = sizeof(*funcs),
		    .line_info = lines, .line_info_cnt = ARRAY_SIZE(lines),
		    .line_info_rec_size = sizeof(*lines));

	prog = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, INFO_PROG_NAME, "GPL", insns,
			     ARRAY_SIZE(insns), &opts);
	close_fd(&map);
	close_fd(&btf.fd);
	return prog;
}

int info_prog__load(bool *throws)
{
	static int id;		/* the same for all, and slow to find */
	int prog;

	if (!id)
		id = vmlinux_btf_id("bpf_throw", BTF_KIND_FUNC);
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
	struct prog_btf btf = info_btf();
	int i, prog = -ENOMEM;

	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_btf_fd = btf.fd, .line_info = lines,
		    .line_info_cnt = nr, .line_info_rec_size = sizeof(*lines));

	for (i = 0; insns && lines && i < nr; i++) {
		insns[i] = i < nr - 1 ? BPF_MOV64_IMM(BPF_REG_0, 0) : BPF_EXIT_INSN();
		lines[i] = (struct bpf_line_info){ i, btf.file, btf.line, (i + 1) << 10 | 1 };
	}
	if (insns && lines)
		prog = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "told_lines", "GPL", insns,
				     nr, &opts);
	close_fd(&btf.fd);
	free(lines);
	free(insns);
	return prog;
}
