// SPDX-License-Identifier: GPL-2.0
/*
 * Does libbpf attach to functions of a module by their source file, and to a clone, and
 * are the programs passed what the function is passed? The programs are those of
 * libbpf_by_address.bpf.c, the functions those of samples/probe_events/probe-sample-c-*.c.
 *
 *	libbpf_by_address FILE.bpf.o
 *
 * Exit status: 0 as it should be, 1 not.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <bpf/libbpf.h>

#define MODULE		"probe_sample_c"
#define RUN		"/sys/module/" MODULE "/parameters/run"

static int failed;

static void expect(const char *what, long is, long expected)
{
	printf("%s: %s: %ld, expected %ld\n", is == expected ? "ok" : "not ok", what, is, expected);
	failed |= is != expected;
}

/* Find the symbol of a clone of @name in the module: "MODULE:SYMBOL". */
static bool find_clone(const char *name, char *target, size_t size)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	char line[512], symbol[256], module[64];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %*s %255s %63s", symbol, module) != 2 ||
		    strcmp(module, "[" MODULE "]") || strncmp(symbol, name, strlen(name)) ||
		    symbol[strlen(name)] != '.')
			continue;
		snprintf(target, size, "%s:%s", MODULE, symbol);
		found = true;
	}
	if (file)
		fclose(file);
	return found;
}

struct sums {
	long main_sum, other_sum, other_ret, cloned_sum, chars;
};

static int run(struct bpf_object *obj)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, ".bss");
	struct bpf_program *prog;
	const struct sums *sums;
	FILE *file;
	size_t size;

	if (bpf_object__load(obj))
		return 1;
	bpf_object__for_each_program(prog, obj) {
		if (!bpf_program__attach(prog))
			return 1;
	}
	file = fopen(RUN, "w");
	if (!file || fputs("1\n", file) < 0 || fclose(file)) {
		perror(RUN);
		return 1;
	}
	sums = bpf_map__initial_value(map, &size);
	expect("sample_twice() of main: first", sums->main_sum, -7);
	expect("sample_twice() of main: second[0]", sums->chars, 's');
	expect("sample_twice() of other: arguments", sums->other_sum, 60000 + 2490 - 8);
	expect("sample_twice() of other: value", sums->other_ret, 5 + 249 - 8);
	expect("clone of sample_cloned()", sums->cloned_sum, 998 * 1000 + 200 + 201);
	return failed;
}

int main(int argc, char **argv)
{
	struct bpf_object *obj;
	char target[512];

	if (argc != 2) {
		fprintf(stderr, "Usage: libbpf_by_address FILE.bpf.o\n");
		return 1;
	}
	obj = bpf_object__open_file(argv[1], NULL);
	if (!obj)
		return 1;
	if (!find_clone("sample_cloned", target, sizeof(target))) {
		fprintf(stderr, "no clone of sample_cloned() in " MODULE "\n");
		return 1;
	}
	if (bpf_program__set_attach_target(bpf_object__find_program_by_name(obj, "cloned_entry"),
					   0, target))
		return 1;
	return run(obj);
}
