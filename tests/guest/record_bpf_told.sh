#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does perf record tell of which BPF programs it has no code? With a small budget the
# kernel evicts some, with a budget of nothing it keeps none that end: what perf says is
# held against the file. Then beside a process that loads programs without end, perf record ends.
set -u

budget=/proc/sys/kernel/perf_bpf_retain_kb
dir=$(mktemp -d)
loader=
saved=$(cat "$budget") || exit 1
trap 'echo "$saved" >"$budget"; [[ -z $loader ]] || kill "$loader"; rm -rf "$dir"' EXIT
load=${SELFTESTS:?}/perf_events/bpf_load_cycles

ids() # PATTERN: the numbers at its end, each once
{
	sed -n "s/$1.*/\\1/p" | sort -u
}

# Record beside 300 programs, with a budget of so many KiB. Sets missing and why.
told_of_missing()
{
	local told sum

	echo "$1" >"$budget"
	perf record -o "$dir/perf.data" -a -e cpu-clock -F 99 -- "$load" 300 4 2>"$dir/said" || exit 1
	perf script -i "$dir/perf.data" --show-bpf-events 2>/dev/null |
		ids '.*PERF_RECORD_BPF_EVENT.* type 1, .* id \([0-9]*\)' >"$dir/loaded"
	perf report -i "$dir/perf.data" --header-only -I 2>/dev/null |
		ids '^# bpf_prog_info \([0-9]*\):' >"$dir/described"
	missing=$(comm -23 "$dir/loaded" "$dir/described" | wc -l)
	told=$(sed -n 's|^\[ perf record: \([0-9]*\)/.* BPF programs without code \]|\1|p' "$dir/said")
	why=$(sed -n 's|^  \([0-9]*\) were not retained: raise kernel.perf_bpf_retain_kb|\1|p' "$dir/said")
	sum=$(awk '/without code/ { told = 1; next } !/^  / { told = 0 } told { nr += $1 } END { print nr + 0 }' \
		"$dir/said")
	echo "budget $1 KiB: $missing of $(wc -l <"$dir/loaded") programs have no info;" \
	     "perf says ${told:-nothing}, ${why:-none} for want of place"
	[[ ${told:-0} == "$missing" && $sum == "$missing" ]] || {
		cat "$dir/said"
		exit 1
	}
}

# How many are evicted before perf asks for them depends on the machine.
told_of_missing 64
told_of_missing 0
((${why:-0} > 0)) || exit 1

echo "$saved" >"$budget"
"$load" 100000000 2 &
loader=$!
timeout 250 perf record -o "$dir/perf.data" -a -e cpu-clock -F 99 sleep 2 || {
	echo "perf record beside a loader: status $?"
	exit 1
}
perf report -i "$dir/perf.data" --header-only -I 2>/dev/null | grep -c '^# bpf_prog_info'
