// SPDX-License-Identifier: GPL-2.0
/* A BPF program reads the text: not every configuration has /proc/kcore. */
#include <stdlib.h>
#include <unistd.h>

#include "bpf_load.h"
#include "text_end.h"

#define FILLING		0xcc	/* int3 */
#define CHUNK		64	/* unit of allocation of BPF text */

/* Copy @len bytes of kernel memory at @addr to @buf. Return: 0 or -errno. */
static int read_kernel(__u64 addr, void *buf, __u32 len)
{
	int map = value_map(len), err;
	const struct bpf_insn insns[] = {
		BPF_LD_MAP_VALUE(BPF_REG_1, map, 0),
		BPF_MOV64_IMM(BPF_REG_2, len),
		BPF_LD_IMM64(BPF_REG_3, addr),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel),
		BPF_EXIT_INSN(),
	};

	err = run_once(insns, ARRAY_SIZE(insns), map, buf);
	close_fd(&map);
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
