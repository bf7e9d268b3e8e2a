#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does perf top know the BPF programs that others load while it looks at one task?
# The task makes system calls without end, and another process lets BPF programs run
# there: they have names, and perf top shows the code of one of them.
set -u

dir=$(mktemp -d)
task=
top=
loader=
trap 'kill $task $top $loader 2>/dev/null; rm -rf "$dir"' EXIT
mkfifo "$dir/keys"

# until_shown PATTERN [KEYS]: perf top prints a table each second, on a slow machine
# later. The keys are for what has samples, and typed again until it has.
until_shown()
{
	local i

	for ((i = 0; i < 120; i++)); do
		grep -qE "$1" "$dir/shown" && return
		if [[ -n ${2-} ]] && ((i % 10 == 0)); then
			printf '%s\n' "$2" >&3
		fi
		sleep 0.5
	done
	echo "perf top did not show $1 in 60 s; its last lines:"
	tail -n 40 "$dir/shown"
	return 1
}

perf bench syscall basic --loop 1000000000 >/dev/null 2>&1 &
task=$!
perf top --stdio -d 1 -e cpu-clock -p "$task" <"$dir/keys" >"$dir/shown" 2>&1 &
top=$!
exec 3>"$dir/keys"
until_shown '[0-9]%.*\[k\]' || exit 1
perf trace -a -s --bpf-summary -- sleep 300 >"$dir/loader" 2>&1 &
loader=$!
until_shown '[0-9]%.*bpf_prog_[0-9a-f]*_sys_enter' || exit 1
# the table cuts names
prog=$(sed -n 's/.*\(bpf_prog_[0-9a-f]*_sys_enter\)\t\[bpf\]$/\1/p' /proc/kallsyms | tail -n 1)
# the last whole table
awk '/PerfTop:/ { last = table; table = "" } { table = table $0 "\n" } END { printf "%s", last }' \
	"$dir/shown" >"$dir/table"
nameless=$(grep -cE '%.* 0xf[0-9a-f]{15}' "$dir/table")
until_shown "^Showing .* for $prog" "s$prog" || exit 1
until_shown '^ .*: +[0-9a-f]+:[[:space:]]+[a-z]' || exit 1
echo "code of $prog shown; lines without a symbol: $nameless"
((nameless == 0)) || cat "$dir/table"
exit $((nameless > 0))
