// SPDX-License-Identifier: GPL-2.0
/*
 * Sum up an argument that is the first, second or third of the functions that are
 * probed: three instances of one program, attached at four functions.
 */

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

/* What a probe's program gets as its context, and where arguments are in there. */
#if defined(__x86_64__)
static const short reg_offsets[] = {
	offsetof(struct pt_regs, rdi),
	offsetof(struct pt_regs, rsi),
	offsetof(struct pt_regs, rdx),
};
#elif defined(__aarch64__)
static const short reg_offsets[] = {
	offsetof(struct user_pt_regs, regs[0]),
	offsetof(struct user_pt_regs, regs[1]),
	offsetof(struct user_pt_regs, regs[2]),
};
#else
#error "say in which registers the first three arguments are"
#endif

#define NR_LAYOUTS (sizeof(reg_offsets) / sizeof(reg_offsets[0]))

__attribute__((noinline)) void one(long value)
{
	asm volatile ("" :: "r"(value));
}

__attribute__((noinline)) void two(long x, long value)
{
	asm volatile ("" :: "r"(x), "r"(value));
}

__attribute__((noinline)) void three(long x, long y, long value)
{
	asm volatile ("" :: "r"(x), "r"(y), "r"(value));
}

__attribute__((noinline)) void two_again(long x, long value)
{
	asm volatile ("" :: "r"(value), "r"(x));
}

/* Where the program is attached, and the layout of the arguments there. */
static const struct {
	const char *func;
	unsigned int layout;
} points[] = {
	{ "one",	0 },
	{ "two",	1 },
	{ "three",	2 },
	{ "two_again",	1 },
};

#define NR_POINTS (sizeof(points) / sizeof(points[0]))

/* not a constant, for which the compiler would make another function */
static volatile long zero;

/* [prologue: load the argument from the registers that the context is to r2] */
static int load_argument(const struct bpf_program *prog, __u32 idx,
			 const struct bpf_insn *insns, size_t insn_cnt,
			 struct bpf_instance_code *code, void *ctx)
{
	const struct bpf_insn load = {
		.code = BPF_LDX | BPF_MEM | BPF_DW,
		.dst_reg = BPF_REG_2,
		.src_reg = BPF_REG_1,
		.off = reg_offsets[idx],
	};
	struct bpf_insn *buf, **bufp = ctx;

	buf = realloc(*bufp, (1 + insn_cnt) * sizeof(*buf));
	if (!buf)
		return -ENOMEM;
	*bufp = buf;

	buf[0] = load;
	memcpy(buf + 1, insns, insn_cnt * sizeof(*buf));
	code->insns = buf;
	code->insn_cnt = 1 + insn_cnt;
	code->prologue_cnt = 1;
	return 0;
}

/* [end of excerpt] */

static struct bpf_link *links[NR_POINTS];

/* [attach: one instance for each layout, with the cookie of the point] */
static int attach_all(struct bpf_instances *set)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts);
	struct bpf_program *prog;
	unsigned int i;

	for (i = 0; i < NR_POINTS; i++) {
		prog = bpf_instances__program(set, points[i].layout);
		opts.func_name = points[i].func;
		opts.bpf_cookie = i;
		links[i] = bpf_program__attach_uprobe_opts(prog, getpid(), "/proc/self/exe", 0,
							   &opts);
		if (!links[i]) {
			fprintf(stderr, "%s: can't attach to %s(): %s\n",
				bpf_program__name(prog), points[i].func, strerror(errno));
			return -1;
		}
	}
	return 0;
}

/* [end of excerpt] */

static int print_sums(struct bpf_object *obj)
{
	int fd = bpf_object__find_map_fd_by_name(obj, "sums");
	__u64 sum;
	__u32 i;

	for (i = 0; i < NR_POINTS; i++) {
		if (bpf_map_lookup_elem(fd, &i, &sum)) {
			fprintf(stderr, "can't read the sums: %s\n", strerror(errno));
			return -1;
		}
		printf("%-10s argument %u: %llu\n", points[i].func, points[i].layout + 1,
		       (unsigned long long)sum);
	}
	return 0;
}

/* [order: prepare, instantiate, load] */
static int run(struct bpf_object *obj)
{
	struct bpf_insn *buf = NULL;
	LIBBPF_OPTS(bpf_instances_opts, opts,
		.prep = load_argument,
		.ctx = &buf,
	);
	struct bpf_instances *set;
	struct bpf_program *prog;
	long i;

	prog = bpf_object__find_program_by_name(obj, "sum_values");
	if (!prog || bpf_object__prepare(obj))
		return -1;
	set = bpf_program__instantiate(prog, NR_LAYOUTS, &opts);
	free(buf);
	/* without a prologue it has no second argument */
	bpf_program__set_autoload(prog, false);
	if (!set || bpf_object__load(obj) || attach_all(set))
		return -1;

	for (i = 1; i <= 10; i++) {
		one(i);
		two(zero, 10 * i);
		three(zero, zero, 100 * i);
		two_again(zero, 1000 * i);
	}
	return print_sums(obj);
}

/* [end of excerpt] */

int main(int argc, char **argv)
{
	struct bpf_object *obj;
	char file[4096];
	unsigned int i;
	int err;

	snprintf(file, sizeof(file), "%s.bpf.o", argv[0]);
	obj = bpf_object__open_file(file, NULL);
	if (!obj) {
		fprintf(stderr, "can't open %s: %s\n", file, strerror(errno));
		return 1;
	}
	err = run(obj);
	for (i = 0; i < NR_POINTS; i++)
		bpf_link__destroy(links[i]);
	bpf_object__close(obj);
	return !!err;
}
