// SPDX-License-Identifier: GPL-2.0
/*
 * bpf_program__instantiate() while memory is short: the first allocation fails, then the
 * second, and so on, until all succeed. Each time there is no instance, errno is ENOMEM,
 * and as many files are open as before. Linked with --wrap for what follows, and with the
 * address sanitizer, which sees what is not freed, or twice.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bpf.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "instances_prologue.h"

#define NR 3

static long nr_allocs, fail_at = -1;

static bool fails(void)
{
	return fail_at >= 0 && nr_allocs++ == fail_at;
}

#define WRAP(name, params, args)				\
	void *__real_##name params;				\
	void *__wrap_##name params;				\
	void *__wrap_##name params				\
	{							\
		if (fails()) {					\
			errno = ENOMEM;				\
			return NULL;				\
		}						\
		return __real_##name args;			\
	}

WRAP(malloc, (size_t size), (size))
WRAP(calloc, (size_t nr, size_t size), (nr, size))
WRAP(realloc, (void *old, size_t size), (old, size))
WRAP(reallocarray, (void *old, size_t nr, size_t size), (old, nr, size))
WRAP(strdup, (const char *s), (s))

int __wrap_asprintf(char **text, const char *format, ...);
int __wrap_asprintf(char **text, const char *format, ...)
{
	va_list args;
	int len;

	if (fails())
		return -1;
	va_start(args, format);
	len = vasprintf(text, format, args);
	va_end(args);
	return len;
}

static int nr_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	while (dir && readdir(dir))
		nr++;
	if (dir)
		closedir(dir);
	return nr;
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* Fail each allocation in turn. Return how many there are, or -1. */
static long try_all(struct bpf_program *prog)
{
	static struct bpf_insn buf[4096];
	LIBBPF_OPTS(bpf_instances_opts, opts,
		.prep = prologue,
		.ctx = buf,
	);
	struct bpf_instances *set;
	int fds = nr_fds(), err;
	long i;

	for (i = 0;; i++) {
		nr_allocs = 0;
		fail_at = i;
		set = bpf_program__instantiate(prog, NR, &opts);
		err = errno;
		fail_at = -1;
		if (set)
			break;
		if (err != ENOMEM || nr_fds() != fds) {
			printf("allocation %ld failed: errno %d (%s), %d files open, were %d\n",
			       i, err, strerror(err), nr_fds(), fds);
			return -1;
		}
	}
	if (nr_allocs > i) {
		printf("allocation %ld failed, and nobody noticed\n", i);
		return -1;
	}
	if (nr_fds() != fds + NR) {
		printf("%d files open, were %d, for %d instances\n", nr_fds(), fds, NR);
		return -1;
	}
	return i;
}

int main(int argc, char **argv)
{
	struct bpf_program *prog;
	struct bpf_object *obj;
	long nr = -1;

	if (argc != 3) {
		fprintf(stderr, "usage: %s FILE.bpf.o PROGRAM\n", argv[0]);
		return 2;
	}
	obj = bpf_object__open_file(argv[1], NULL);
	prog = obj ? bpf_object__find_program_by_name(obj, argv[2]) : NULL;
	if (!prog || bpf_object__prepare(obj)) {
		perror(argv[1]);
		return 1;
	}
	libbpf_set_print(quiet);
	nr = try_all(prog);
	if (nr >= 0)
		printf("%ld allocations for %d instances, each failed once\n", nr, NR);
	bpf_object__close(obj);
	return nr < 10;
}
