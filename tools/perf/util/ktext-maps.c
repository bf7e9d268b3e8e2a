// SPDX-License-Identifier: GPL-2.0
/*
 * Which map has which kernel text: that of modules, and what the kernel generates and
 * reports by PERF_RECORD_KSYMBOL.
 *
 * Such text comes and goes, and what a file says of it may be old, a guess, or damaged.
 * A new map replaces those that it overlaps, as their text must have gone. The kernel's
 * own map is the exception: its text stays, and other structures point to it.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <stdlib.h>
#include <string.h>
#include <symbol/kallsyms.h>
#include "build-id.h"
#include "debug.h"
#include "dso.h"
#include "dsos.h"
#include "event.h"
#include "ktext-maps.h"
#include "machine.h"
#include "map.h"
#include "maps.h"
#include "sample.h"
#include "string2.h"
#include "symbol.h"

/*
 * Find where the map of a KSYMBOL ends. The kernel's own text is not dynamic, so no
 * KSYMBOL may replace a part of its map. The length of a BPF image may be a page that
 * also has other text: some kernels report that, and perf does when it synthesizes
 * from /proc/kallsyms. End the image where other text begins.
 */
static u64 machine__ksymbol_end(struct machine *machine,
				const struct perf_record_ksymbol *ksymbol)
{
	u64 start = ksymbol->addr, end = start + ksymbol->len;
	u64 next = ULLONG_MAX;

	if (end < start)
		end = ULLONG_MAX;

	if (is_bpf_image(ksymbol->name))
		next = maps__next_start(machine__kernel_maps(machine), start);
	else if (machine->vmlinux_map && map__start(machine->vmlinux_map) > start)
		next = map__start(machine->vmlinux_map);

	return min(end, next);
}

/*
 * Is the code of a KSYMBOL in the copy of kcore that perf record makes at its start?
 * Yes, if the record was synthesized then, or replayed by the kernel: the text existed.
 * Not that of a dispatcher: it is rewritten in halves, and no record has all of it.
 */
static bool ksymbol__is_in_kcore(const struct perf_record_ksymbol *ksymbol,
				 const struct perf_sample *sample)
{
	if (is_bpf_dispatcher(ksymbol->name))
		return false;

	return (ksymbol->header.misc & PERF_RECORD_MISC_KSYMBOL_SNAPSHOT) ||
	       (sample && sample->time == 0);
}

/*
 * Nothing may replace a part of the kernel's own map, which other structures point
 * to. Nor may a KSYMBOL add or delete symbols of the kernel: hist entries point to
 * them. If the end of the kernel is unknown, it is where dynamic text begins. So it is
 * behind the recorded end: the map also covers data when symbols are loaded, and perf inject
 * --aslr puts dynamic text there.
 *
 * Return: true if a map from @start to @end can be inserted.
 */
static bool machine__make_room(struct machine *machine, u64 start, u64 end)
{
	struct map *kernel = machine->vmlinux_map;

	if (!kernel || start >= map__end(kernel) || end <= map__start(kernel))
		return true;

	if (start <= map__start(kernel) ||
	    (machine->kernel_end != KERNEL_END_UNKNOWN && start < machine->kernel_end))
		return false;

	maps__shorten(machine__kernel_maps(machine), kernel, start);
	return true;
}

/* The code is in no file; the binary type selects where perf reads it from. */
static enum dso_binary_type ksymbol__binary_type(const struct perf_record_ksymbol *ksymbol)
{
	switch (ksymbol->ksym_type) {
	case PERF_RECORD_KSYMBOL_TYPE_OOL:
		return DSO_BINARY_TYPE__OOL;
	case PERF_RECORD_KSYMBOL_TYPE_BPF:
		/* whether or not its program info comes later */
		return is_bpf_image(ksymbol->name) ? DSO_BINARY_TYPE__BPF_IMAGE :
						     DSO_BINARY_TYPE__BPF_PROG_INFO;
	case PERF_RECORD_KSYMBOL_TYPE_CBPF:
	case PERF_RECORD_KSYMBOL_TYPE_THUNK:
	default:
		return DSO_BINARY_TYPE__BPF_IMAGE;
	}
}

/* Was this map made by a KSYMBOL of the same type, at the same address? */
static bool map__is_ksymbol(const struct map *map, const struct perf_record_ksymbol *ksymbol)
{
	return map__start(map) == ksymbol->addr &&
	       dso__binary_type(map__dso(map)) == ksymbol__binary_type(ksymbol);
}

/* A program that is loaded while perf synthesizes is reported twice. */
static bool map__is_same_ksymbol(const struct map *map, const struct perf_record_ksymbol *ksymbol,
				 u64 end, const char *name)
{
	return map__is_ksymbol(map, ksymbol) && map__end(map) == end &&
	       !strcmp(dso__short_name(map__dso(map)), name);
}

/* kcore also has the bytes of out-of-line code. Its KSYMBOL has none. */
static bool kcore__has_ksymbol(const struct map *map, const struct perf_record_ksymbol *ksymbol,
			       const struct perf_sample *sample)
{
	return ksymbol__binary_type(ksymbol) == DSO_BINARY_TYPE__OOL &&
	       dso__is_recorded_kcore(map__dso(map)) && ksymbol__is_in_kcore(ksymbol, sample);
}

/**
 * dso__new_ktext - allocate the dso of generated kernel text
 * @name: of the text
 * @type: where its code is found
 * @size: its size
 *
 * Return: the dso, without symbols; NULL if out of memory.
 */
struct dso *dso__new_ktext(const char *name, enum dso_binary_type type, u64 size)
{
	struct dso *dso = dso__new(name);

	if (!dso)
		return NULL;

	dso__set_kernel(dso, DSO_SPACE__KERNEL);
	dso__set_binary_type(dso, type);
	dso__set_text_end(dso, size);

	/*
	 * There is no file with other addresses: the disassemblers use those in
	 * memory, as for vmlinux.
	 */
	dso__set_adjust_symbols(dso, true);
	return dso;
}

/* The symbol of a BPF function is added at its first sample, see dso__load_bpf_func(). */
static int ksymbol__add_symbol(const struct perf_record_ksymbol *ksymbol, struct dso *dso,
			       const struct perf_sample *sample)
{
	struct symbol *sym;

	if (dso__is_bpf_prog(dso))
		return 0;

	sym = symbol__new(/*start=*/0, dso__text_end(dso), /*binding=*/0, /*type=*/0,
			  dso__short_name(dso));
	if (!sym)
		return -ENOMEM;
	dso__insert_symbol(dso, sym);
	dso__set_loaded(dso);
	dso__bpf_prog(dso)->in_kcore = ksymbol__is_in_kcore(ksymbol, sample);
	if (dso__binary_type(dso) == DSO_BINARY_TYPE__OOL)
		dso__data(dso)->file_size = ksymbol->len;
	return 0;
}

/* Insert a map for a KSYMBOL. It replaces older maps of these addresses. */
static int machine__add_ksymbol_map(struct machine *machine,
				    const struct perf_record_ksymbol *ksymbol, u64 end,
				    const char *name, const struct perf_sample *sample)
{
	struct dso *dso = dso__new_ktext(name, ksymbol__binary_type(ksymbol), end - ksymbol->addr);
	struct map *map = NULL;
	int err = -ENOMEM;

	if (!dso)
		return err;

	if (ksymbol__add_symbol(ksymbol, dso, sample))
		goto out;

	map = map__new2(ksymbol->addr, dso);
	if (!map)
		goto out;

	map__set_end(map, end);
	if (!maps__fixup_overlap_and_insert(machine__kernel_maps(machine), map))
		err = 0;
out:
	map__put(map);
	dso__put(dso);
	return err;
}

static int machine__process_ksymbol_register(struct machine *machine,
					     const struct perf_record_ksymbol *ksymbol,
					     struct perf_sample *sample, const char *name)
{
	u64 end = machine__ksymbol_end(machine, ksymbol);
	struct map *map;
	int err = 0;

	if (!machine__make_room(machine, ksymbol->addr, end)) {
		pr_debug("KSYMBOL %s at %#" PRI_lx64 " is in the kernel's own text, ignored\n",
			 name, ksymbol->addr);
		return 0;
	}

	map = maps__find(machine__kernel_maps(machine), ksymbol->addr);
	if (map && (map__is_same_ksymbol(map, ksymbol, end, name) ||
		    kcore__has_ksymbol(map, ksymbol, sample)))
		goto out;

	/* The length of an image may be a guess: cut it where other text begins. */
	if (map && map__start(map) < ksymbol->addr && __map__is_bpf_image(map))
		maps__shorten(machine__kernel_maps(machine), map, ksymbol->addr);

	err = machine__add_ksymbol_map(machine, ksymbol, end, name, sample);
out:
	map__put(map);
	return err;
}

static void machine__process_ksymbol_unregister(struct machine *machine,
						const struct perf_record_ksymbol *ksymbol,
						const char *name)
{
	struct map *map = maps__find(machine__kernel_maps(machine), ksymbol->addr);

	/* there may be other text by now, whose record came early */
	if (map && map__is_ksymbol(map, ksymbol) && !strcmp(dso__short_name(map__dso(map)), name))
		maps__remove(machine__kernel_maps(machine), map);

	map__put(map);
}

static bool map__is_kmod_at(struct map *map, void *data)
{
	const u64 *start = data;

	return dso__is_kmod(map__dso(map)) && map__kmod_start(map) == *start;
}

/* Modules and their init text begin with an MMAP record: handle only their end. */
static void machine__process_module_ksymbol(struct machine *machine,
					    const struct perf_record_ksymbol *ksymbol)
{
	u64 start = ksymbol->addr;

	if (ksymbol->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER)
		maps__remove_maps(machine__kernel_maps(machine), map__is_kmod_at, &start);
}

int machine__process_ksymbol(struct machine *machine, union perf_event *event,
			     struct perf_sample *sample)
{
	const struct perf_record_ksymbol *ksymbol = &event->ksymbol;
	const char *name = ksymbol->name;
	char *copy = NULL;
	int err = 0;

	if (dump_trace)
		perf_event__fprintf_ksymbol(event, stdout);

	if (event->header.size < offsetof(struct perf_record_ksymbol, name) + 2 ||
	    !memchr(ksymbol->name, '\0',
		    event->header.size - offsetof(struct perf_record_ksymbol, name)))
		return -EINVAL;

	/* no need to process non-JIT BPF as it cannot get samples */
	if (ksymbol->len == 0)
		return 0;

	if (ksymbol->ksym_type == PERF_RECORD_KSYMBOL_TYPE_MODULE) {
		machine__process_module_ksymbol(machine, ksymbol);
		return 0;
	}

	/* Ignore mapping symbols in ksymbol events - check early before any state mutation */
	if (is_ignored_kernel_symbol(ksymbol->name))
		return 0;

	/* the event is mapped from a file, which may be read-only */
	if (!is_printable_ascii(name)) {
		copy = strreplace_controls(strdup(name));
		if (!copy)
			return -ENOMEM;
		name = copy;
	}

	if (ksymbol->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER)
		machine__process_ksymbol_unregister(machine, ksymbol, name);
	else
		err = machine__process_ksymbol_register(machine, ksymbol, sample, name);
	free(copy);
	return err;
}

/* Init text, "[module]" KMOD_INIT_TEXT, is in the same file as its module. */
static char *module__filename(const char *name)
{
	const size_t suffix_len = sizeof(KMOD_INIT_TEXT) - 1;
	size_t len = strlen(name);

	if (len > suffix_len && !strcmp(name + len - suffix_len - 1, "]" KMOD_INIT_TEXT))
		len -= suffix_len;
	return strndup(name, len);
}

/**
 * machine__new_module_map - allocate a map of a kernel module, or of its init text
 * @machine: the machine, which gets the dso
 * @start: where the text begins, in memory
 * @end: where it ends
 * @name: the module's file, or "[name]", which KMOD_INIT_TEXT may follow
 * @bid: the build id, or NULL if it is not known
 *
 * Return: the map, which no maps have yet; NULL if out of memory.
 */
struct map *machine__new_module_map(struct machine *machine, u64 start, u64 end,
				    const char *name, const struct build_id *bid)
{
	struct dso_id id = dso_id_empty;
	struct map *map = NULL;
	struct kmod_path m;
	struct dso *dso;
	char *filename;

	if (kmod_path__parse_name(&m, name))
		return NULL;

	filename = module__filename(name);
	if (!filename)
		goto out;

	/* a module may be rebuilt and loaded again */
	if (build_id__is_defined(bid))
		id.build_id = *bid;

	dso = dsos__findnew_module_dso(&machine->dsos, machine, &m, &id, filename);
	if (!dso)
		goto out;

	map = map__new2(start, dso);
	if (map)
		map__set_end(map, end);
	/* put the dso here, corresponding to  machine__findnew_module_dso */
	dso__put(dso);
out:
	free(filename);
	zfree(&m.name);
	return map;
}

static bool map__is_older_load(struct map *map, void *data)
{
	const struct dso *dso = map__dso(map);
	struct map *new = data;

	return dso__is_kmod(dso) &&
	       (map__kmod_start(map) == map__start(new) ||
		!strcmp(dso__short_name(dso), dso__short_name(map__dso(new))));
}

/**
 * machine__process_module_mmap - handle the MMAP record of a kernel module
 * @machine: the machine
 * @xm: start, end and name
 * @bid: the build id; not defined if it is not known
 *
 * A module is loaded only once at a time: remove the maps of a previous load, whose end
 * may be lost. A map that perf synthesized may have another start and length.
 *
 * Return: 0, -EINVAL if the text is not the module's alone, or -ENOMEM.
 */
int machine__process_module_mmap(struct machine *machine,
				 const struct extra_kernel_map *xm,
				 const struct build_id *bid)
{
	struct maps *maps = machine__kernel_maps(machine);
	struct map *map;
	int err;

	if (xm->end <= xm->start || !machine__make_room(machine, xm->start, xm->end)) {
		pr_debug("Invalid map of module %s at [%#" PRIx64 ",%#" PRIx64 "), ignored\n",
			 xm->name, xm->start, xm->end);
		return -EINVAL;
	}

	map = machine__new_module_map(machine, xm->start, xm->end, xm->name, bid);
	if (!map)
		return -ENOMEM;

	maps__remove_maps(maps, map__is_older_load, map);
	err = maps__fixup_overlap_and_insert(maps, map);
	map__put(map);
	return err;
}
