// SPDX-License-Identifier: GPL-2.0
#include <vmlinux.h>
#include <bpf/bpf_helpers.h>

#define NR 32		/* enough for a private stack, from BPF_PRIV_STACK_MIN_SIZE on */
#define MAX_LOOPS 8000000
#define WAIT_NS 500000000ull

extern bool CONFIG_PREEMPTION __kconfig __weak;

int first;		/* the task that waits in the program for the other one */
int waiting, passed, overlapped, runs, wrong, preemptible;

static int wait_for_other(__u32 i, __u64 *end)
{
	return *(volatile int *)&passed || bpf_ktime_get_ns() > *end;
}

static __noinline int on_uprobe(void)
{
	__u64 id = bpf_get_current_pid_tgid(), end = bpf_ktime_get_ns() + WAIT_NS;
	volatile __u64 mine[NR];
	int i;

	preemptible = CONFIG_PREEMPTION;
	for (i = 0; i < NR; i++)
		mine[i] = id;
	if ((int)id == first) {
		waiting = 1;
		bpf_loop(MAX_LOOPS, wait_for_other, &end, 0);
		overlapped = *(volatile int *)&passed;
	} else {
		passed = 1;
	}
	for (i = 0; i < NR; i++) {
		if (mine[i] != id) {
			wrong++;
			break;
		}
	}
	__sync_fetch_and_add(&runs, 1);
	return 0;
}

/* A program that has more than 512 bytes in all its functions */
static __noinline int with_more_stack(void)
{
	__u64 id = bpf_get_current_pid_tgid();
	volatile __u64 mine[NR + NR / 2];
	int i;

	for (i = 0; i < NR + NR / 2; i++)
		mine[i] = id;
	on_uprobe();
	for (i = 0; i < NR + NR / 2; i++) {
		if (mine[i] != id) {
			wrong++;
			break;
		}
	}
	return 0;
}

SEC("uprobe")
int single(struct pt_regs *ctx)
{
	return on_uprobe();
}

SEC("uprobe.s")
int single_sleepable(struct pt_regs *ctx)
{
	return on_uprobe();
}

SEC("?uprobe.s")
int single_deep_sleepable(struct pt_regs *ctx)
{
	return with_more_stack();
}

/* 4800 bytes: 8 times 512 are the limit */
#define LEVEL(function, callee)				\
	static __noinline void function(void)			\
	{							\
		volatile __u64 mine[60] = {};			\
								\
		(callee)();					\
		mine[1] = 0;					\
	}

LEVEL(level9, bpf_get_smp_processor_id)
LEVEL(level8, level9)
LEVEL(level7, level8)
LEVEL(level6, level7)
LEVEL(level5, level6)
LEVEL(level4, level5)
LEVEL(level3, level4)
LEVEL(level2, level3)
LEVEL(level1, level2)
LEVEL(level0, level1)

SEC("?uprobe.s")
int single_too_deep_sleepable(struct pt_regs *ctx)
{
	level0();
	return 0;
}

SEC("uprobe.multi")
int multi(struct pt_regs *ctx)
{
	return on_uprobe();
}

SEC("uprobe.multi.s")
int multi_sleepable(struct pt_regs *ctx)
{
	return on_uprobe();
}

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps"), other_targets SEC(".maps");

/* has no private stack itself, as all programs with tail calls */
SEC("uprobe")
int tail_call(struct pt_regs *ctx)
{
	bpf_tail_call_static(ctx, &targets, 0);
	return 0;
}

char _license[] SEC("license") = "GPL";
