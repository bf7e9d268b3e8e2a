#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Do perf record and perf top say that a CPU went offline, and when? It is online again at
# once, but the kernel has taken its events off: it has no later sample. Where no CPU goes
# offline, nothing is said.
set -u

# shellcheck source=tests/guest/perf_top.bash
source "${BASH_SOURCE[0]%/*}/perf_top.bash"

online=/sys/devices/system/cpu/cpu1/online
[[ -w $online ]] || {
	echo "CPU 1 cannot go offline here"
	exit 2
}
failed=0

# record COMMAND OPTION...: perf.data while a shell runs the command
record()
{
	perf record "${@:2}" -e cpu-clock -o "$dir/perf.data" -- bash -c "$1" >"$dir/recorded" 2>&1 ||
		fail "perf record failed"
}

# fail WHAT: and what perf record said
fail()
{
	echo "$1"
	cat "$dir/recorded"
	failed=1
}

# is_last: has CPU 1 no sample in the last two of the three seconds that CPU 0 has after that?
is_last()
{
	perf script -i "$dir/perf.data" -F cpu,time 2>/dev/null | tr -d '[]:' | awk '
	NR == 1 || $2 < begin { begin = $2 }
	$2 > last[$1 + 0] { last[$1 + 0] = $2 }
	END {
		printf "the last samples: CPU 0 after %.1f s, CPU 1 after %.1f s\n",
		       last[0] - begin, last[1] - begin
		exit last[0] - last[1] < 2
	}'
}

record "sleep 1" -a
grep 'went offline' "$dir/recorded" && failed=1

for options in -a "-a --no-bpf-event" "-C 0,1"; do
	# shellcheck disable=SC2086 # options
	record "sleep 3; echo 0 >$online; echo 1 >$online; sleep 3" $options
	seconds=$(sed -n 's/^CPU 1 went offline after \([0-9]*\)\..* s: .*(1 of [0-9]* CPUs)$/\1/p' \
		"$dir/recorded")
	echo "perf record $options: CPU 1 after $seconds s"
	if [[ ! $seconds =~ ^[0-9]+$ ]] || ((seconds < 3)); then
		fail "perf record does not say it, not once, or says another time"
	elif ! is_last; then
		fail "that is not what the samples say"
	fi
done

start_top -a || exit 1
echo 0 >"$online"
echo 1 >"$online"
until_shown '^CPU 1 went offline after [0-9.]+ s: ' || failed=1
# the next tables have it too
: >"$dir/shown"
until_shown 'WARNING: CPU 1 went offline' || failed=1
exit "$failed"
