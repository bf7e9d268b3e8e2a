#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does bpftool tell who has a BPF program on a perf event? perf record with a filter
# has one on each CPU while it runs bpftool.
set -u

bpftool=${SELFTESTS:?}/../out-samples/bpftool/bpftool
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
[[ -x $bpftool ]] || {
	echo "no $bpftool: run stack/samples"
	exit 1
}
perf record -q -a -e cpu-clock --filter 'period > 0' -o "$dir/perf.data" -- \
	"$bpftool" perf show >"$dir/plain" 2>&1
perf record -q -a -e cpu-clock --filter 'period > 0' -o "$dir/perf.data" -- \
	"$bpftool" -j perf show >"$dir/json" 2>/dev/null
cat "$dir/plain" "$dir/json"
(($(grep -c '^pid [0-9]*  fd [0-9]*: prog_id [0-9]*  perf_event$' "$dir/plain") == $(nproc))) &&
	python3 -c 'import json, os, sys
found = [row for row in json.load(sys.stdin) if row.get("fd_type") == "perf_event"]
sys.exit(len(found) != os.cpu_count())' <"$dir/json"
