// SPDX-License-Identifier: GPL-2.0
/* A program that calls a kfunc of a module, and returns what that returns: 7. */

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern unsigned int bpf_kfunc_call_test_static_unused_arg(unsigned int arg,
							  unsigned int unused) __ksym;

SEC("tc")
int module_kfunc(struct __sk_buff *skb)
{
	return bpf_kfunc_call_test_static_unused_arg(7, 1);
}

SEC("tc")
int no_kfunc(struct __sk_buff *skb)
{
	return 3;
}

char _license[] SEC("license") = "GPL";
