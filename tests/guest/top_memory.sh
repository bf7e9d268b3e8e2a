#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does perf top free what it knows of BPF programs that have ended? Programs are loaded, run
# and unloaded while it runs: when so many more have come and gone, it has no more memory.
# With -z it drops the samples of the table before, which would keep their programs. What
# is free in its heap after the first thousands is enough for those that follow.
#
# TOP_PROGRAMS (2000) is how many, in each round.
set -u

# shellcheck source=tests/guest/perf_top.bash
source "${BASH_SOURCE[0]%/*}/perf_top.bash"

programs=${TOP_PROGRAMS:-2000}
max_bytes=256	# of each program: all that is known of it takes a kilobyte

# round N: the memory of perf top in KiB when N more programs have come and gone
round()
{
	"${SELFTESTS:?}/perf_events/bpf_load_cycles" "$1" 2 >"$dir/loaded" || return
	sleep 5		# the last of them have left the table
	awk '/^VmRSS:/ { print $2 }' "/proc/$top/status"
}

start_top -a -z -F 99 || exit 1
round "$programs" >/dev/null || exit 1
round "$programs" >/dev/null || exit 1
before=$(round "$programs") && after=$(round "$programs") || exit 1
grown=$(((after - before) * 1024 / programs))
echo "memory: $before KiB after $programs programs, $after KiB after as many more: $grown bytes each"
((grown <= max_bytes))
