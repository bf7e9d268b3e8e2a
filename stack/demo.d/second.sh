#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# second.sh PERF OBJECTS RESULTS: the demo's second act, in the guest. Records BPF programs,
# seccomp filters, kprobes, tracers and a module that come and go, and the demo's workload;
# RESULTS gets perf.data, and said.txt with what a program of --bpf-prog counted and what a
# probe event prints.
set -eu

perf=$1 results=$3
export objects=$2 top module seconds=8
top=$(dirname -- "$0")/../..
tracing=/sys/kernel/tracing
module=$(find -L "/lib/modules/$(uname -r)/kernel/drivers/net" -name dummy.ko -print -quit)

ip link set lo up
workload()
{
	"$top/tests/guest/hot_text.py" "$seconds" "$module" &
	"$objects/load" "$objects/flow.bpf.o" "$seconds" && wait $!
}
export -f workload
# 9p cannot take a write out of perf's ring buffer
"$perf" record -q -a -g -e cpu-clock -F 999 -o /tmp/perf.data -- bash -c workload
cp /tmp/perf.data "$results"

"$perf" record -q -a -g -e cpu-clock -F 999 -o /tmp/counted.data --bpf-prog "$objects/sample.bpf.o" \
	--bpf-prog-maps -- "$objects/load" "$objects/flow.bpf.o" 2 >/tmp/flows 2>/tmp/counted

# Several functions of this kernel have the name type_show. perf reads $arg*, not bash.
# shellcheck disable=SC2016
echo 'p:demo/type_show type_show@kernel/reboot.c $arg*' >>"$tracing/dynamic_events"
echo 1 >"$tracing/events/demo/type_show/enable"
cat /sys/kernel/reboot/type >/tmp/type
echo 0 >"$tracing/events/demo/type_show/enable"
{
	echo "  a program of yours for each sample (perf record --bpf-prog sample.bpf.o), which reads ctx->data:"
	sed -n 's/^[a-z_]* = /    &/p' /tmp/counted
	echo "  a probe at one of $(grep -c ' type_show$' /proc/kallsyms) functions type_show, with its own arguments:"
	sed -n 's/.*\(type_show: .*\)/    \1/p' "$tracing/trace"
} >"$results/said.txt"
