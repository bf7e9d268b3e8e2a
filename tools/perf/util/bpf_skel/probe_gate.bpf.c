// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * When, and in which tasks, may the programs of -e FILE.bpf.o run?
 *
 * A program on a probe event runs from when it is attached, and for every task, whatever
 * the event that it was attached through is limited to. So perf puts code before it that
 * looks here: is the recording enabled, and is the current task part of it? Children of
 * a recorded task are marked when they are created, before they run.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

__u32 enabled;
__u32 missed;	/* tasks that could not be marked as recorded */

struct recorded_tasks {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u8);
} recorded_tasks SEC(".maps");

SEC("tp_btf/task_newtask")
int BPF_PROG(mark_child, struct task_struct *child)
{
	if (!bpf_task_storage_get(&recorded_tasks, bpf_get_current_task_btf(), 0, 0))
		return 0;
	if (!bpf_task_storage_get(&recorded_tasks, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
		__sync_fetch_and_add(&missed, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
