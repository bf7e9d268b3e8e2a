// SPDX-License-Identifier: GPL-2.0
/* For tests of bpf_program__clone() */

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "bpf_misc.h"

/* The verifier refuses it: it reads a register that is not set. */
SEC("socket")
__naked int bad(void)
{
	asm volatile ("r0 = r7; exit;" ::: __clobber_all);
}

SEC("?fentry/bpf_fentry_test1")
int on_fentry(void *ctx)
{
	return 0;
}

char _license[] SEC("license") = "GPL";
