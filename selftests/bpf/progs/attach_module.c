// SPDX-License-Identifier: GPL-2.0
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 kprobe_runs;
__u64 kprobe_offset_runs;
__u64 kretprobe_runs;
__u64 manual_runs;

SEC("?fentry")
int handle_fentry(void *ctx)
{
	return 0;
}

SEC("?kprobe/bpf_testmod:bpf_testmod_test_read")
int handle_kprobe(void *ctx)
{
	kprobe_runs++;
	return 0;
}

SEC("?kprobe/bpf_testmod:bpf_testmod_test_read+0x0")
int handle_kprobe_offset(void *ctx)
{
	kprobe_offset_runs++;
	return 0;
}

SEC("?kretprobe/bpf_testmod:bpf_testmod_test_read")
int handle_kretprobe(void *ctx)
{
	kretprobe_runs++;
	return 0;
}

SEC("?kprobe")
int handle_manual(void *ctx)
{
	manual_runs++;
	return 0;
}

/* vfs_read() is not a module, and no prefix of a name is attached to. */
SEC("?kprobe/vfs_read:bpf_testmod_test_read")
int no_module(void *ctx)
{
	return 0;
}

SEC("?kprobe/vfs_read-x")
int invalid_kprobe(void *ctx)
{
	return 0;
}

SEC("?kprobe/vfs_read+")
int invalid_kprobe_offset(void *ctx)
{
	return 0;
}

SEC("?kprobe/vfs_read+0x0z")
int invalid_kprobe_digits(void *ctx)
{
	return 0;
}

SEC("?kretprobe/vfs_read-x")
int invalid_kretprobe(void *ctx)
{
	return 0;
}

SEC("?kprobe.multi/vfs_read:x")
int invalid_kprobe_multi(void *ctx)
{
	return 0;
}

SEC("?kprobe.session/vfs_read-x")
int invalid_kprobe_session(void *ctx)
{
	return 0;
}

SEC("?fentry.multi/vfs_read-x")
int invalid_fentry_multi(void *ctx)
{
	return 0;
}

char _license[] SEC("license") = "GPL";
