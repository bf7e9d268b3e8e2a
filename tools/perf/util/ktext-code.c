// SPDX-License-Identifier: GPL-2.0
/*
 * The bytes of code that is in no file, and that no program info describes: trampolines,
 * classic BPF, and the like. They are known from TEXT_POKE records, or from the copy of
 * kcore that perf record makes when it begins.
 */
#include <errno.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <stdlib.h>
#include "annotate.h"
#include "data.h"
#include "dso.h"
#include "env.h"
#include "machine.h"
#include "map.h"
#include "maps.h"
#include "symbol.h"

/**
 * dso__is_recorded_kcore - does the dso use the copy that perf record --kcore made?
 * @dso: that of the kernel, with its symbols loaded
 */
bool dso__is_recorded_kcore(const struct dso *dso)
{
	return dso__is_kcore(dso) && is_recorded_kcore(dso__long_name(dso));
}

/*
 * A dispatcher has other instructions after it is rewritten, at other offsets. The samples
 * may be from before. What is patched in other text does not move instructions.
 */
static bool dso__has_outdated_samples(struct dso *dso, const struct symbol *sym)
{
	return dso__bpf_prog(dso)->patched && is_bpf_dispatcher(sym->name);
}

/* Read the code if TEXT_POKE records have written all of it. */
static u8 *dso__read_poked_code(struct dso *dso, const struct symbol *sym, size_t len)
{
	u8 last, *buf = NULL;

	/* The length is what a KSYMBOL said: do not allocate 4 GB for nothing. */
	if (!dso__has_outdated_samples(dso, sym) &&
	    dso__data_read_offset(dso, /*machine=*/NULL, sym->start + len - 1, &last, 1) == 1)
		buf = malloc(len);
	if (buf && dso__data_read_offset(dso, /*machine=*/NULL, sym->start,
					 buf, len) != (ssize_t)len)
		zfree(&buf);
	return buf;
}

/**
 * dso__read_code - read the code of a symbol
 * @dso: of type DSO_BINARY_TYPE__BPF_IMAGE or DSO_BINARY_TYPE__OOL
 * @map: its map
 * @sym: the symbol
 * @out_buf: set to the code to be freed, if it is a copy
 * @out_buf_len: set to the number of bytes
 * @is_64bit: set if the recorded kernel is a 64-bit one
 *
 * Return: the code; NULL and an errno for symbol__strerror_disassemble() if not all of
 * it is known.
 */
const u8 *dso__read_code(struct dso *dso, const struct map *map,
			 const struct symbol *sym,
			 u8 **out_buf, u64 *out_buf_len, bool *is_64bit)
{
	struct machine *machine = maps__machine(map__kmaps((struct map *)map));
	struct map *kernel_map = machine ? machine__kernel_map(machine) : NULL;
	/* Later text may overlap the end of the symbol, see machine__ksymbol_end(). */
	u64 end = min(sym->end, map__pgoff(map) + map__size(map));
	size_t len = end - sym->start;
	const u8 *code = NULL;

	if (sym->start >= end) {
		errno = SYMBOL_ANNOTATE_ERRNO__BPF_IMAGE_NO_CODE;
		return NULL;
	}

	*out_buf = dso__read_poked_code(dso, sym, len);
	if (*out_buf) {
		*is_64bit = !machine || !machine->env ||
			    perf_env__kernel_is_64_bit(machine->env);
		*out_buf_len = len;
		return *out_buf;
	}

	if (dso__bpf_prog(dso)->in_kcore && kernel_map && map__load(kernel_map) >= 0 &&
	    dso__is_recorded_kcore(map__dso(kernel_map))) {
		struct dso *kcore = map__dso(kernel_map);

		code = __dso__read_symbol(kcore, dso__long_name(kcore),
					  map__unmap_ip(map, sym->start), len,
					  out_buf, out_buf_len, is_64bit);
	}
	if (!code)
		errno = SYMBOL_ANNOTATE_ERRNO__BPF_IMAGE_NO_CODE;
	return code;
}

/**
 * dso__write_code - store what the kernel wrote to code that is in no file
 * @dso: of type DSO_BINARY_TYPE__BPF_IMAGE or DSO_BINARY_TYPE__OOL
 * @map: its map
 * @machine: the recorded machine
 * @addr: memory address of the first byte written
 * @bytes: the new bytes
 * @len: number of bytes
 *
 * Code that does not fit into a record comes in parts. Until all parts are known, none is
 * shown. Any write makes kcore's copy of an image outdated.
 *
 * Return: the number of bytes written, or -1.
 */
ssize_t dso__write_code(struct dso *dso, struct map *map, struct machine *machine,
			u64 addr, const u8 *bytes, ssize_t len)
{
	struct dso_bpf_prog *prog = dso__bpf_prog(dso);

	if (addr != map__start(map) || (u64)len < map__size(map))
		prog->patched = true;

	if (dso__binary_type(dso) == DSO_BINARY_TYPE__BPF_IMAGE) {
		prog->in_kcore = false;
		if (!dso__data(dso)->file_size)
			dso__data(dso)->file_size = map__size(map);
	}
	return dso__data_write_cache_addr(dso, map, machine, addr, bytes, len);
}
