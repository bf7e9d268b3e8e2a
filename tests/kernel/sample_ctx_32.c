// SPDX-License-Identifier: GPL-2.0
/*
 * Linked to the i386 kernel's bpf_perf_sample.o by test_sample_ctx_32.py: writes a
 * byte for each offset of 0 to OFFS and size of 1, 2, 4 and 8, which is 1 if a BPF
 * program may load that from the context of a perf event.
 *
 * There is no libc, and functions are called as the kernel's are (-mregparm=3).
 */
#define OFFS	512
#define READ	1	/* enum bpf_access_type BPF_READ */

_Bool pe_prog_is_valid_access(int off, int size, int type, const void *prog, void *info);

static void call(int nr, int fd, const void *buf, int len)
{
	__asm__ volatile("int $0x80" : : "a"(nr), "b"(fd), "c"(buf), "d"(len) : "memory");
}

void _start(void)
{
	static unsigned char valid[OFFS * 4];
	static long info[64];
	int off, bit;

	for (off = 0; off < OFFS; off++)
		for (bit = 0; bit < 4; bit++)
			valid[4 * off + bit] =
				pe_prog_is_valid_access(off, 1 << bit, READ, (void *)0, info);
	call(4, 1, valid, sizeof(valid));
	call(1, 0, (void *)0, 0);
}
