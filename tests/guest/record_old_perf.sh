#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Do the distribution's perf and this one, years apart, get along? Both record on this
# kernel, this one to a file and to a pipe. What they recorded goes to the directory
# KEEP, and tests/kernel/test_guest.py lets both read it on the host: they have to find the same
# samples. A BPF program that exists before perf starts has a name in all of them, for other
# readers of perf.data too.
set -u

keep=${KEEP:?names no directory for what is judged on the host}
old=/usr/bin/perf
[[ -x $old ]] || {
	echo "$old is not there: install linux-perf"
	exit 2
}
"$old" --version
dir=$(mktemp -d)
coproc existing {
	PYTHONPATH=$(dirname "$0") exec python3 -c "import bpf_syscalls, sys
program = bpf_syscalls.load_program('existed')
print(program, flush=True)
sys.stdin.read()"
}
# shellcheck disable=SC2154	# coproc assigns existing_PID
trap 'kill "$existing_PID"; rm -rf "$dir"' EXIT
read -r -u "${existing[0]}" || exit 1

# record PERF FILE: FILE may be -, for a pipe
record()
{
	"$1" record -q -e cpu-clock -F 999 -a -o "$2" -- \
		"${SELFTESTS:?}/perf_events/bpf_load_cycles" 100 2 2>"$dir/said" >"$dir/out" || {
		echo "$1 record -o $2:"
		cat "$dir/said"
		exit 1
	}
}

record "$old" "$dir/old.data"
record perf "$dir/new.data"
record perf -
cp "$dir/out" "$dir/pipe.data"
cp "$dir"/*.data "$keep"
