#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does perf top free what it knows of BPF programs that have ended? Programs are loaded, run
# and unloaded while it runs: when so many more have come and gone, it has no more memory.
# With -z it drops the samples of the table before, which would keep their programs. What
# is free in its heap after the first thousands is enough for those that follow. With -C
# it has no ring buffer on the CPU where they end.
#
# Whatever else runs on the machine gets samples too, and perf top reads the symbols of its
# files once: a compiler's are megabytes. What is not freed is so in each round, so the round
# in which perf top grew least is judged.
#
# TOP_PROGRAMS (2000) is how many, in each round.
set -u

# shellcheck source=tests/guest/perf_top.bash
source "${BASH_SOURCE[0]%/*}/perf_top.bash"

programs=${TOP_PROGRAMS:-2000}
max_bytes=256	# of each program: all that is known of it takes a kilobyte
failed=0

# round N: the memory of perf top in KiB when N more programs have come and gone
round()
{
	taskset -c 1 "${SELFTESTS:?}/perf_events/bpf_load_cycles" "$1" 2 >"$dir/loaded" || return
	sleep 5		# the last of them have left the table
	awk '/^VmRSS:/ { print $2 }' "/proc/$top/status"
}

# judge ROUNDS ARG...: perf top with these arguments after so many rounds, and the next ones
judge()
{
	local i before after grown least

	: >"$dir/shown"
	start_top "${@:2}" -z -F 99 || exit 1
	for ((i = 0; i < $1; i++)); do
		round "$programs" >/dev/null || exit 1
	done
	before=$(round "$programs") || exit 1
	for ((i = 0; i < 5; i++)); do
		after=$(round "$programs") || exit 1
		grown=$(((after - before) * 1024 / programs))
		echo "perf top ${*:2}: $before KiB, $after KiB after $programs programs more:" \
			"$grown bytes each"
		((i && grown > least)) || least=$grown
		((least > max_bytes)) || break
		before=$after
	done
	kill "$top"
	wait "$top" 2>/dev/null
	((least <= max_bytes)) || failed=1
}

judge 2 -a
programs=$((programs / 2))
judge 1 -C 0
exit "$failed"
