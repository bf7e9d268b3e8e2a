// SPDX-License-Identifier: GPL-2.0
/* A program that the verifier refuses: it reads a register that is not set. */

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "bpf_misc.h"

SEC("socket")
__naked int bad(void)
{
	asm volatile ("r0 = r7; exit;" ::: __clobber_all);
}

char _license[] SEC("license") = "GPL";
