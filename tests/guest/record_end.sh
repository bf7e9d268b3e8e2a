#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The end of a recording when the kernel is not ready to describe BPF programs that were
# unloaded: perf record says what it waits for. Killed meanwhile it leaves a file that lacks
# these programs alone; a signal ends the wait. not_ready.c is that kernel.
set -u

samples=${SELFTESTS:?}/../out-samples
# bpf_load_cycles loads 20 programs, and before them the library loads one, for which libbpf
# loads two to probe the kernel
loads=$((20 + 3))
dir=$(mktemp -d)
failed=0
trap 'rm -rf "$dir"' EXIT

# record SIGNAL: record programs that are loaded and unloaded while perf is stopped, and
# send SIGNAL when perf waits.
record()
{
	local perf tries

	rm -f "$dir"/*
	# shellcheck disable=SC2016 # expanded there
	LD_PRELOAD=$samples/not_ready.so perf record -o "$dir/perf.data" -a -e cpu-clock -F 99 -- \
		env -u LD_PRELOAD bash -c 'kill -STOP $PPID; "$1" 20 1; kill -CONT $PPID' - \
		"$SELFTESTS/perf_events/bpf_load_cycles" 2>"$dir/said" >/dev/null &
	perf=$!
	for ((tries = 0; tries < 600; tries++)); do
		grep "waiting .* BPF programs .*: $loads\." "$dir/said" && break
		kill -0 "$perf" || break
		sleep 0.1
	done
	grep -q "waiting" "$dir/said" || {
		echo "perf did not say that it waits:"
		cat "$dir/said"
		failed=1
	}
	SECONDS=0
	kill "-$1" "$perf"
	wait "$perf"
	echo "after SIG$1 perf ended with status $? in $SECONDS s"
	((SECONDS < 5)) || failed=1
}

# check FILE: it has samples, and tells of all these programs without info.
check()
{
	local nr_samples missing

	perf script -i "$1" --show-bpf-events -F ip,sym >"$dir/script" 2>"$dir/error" || {
		cat "$dir/error"
		failed=1
	}
	nr_samples=$(grep -c '^ *[0-9a-f]\{8,\}' "$dir/script")
	sed -n 's/.*PERF_RECORD_BPF_EVENT.* type 1, .* id \([0-9]*\)$/\1/p' "$dir/script" |
		sort -u >"$dir/loaded"
	perf report -i "$1" --header-only -I 2>/dev/null |
		sed -n 's/^# bpf_prog_info \([0-9]*\):.*/\1/p' | sort -u >"$dir/described"
	missing=$(comm -23 "$dir/loaded" "$dir/described" | wc -l)
	echo "$nr_samples samples; $(wc -l <"$dir/loaded") programs were loaded, $missing have no info"
	((nr_samples > 0 && missing == loads)) || failed=1
}

record INT
grep "$loads were still being unloaded" "$dir/said" || failed=1
check "$dir/perf.data"
record KILL
# what a file without features has in its data: perf inject writes them
perf inject -i "$dir/perf.data" -o "$dir/whole.data" 2>"$dir/error" || {
	cat "$dir/error"
	failed=1
}
check "$dir/whole.data"
exit "$failed"
