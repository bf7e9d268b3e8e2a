#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Has each BPF program that was loaded while perf recorded its code in perf.data?
# bpf_load_cycles loads, runs and closes programs as fast as it goes, in four
# processes; each has to be in a LOAD record, and each id there has to have its info in
# the header. Records that were lost have to be told of. While perf records, the kernel
# takes the budget and as much again at most, for what has not quite ended; when perf
# has ended, none of it, but for some MiB that the allocators have not given back: the
# memory of one that leaked is two to three KiB.
#
# BPF_CYCLES (10000) is how many; KEEP_DATA names a file that perf.data is copied to.
set -u

cycles=${BPF_CYCLES:-10000}
budget=$(cat /proc/sys/kernel/perf_bpf_retain_kb 2>/dev/null)
left=4096	# KiB
dir=$(mktemp -d)
sampler=
trap 'kill $sampler 2>/dev/null; rm -rf "$dir"' EXIT
data=$dir/perf.data

# What programs are made of, in KiB: slabs, text and other vmalloc, per-CPU counters.
kernel_memory()
{
	awk '/^(Slab|VmallocUsed|Percpu):/ { kb += $2 } END { print kb }' /proc/meminfo
}

before=$(kernel_memory)
while sleep 0.5; do kernel_memory; done >"$dir/memory" &
sampler=$!
perf record -o "$data" -a -e cpu-clock -F 499 -- \
	"${SELFTESTS:?}/perf_events/bpf_load_cycles" "$cycles" 4 2>"$dir/said" || {
	cat "$dir/said"
	exit 1
}
sleep 3	# the last programs and the workers of RCU
kill "$sampler"
grown=$(($(kernel_memory) - before))
peak=$(($(sort -n "$dir/memory" | tail -n 1) - before))
grep '^\[' "$dir/said"
[[ -z ${KEEP_DATA:-} ]] || cp "$data" "$KEEP_DATA"
perf script -i "$data" --show-bpf-events 2>/dev/null |
	sed -n 's/.*PERF_RECORD_BPF_EVENT.* type 1, .* id \([0-9]*\).*/\1/p' | sort -un >"$dir/loaded"
perf report -i "$data" --header-only -I 2>/dev/null |
	sed -n 's/^# bpf_prog_info \([0-9]*\):.*/\1/p' | sort -un >"$dir/described"
perf script -i "$data" --show-lost-events 2>/dev/null |
	grep -c PERF_RECORD_LOST >"$dir/lost"

loaded=$(wc -l <"$dir/loaded")
missing=$(sort "$dir/loaded" | comm -23 - <(sort "$dir/described") | wc -l)
echo "$cycles programs run, $loaded in the records, $missing of them without info," \
     "$(cat "$dir/lost") records of lost ones, $(stat -c %s "$data") bytes"
echo "kernel memory: $before KiB before, at most $peak more, $grown more at the end;" \
     "budget ${budget:-of a kernel that has none} KiB, at the end $left"
failed=0
((loaded >= cycles && missing == 0)) || failed=1
! grep -q "without code" "$dir/said" || failed=1
((peak <= 2 * ${budget:-0} && grown <= left)) || failed=1
if [[ $(cat "$dir/lost") != 0 ]]; then
	grep -q "lost .* BPF records" "$dir/said" || failed=1
fi
exit "$failed"
