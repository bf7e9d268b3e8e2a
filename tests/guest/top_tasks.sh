#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does perf top know the BPF programs that others load while it looks at one task?
# The task makes system calls without end, and another process lets BPF programs run
# there: they have names, and perf top shows the code of one of them.
set -u

# shellcheck source=tests/guest/perf_top.bash
source "${BASH_SOURCE[0]%/*}/perf_top.bash"

perf bench syscall basic --loop 1000000000 >/dev/null 2>&1 &
task=$!
running+=("$task")
start_top -p "$task" || exit 1
perf trace -a -s --bpf-summary -- sleep 100000 >"$dir/loader" 2>&1 &
running+=("$!")
# which of its functions takes enough time to be in the table depends on the processor
functions='bpf_prog_[0-9a-f]{16}_(sys_enter|sys_exit|do_exit)'
until_shown "[0-9]%.*$functions" || exit 1
prog=$(grep -oE "$functions" "$dir/shown" | tail -n 1)
# the last whole table
awk '/PerfTop:/ { last = table; table = "" } { table = table $0 "\n" } END { printf "%s", last }' \
	"$dir/shown" >"$dir/table"
nameless=$(grep -cE '%.* 0xf[0-9a-f]{15}' "$dir/table")
until_said "^Showing .* for $prog" "s$prog" || exit 1
until_shown '^ .*: +[0-9a-f]+:[[:space:]]+[a-z]' || exit 1
echo "code of $prog shown; lines without a symbol: $nameless"
((nameless == 0)) || cat "$dir/table"
exit $((nameless > 0))
