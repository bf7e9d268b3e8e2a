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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/bpf_info.h"
#include "lib/bpf_load.h"
#include "lib/test_env.h"

#define NUMBERED_INSNS	96
#define NUMBERED_RUNS	20000
#define NUMBERED_MAPS	8

/* Return: an fd or -errno */
static int numbered_prog__load(int nr)
{
	const struct bpf_func_info func = { 0, 3 };
	struct bpf_insn insns[NUMBERED_INSNS];
	struct bpf_line_info line = { .line_col = 1 << 10 | 1 };
	char name[32], text[32];
	struct prog_btf btf;
	int i, prog;

	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .func_info = &func, .func_info_cnt = 1, .func_info_rec_size = sizeof(func),
		    .line_info = &line, .line_info_cnt = 1, .line_info_rec_size = sizeof(line));

	sprintf(name, "cycle_%d", nr);
	sprintf(text, "return %d;", nr);
	btf = load_btf(name, "sub", "cycle.c", text);
	opts.prog_btf_fd = btf.fd;
	line.file_name_off = btf.file;
	line.line_off = btf.line;
	insns[0] = BPF_MOV64_IMM(BPF_REG_0, nr);
	for (i = 1; i < NUMBERED_INSNS - 1; i++)
		insns[i] = BPF_ALU64_IMM(BPF_XOR, BPF_REG_0, i | 1);
	insns[i] = BPF_EXIT_INSN();
	prog = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, NULL, "GPL", insns, NUMBERED_INSNS, &opts);
	close_fd(&btf.fd);
	return prog;
}

/* Return: 0 or -errno */
static int numbered_prog__bind_maps(int prog)
{
	static int maps[NUMBERED_MAPS];
	int i, err;

	for (i = 0; i < NUMBERED_MAPS; i++) {
		if (!maps[i])
			maps[i] = value_map(sizeof(__u64));
		if (maps[i] < 0)
			return maps[i];
		err = bpf_prog_bind_map(prog, maps[i], NULL);
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
		err = run_on_packet(prog, NUMBERED_RUNS);
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
			err = numbered ? numbered_prog__run(prog, ms) : run_on_packet(prog, 1);
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
