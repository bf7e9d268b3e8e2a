// SPDX-License-Identifier: GPL-2.0
/* Programs on functions that share their name. All are in any kernel with perf and a network. */
#include <vmlinux.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "GPL";

pid_t pid;
__u64 perf_entries, perf_exits, net_entries, multi_hits;
long perf_ret;
char perf_name[16], net_name[16];

static bool is_ours(void)
{
	return (pid_t)(bpf_get_current_pid_tgid() >> 32) == pid;
}

SEC("fentry/type_show@kernel/events/core.c")
int BPF_PROG(perf_entry, struct device *dev, struct device_attribute *attr, char *page)
{
	if (!is_ours())
		return 0;
	perf_entries++;
	bpf_probe_read_kernel_str(perf_name, sizeof(perf_name), dev->kobj.name);
	return 0;
}

SEC("fexit/type_show@events/core.c")
int BPF_PROG(perf_exit, struct device *dev, struct device_attribute *attr, char *page, long ret)
{
	if (!is_ours())
		return 0;
	perf_exits++;
	perf_ret = ret;
	return 0;
}

SEC("fentry/vmlinux:type_show@net-sysfs.c")
int BPF_PROG(net_entry, struct device *dev)
{
	if (!is_ours())
		return 0;
	net_entries++;
	bpf_probe_read_kernel_str(net_name, sizeof(net_name), dev->kobj.name);
	return 0;
}

SEC("?fentry/type_show@nowhere.c")
int BPF_PROG(nowhere)
{
	return 0;
}

/* Their targets are set. */
SEC("?fentry")
int BPF_PROG(clone_entry)
{
	return 0;
}

SEC("?fexit")
int BPF_PROG(clone_exit)
{
	return 0;
}

SEC("?fsession")
int BPF_PROG(clone_session)
{
	return 0;
}

SEC("?fentry.multi")
int BPF_PROG(multi_entry)
{
	multi_hits += is_ours();
	return 0;
}

SEC("?fexit.multi")
int BPF_PROG(multi_exit)
{
	return 0;
}
