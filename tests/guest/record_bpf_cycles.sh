#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# How much memory does the kernel take to retain programs, and does it free that? While
# perf records, bpf_load_cycles loads, runs and closes programs as fast as it can, in
# four processes. Meanwhile the kernel takes the budget and as much again at most, for
# programs that are loaded and those that have not quite ended; when perf has ended,
# none of it, though it may take workers of RCU some time.
#
# What was recorded goes to the directory KEEP, and tests/kernel/test_guest.py judges it on the
# host: under emulation perf takes two minutes to read it, there a second.
#
# SLUB takes some of the objects that are freed into its sheaves, and each of them keeps
# its whole slab. When thousands are freed at once those are slabs all over, and a
# hundred bytes a program seem to leak. So the caches are shrunk, which empties the
# sheaves, before what is left is judged; and a first recording, of a few, is not.
#
# BPF_CYCLES (4000) is how many.
set -u

keep=${KEEP:?names no directory for what is judged on the host}
cycles=${BPF_CYCLES:-4000}
budget=$(cat /proc/sys/kernel/perf_bpf_retain_kb 2>/dev/null)
# KiB: for what else the kernel does, and ten bytes a program, less than any object of it
left=$((1024 + cycles / 100))
settle_s=60
dir=$(mktemp -d)
sampler=
trap 'kill $sampler 2>/dev/null; rm -rf "$dir"' EXIT
data=$dir/perf.data

# What programs are made of, in KiB: slabs that cannot be reclaimed, text and other
# vmalloc, per-CPU counters. Not the index of perf.data's pages, and not the workers, of
# which there are a hundred more on a busy machine, idle for five minutes before they end:
# each has its stack of vmalloc and half as much of slabs.
kernel_memory()
{
	awk '/^(SUnreclaim|VmallocUsed|Percpu):/ { kb += $2 }
	     /^KernelStack:/ { kb -= 1.5 * $2 }
	     END { printf "%d\n", kb }' /proc/meminfo
}

# The same when nothing free is kept
kernel_memory_at_rest()
{
	local shrink

	sleep 3
	echo 3 >/proc/sys/vm/drop_caches
	for _ in 1 2; do	# the second: what RCU freed after the first
		for shrink in /sys/kernel/slab/*/shrink; do
			echo 1 >"$shrink"
		done
		sleep 1
	done
	kernel_memory
}

# record COUNT: so many programs, while perf records; what perf says is in said
record()
{
	perf record -o "$data" -a -e cpu-clock -F 499 -- \
		"${SELFTESTS:?}/perf_events/bpf_load_cycles" "$1" 4 2>"$dir/said" || {
		cat "$dir/said"
		exit 1
	}
}

record 500
before=$(kernel_memory_at_rest)
while sleep 0.5; do kernel_memory; done >"$dir/memory" &
sampler=$!
record "$cycles"
kill "$sampler"
for ((SECONDS = 0, grown = left + 1; grown > left && SECONDS < settle_s; )); do
	grown=$(($(kernel_memory_at_rest) - before))
done
settled=$SECONDS
peak=$(($(sort -n "$dir/memory" | tail -n 1) - before))
grep '^\[' "$dir/said"
cp "$data" "$keep/cycles.data" && cp "$dir/said" "$keep/cycles.said" || exit 1
echo "kernel memory: $before KiB before, at most $peak more, $grown more $settled s after the end;" \
     "budget ${budget:-of a kernel that has none} KiB, then $left"
! grep -q "without code" "$dir/said" && ((peak <= 2 * ${budget:-0} && grown <= left))
