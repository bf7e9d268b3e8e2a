// SPDX-License-Identifier: GPL-2.0
/*
 * Test which map covers an address of text that the kernel generates or loads, and
 * removes, while perf records, and which code it has.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <perf/event.h>
#include "annotate.h"
#include "debug.h"
#include "dso.h"
#include "event.h"
#include "machine.h"
#include "map.h"
#include "maps.h"
#include "sample.h"
#include "symbol.h"
#include "tests.h"

#define KERNEL		0xffffffff81000000ULL
#define KERNEL_LEN	0x1000000
#define BASE		0xffffffffc0100000ULL
#define OTHER		0xffffffffc0200000ULL
#define LEN		0x2000

static int process_mmap(struct machine *machine, const char *name, u64 start, u64 len, u8 build_id)
{
	struct perf_sample sample = { .cpumode = PERF_RECORD_MISC_KERNEL, };
	union perf_event event = {
		.mmap2 = {
			.header = {
				.type = PERF_RECORD_MMAP2,
				.misc = PERF_RECORD_MISC_KERNEL,
				.size = sizeof(event.mmap2),
			},
			.start	= start,
			.len	= len,
			.pgoff	= start,
		},
	};

	if (build_id) {
		event.header.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
		event.mmap2.build_id_size = sizeof(event.mmap2.build_id);
		memset(event.mmap2.build_id, build_id, sizeof(event.mmap2.build_id));
	}
	strlcpy(event.mmap2.filename, name, sizeof(event.mmap2.filename));
	return machine__process_mmap2_event(machine, &event, &sample);
}

static int process_ksymbol(struct machine *machine, const char *name, u64 addr, u32 len,
			   u16 type, u16 flags)
{
	struct perf_sample sample = { .time = 1, };
	union perf_event event = {
		.ksymbol = {
			.header = {
				.type = PERF_RECORD_KSYMBOL,
				.size = sizeof(event.ksymbol),
			},
			.addr		= addr,
			.len		= len,
			.ksym_type	= type,
			.flags		= flags,
		},
	};

	strlcpy(event.ksymbol.name, name, sizeof(event.ksymbol.name));
	return machine__process_ksymbol(machine, &event, &sample);
}

static int process_ksymbol_end(struct machine *machine, u64 addr, u16 type)
{
	return process_ksymbol(machine, "any", addr, LEN, type,
			       PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
}

/* @len bytes of new code, all of value @byte */
static int process_text_poke(struct machine *machine, u64 addr, u16 len, u8 byte)
{
	struct perf_sample sample = { .time = 1, };
	union perf_event *event = zalloc(sizeof(event->text_poke) + len);
	int err;

	if (!event)
		return -ENOMEM;

	event->header.type = PERF_RECORD_TEXT_POKE;
	event->header.misc = PERF_RECORD_MISC_KERNEL;
	event->header.size = sizeof(event->text_poke) + len;
	event->text_poke.addr = addr;
	event->text_poke.new_len = len;
	memset(event->text_poke.bytes, byte, len);
	err = machine__process_text_poke(machine, event, &sample);
	free(event);
	return err;
}

/* Return: the byte of code at @addr, or -1 if annotate has no code to show. */
static int code_at(struct machine *machine, u64 addr)
{
	struct map *map = maps__find(machine__kernel_maps(machine), addr);
	struct dso *dso = map ? map__dso(map) : NULL;
	struct symbol *sym = dso ? dso__first_symbol(dso) : NULL;
	const u8 *code = NULL;
	u8 *buf = NULL;
	bool is_64bit;
	u64 len = 0;
	int ret = -1;

	if (sym)
		code = dso__read_symbol(dso, "", map, sym, &buf, &len, &is_64bit);
	if (code && addr - map__start(map) < len)
		ret = code[addr - map__start(map)];
	if (!code && errno != SYMBOL_ANNOTATE_ERRNO__BPF_IMAGE_NO_CODE)
		ret = -2;
	free(buf);
	map__put(map);
	return ret;
}

/* Is @addr covered by a map that begins at @start, and whose dso has this name? */
static bool is_in_map(struct machine *machine, u64 addr, const char *name, u64 start)
{
	struct map *map = maps__find(machine__kernel_maps(machine), addr);
	bool ret = map && map__start(map) == start &&
		   !strcmp(dso__short_name(map__dso(map)), name);

	if (!ret)
		pr_debug("%#" PRIx64 " is in %s\n", addr,
			 map ? dso__short_name(map__dso(map)) : "no map");
	map__put(map);
	return ret;
}

static bool has_no_map(struct machine *machine, u64 addr)
{
	struct map *map = maps__find(machine__kernel_maps(machine), addr);
	bool ret = !map;

	map__put(map);
	return ret;
}

static int with_machine(int (*test)(struct machine *machine))
{
	struct machines machines;
	int ret = TEST_FAIL;

	if (machines__init(&machines))
		return TEST_FAIL;

	if (!process_mmap(&machines.host, "[kernel.kallsyms]_text", KERNEL, KERNEL_LEN, 0))
		ret = test(&machines.host);

	machines__exit(&machines);
	return ret;
}

static int ksymbol_in_module(struct machine *machine)
{
	u16 bpf = PERF_RECORD_KSYMBOL_TYPE_BPF, ool = PERF_RECORD_KSYMBOL_TYPE_OOL;
	u64 addr = BASE + 0x1000;

	TEST_ASSERT_EQUAL("module", process_mmap(machine, "[old]", BASE, LEN, 0), 0);
	TEST_ASSERT_EQUAL("inside", process_ksymbol(machine, "young", addr, 0x40, bpf, 0), 0);
	TEST_ASSERT_VAL("KSYMBOL has its own map", is_in_map(machine, addr + 8, "young", addr));
	TEST_ASSERT_VAL("module keeps its start", is_in_map(machine, BASE + 8, "[old]", BASE));

	TEST_ASSERT_EQUAL("other address", process_ksymbol_end(machine, addr + 8, bpf), 0);
	TEST_ASSERT_EQUAL("other type", process_ksymbol_end(machine, addr, ool), 0);
	TEST_ASSERT_VAL("KSYMBOL is not ended yet", is_in_map(machine, addr + 8, "young", addr));
	TEST_ASSERT_EQUAL("end", process_ksymbol_end(machine, addr, bpf), 0);
	TEST_ASSERT_VAL("KSYMBOL has no map after its end", has_no_map(machine, addr + 8));
	return TEST_OK;
}

static int replayed_text(struct machine *machine)
{
	u16 cbpf = PERF_RECORD_KSYMBOL_TYPE_CBPF;
	struct map *map, *again;
	bool same;

	TEST_ASSERT_EQUAL("filter", process_ksymbol(machine, "filter", BASE, 0x40, cbpf, 0), 0);
	map = maps__find(machine__kernel_maps(machine), BASE);
	TEST_ASSERT_EQUAL("again", process_ksymbol(machine, "filter", BASE, 0x40, cbpf, 0), 0);
	again = maps__find(machine__kernel_maps(machine), BASE);
	same = map && RC_CHK_EQUAL(map, again);
	map__put(map);
	map__put(again);
	TEST_ASSERT_VAL("a repeated KSYMBOL keeps the map", same);

	TEST_ASSERT_EQUAL("lost end", process_ksymbol(machine, "next", BASE, 0x20, cbpf, 0), 0);
	TEST_ASSERT_VAL("the newer text has the map", is_in_map(machine, BASE + 8, "next", BASE));
	return TEST_OK;
}

static int code_in_parts(struct machine *machine)
{
	u16 cbpf = PERF_RECORD_KSYMBOL_TYPE_CBPF;
	u64 half = BASE + LEN / 2;

	TEST_ASSERT_EQUAL("filter", process_ksymbol(machine, "filter", BASE, LEN, cbpf, 0), 0);
	TEST_ASSERT_EQUAL("no code", code_at(machine, BASE), -1);
	TEST_ASSERT_EQUAL("first part", process_text_poke(machine, BASE, LEN / 2, 0x11), 0);
	TEST_ASSERT_EQUAL("half of the code", code_at(machine, BASE), -1);
	TEST_ASSERT_EQUAL("second part", process_text_poke(machine, half, LEN / 2, 0x22), 0);
	TEST_ASSERT_EQUAL("first byte", code_at(machine, BASE), 0x11);
	TEST_ASSERT_EQUAL("last byte", code_at(machine, BASE + LEN - 1), 0x22);

	TEST_ASSERT_EQUAL("patch", process_text_poke(machine, half - 2, 4, 0x33), 0);
	TEST_ASSERT_EQUAL("before the patch", code_at(machine, half - 3), 0x11);
	TEST_ASSERT_EQUAL("first patched byte", code_at(machine, half - 2), 0x33);
	TEST_ASSERT_EQUAL("last patched byte", code_at(machine, half + 1), 0x33);
	TEST_ASSERT_EQUAL("after the patch", code_at(machine, half + 2), 0x22);

	TEST_ASSERT_EQUAL("next", process_ksymbol(machine, "next", BASE, LEN, cbpf, 0), 0);
	TEST_ASSERT_EQUAL("no code of other text", code_at(machine, BASE), -1);
	return TEST_OK;
}

/* Kernels without attr.ksymbol_code only report the slots of a page. */
static int code_of_page(struct machine *machine)
{
	u16 ool = PERF_RECORD_KSYMBOL_TYPE_OOL;

	TEST_ASSERT_EQUAL("page", process_ksymbol(machine, "page", BASE, LEN, ool, 0), 0);
	TEST_ASSERT_EQUAL("slot", process_text_poke(machine, BASE, 16, 0x11), 0);
	TEST_ASSERT_EQUAL("unknown bytes are not shown", code_at(machine, BASE), -1);
	TEST_ASSERT_EQUAL("all", process_text_poke(machine, BASE, LEN, 0x22), 0);
	TEST_ASSERT_EQUAL("known bytes are shown", code_at(machine, BASE), 0x22);
	return TEST_OK;
}

/* The samples may be from before it was rewritten, with instructions elsewhere. */
static int code_of_dispatcher(struct machine *machine)
{
	u16 bpf = PERF_RECORD_KSYMBOL_TYPE_BPF;

	TEST_ASSERT_EQUAL("dispatcher", process_ksymbol(machine, "bpf_dispatcher_xdp", BASE, LEN,
							bpf, 0), 0);
	TEST_ASSERT_EQUAL("all", process_text_poke(machine, BASE, LEN, 0x11), 0);
	TEST_ASSERT_EQUAL("its code", code_at(machine, BASE), 0x11);
	TEST_ASSERT_EQUAL("half", process_text_poke(machine, BASE + LEN / 2, LEN / 2, 0x22), 0);
	TEST_ASSERT_EQUAL("rewritten", code_at(machine, BASE), -1);
	return TEST_OK;
}

static int modules_loaded_and_unloaded(struct machine *machine)
{
	u16 module = PERF_RECORD_KSYMBOL_TYPE_MODULE;
	struct map *first;
	u8 build_id;

	TEST_ASSERT_EQUAL("core", process_mmap(machine, "[dummy]", BASE, LEN, 1), 0);
	TEST_ASSERT_EQUAL("init", process_mmap(machine, "[dummy].init.text", OTHER, LEN, 1), 0);
	TEST_ASSERT_VAL("core text", is_in_map(machine, BASE + 8, "[dummy]", BASE));
	TEST_ASSERT_VAL("init text", is_in_map(machine, OTHER + 8, "[dummy].init.text", OTHER));

	TEST_ASSERT_EQUAL("end of init", process_ksymbol_end(machine, OTHER, module), 0);
	TEST_ASSERT_VAL("no init text", has_no_map(machine, OTHER + 8));
	TEST_ASSERT_VAL("core text stays", is_in_map(machine, BASE + 8, "[dummy]", BASE));

	/* the record of its end was lost, and another build is loaded */
	first = maps__find(machine__kernel_maps(machine), BASE);
	TEST_ASSERT_EQUAL("new build", process_mmap(machine, "[dummy]", OTHER, LEN, 2), 0);
	build_id = dso__bid(map__dso(first))->data[0];
	map__put(first);
	TEST_ASSERT_VAL("new build has a map", is_in_map(machine, OTHER + 8, "[dummy]", OTHER));
	TEST_ASSERT_VAL("first build has no map", has_no_map(machine, BASE + 8));
	TEST_ASSERT_EQUAL("first build keeps its build ID", build_id, 1);

	TEST_ASSERT_EQUAL("end", process_ksymbol_end(machine, OTHER, module), 0);
	TEST_ASSERT_VAL("no core text", has_no_map(machine, OTHER + 8));
	return TEST_OK;
}

/* Modules without length, with one that wraps, and in the kernel's own text. */
static int invalid_modules(struct machine *machine)
{
	struct map *kernel = map__get(machine__kernel_map(machine)), *map;
	bool same;

	TEST_ASSERT_EQUAL("empty", process_mmap(machine, "[dummy]", BASE, 0, 0), 0);
	TEST_ASSERT_EQUAL("wraps", process_mmap(machine, "[dummy]", BASE, -BASE, 0), 0);
	TEST_ASSERT_VAL("no map of either", has_no_map(machine, BASE + 8));

	TEST_ASSERT_EQUAL("in the kernel",
			  process_mmap(machine, "[dummy]", KERNEL + LEN, LEN, 0), 0);
	TEST_ASSERT_EQUAL("at its end", process_mmap(machine, "[dummy]", KERNEL + KERNEL_LEN - 8,
						     LEN, 0), 0);
	map = maps__find(machine__kernel_maps(machine), KERNEL + LEN + 8);
	same = RC_CHK_EQUAL(map, kernel);
	map__put(map);
	map__put(kernel);
	TEST_ASSERT_VAL("the kernel's map stays", same);
	TEST_ASSERT_VAL("no map behind it", has_no_map(machine, KERNEL + KERNEL_LEN + 8));
	return TEST_OK;
}

static int test__ksymbol_in_module(struct test_suite *test __maybe_unused,
				   int subtest __maybe_unused)
{
	return with_machine(ksymbol_in_module);
}

static int test__replayed_text(struct test_suite *test __maybe_unused,
			       int subtest __maybe_unused)
{
	return with_machine(replayed_text);
}

static int test__code_in_parts(struct test_suite *test __maybe_unused,
			       int subtest __maybe_unused)
{
	return with_machine(code_in_parts);
}

static int test__code_of_page(struct test_suite *test __maybe_unused,
			      int subtest __maybe_unused)
{
	return with_machine(code_of_page);
}

static int test__code_of_dispatcher(struct test_suite *test __maybe_unused,
				    int subtest __maybe_unused)
{
	return with_machine(code_of_dispatcher);
}

static int test__modules(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_machine(modules_loaded_and_unloaded);
}

static int test__invalid_modules(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_machine(invalid_modules);
}

static struct test_case dynamic_text_tests[] = {
	TEST_CASE("A KSYMBOL begins and ends at its own address", ksymbol_in_module),
	TEST_CASE("Text that is reported twice", replayed_text),
	TEST_CASE("Code that is reported in parts", code_in_parts),
	TEST_CASE("Code of a page of slots", code_of_page),
	TEST_CASE("Code of a dispatcher", code_of_dispatcher),
	TEST_CASE("Modules are loaded and unloaded", modules),
	TEST_CASE("Modules with invalid addresses", invalid_modules),
	{ .name = NULL, }
};

struct test_suite suite__dynamic_text = {
	.desc = "Dynamic kernel text",
	.test_cases = dynamic_text_tests,
};
