// SPDX-License-Identifier: GPL-2.0
/* Find the machine code of a BPF function. See bpf-code.h. */
#include "bpf-code.h"
#include "bpf-event.h"
#include "bpf-utils.h"
#include "dso.h"
#include "env.h"
#include "util/annotate.h"

#include <errno.h>
#include <linux/kernel.h>

static bool bpil__has(const struct perf_bpil *bpil, int array)
{
	return bpil->arrays & (1UL << array);
}

/**
 * bpil__code - find the code of one function of a program
 * @bpil: the program, from the kernel or from a file after bpil_offs_to_addr()
 * @sub_id: index of the function, 0 for the main one
 * @code: filled in
 *
 * Return: 0, or -ENODATA if the code, its addresses or its lengths are missing,
 * -EINVAL if they contradict each other or there is no function @sub_id.
 */
int bpil__code(const struct perf_bpil *bpil, u32 sub_id, struct bpf_code *code)
{
	const struct bpf_prog_info *info = &bpil->info;
	const u8 *insns = (const u8 *)(uintptr_t)info->jited_prog_insns;
	const u32 *lens = (const u32 *)(uintptr_t)info->jited_func_lens;
	const u64 *addrs = (const u64 *)(uintptr_t)info->jited_ksyms;
	u64 start = 0;

	if (!bpil__has(bpil, PERF_BPIL_JITED_INSNS) || !insns || !info->jited_prog_len ||
	    !bpil__has(bpil, PERF_BPIL_JITED_FUNC_LENS) || !lens ||
	    !bpil__has(bpil, PERF_BPIL_JITED_KSYMS) || !addrs)
		return -ENODATA;

	if (sub_id >= info->nr_jited_func_lens || sub_id >= info->nr_jited_ksyms)
		return -EINVAL;

	for (u32 i = 0; i < sub_id; i++)
		start += lens[i];

	if (start + lens[sub_id] > info->jited_prog_len)
		return -EINVAL;

	code->insns = insns + start;
	code->len = lens[sub_id];
	code->addr = addrs[sub_id];
	return 0;
}

/**
 * bpil__find_code - find the function that an address is in
 * @bpil: the program, as for bpil__code()
 * @addr: memory address, in the recorded kernel
 * @sub_id: set to the index of the function
 * @code: filled in
 *
 * Return: 0, -ENOENT if @addr is not in the program, or an error of bpil__code().
 */
int bpil__find_code(const struct perf_bpil *bpil, u64 addr, u32 *sub_id,
		    struct bpf_code *code)
{
	const struct bpf_prog_info *info = &bpil->info;
	const u32 *lens = (const u32 *)(uintptr_t)info->jited_func_lens;
	const u64 *addrs = (const u64 *)(uintptr_t)info->jited_ksyms;
	int err = bpil__code(bpil, 0, code);

	if (err)
		return err;

	for (u32 i = 0; i < min(info->nr_jited_ksyms, info->nr_jited_func_lens); i++) {
		if (addr >= addrs[i] && addr - addrs[i] < lens[i]) {
			*sub_id = i;
			return bpil__code(bpil, i, code);
		}
	}
	return -ENOENT;
}

/**
 * dso__bpf_code - find the code of the BPF function of a dso
 * @dso: of type DSO_BINARY_TYPE__BPF_PROG_INFO
 * @code: filled in
 *
 * Return: 0, or the SYMBOL_ANNOTATE_ERRNO__BPF_* that says why there is none.
 */
int dso__bpf_code(struct dso *dso, struct bpf_code *code)
{
	struct dso_bpf_prog *prog = dso__bpf_prog(dso);

	/* no BPF_EVENT has linked the KSYMBOL to a program */
	if (!prog->info)
		return SYMBOL_ANNOTATE_ERRNO__BPF_NO_PROG_INFO;

	if (bpil__code(prog->info->info_linear, prog->sub_id, code))
		return SYMBOL_ANNOTATE_ERRNO__BPF_NO_CODE;
	return 0;
}

/* The addresses at which the source lines of one function begin */
struct line_starts {
	const u64	*addrs;
	u32		nr;
	u64		func;
};

static struct line_starts bpil__line_starts(const struct perf_bpil *bpil,
					    const struct bpf_code *code)
{
	const struct bpf_prog_info *info = &bpil->info;
	const u64 *addrs = (const u64 *)(uintptr_t)info->jited_line_info;
	struct line_starts starts = { .func = code->addr };
	u32 i = 0;

	if (!bpil__has(bpil, PERF_BPIL_JITED_LINE_INFO) || !addrs ||
	    info->jited_line_info_rec_size != sizeof(*addrs))
		return starts;

	/* in the order of the functions, which have any addresses */
	while (i < info->nr_jited_line_info && addrs[i] - code->addr >= code->len)
		i++;
	starts.addrs = addrs + i;
	while (i < info->nr_jited_line_info && addrs[i] - code->addr < code->len) {
		starts.nr++;
		i++;
	}
	return starts;
}

static bool line_starts__equal(const struct line_starts *left, const struct line_starts *right)
{
	/* a program that has no lines, or whose lines could not be read */
	if (!left->nr || !right->nr)
		return true;
	if (left->nr != right->nr)
		return false;

	for (u32 i = 0; i < left->nr; i++) {
		if (left->addrs[i] - left->func != right->addrs[i] - right->func)
			return false;
	}
	return true;
}

/**
 * bpil__has_same_code - do two loads of a function have the same code?
 * @left: the program of one load
 * @left_id: number of the function in @left
 * @right: the program of the other load
 * @right_id: number of the function in @right
 *
 * The bytes of the same code differ: the addresses of maps, the distances of calls, and
 * constants if the JIT blinds them. Compare what does not depend on them, the size
 * of the function and where its source lines begin.
 *
 * Return: true if an offset is the same instruction in both, as far as is known.
 */
bool bpil__has_same_code(const struct perf_bpil *left, u32 left_id,
			 const struct perf_bpil *right, u32 right_id)
{
	struct line_starts lstarts, rstarts;
	struct bpf_code lcode, rcode;

	if (bpil__code(left, left_id, &lcode) || bpil__code(right, right_id, &rcode))
		return true;
	if (lcode.len != rcode.len)
		return false;

	lstarts = bpil__line_starts(left, &lcode);
	rstarts = bpil__line_starts(right, &rcode);
	return line_starts__equal(&lstarts, &rstarts);
}
