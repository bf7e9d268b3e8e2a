#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does the distribution's perf, which is years older, get the end of a BPF program when it
# records a task, not a CPU? The task loads and closes one program after the other, beside
# a busy second CPU. Whenever one is at the address of an earlier one, the records must
# have ended that before: else perf would go on to use its name.
set -u

old=/usr/bin/perf
[[ -x $old ]] || {
	echo "$old is not there: install linux-perf"
	exit 2
}
dir=$(mktemp -d)
taskset -c 1 sh -c 'while :; do :; done' &
busy=$!
trap 'kill $busy; rm -rf "$dir"' EXIT

"$old" record -q -e cpu-clock --no-bpf-event -o "$dir/data" -- taskset -c 0 \
	"${SELFTESTS:?}/perf_events/bpf_load_cycles" 300 1 >"$dir/said" 2>&1 || {
	cat "$dir/said"
	exit 1
}
"$old" script -i "$dir/data" --show-bpf-events 2>"$dir/said" >"$dir/records"
grep PERF_RECORD_KSYMBOL "$dir/records" | awk '
	# ... PERF_RECORD_KSYMBOL addr ADDR len N type 1 flags 0xN name NAME
	{
		for (i = 1; i < NF; i++)
			word[$i] = $(i + 1)
		at = word["addr"]
		ends = word["flags"] == "0x1"
		records++
	}
	ends { delete live[at] }
	!ends {
		if (at in live) {
			if (!wrong++)
				print "at " at ": " word["name"] " begins, " live[at] " has not ended"
		}
		again += at in seen
		live[at] = word["name"]
		seen[at] = 1
	}
	END {
		print records " records, " again + 0 " times at an address that was used before," \
			" " wrong + 0 " times before its end"
		exit wrong || again < 100
	}'
