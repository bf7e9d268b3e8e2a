#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A recording with --overwrite keeps a log of kernel text, and the log lacks what the kernel
# could not write to the ring buffer of that event. Is a program known that was loaded
# then, and still runs when the recording ends? perf is stopped while more programs come
# and go than its ring buffer has room for, and then the program is loaded.
set -u

dir=$(mktemp -d)
recorder=
program=
limit=/proc/sys/kernel/perf_event_mlock_kb
before=$(<$limit)
trap 'kill -CONT $recorder 2>/dev/null; kill $recorder $program 2>/dev/null; rm -rf "$dir"
      echo "$before" >$limit' EXIT
load=${SELFTESTS:?}/perf_events/bpf_load_cycles

echo 12 >$limit	# two pages for each CPU
mkfifo "$dir/control" "$dir/ack"
exec 4<>"$dir/control" 5<>"$dir/ack"
perf record -o "$dir/perf.data" --overwrite -m 8 -a -e cpu-clock -F 499 \
	--control "fifo:$dir/control,$dir/ack" >"$dir/said" 2>&1 &
recorder=$!
echo ping >&4
read -r -t 120 _ <&5 || {
	cat "$dir/said"
	exit 1
}
kill -STOP "$recorder"
"$load" 200 1 >/dev/null || exit 1
"$load" 2 1 120000 >/dev/null &	# the second of them runs for two minutes
program=$!
for ((i = 0; i < 300; i++)); do
	grep -q '_cycle_1' /proc/kallsyms && ((i++ > 20)) && break
	sleep 0.1
done
kill -CONT "$recorder"
sleep 3		# the ring buffers of the samples hold the program alone
echo stop >&4
timeout 60 tail --pid="$recorder" -f /dev/null || exit 1
grep '^\[' "$dir/said"
perf script -i "$dir/perf.data" -F ip,sym 2>/dev/null >"$dir/samples"
read -r nr unknown < <(awk '/_cycle_1/ { nr++ } $1 ~ /^ffff/ && /unknown/ { unknown++ }
	END { print nr + 0, unknown + 0 }' "$dir/samples")
echo "$nr samples in the program, $unknown in the kernel without a symbol"
grep -q 'lost [0-9]* BPF records' "$dir/said" && ((nr && !unknown))
