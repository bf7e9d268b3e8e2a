#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does perf record report how many BPF programs it has no code of? With a small budget the
# kernel evicts some, with a budget of nothing it retains none that end. What perf says
# goes to the directory KEEP with what it recorded, and tests/kernel/test_guest.py compares the
# two on the host. Then perf record has to end beside a process that loads programs
# without end.
set -u

keep=${KEEP:?names no directory for what is judged on the host}

budget=/proc/sys/kernel/perf_bpf_retain_kb
dir=$(mktemp -d)
loader=
saved=$(cat "$budget") || exit 1
trap 'echo "$saved" >"$budget"; [[ -z $loader ]] || kill "$loader"; rm -rf "$dir"' EXIT
load=${SELFTESTS:?}/perf_events/bpf_load_cycles

# Record beside 300 programs, with a budget of so many KiB. Sets why, how many were not
# retained, from what perf says; its numbers for each reason have to add up.
record_with_budget()
{
	local total sum

	echo "$1" >"$budget"
	perf record -o "$dir/perf.data" -a -e cpu-clock -F 99 -- "$load" 300 4 2>"$dir/said" || exit 1
	cp "$dir/perf.data" "$keep/told.$1.data" && cp "$dir/said" "$keep/told.$1.said" || exit 1
	total=$(sed -n 's|^\[ perf record: \([0-9]*\)/.* BPF programs without code \]|\1|p' "$dir/said")
	why=$(sed -n 's|^  \([0-9]*\) were not retained: raise kernel.perf_bpf_retain_kb|\1|p' "$dir/said")
	sum=$(awk '/without code/ { told = 1; next } !/^  / { told = 0 } told { nr += $1 } END { print nr + 0 }' \
		"$dir/said")
	echo "budget $1 KiB: perf says ${total:-nothing}, ${why:-none} for want of place"
	[[ $sum == "${total:-0}" ]] || {
		cat "$dir/said"
		exit 1
	}
}

# How many are evicted before perf asks for them depends on the machine.
record_with_budget 64
record_with_budget 0
((${why:-0} > 0)) || exit 1

echo "$saved" >"$budget"
"$load" 100000000 2 &
loader=$!
timeout 250 perf record -o "$dir/perf.data" -a -e cpu-clock -F 99 sleep 2 || {
	echo "perf record beside a loader: status $?"
	exit 1
}
perf report -i "$dir/perf.data" --header-only -I 2>/dev/null | grep -c '^# bpf_prog_info'
