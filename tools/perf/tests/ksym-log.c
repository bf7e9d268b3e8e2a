// SPDX-License-Identifier: GPL-2.0
/*
 * Test the log of kernel text that perf record --overwrite keeps: that it has a bound
 * although BPF programs come and go, what it drops first, and that whoever has the code of
 * a program is told when its records are dropped; and which record of text was the last one
 * at some addresses.
 */
#include <errno.h>
#include <linux/kernel.h>
#include <stdio.h>
#include <string.h>
#include <perf/event.h>
#include "tests.h"
#include "util/debug.h"
#include "util/evsel.h"
#include "util/ksym-log.h"

#define MAX_BYTES	10000
#define NR_PROGS	1000
#define LIVING_ID	1
#define LIVING_ADDR	0xffffffffc0000000ULL
/* programs that come later take the place of those that have ended */
#define ADDR		(LIVING_ADDR + 4096)

struct seen {
	/* programs that the log has dropped, each one larger than the one before */
	u32	nr_dropped;
	u32	last_dropped;
	/* records that the log writes */
	size_t	nr_records;
	size_t	bytes;
	u32	first_ended;
	bool	living;
	bool	disorder;
};

static void count_dropped(u32 prog_id, void *data)
{
	struct seen *seen = data;

	seen->disorder |= prog_id <= seen->last_dropped;
	seen->last_dropped = prog_id;
	seen->nr_dropped++;
}

static int add_symbol(struct ksym_log *log, u64 addr, bool ends, u64 time)
{
	union perf_event event = {
		.ksymbol = {
			.header.type = PERF_RECORD_KSYMBOL,
			.addr = addr,
			.len = 64,
			.ksym_type = PERF_RECORD_KSYMBOL_TYPE_BPF,
			.flags = ends ? PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER : 0,
			.name = "bpf_prog",
		},
	};

	return ksym_log__add(log, &event, offsetof(struct perf_record_ksymbol, name) + 16, time);
}

static int add_prog(struct ksym_log *log, u32 id, bool ends, u64 time)
{
	union perf_event event = {
		.bpf = {
			.header.type = PERF_RECORD_BPF_EVENT,
			.type = ends ? PERF_BPF_EVENT_PROG_UNLOAD : PERF_BPF_EVENT_PROG_LOAD,
			.id = id,
		},
	};

	return ksym_log__add(log, &event, sizeof(event.bpf), time);
}

static int add_module(struct ksym_log *log, u64 start, u64 len, u64 time)
{
	union perf_event event = {
		.mmap2 = {
			.header.type = PERF_RECORD_MMAP2,
			.start = start,
			.len = len,
			.filename = "[dummy]",
		},
	};

	return ksym_log__add(log, &event, offsetof(struct perf_record_mmap2, filename) + 8, time);
}

/* A program that runs all the time, and others that end before the next one begins */
static int add_programs(struct ksym_log *log)
{
	u64 time = 0;
	int err;

	err = add_symbol(log, LIVING_ADDR, /*ends=*/false, ++time);
	err = err ?: add_prog(log, LIVING_ID, /*ends=*/false, ++time);
	for (u32 id = LIVING_ID + 1; !err && id <= LIVING_ID + NR_PROGS; id++) {
		err = add_symbol(log, ADDR, /*ends=*/false, ++time);
		err = err ?: add_prog(log, id, /*ends=*/false, ++time);
		err = err ?: add_symbol(log, ADDR, /*ends=*/true, ++time);
		err = err ?: add_prog(log, id, /*ends=*/true, ++time);
	}
	return err;
}

static int look_at(union perf_event *event, void *data)
{
	struct seen *seen = data;

	seen->nr_records++;
	seen->bytes += event->header.size;
	if (event->header.type != PERF_RECORD_BPF_EVENT)
		return 0;
	if (event->bpf.id == LIVING_ID)
		seen->living = true;
	else if (event->bpf.type == PERF_BPF_EVENT_PROG_UNLOAD && !seen->first_ended)
		seen->first_ended = event->bpf.id;
	return 0;
}

static int write_to(struct ksym_log *log, struct seen *seen)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
	};
	struct evsel *evsel = evsel__new(&attr);
	int err = -ENOMEM;

	seen->nr_records = 0;
	seen->bytes = 0;
	seen->first_ended = 0;
	seen->living = false;
	if (evsel)
		err = ksym_log__write(log, evsel, look_at, seen);
	evsel__put(evsel);
	return err;
}

static int check_log(struct ksym_log *log, struct seen *seen)
{
	TEST_ASSERT_EQUAL("adding programs", add_programs(log), 0);

	TEST_ASSERT_EQUAL("writing the log", write_to(log, seen), 0);
	pr_debug("%zu records of %zu bytes, %u programs dropped\n",
		 seen->nr_records, seen->bytes, seen->nr_dropped);
	TEST_ASSERT_VAL("the log has a bound", seen->bytes <= MAX_BYTES);
	TEST_ASSERT_VAL("and is used", seen->bytes >= MAX_BYTES / 4);
	TEST_ASSERT_VAL("the program that runs is in it", seen->living);
	TEST_ASSERT_VAL("the oldest are dropped first, each once", !seen->disorder);
	TEST_ASSERT_EQUAL("those before the first in the log are dropped",
			  seen->first_ended, seen->last_dropped + 1);
	TEST_ASSERT_EQUAL("and told of", seen->nr_dropped, seen->last_dropped - LIVING_ID);

	ksym_log__prune(log, ksym_log__mark(log));
	TEST_ASSERT_EQUAL("writing the pruned log", write_to(log, seen), 0);
	TEST_ASSERT_EQUAL("only the program that runs is left", (int)seen->nr_records, 2);
	TEST_ASSERT_VAL("it is that one", seen->living);
	TEST_ASSERT_EQUAL("all others are told of", seen->nr_dropped, NR_PROGS);
	return TEST_OK;
}

/* When was the last record of text at some addresses? */
static int check_last_time(struct ksym_log *log)
{
	TEST_ASSERT_EQUAL("the index of an empty log", ksym_log__index(log), 0);
	TEST_ASSERT_EQUAL("nothing", (int)ksym_log__last_time(log, ADDR, 64), 0);

	/* one behind the other at one address, and beside them, of 64 bytes each */
	TEST_ASSERT_EQUAL("begin", add_symbol(log, ADDR, /*ends=*/false, 10), 0);
	TEST_ASSERT_EQUAL("end", add_symbol(log, ADDR, /*ends=*/true, 20), 0);
	TEST_ASSERT_EQUAL("begin", add_symbol(log, ADDR + 64, /*ends=*/false, 15), 0);
	TEST_ASSERT_EQUAL("begin", add_symbol(log, ADDR + 256, /*ends=*/false, 5), 0);
	TEST_ASSERT_EQUAL("a program", add_prog(log, 1, /*ends=*/true, 99), 0);
	TEST_ASSERT_EQUAL("the index", ksym_log__index(log), 0);

	TEST_ASSERT_EQUAL("the same addresses", (int)ksym_log__last_time(log, ADDR, 64), 20);
	TEST_ASSERT_EQUAL("both", (int)ksym_log__last_time(log, ADDR + 63, 2), 20);
	TEST_ASSERT_EQUAL("the second", (int)ksym_log__last_time(log, ADDR + 64, 64), 15);
	TEST_ASSERT_EQUAL("its last byte", (int)ksym_log__last_time(log, ADDR + 127, 1), 15);
	TEST_ASSERT_EQUAL("between", (int)ksym_log__last_time(log, ADDR + 128, 128), 0);
	TEST_ASSERT_EQUAL("the last", (int)ksym_log__last_time(log, ADDR + 128, 129), 5);
	TEST_ASSERT_EQUAL("all", (int)ksym_log__last_time(log, ADDR - 1000, 5000), 20);
	TEST_ASSERT_EQUAL("before", (int)ksym_log__last_time(log, ADDR - 64, 64), 0);
	TEST_ASSERT_EQUAL("behind", (int)ksym_log__last_time(log, ADDR + 320, 64), 0);

	/* a module that reaches over all of them */
	TEST_ASSERT_EQUAL("a module", add_module(log, ADDR - 4096, 8192, 7), 0);
	TEST_ASSERT_EQUAL("the index", ksym_log__index(log), 0);
	TEST_ASSERT_EQUAL("the same addresses", (int)ksym_log__last_time(log, ADDR, 64), 20);
	TEST_ASSERT_EQUAL("between", (int)ksym_log__last_time(log, ADDR + 128, 128), 7);
	TEST_ASSERT_EQUAL("behind", (int)ksym_log__last_time(log, ADDR + 320, 64), 7);
	TEST_ASSERT_EQUAL("before", (int)ksym_log__last_time(log, ADDR - 8192, 64), 0);
	return TEST_OK;
}

static int test__ksym_log(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct seen seen = {};
	struct ksym_log *log = ksym_log__new(MAX_BYTES, count_dropped, &seen);
	int ret = TEST_FAIL;

	seen.last_dropped = LIVING_ID;
	if (log)
		ret = check_log(log, &seen);
	ksym_log__delete(log);

	log = ksym_log__new(MAX_BYTES, count_dropped, &seen);
	if (ret == TEST_OK)
		ret = log ? check_last_time(log) : TEST_FAIL;
	ksym_log__delete(log);
	return ret;
}

DEFINE_SUITE("Log of kernel text", ksym_log);
