// SPDX-License-Identifier: GPL-2.0
/*
 * Functions whose argument is in different places, for probe events and BPF programs that
 * fetch it: in each register of arguments, on the stack, behind one pointer and two, in
 * bit-fields, negative, as a string, and in a function that is inlined.
 *
 * All are called once, with the values of probe_args_run(), for each write to the
 * parameter "run" of the module:
 *
 *	# perf probe -m probe_args 'probe_args_arg* value'
 *	# perf record -e 'probe:*' -a -- \
 *		sh -c 'echo > /sys/module/probe_args/parameters/run'
 */
#include <linux/module.h>

/* The compiler has to keep the value. */
static __always_inline void use(long value)
{
	asm volatile("" : : "r" (value) : "memory");
}

struct probe_args_item {
	char			pad;
	unsigned int		before:3;
	unsigned int		bits:7;
	int			negative_bits:5;
	int			number;
	const char		*name;
	struct probe_args_item	*next;
};

static noinline __noipa void probe_args_arg1(long value)
{
	use(value);
}

static noinline __noipa void probe_args_arg2(int a, long value)
{
	use(value);
}

static noinline __noipa void probe_args_arg3(int a, int b, long value)
{
	use(value);
}

static noinline __noipa void probe_args_arg4(int a, int b, int c, long value)
{
	use(value);
}

static noinline __noipa void probe_args_arg5(int a, int b, int c, int d, long value)
{
	use(value);
}

static noinline __noipa void probe_args_arg6(int a, int b, int c, int d, int e, long value)
{
	use(value);
}

/* On the stack, where an architecture passes six in registers or fewer */
static noinline __noipa void probe_args_arg9(int a, int b, int c, int d, int e, int f,
					     int g, int h, long value)
{
	use(value);
}

static noinline __noipa void probe_args_item(struct probe_args_item *item)
{
	use((long)item);
}

/* Where no probe event is allowed (unless CONFIG_KPROBE_EVENTS_ON_NOTRACE is set) */
static noinline __noipa notrace void probe_args_not_traced(long value)
{
	use(value);
}

/* With an instruction of its own, at which the value still is in a register */
static __always_inline void probe_args_inlined(long value)
{
	use(value);
	asm volatile("nop" : : "r" (value));
}

static noinline __noipa void probe_args_around(long value)
{
	long more = value + 1;

	use(value);
	asm volatile("" : "+r" (more));
	probe_args_inlined(more);
}

static void probe_args_run(void)
{
	struct probe_args_item last = {
		.bits = 77, .negative_bits = -3, .number = -5, .name = "last",
	};
	struct probe_args_item item = {
		.bits = 33, .negative_bits = -16, .number = 300, .name = "first",
		.next = &last,
	};

	probe_args_arg1(11);
	probe_args_arg2(1, -22);
	probe_args_arg3(1, 2, 0x33333333);
	probe_args_arg4(1, 2, 3, -44);
	probe_args_arg5(1, 2, 3, 4, 55);
	probe_args_arg6(1, 2, 3, 4, 5, -66);
	probe_args_arg9(1, 2, 3, 4, 5, 6, 7, 8, 99);
	probe_args_item(&item);
	probe_args_around(14);
	probe_args_not_traced(16);
}

static int probe_args_set_run(const char *val, const struct kernel_param *kp)
{
	probe_args_run();
	return 0;
}

static const struct kernel_param_ops probe_args_run_ops = {
	.set = probe_args_set_run,
};
module_param_cb(run, &probe_args_run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "Call all functions once");

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Sample of functions whose argument is in different places");
