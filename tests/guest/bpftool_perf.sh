#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does bpftool tell who has a BPF program on a perf event? perf record with a filter
# has one on each CPU while it runs bpftool. with_cookies.py has one program on two events
# with cookies and on one without.
set -u

bpftool=${SELFTESTS:?}/../out-samples/bpftool/bpftool
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
[[ -x $bpftool ]] || {
	echo "no $bpftool: run \`make samples\`"
	exit 1
}
perf record -q -a -e cpu-clock --filter 'period > 0' -o "$dir/perf.data" -- \
	"$bpftool" perf show >"$dir/plain" 2>&1
perf record -q -a -e cpu-clock --filter 'period > 0' -o "$dir/perf.data" -- \
	"$bpftool" -j perf show >"$dir/json" 2>/dev/null
with_cookies=(python3 -B "$(dirname "${BASH_SOURCE[0]}")/with_cookies.py" "$bpftool")
"${with_cookies[@]}" perf show >"$dir/cookies" 2>&1
"${with_cookies[@]}" -j perf show >"$dir/cookies.json" 2>/dev/null
cat "$dir/plain" "$dir/json" "$dir/cookies" "$dir/cookies.json"
(($(grep -c '^pid [0-9]*  fd [0-9]*: prog_id [0-9]*  perf_event$' "$dir/plain") == $(nproc))) &&
	python3 -c 'import json, os, sys
found = [row for row in json.load(sys.stdin) if row.get("fd_type") == "perf_event"]
sys.exit(len(found) != os.cpu_count())' <"$dir/json" &&
	(($(grep -c ': prog_id [0-9]*  perf_event  bpf_cookie 4398[12]$' "$dir/cookies") == 2)) &&
	(($(grep -c ': prog_id [0-9]*  perf_event$' "$dir/cookies") == 1)) &&
	python3 -c 'import json, sys
found = json.load(sys.stdin)
assert all(isinstance(row["fd_type"], str) for row in found), found
cookies = [row.get("bpf_cookie") for row in found if row["fd_type"] == "perf_event"]
sys.exit(sorted(cookies, key=str) != [43981, 43982, None])' <"$dir/cookies.json"
