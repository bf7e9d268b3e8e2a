// SPDX-License-Identifier: GPL-2.0
/*
 * Text that the kernel makes or loads while perf records: which map has an address,
 * after what the kernel told of it?
 */
#include <inttypes.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <perf/event.h>
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

static int tell_map(struct machine *machine, const char *name, u64 start, u64 len, u8 build_id)
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

static int tell_ksymbol(struct machine *machine, const char *name, u64 addr, u32 len,
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

static int tell_end(struct machine *machine, u64 addr, u16 type)
{
	return tell_ksymbol(machine, "any", addr, LEN, type, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
}

/* Is the map that has @addr the one that begins at @start, of a dso with this name? */
static bool is_in(struct machine *machine, u64 addr, const char *name, u64 start)
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

static bool is_nowhere(struct machine *machine, u64 addr)
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

	if (!tell_map(&machines.host, "[kernel.kallsyms]_text", KERNEL, KERNEL_LEN, 0))
		ret = test(&machines.host);

	machines__exit(&machines);
	return ret;
}

static int ksymbol_in_module(struct machine *machine)
{
	u16 bpf = PERF_RECORD_KSYMBOL_TYPE_BPF, ool = PERF_RECORD_KSYMBOL_TYPE_OOL;
	u64 addr = BASE + 0x1000;

	TEST_ASSERT_EQUAL("module", tell_map(machine, "[old]", BASE, LEN, 0), 0);
	TEST_ASSERT_EQUAL("inside", tell_ksymbol(machine, "young", addr, 0x40, bpf, 0), 0);
	TEST_ASSERT_VAL("has its own map", is_in(machine, addr + 8, "young", addr));
	TEST_ASSERT_VAL("leaves what is before", is_in(machine, BASE + 8, "[old]", BASE));

	TEST_ASSERT_EQUAL("other address", tell_end(machine, addr + 8, bpf), 0);
	TEST_ASSERT_EQUAL("other type", tell_end(machine, addr, ool), 0);
	TEST_ASSERT_VAL("ends with its own record", is_in(machine, addr + 8, "young", addr));
	TEST_ASSERT_EQUAL("end", tell_end(machine, addr, bpf), 0);
	TEST_ASSERT_VAL("is gone", is_nowhere(machine, addr + 8));
	return TEST_OK;
}

static int replayed_text(struct machine *machine)
{
	u16 cbpf = PERF_RECORD_KSYMBOL_TYPE_CBPF;
	struct map *map, *again;
	bool same;

	TEST_ASSERT_EQUAL("filter", tell_ksymbol(machine, "filter", BASE, 0x40, cbpf, 0), 0);
	map = maps__find(machine__kernel_maps(machine), BASE);
	TEST_ASSERT_EQUAL("replay", tell_ksymbol(machine, "filter", BASE, 0x40, cbpf,
						 PERF_RECORD_KSYMBOL_FLAGS_SNAPSHOT), 0);
	again = maps__find(machine__kernel_maps(machine), BASE);
	same = map && RC_CHK_EQUAL(map, again);
	map__put(map);
	map__put(again);
	TEST_ASSERT_VAL("what is known is told again", same);

	TEST_ASSERT_EQUAL("lost end", tell_ksymbol(machine, "next", BASE, 0x20, cbpf, 0), 0);
	TEST_ASSERT_VAL("the newer text is there", is_in(machine, BASE + 8, "next", BASE));
	return TEST_OK;
}

static int modules_come_and_go(struct machine *machine)
{
	u16 module = PERF_RECORD_KSYMBOL_TYPE_MODULE;
	struct map *first;
	u8 build_id;

	TEST_ASSERT_EQUAL("core", tell_map(machine, "[dummy]", BASE, LEN, 1), 0);
	TEST_ASSERT_EQUAL("init", tell_map(machine, "[dummy].init.text", OTHER, LEN, 1), 0);
	TEST_ASSERT_VAL("core text", is_in(machine, BASE + 8, "[dummy]", BASE));
	TEST_ASSERT_VAL("init text", is_in(machine, OTHER + 8, "[dummy].init.text", OTHER));

	TEST_ASSERT_EQUAL("end of init", tell_end(machine, OTHER, module), 0);
	TEST_ASSERT_VAL("no init text", is_nowhere(machine, OTHER + 8));
	TEST_ASSERT_VAL("core text stays", is_in(machine, BASE + 8, "[dummy]", BASE));

	/* its end was lost, and what comes is another build of it */
	first = maps__find(machine__kernel_maps(machine), BASE);
	TEST_ASSERT_EQUAL("new build", tell_map(machine, "[dummy]", OTHER, LEN, 2), 0);
	build_id = dso__bid(map__dso(first))->data[0];
	map__put(first);
	TEST_ASSERT_VAL("of the same name", is_in(machine, OTHER + 8, "[dummy]", OTHER));
	TEST_ASSERT_VAL("the first is gone", is_nowhere(machine, BASE + 8));
	TEST_ASSERT_EQUAL("and keeps its build ID", build_id, 1);

	TEST_ASSERT_EQUAL("end", tell_end(machine, OTHER, module), 0);
	TEST_ASSERT_VAL("no core text", is_nowhere(machine, OTHER + 8));
	return TEST_OK;
}

/* Of no length, of a damaged one, and in the kernel's own text. */
static int modules_that_cannot_be(struct machine *machine)
{
	struct map *kernel = map__get(machine__kernel_map(machine)), *map;
	bool same;

	TEST_ASSERT_EQUAL("empty", tell_map(machine, "[dummy]", BASE, 0, 0), 0);
	TEST_ASSERT_EQUAL("wraps", tell_map(machine, "[dummy]", BASE, -BASE, 0), 0);
	TEST_ASSERT_VAL("no map of either", is_nowhere(machine, BASE + 8));

	TEST_ASSERT_EQUAL("in the kernel", tell_map(machine, "[dummy]", KERNEL + LEN, LEN, 0), 0);
	TEST_ASSERT_EQUAL("at its end", tell_map(machine, "[dummy]", KERNEL + KERNEL_LEN - 8,
						 LEN, 0), 0);
	map = maps__find(machine__kernel_maps(machine), KERNEL + LEN + 8);
	same = RC_CHK_EQUAL(map, kernel);
	map__put(map);
	map__put(kernel);
	TEST_ASSERT_VAL("the kernel's map stays", same);
	TEST_ASSERT_VAL("no map behind it", is_nowhere(machine, KERNEL + KERNEL_LEN + 8));
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

static int test__modules(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_machine(modules_come_and_go);
}

static int test__no_modules(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_machine(modules_that_cannot_be);
}

static struct test_case dynamic_text_tests[] = {
	TEST_CASE("A KSYMBOL begins and ends at its own address", ksymbol_in_module),
	TEST_CASE("Text that is told twice", replayed_text),
	TEST_CASE("Modules come and go", modules),
	TEST_CASE("Modules that cannot be", no_modules),
	{ .name = NULL, }
};

struct test_suite suite__dynamic_text = {
	.desc = "Dynamic kernel text",
	.test_cases = dynamic_text_tests,
};
