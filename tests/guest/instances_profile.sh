#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does a profile tell the instances of a program apart, and say what their prologues are?
set -u

samples=${SELFTESTS:?}/../out-samples
PATH=$samples/bpftool:$PATH
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail()
{
	echo "FAIL: $*"
	tail -n 40 "$dir"/records "$dir"/{said,err,report,code} 2> /dev/null
	exit 1
}

perf record -q -e cpu-clock -F 999 -o "$dir/perf.data" -- \
	"$samples/instances_profile" "$samples/instances_profile.bpf.o" \
	> "$dir/said" 2> "$dir/err" || fail "perf record"
cat "$dir/said"
# their names, what they are instances of, and one id of BTF for all of them
[[ $(grep -o ' name spin_[012] ' "$dir/said" | sort -u | wc -l) = 3 ]] || fail "bpftool: names"
for i in 0 1 2; do
	grep -q "instance of spin, prologue of $((i + 1)) insns" "$dir/said" ||
		fail "bpftool: instance $i"
done
[[ $(grep -o 'btf_id [0-9]*' "$dir/said" | sort -u | wc -l) = 1 ]] || fail "bpftool: BTF"

perf script -i "$dir/perf.data" --show-bpf-events 2> "$dir/err" | grep KSYMBOL > "$dir/records"
perf report -i "$dir/perf.data" --stdio --sort sym > "$dir/report" 2> "$dir/err" ||
	fail "perf report"
for i in 0 1 2; do
	sym=$(grep -o "bpf_prog_[0-9a-f]\{16\}_spin_$i\b" "$dir/records" | head -n 1)
	[[ $sym ]] || fail "no KSYMBOL of instance $i"
	grep " $sym\$" "$dir/report" || fail "no samples in $sym"
	perf annotate -i "$dir/perf.data" --stdio --source "$sym" > "$dir/code" 2> "$dir/err" ||
		fail "perf annotate $sym"
	grep -F "[prologue of spin: $((i + 1)) instruction" "$dir/code" ||
		fail "nothing says what the prologue of $sym is"
	grep -q 'mixed = mix(mixed);' "$dir/code" || fail "no source of $sym"
done
