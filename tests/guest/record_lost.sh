#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A recording with --overwrite keeps a log of kernel text, and the log lacks what the kernel
# could not write to the ring buffer of that event. Is a program known that was loaded
# then, and still runs when the recording ends? Even if the log has the end of another
# program that was at its address before? perf is stopped while more programs come and go
# than its ring buffer has room for, and then the program is loaded.
set -u

dir=$(mktemp -d)
recorder=
program=
holder=
limit=/proc/sys/kernel/perf_event_mlock_kb
before=$(<$limit)
trap 'kill -CONT $recorder 2>/dev/null; kill $recorder $program $holder 2>/dev/null
      rm -rf "$dir"; echo "$before" >$limit' EXIT
load=${SELFTESTS:?}/perf_events/bpf_load_cycles
length=403	# bytes of the text of one that bpf_load_cycles numbers

# address: where the program cycle_1 is, waits for it to be there
address()
{
	local i

	for ((i = 0; i < 300; i++)); do
		awk '$3 ~ /_cycle_1$/ { print $1; found = 1 } END { exit !found }' /proc/kallsyms &&
			return
		sleep 0.1
	done
	return 1
}

# gone: waits until no program of bpf_load_cycles is there
gone()
{
	local i

	for ((i = 0; i < 300; i++)); do
		grep -qE '_(cycle_[0-9]+|told_main)\s' /proc/kallsyms || return 0
		sleep 0.1
	done
	return 1
}

# The memory of BPF programs stays where it is while one of them exists
coproc "${BASH_SOURCE[0]%/*}/classic_filter.py"
holder=$COPROC_PID
read -r -t 60 _ <&"${COPROC[0]}"

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
# Each begins at a random place in the same memory: know the lowest of some
earlier=
for ((i = 0; i < 4; i++)); do
	"$load" 2 1 3000 >/dev/null &
	program=$!
	now=$(address) && wait "$program" && gone || exit 1
	[[ $earlier ]] && ((0x$earlier <= 0x$now)) || earlier=$now
done
sleep 1		# for perf to read what the kernel wrote
kill -STOP "$recorder"
"$load" 200 1 >/dev/null && gone || exit 1
for ((i = 0; i < 20; i++)); do
	"$load" 2 1 120000 >/dev/null &	# the second of them runs for two minutes
	program=$!
	now=$(address) || exit 1
	((0x$now >= 0x$earlier && 0x$now < 0x$earlier + length)) && break
	kill "$program"
	wait "$program" 2>/dev/null
	gone || exit 1
done
echo "the program is at $now, try $((i + 1)), an earlier one was at $earlier"
sleep 2
kill -CONT "$recorder"
sleep 3		# the ring buffers of the samples hold the program alone
echo stop >&4
timeout 60 tail --pid="$recorder" -f /dev/null || exit 1
grep '^\[' "$dir/said"
perf script -i "$dir/perf.data" -F ip,sym 2>/dev/null >"$dir/samples"
read -r nr unknown < <(awk '/_cycle_1/ { nr++ } $1 ~ /^ffff/ && /unknown/ { unknown++ }
	END { print nr + 0, unknown + 0 }' "$dir/samples")
((nr)) || sort "$dir/samples" | uniq -c | sort -rn | head
echo "$nr samples in the program, $unknown in the kernel without a symbol"
grep -q 'lost [0-9]* BPF records' "$dir/said" && ((i < 20 && nr && !unknown))
