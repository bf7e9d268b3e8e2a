// SPDX-License-Identifier: GPL-2.0
/*
 * Programs for libbpf_by_address.c, on functions of probe-sample-c that a name does not
 * find. Each adds what it is passed to a sum of its own.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct sample_point {
	int x;
	int y;
} __attribute__((preserve_access_index));

struct {
	long main_sum, other_sum, other_ret, cloned_sum, chars;
} sums;

SEC("fentry/probe_sample_c:sample_twice@probe-sample-c-main.c")
int BPF_PROG(main_entry, int first, const char *second)
{
	char c = 0;

	sums.main_sum += first;
	bpf_probe_read_kernel(&c, sizeof(c), second);
	sums.chars += c;
	return 0;
}

SEC("fexit/sample_twice@probe_events/probe-sample-c-other.c")
int BPF_PROG(other_exit, struct sample_point *point, __u8 flags, long weight, unsigned long ret)
{
	sums.other_sum += point->y * 10000L + flags * 10 + weight;
	sums.other_ret += ret;
	return 0;
}

/* A clone, of which the target is set: its number is the compiler's. */
SEC("fentry")
int BPF_PROG(cloned_entry, long count, __u8 flags)
{
	sums.cloned_sum += count * 1000 + flags;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
