// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that are loaded as several instances. The prologue of each instance sets the
 * second and third argument: which instance it is, and a value.
 */

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define MAX_INSTANCES 4096

struct result {
	__u64 hits;
	__u64 sum;
	__u64 cookie;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_INSTANCES);
	__type(key, __u32);
	__type(value, struct result);
} results SEC(".maps");

const volatile __u64 factor = 1;
int pid;

struct loop {
	__u64 value;
	__u64 sum;
};

static int add(__u32 i, struct loop *loop)
{
	loop->sum += loop->value;
	return 0;
}

static __noinline __u64 scaled(__u64 value)
{
	return value * factor;
}

/* Add three times the value, scaled, with a subprogram and with a callback. */
static __always_inline int count(__u32 id, __u64 value, __u64 cookie)
{
	struct loop loop = { .value = scaled(value) };
	struct result *result;

	if (bpf_get_current_pid_tgid() >> 32 != pid)
		return 0;
	result = bpf_map_lookup_elem(&results, &id);
	if (!result)
		return 0;
	bpf_loop(3, add, &loop, 0);
	result->hits++;
	result->sum += loop.sum;
	result->cookie = cookie;
	return 0;
}

/* The same for each way to attach */
#define PROGRAM(section, name)						\
SEC(section)								\
int name(void *ctx, __u64 id, __u64 value)				\
{									\
	return count(id, value, bpf_get_attach_cookie(ctx));		\
}

PROGRAM("kprobe", on_kprobe)
PROGRAM("kprobe.multi", on_kprobe_multi)
PROGRAM("uprobe", on_uprobe)
PROGRAM("perf_event", on_perf_event)
PROGRAM("tracepoint", on_tracepoint)
PROGRAM("fentry", on_fentry)

SEC("kprobe")
int plain(void *ctx)
{
	return factor;
}

struct task_struct___other {
	int no_such_member;
} __attribute__((preserve_access_index));

SEC("?kprobe")
int bad_core(void *ctx, struct task_struct___other *task)
{
	return task->no_such_member;
}

char _license[] SEC("license") = "GPL";
