// SPDX-License-Identifier: GPL-2.0
#include <vmlinux.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

__u64 seen;

SEC("kprobe.multi")
int kprobe_multi(struct pt_regs *ctx)
{
	seen += bpf_get_attach_cookie(ctx);
	return 0;
}

SEC("kprobe.session")
int kprobe_session(struct pt_regs *ctx)
{
	seen += bpf_get_attach_cookie(ctx);
	return 0;
}

SEC("uprobe.multi")
int uprobe_multi(struct pt_regs *ctx)
{
	seen += bpf_get_attach_cookie(ctx);
	return 0;
}

SEC("uprobe.session")
int uprobe_session(struct pt_regs *ctx)
{
	seen += bpf_get_attach_cookie(ctx);
	return 0;
}

SEC("kprobe")
int kprobe_prog(struct pt_regs *ctx)
{
	seen += bpf_get_attach_cookie(ctx);
	return 0;
}

/* The kernel takes and ignores an attach type of another program type */
SEC("tracepoint")
int tracepoint_prog(void *ctx)
{
	seen++;
	return 0;
}
