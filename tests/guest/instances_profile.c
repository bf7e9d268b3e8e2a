// SPDX-License-Identifier: GPL-2.0
/*
 * Load instances_profile.bpf.o as three instances and run each of them for a while, for
 * instances_profile.sh, which profiles it. Prints what `bpftool prog show` has of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "instances_prologue.h"

#define NR 3
#define REPEAT 20000

int main(int argc, char **argv)
{
	static struct bpf_insn buf[4096];
	LIBBPF_OPTS(bpf_instances_opts, opts,
		.prep = prologue,
		.ctx = buf,
	);
	static char packet[64];
	struct bpf_instances *set;
	struct bpf_program *prog;
	struct bpf_object *obj;
	__u32 i;

	obj = argc == 2 ? bpf_object__open_file(argv[1], NULL) : NULL;
	if (!obj || bpf_object__prepare(obj))
		return 1;
	prog = bpf_object__find_program_by_name(obj, "spin");
	set = bpf_program__instantiate(prog, NR, &opts);
	bpf_program__set_autoload(prog, false);
	if (!set || bpf_object__load(obj))
		return 1;
	for (i = 0; i < NR; i++) {
		LIBBPF_OPTS(bpf_test_run_opts, run,
			.data_in = packet,
			.data_size_in = sizeof(packet),
			.repeat = REPEAT,
		);

		if (bpf_prog_test_run_opts(bpf_program__fd(bpf_instances__program(set, i)), &run)) {
			perror("bpf_prog_test_run_opts");
			return 1;
		}
	}
	fflush(stdout);
	if (system("bpftool prog show | grep -A 4 ' name spin_'"))
		return 1;
	bpf_object__close(obj);
	return 0;
}
