#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does perf top show the code of a BPF program that had ended before perf top could ask?
# perf top is stopped while a program is loaded, runs for two seconds and ends. Then it
# is told of the program by its ring buffer, and the kernel has kept what there is to
# tell. The samples may be read before that: they are given their code later.
set -u

# shellcheck source=tests/guest/perf_top.bash
source "${BASH_SOURCE[0]%/*}/perf_top.bash"

delay=10	# perf top drops samples that are older when it reads them
start_top -a -F 499 || exit 1
kill -STOP "$top"
"${SELFTESTS:?}/perf_events/bpf_load_cycles" 2 1 2000 || exit 1
for ((i = 0; i < 600; i++)); do	# a grace period later
	grep -q '_cycle_1' /proc/kallsyms || break
	sleep 0.1
done
((i < 600)) || exit 1
kill -CONT "$top"
until_shown '[0-9]%.*bpf_prog_[0-9a-f]*_cycle_1' || exit 1
prog=$(grep -oE 'bpf_prog_[0-9a-f]{16}_cycle_1' "$dir/shown" | tail -n 1)
# Percentages are of samples that come from here on, so of none: also lines of 0 %
until_said 'Enter details display event filter' F0 || exit 1
until_said "^Showing .* for $prog" "s$prog" || exit 1
until_shown '^ .*: +[0-9a-f]+:[[:space:]]+xor' || exit 1
until_shown 'return 1;' || exit 1
echo "code and source of $prog shown, which has ended"
