// SPDX-License-Identifier: GPL-2.0
/*
 * Samples of software events: has each event its own id and call chain, and does a
 * BPF program read 0 where a sample has no address?
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf_perf_event.h>

#include "kselftest_harness.h"
#include "lib/bpf_event.h"
#include "lib/sample_ring.h"

#define NR_FAULTS	16
#define NR_SWITCHES	200
#define SLEEP_US	10000	/* long enough to be switched */

FIXTURE(sample) {
	struct ring first, second;
	int map, prog;
};

FIXTURE_SETUP(sample)
{
	self->first.event = -1;
	self->second.event = -1;
	self->map = -1;
	self->prog = -1;
	if (geteuid())
		SKIP(return, "needs root");
}

FIXTURE_TEARDOWN(sample)
{
	ring__close(&self->first);
	ring__close(&self->second);
	close_fd(&self->prog);
	close_fd(&self->map);
}

/* Two events of the same kind: each ring has samples with the id of its event. */
TEST_F(sample, own_id)
{
	struct perf_event_attr attr = sw_event_attr(PERF_COUNT_SW_PAGE_FAULTS);
	struct ring *rings[] = { &self->first, &self->second };
	int i;

	attr.sample_type = PERF_SAMPLE_ID;
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, ring__open(rings[i], &attr));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, event_ioctl(rings[i]->event, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, fault_pages(NR_FAULTS));
	for (i = 0; i < 2; i++) {
		__u64 id, at = 0, nr = 0, others = 0;
		const __u64 *sample;

		ASSERT_EQ(0, event_ioctl(rings[i]->event, PERF_EVENT_IOC_DISABLE, 0));
		ASSERT_EQ(0, event_ioctl(rings[i]->event, PERF_EVENT_IOC_ID, (long)&id));
		while ((sample = ring__next_sample(rings[i], &at))) {
			nr++;
			others += *sample != id;
		}
		EXPECT_LE(NR_FAULTS, nr);
		EXPECT_EQ(0, others) TH_LOG("event %d: %llu of %llu samples have another id",
					    i, others, nr);
	}
}

static bool has_kernel_chain(const __u64 *sample)
{
	__u64 i;

	for (i = 0; i < sample[0]; i++)
		if (sample[1 + i] == (__u64)PERF_CONTEXT_KERNEL)
			return true;
	return false;
}

/* Each gets the call chain it asked for. The event that was opened last comes first. */
TEST_F(sample, own_callchain)
{
	struct perf_event_attr attr = sw_event_attr(PERF_COUNT_SW_CONTEXT_SWITCHES);
	__u64 at = 0, nr = 0, kernel = 0;
	const __u64 *sample;
	int i;

	attr.sample_type = PERF_SAMPLE_CALLCHAIN;
	attr.exclude_callchain_kernel = 1;
	ASSERT_EQ(0, ring__open(&self->first, &attr));
	attr.exclude_callchain_kernel = 0;
	ASSERT_EQ(0, ring__open(&self->second, &attr));
	ASSERT_EQ(0, event_ioctl(self->first.event, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, event_ioctl(self->second.event, PERF_EVENT_IOC_ENABLE, 0));
	for (i = 0; i < NR_FAULTS; i++)
		usleep(SLEEP_US);
	ASSERT_EQ(0, event_ioctl(self->first.event, PERF_EVENT_IOC_DISABLE, 0));
	while ((sample = ring__next_sample(&self->first, &at))) {
		nr++;
		kernel += has_kernel_chain(sample);
	}
	EXPECT_LE(NR_FAULTS / 2, nr);
	EXPECT_EQ(0, kernel) TH_LOG("%llu of %llu have the kernel's call chain", kernel, nr);
}

/* Counts its runs in the first u64 of @map's value, and runs with an address in the second. */
static int load_addr_reader(int map)
{
	const struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_6, BPF_REG_1,
			    offsetof(struct bpf_perf_event_data, addr)),
		BPF_LD_MAP_VALUE(BPF_REG_1, map, 0),
		BPF_MOV64_IMM(BPF_REG_2, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_2, 0),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_6, 0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_2, 8),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "read_addr", "GPL", insns,
			     ARRAY_SIZE(insns), NULL);
}

/* Context switches have no address, and page faults do. */
TEST_F(sample, addr_that_nobody_wrote)
{
	const __u64 configs[] = { PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_PAGE_FAULTS };
	int i, n;

	for (i = 0; i < 2; i++) {
		struct perf_event_attr attr = sw_event_attr(configs[i]);
		struct { __u64 runs, addrs; } seen;

		self->map = value_map(sizeof(seen));
		ASSERT_LE(0, self->map);
		self->prog = load_addr_reader(self->map);
		ASSERT_LE(0, self->prog);
		self->first.event = open_own_event(&attr);
		ASSERT_LE(0, self->first.event);
		ASSERT_EQ(0, event_ioctl(self->first.event, PERF_EVENT_IOC_SET_BPF, self->prog));
		ASSERT_EQ(0, event_ioctl(self->first.event, PERF_EVENT_IOC_ENABLE, 0));
		if (configs[i] == PERF_COUNT_SW_PAGE_FAULTS)
			ASSERT_EQ(0, fault_pages(NR_SWITCHES));
		for (n = 0; i == 0 && n < NR_SWITCHES; n++)
			usleep(SLEEP_US);
		close_fd(&self->first.event);
		ASSERT_EQ(0, bpf_map_lookup_elem(self->map, &zero, &seen));
		TH_LOG("%llu samples, %llu with an address", seen.runs, seen.addrs);
		EXPECT_LE(NR_SWITCHES / 2, seen.runs);
		EXPECT_EQ(configs[i] == PERF_COUNT_SW_PAGE_FAULTS ? seen.runs : 0, seen.addrs);
		close_fd(&self->prog);
		close_fd(&self->map);
	}
}

TEST_HARNESS_MAIN
