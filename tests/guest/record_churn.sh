#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Has each kernel sample of a busy system a symbol? perf records all CPUs while
# kernel text comes, runs hot and goes, and then counts the samples in the
# kernel's half of the addresses that have no name.
#
# SECONDS_OF_CHURN (20) is for longer runs. MODULE_DIR has the kernel's modules.
set -u

here=$(dirname -- "$0")
seconds=${SECONDS_OF_CHURN:-20}
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
module=$(find -L "${MODULE_DIR:-/lib/modules/$(uname -r)/kernel/drivers/net}" -name dummy.ko -print -quit 2>/dev/null)
echo "module: ${module:-none}"

perf record -q -o "$data/perf.data" -a -e cpu-clock -F 999 -- \
	"$here/hot_text.py" "$seconds" ${module:+"$module"} || exit 1
perf script -i "$data/perf.data" -F ip,sym >"$data/samples" || exit 1

# What came and went in the page of a sample without a symbol, to find out why.
explain()
{
	local ip

	perf script -i "$data/perf.data" --show-bpf-events --show-mmap-events \
		-F time,cpu,comm,ip,sym >"$data/records" 2>/dev/null
	awk 'length($1) == 16 && $1 ~ /^ffff/ && $2 == "[unknown]" { print $1 }' "$data/samples" |
		sort -u | head -n 3 | while read -r ip; do
		echo "the samples at $ip, and the records of its page:"
		grep -E "$ip|(KSYMBOL|MMAP).*${ip:0:13}" "$data/records" | tail -n 30
	done
}

awk '
length($1) < 16 || $1 !~ /^ffff/ { next }
{ kernel++; name = $2 }
name ~ /^(bpf|cbpf)_prog_/ { bpf++ }
name ~ /^(ftrace_trampoline|kprobe_.*insn_page|its_thunks)/ { other++ }
name == "[unknown]" { unknown[$1]++; bad++ }
END {
	printf "%d samples in the kernel: %d in BPF, %d in other text made at run time, %d without a symbol\n",
	       kernel, bpf, other, bad
	for (ip in unknown) printf "  %s %d\n", ip, unknown[ip] | "sort -k2nr | head -n 10"
	exit !kernel || !bpf || bad > 0
}' "$data/samples" && exit 0
explain
exit 1
