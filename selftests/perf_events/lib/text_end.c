// SPDX-License-Identifier: GPL-2.0
/* A BPF program reads the text: not every configuration has /proc/kcore. */
#include <stdlib.h>
#include <unistd.h>

#include "bpf_raw.h"
#include "text_end.h"

#define FILLING		0xcc	/* int3 */
#define CHUNK		64	/* unit of allocation of BPF text */

/* Copy @len bytes of kernel memory at @addr to @buf. Return: 0 or -errno. */
static int read_kernel(__u64 addr, void *buf, __u32 len)
{
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT };
	int map_fd = bpf_raw_value_map(len), prog_fd, err;

	if (map_fd < 0)
		return map_fd;

	const struct bpf_insn insns[] = {
		BPF_RAW_LD_IMM64_LO(BPF_REG_1, BPF_PSEUDO_MAP_VALUE, map_fd),
		BPF_RAW_LD_IMM64_HI(0),		/* offset in the value */
		BPF_RAW_MOV_IMM(BPF_REG_2, len),
		BPF_RAW_LD_IMM64_LO(BPF_REG_3, 0, addr),
		BPF_RAW_LD_IMM64_HI(addr),
		BPF_RAW_CALL(BPF_FUNC_probe_read_kernel),
		BPF_RAW_EXIT(),
	};

	prog_fd = bpf_raw_load(&attr, insns, sizeof(insns) / sizeof(*insns));
	err = prog_fd;
	if (prog_fd >= 0) {
		err = bpf_raw_test_run(prog_fd);
		close(prog_fd);
	}
	if (!err)
		err = bpf_raw_map_lookup(map_fd, buf);
	close(map_fd);
	return err;
}

/*
 * x86-64 functions that are JITed end with "ret", with "ret; int3" against
 * straight-line speculation, or with "jmp return_thunk". @code has @size bytes,
 * and the function is said to be the first @len of them.
 */
static const char *end_wrong(const __u8 *code, size_t len, size_t size)
{
	bool ret = code[len - 1] == 0xc3;
	bool ret_int3 = len > 1 && code[len - 2] == 0xc3 &&
			code[len - 1] == 0xcc;
	bool jmp = len > 4 && code[len - 5] == 0xe9;
	size_t i;

	if (!ret && !ret_int3 && !jmp)
		return "the last byte is not the end of a return";
	for (i = len; i < size; i++)
		if (code[i] != FILLING)
			return "something other than filling follows the end";
	return NULL;
}

const char *text_end_wrong(const struct ksym_rec *rec)
{
	__u64 end = rec->k.addr + rec->k.len;
	size_t size = (end + CHUNK - 1) / CHUNK * CHUNK - rec->k.addr;
	const char *bad = "kernel text is not readable";
	__u8 *code;

	if (!rec->k.len)
		return "it is empty";
	code = malloc(size);
	if (code && !read_kernel(rec->k.addr, code, size))
		bad = end_wrong(code, rec->k.len, size);
	free(code);
	return bad;
}
