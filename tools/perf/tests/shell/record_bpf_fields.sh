#!/bin/bash
# perf record: fields of the sample that BPF programs read (--bpf-prog) (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# A field of the sample that the event was not opened for is 0 for a BPF program. Say so of
# each field that a program reads: in a function of its own, in a loop, a part of it, by a
# context that was on the stack in between, behind a filter.

set -e

# shellcheck source=lib/bpf_object.sh
. "$(dirname "$0")"/lib/bpf_object.sh
err=0 # fail() sets it

[[ $(uname -m) == x86_64 ]] || skip "the test has the registers of x86_64"
need_root
need_tools clang
need_features bpf_skeletons
grep -q bpf_perf_sample_data /sys/kernel/btf/vmlinux ||
	skip "the kernel has no fields of the sample for BPF programs"

dir=$(mktemp -d /tmp/perf-record-bpf-fields.XXXXXX)
prog=${dir}/fields.bpf.o

cleanup()
{
	trap - EXIT TERM INT
	[[ ${dir} == /tmp/perf-record-bpf-fields.* ]] && rm -rf "${dir}"
}

trap cleanup EXIT
trap 'cleanup; exit 1' TERM INT

clang -O2 -g --target=bpf -x c -c -o "${prog}" - <<- 'EOF'
	#define SEC(name) __attribute__((section(name), used))

	typedef unsigned int u32;
	typedef unsigned long long u64;

	#define barrier() asm volatile("" ::: "r1", "r2", "r3", "r4", "r5", "memory")

	/* of x86_64: the registers, sample_period, addr, and data */
	#define ADDR 176
	#define DATA 184

	const volatile int times = 1;

	static __attribute__((noinline)) int weight(void *data)
	{
		return *(volatile u64 *)(data + 64) > 0;
	}

	SEC("perf_event")
	int reads(void *ctx)
	{
		void *data = ctx + DATA;
		int sum = *(volatile u64 *)(ctx + ADDR) > 0;

		for (int i = 0; i < times; i++)
			sum += *(volatile u32 *)(data + 48);	/* cpu */
		return sum + weight(data) >= 0;
	}

	/* the compiler keeps it on the stack, and a part of data_src is read */
	SEC("perf_event")
	int spills(void *ctx)
	{
		void *volatile data = ctx + DATA;

		barrier();
		return *(volatile unsigned short *)(data + 82) < 9999;
	}

	SEC("perf_event")
	int asks(void *ctx)
	{
		return *(volatile u64 *)(ctx + DATA) + weight(ctx + DATA) > 0;
	}
EOF

# missing OPTION...: the fields that perf says the program has none of
missing()
{
	perf record -o "${dir}/data" "$@" -- true > "${dir}/log" 2>&1 || {
		cat "${dir}/log"
		return
	}
	sed -n 's/.*: [a-z]* reads \([a-z_.]*\), which is 0: .* without \(-.*\)/\1 \2/p' \
		"${dir}/log" | xargs
}

same "fields of cpu-clock" "$(missing -e cpu-clock --bpf-prog "${prog}:reads")" \
	"addr -d data.cpu --sample-cpu data.weight -W"
same "fields of page-faults" \
	"$(missing -e page-faults --sample-cpu --bpf-prog "${prog}:reads")" "data.weight -W"
same "all fields" \
	"$(missing -e cpu-clock -d -W --sample-cpu --bpf-prog "${prog}:reads")" ""
same "fields, with a filter" \
	"$(missing -e cpu-clock -d -W --filter 'ip > 0' --bpf-prog "${prog}:reads")" \
	"data.cpu --sample-cpu"
same "a context on the stack, a part of a field" \
	"$(missing -e cpu-clock --bpf-prog "${prog}:spills")" "data.data_src -d"
same "a program that asks" "$(missing -e cpu-clock --bpf-prog "${prog}:asks")" ""

exit ${err}
