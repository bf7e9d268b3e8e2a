// SPDX-License-Identifier: GPL-2.0
/*
 * Load BPF programs, run them and unload them, as fast as possible:
 *
 *   bpf_load_cycles CYCLES PROCESSES [MILLISECONDS]
 *
 * Every second program differs from all others. Number N of them has the function
 * cycle_N with the source "return N;", gets maps after it was loaded, as libbpf
 * does with .rodata, and runs until MILLISECONDS have passed, at least 20,000 times,
 * so that a profiler takes samples of it. The others have two functions, a map and
 * an exception callback, and run once.
 *
 * This is no test but a load for one, of perf record for example. It prints how
 * many programs there were.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/btf.h>

#include "lib/bpf_info.h"
#include "lib/bpf_raw.h"
#include "lib/test_env.h"

#define NUMBERED_INSNS	96
#define NUMBERED_RUNS	20000
#define NUMBERED_MAPS	8

struct numbered_btf {
	struct btf_header hdr;
	struct { struct btf_type t; __u32 bits; } t_int;
	struct btf_type proto, main;
	char strs[96];
};

/* The BTF of program @nr, and its line 1 in @line. Return: an fd or -errno. */
static int numbered_btf__load(int nr, struct bpf_line_info *line)
{
	enum { S_INT = 1, S_MAIN = 5 };
	struct numbered_btf b = {
		.hdr = {
			.magic = BTF_MAGIC,
			.version = BTF_VERSION,
			.hdr_len = sizeof(b.hdr),
			.type_len = offsetof(struct numbered_btf, strs) - sizeof(b.hdr),
			.str_off = offsetof(struct numbered_btf, strs) - sizeof(b.hdr),
			.str_len = sizeof(b.strs),
		},
		.t_int = { { S_INT, BTF_KIND_INT << 24, { 4 } },
			   (BTF_INT_SIGNED << 24) | 32 },
		.proto = { 0, BTF_KIND_FUNC_PROTO << 24, { 1 } },
		.main = { S_MAIN, (BTF_KIND_FUNC << 24) | BTF_FUNC_GLOBAL, { 2 } },
		.strs = "\0int",
	};
	union bpf_attr attr = {
		.btf = (unsigned long)&b,
		.btf_size = sizeof(b),
	};
	int file = S_MAIN + sprintf(b.strs + S_MAIN, "cycle_%d", nr) + 1;
	int text = file + sprintf(b.strs + file, "cycle.c") + 1;

	sprintf(b.strs + text, "return %d;", nr);
	*line = (struct bpf_line_info){ 0, file, text, 1 << 10 | 1 };
	return bpf_raw(BPF_BTF_LOAD, &attr);
}

/* Return: an fd or -errno */
static int numbered_prog__load(int nr)
{
	const struct bpf_func_info func = { 0, 3 };
	struct bpf_insn insns[NUMBERED_INSNS];
	struct bpf_line_info line;
	int i, prog, btf = numbered_btf__load(nr, &line);
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SCHED_CLS,
		.prog_btf_fd = btf,
		.func_info = (unsigned long)&func,
		.func_info_cnt = 1,
		.func_info_rec_size = sizeof(func),
		.line_info = (unsigned long)&line,
		.line_info_cnt = 1,
		.line_info_rec_size = sizeof(line),
	};

	if (btf < 0)
		return btf;
	insns[0] = BPF_RAW_MOV_IMM(BPF_REG_0, nr);
	for (i = 1; i < NUMBERED_INSNS - 1; i++)
		insns[i] = BPF_RAW_INSN(BPF_ALU64 | BPF_XOR | BPF_K, BPF_REG_0, 0, 0, i | 1);
	insns[i] = BPF_RAW_EXIT();
	prog = bpf_raw_load(&attr, insns, NUMBERED_INSNS);
	close(btf);
	return prog;
}

/* Return: 0 or -errno */
static int numbered_prog__bind_maps(int prog)
{
	static int maps[NUMBERED_MAPS];
	int i, err;

	for (i = 0; i < NUMBERED_MAPS; i++) {
		union bpf_attr attr = { .prog_bind_map = { .prog_fd = prog } };

		if (!maps[i])
			maps[i] = bpf_raw_value_map(sizeof(__u64));
		if (maps[i] < 0)
			return maps[i];
		attr.prog_bind_map.map_fd = maps[i];
		err = bpf_raw(BPF_PROG_BIND_MAP, &attr);
		if (err)
			return err;
	}
	return 0;
}

/* Return: 0 or -errno */
static int numbered_prog__run(int prog, long ms)
{
	__u64 end = now_ms() + ms;
	int err;

	do {
		err = info_prog__run(prog, NUMBERED_RUNS);
	} while (!err && now_ms() < end);
	return err;
}

/* Every @step-th program, beginning with @first */
static int cycles(int first, int nr, int step, long ms)
{
	int i, prog, err, turn = 0;
	bool throws, numbered;

	for (i = first; i < nr; i += step) {
		numbered = turn++ & 1;
		prog = numbered ? numbered_prog__load(i) : info_prog__load(&throws);
		if (prog < 0) {
			fprintf(stderr, "bpf_load_cycles: load: %s\n", strerror(-prog));
			return 1;
		}
		err = numbered ? numbered_prog__bind_maps(prog) : 0;
		if (!err)
			err = numbered ? numbered_prog__run(prog, ms) : info_prog__run(prog, 1);
		close(prog);
		if (err) {
			fprintf(stderr, "bpf_load_cycles: run: %s\n", strerror(-err));
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	int nr = argc == 3 || argc == 4 ? atoi(argv[1]) : 0;
	int procs = nr > 0 ? atoi(argv[2]) : 0;
	long ms = argc == 4 ? atol(argv[3]) : 0;
	int i, status, failed = 0;

	if (procs <= 0) {
		fprintf(stderr, "usage: bpf_load_cycles CYCLES PROCESSES [MILLISECONDS]\n");
		return 2;
	}
	for (i = 0; i < procs; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("bpf_load_cycles: fork");
			failed = 1;
			break;
		}
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			exit(cycles(i, nr, procs, ms));
		}
	}
	while (wait(&status) > 0)
		failed |= status;
	if (!failed)
		printf("%d programs\n", nr);
	return !!failed;
}
