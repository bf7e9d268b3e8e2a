// SPDX-License-Identifier: GPL-2.0
/*
 * Test the log of kernel text that perf record --overwrite keeps: that it has a bound
 * although BPF programs come and go, and when text begins in a file of which it has no
 * beginning. Recordings of tasks write what is new in it.
 */
#include <linux/kernel.h>
#include <stdio.h>
#include <string.h>
#include <perf/event.h>
#include "tests.h"
#include "util/debug.h"
#include "util/evsel.h"
#include "util/ksym-log.h"
#include "util/sample.h"

#define MAX_BYTES	10000
#define NR_PROGS	1000
#define ADDR		0xffffffffc0000000ULL
#define LEN		64
/* What look_at() adds to the address of text for the question where its code is */
#define CODE		1

/* What a log writes */
struct file {
	struct evsel	*evsel;
	size_t		nr_records;
	size_t		bytes;
	/* where a question is answered: text or program, how often it begins and ends, and when */
	u64		key;
	int		nr_begins, nr_ends;
	u64		begin;
};

static int add_symbol(struct ksym_log *log, u8 type, u64 addr, bool ends, u64 time, char name)
{
	union perf_event event = {
		.ksymbol = {
			.header.type = PERF_RECORD_KSYMBOL,
			.addr = addr,
			.len = LEN,
			.ksym_type = type,
			.flags = ends ? PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER : 0,
			.name = { name },
		},
	};

	return ksym_log__add(log, &event, offsetof(struct perf_record_ksymbol, name) + 8, time);
}

static int add_text(struct ksym_log *log, u64 addr, bool ends, u64 time)
{
	return add_symbol(log, PERF_RECORD_KSYMBOL_TYPE_BPF, addr, ends, time, 'b');
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

static int add_module(struct ksym_log *log, u64 start, u64 time)
{
	union perf_event event = {
		.mmap2 = {
			.header.type = PERF_RECORD_MMAP2,
			.start = start,
			.len = LEN,
			.filename = "[dummy]",
		},
	};

	return ksym_log__add(log, &event, offsetof(struct perf_record_mmap2, filename) + 8, time);
}

/* What the text at @addr begins with, or what it becomes */
static int add_code(struct ksym_log *log, u64 addr, bool changed, u64 time)
{
	union perf_event event = {
		.text_poke = {
			.header.type = PERF_RECORD_TEXT_POKE,
			.addr = addr,
			.old_len = changed ? 1 : 0,
			.new_len = 1,
		},
	};

	return ksym_log__add(log, &event, offsetof(struct perf_record_text_poke_event, bytes) + 4,
			     time);
}

static int look_at(union perf_event *event, void *data)
{
	struct file *file = data;
	bool ends = false;
	u64 key, time = 0;

	file->nr_records++;
	file->bytes += event->header.size;
	if (event->header.type == PERF_RECORD_BPF_EVENT) {
		key = event->bpf.id;
		ends = event->bpf.type == PERF_BPF_EVENT_PROG_UNLOAD;
	} else if (event->header.type == PERF_RECORD_KSYMBOL) {
		key = event->ksymbol.addr;
		ends = event->ksymbol.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	} else if (event->header.type == PERF_RECORD_TEXT_POKE) {
		key = event->text_poke.addr + CODE;
	} else {
		key = event->mmap2.start;
	}
	if (key != file->key)
		return 0;
	if (evsel__parse_sample_timestamp(file->evsel, event, &time))
		return -1;
	file->nr_begins += !ends;
	file->nr_ends += ends;
	if (!ends)
		file->begin = time;
	return 0;
}

static void look_for(struct file *file, u64 key)
{
	file->nr_records = 0;
	file->bytes = 0;
	file->key = key;
	file->nr_begins = 0;
	file->nr_ends = 0;
}

/* Write the log to a file, and look what is at an address there, or of a program. */
static int write_to(struct ksym_log *log, struct file *file, bool lost, u64 key)
{
	look_for(file, key);
	return ksym_log__write(log, /*from=*/0, file->evsel, lost, look_at, file);
}

static int write_new(struct ksym_log *log, struct file *file, u64 from, u64 key)
{
	look_for(file, key);
	return ksym_log__write(log, from, file->evsel, /*lost=*/false, look_at, file);
}

/* Programs that end before the next one begins, and take the place of those before */
static int check_bound(struct ksym_log *log, struct file *file)
{
	u64 time = 0;
	int err = 0;

	for (u32 id = 1; !err && id <= NR_PROGS; id++) {
		err = add_text(log, ADDR, /*ends=*/false, ++time);
		err = err ?: add_prog(log, id, /*ends=*/false, ++time);
		err = err ?: add_text(log, ADDR, /*ends=*/true, ++time);
		err = err ?: add_prog(log, id, /*ends=*/true, ++time);
	}
	TEST_ASSERT_EQUAL("adding programs", err, 0);
	TEST_ASSERT_EQUAL("writing the log", write_to(log, file, false, NR_PROGS), 0);
	pr_debug("%zu records of %zu bytes\n", file->nr_records, file->bytes);
	TEST_ASSERT_VAL("the log has a bound", file->bytes <= MAX_BYTES);
	TEST_ASSERT_VAL("and is used", file->bytes >= MAX_BYTES / 4);
	TEST_ASSERT_EQUAL("the last one begins", file->nr_begins, 1);
	TEST_ASSERT_EQUAL("and ends", file->nr_ends, 1);

	TEST_ASSERT_EQUAL("adding a program", add_prog(log, NR_PROGS + 1, false, ++time), 0);
	ksym_log__drop(log, ksym_log__mark(log) - 1);
	TEST_ASSERT_EQUAL("writing what is left", write_to(log, file, false, NR_PROGS + 1), 0);
	TEST_ASSERT_EQUAL("one record", (int)file->nr_records, 1);
	TEST_ASSERT_EQUAL("of the program behind the mark", file->nr_begins, 1);
	ksym_log__drop(log, ksym_log__mark(log));
	return TEST_OK;
}

/* Text that was there before the log began, or before what it has dropped */
static int check_beginnings(struct ksym_log *log, struct file *file)
{
	TEST_ASSERT_EQUAL("text ends", add_text(log, ADDR, /*ends=*/true, 10), 0);
	TEST_ASSERT_EQUAL("its program ends", add_prog(log, 1, /*ends=*/true, 11), 0);
	TEST_ASSERT_EQUAL("other text begins", add_text(log, ADDR + LEN, /*ends=*/false, 12), 0);

	TEST_ASSERT_EQUAL("writing", write_to(log, file, false, ADDR), 0);
	TEST_ASSERT_EQUAL("the text begins", file->nr_begins, 1);
	TEST_ASSERT_EQUAL("before all samples", (int)file->begin, 1);
	TEST_ASSERT_EQUAL("and ends", file->nr_ends, 1);
	TEST_ASSERT_EQUAL("writing", write_to(log, file, false, 1), 0);
	TEST_ASSERT_EQUAL("the program begins", file->nr_begins, 1);

	ksym_log__set_snapshot(log, true);
	TEST_ASSERT_EQUAL("the other", add_text(log, ADDR + LEN, /*ends=*/false, 20), 0);
	TEST_ASSERT_EQUAL("and one", add_text(log, ADDR + 2 * LEN, /*ends=*/false, 20), 0);
	TEST_ASSERT_EQUAL("and one", add_text(log, ADDR + LEN / 2, /*ends=*/false, 20), 0);
	ksym_log__set_snapshot(log, false);
	TEST_ASSERT_EQUAL("writing", write_to(log, file, false, ADDR + LEN), 0);
	TEST_ASSERT_EQUAL("the other begins once", file->nr_begins, 1);
	TEST_ASSERT_EQUAL("when it did", (int)file->begin, 12);
	return TEST_OK;
}

/* Text that exists, where other text was before */
static int check_lost(struct ksym_log *log, struct file *file, u64 addr, u64 begin)
{
	ksym_log__set_snapshot(log, true);
	TEST_ASSERT_EQUAL("text exists", add_text(log, addr, /*ends=*/false, 30), 0);
	ksym_log__set_snapshot(log, false);
	TEST_ASSERT_EQUAL("writing", write_to(log, file, true, addr), 0);
	pr_debug("at %#llx it begins at %llu\n", (unsigned long long)addr,
		 (unsigned long long)file->begin);
	TEST_ASSERT_EQUAL("it begins behind other text there", (int)file->begin, (int)begin);
	return TEST_OK;
}

/* Other text was there before, whose end is lost */
static int check_lost_end(struct ksym_log *log, struct file *file)
{
	const u64 addr = ADDR + 100 * LEN;
	u8 type = PERF_RECORD_KSYMBOL_TYPE_BPF;

	TEST_ASSERT_EQUAL("text begins", add_text(log, addr, /*ends=*/false, 35), 0);
	ksym_log__set_snapshot(log, true);
	TEST_ASSERT_EQUAL("other exists", add_symbol(log, type, addr, false, 39, 'o'), 0);
	ksym_log__set_snapshot(log, false);
	TEST_ASSERT_EQUAL("writing", write_to(log, file, true, addr), 0);
	TEST_ASSERT_EQUAL("both begin", file->nr_begins, 2);
	TEST_ASSERT_EQUAL("the other as late as the first", (int)file->begin, 35);
	return TEST_OK;
}

static int check_module(struct ksym_log *log, struct file *file)
{
	const u64 addr = ADDR + 1000 * LEN;
	u8 type = PERF_RECORD_KSYMBOL_TYPE_MODULE;

	TEST_ASSERT_EQUAL("a module", add_module(log, addr, 40), 0);
	ksym_log__drop(log, ksym_log__mark(log));
	TEST_ASSERT_EQUAL("it ends", add_symbol(log, type, addr, /*ends=*/true, 50, 'm'), 0);
	TEST_ASSERT_EQUAL("writing", write_to(log, file, false, addr), 0);
	TEST_ASSERT_EQUAL("its beginning was kept", file->nr_begins, 1);
	ksym_log__drop(log, ksym_log__mark(log));
	TEST_ASSERT_EQUAL("writing", write_to(log, file, false, addr), 0);
	TEST_ASSERT_EQUAL("until its end is dropped", (int)file->nr_records, 0);
	return TEST_OK;
}

/* What is new since a mark, as it is: that text ends does not make it begin. */
static int check_new(struct ksym_log *log, struct file *file)
{
	const u64 addr = ADDR + 2000 * LEN;
	u64 mark;

	TEST_ASSERT_EQUAL("text begins", add_text(log, addr, /*ends=*/false, 60), 0);
	mark = ksym_log__mark(log);
	TEST_ASSERT_EQUAL("writing", write_new(log, file, mark, addr), 0);
	TEST_ASSERT_EQUAL("nothing is new", (int)file->nr_records, 0);
	/* CPUs are read one after the other */
	TEST_ASSERT_EQUAL("other begins", add_text(log, addr + LEN, /*ends=*/false, 50), 0);
	TEST_ASSERT_EQUAL("text ends", add_text(log, addr, /*ends=*/true, 61), 0);
	TEST_ASSERT_EQUAL("writing", write_new(log, file, mark, addr), 0);
	TEST_ASSERT_EQUAL("two records are new", (int)file->nr_records, 2);
	TEST_ASSERT_EQUAL("the text ends", file->nr_ends, 1);
	TEST_ASSERT_EQUAL("and does not begin", file->nr_begins, 0);
	TEST_ASSERT_EQUAL("writing all", write_to(log, file, false, addr), 0);
	TEST_ASSERT_EQUAL("three records", (int)file->nr_records, 3);
	TEST_ASSERT_EQUAL("the text begins", file->nr_begins, 1);
	ksym_log__drop(log, ksym_log__mark(log));
	return TEST_OK;
}

/* Code comes with its text, unless the log has both, and its changes when they were made. */
static int check_code(struct ksym_log *log, struct file *file)
{
	const u64 known = ADDR + 3000 * LEN, other = known + LEN;

	TEST_ASSERT_EQUAL("text begins", add_text(log, known, /*ends=*/false, 70), 0);
	TEST_ASSERT_EQUAL("its code", add_code(log, known, /*changed=*/false, 71), 0);
	ksym_log__set_snapshot(log, true);
	TEST_ASSERT_EQUAL("it exists", add_text(log, known, /*ends=*/false, 75), 0);
	TEST_ASSERT_EQUAL("its code", add_code(log, known, /*changed=*/false, 76), 0);
	TEST_ASSERT_EQUAL("a part", add_code(log, known + LEN / 2, /*changed=*/false, 76), 0);
	TEST_ASSERT_EQUAL("other exists", add_text(log, other, /*ends=*/false, 77), 0);
	TEST_ASSERT_EQUAL("its code", add_code(log, other, /*changed=*/false, 78), 0);
	TEST_ASSERT_EQUAL("it changes", add_code(log, other, /*changed=*/true, 79), 0);
	ksym_log__set_snapshot(log, false);
	TEST_ASSERT_EQUAL("writing", write_to(log, file, false, known + CODE), 0);
	TEST_ASSERT_EQUAL("five records", (int)file->nr_records, 5);
	TEST_ASSERT_EQUAL("the code once", file->nr_begins, 1);
	TEST_ASSERT_EQUAL("when it was written", (int)file->begin, 71);

	ksym_log__set_snapshot(log, true);
	TEST_ASSERT_EQUAL("other exists", add_text(log, other, /*ends=*/false, 87), 0);
	TEST_ASSERT_EQUAL("its code", add_code(log, other, /*changed=*/false, 88), 0);
	TEST_ASSERT_EQUAL("a part", add_code(log, other + LEN / 2, /*changed=*/false, 88), 0);
	ksym_log__set_snapshot(log, false);
	ksym_log__drop(log, ksym_log__mark(log));
	TEST_ASSERT_EQUAL("writing", write_to(log, file, false, other + CODE), 0);
	TEST_ASSERT_EQUAL("three records", (int)file->nr_records, 3);
	TEST_ASSERT_EQUAL("with its code", file->nr_begins, 1);
	TEST_ASSERT_EQUAL("when the text begins", (int)file->begin, 0);
	return TEST_OK;
}

static int check_all(struct ksym_log *log, struct file *file)
{
	int err = check_bound(log, file);

	err = err ?: check_beginnings(log, file);
	err = err ?: check_lost(log, file, ADDR, 10);
	err = err ?: check_lost(log, file, ADDR + LEN - 1, 12);
	err = err ?: check_lost(log, file, ADDR - LEN + 1, 10);
	err = err ?: check_lost(log, file, ADDR - LEN, 0);
	err = err ?: check_lost_end(log, file);
	err = err ?: check_module(log, file);
	err = err ?: check_new(log, file);
	return err ?: check_code(log, file);
}

static int test__ksym_log(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1,
	};
	struct file file = { .evsel = evsel__new(&attr), };
	struct ksym_log *log = ksym_log__new(MAX_BYTES);
	int ret = log && file.evsel ? check_all(log, &file) : TEST_FAIL;

	ksym_log__delete(log);
	evsel__put(file.evsel);
	return ret;
}

DEFINE_SUITE("Log of kernel text", ksym_log);
