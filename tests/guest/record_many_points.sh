#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What do 1,000 probe points of a BPF program cost, when perf has found them in the debug
# information? Less than 2 s more than few points to start and to stop, and no file more. What
# else the machine does can only add to that, so the quickest of three recordings is judged.
set -u

limit_ms=2000
# KASAN and lockdep make all of it slower by an order of magnitude
! grep -qw kasan_report /proc/kallsyms || limit_ms=40000
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

fail()
{
	echo "FAIL: $*"
	tail -n 20 said
	exit 1
}

ms()
{
	echo $((${EPOCHREALTIME/./} / 1000))
}

# Runs where perf has begun, and says what perf has then
cat > workload <<- 'EOF'
	started=$((${EPOCHREALTIME/./} / 1000))
	points=$(grep -c perf_bpf_probe /sys/kernel/tracing/kprobe_events)
	files=$(ls "/proc/$PPID/fd" | wc -l)
	memory=$(awk '$1 == "VmHWM:" { print $2 }' "/proc/$PPID/status")
	echo "$started $points $files $memory $((${EPOCHREALTIME/./} / 1000))" > numbers
EOF

# record GLOB: sets points, files, memory (KB), start and stop (ms)
record()
{
	local started stopped

	sed "s/GLOB/$1/" > prog.c <<- 'EOF'
		#define SEC(name) __attribute__((section(name), used))

		char _license[] SEC("license") = "GPL";

		SEC("max=9000;inlines=no;partial=yes;many=GLOB")
		int prog(void *ctx, int err)
		{
			return 0;
		}
	EOF
	clang -O2 -g --target=bpf -c prog.c -o prog.bpf.o || fail "clang"
	perf record -v -a -o perf.data -e prog.bpf.o -- bash ./workload 2>&1 > /dev/null |
		while IFS= read -r line; do
			[[ $line != *'Found '*' probe_trace_events'* ]] || ms > found
			echo "$line"
		done > said
	[[ ${PIPESTATUS[0]} = 0 && -s numbers && -s found ]] || fail "perf record"
	stopped=$(ms)
	read -r started points files memory ended < numbers
	start=$((started - $(< found)))
	stop=$((stopped - ended))
	rm numbers found
	! grep perf_bpf_probe /sys/kernel/tracing/kprobe_events || fail "events are left"
	echo "$1: $points points: $files files, $memory KB, start $start ms, stop $stop ms"
}

record '*_[if]*_show'
few=$points few_files=$files few_start=$start few_stop=$stop
((few > 10)) || fail "few points"
record '*_seq_*'
((points > 2 * few)) || fail "not more points"
for ((try = 0; try < 3; try++)); do
	record '*_s[ht]o*'
	((points >= 1000)) || fail "less than 1,000 points"
	((files == few_files)) || fail "$few_files files for $few points, $files for $points"
	more_start=$((start - few_start)) more_stop=$((stop - few_stop))
	((more_start < limit_ms && more_stop < limit_ms)) && exit
done
fail "starts $more_start ms and stops $more_stop ms later than with few points: more than $limit_ms"
