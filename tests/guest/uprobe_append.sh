#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does perf end as usual after a uprobe was added to the event that it records?
set -u

# Without the fix it is an oops that leaves event_mutex locked: no test after it would end
grep -qw enable_kprobes /proc/kallsyms || {
	echo "SKIP: a kernel without the series oopses, and no probe event can be changed then"
	exit 2
}
tracefs=/sys/kernel/tracing
dir=$(mktemp -d)
recorder=
cleanup()
{
	[[ ! $recorder ]] || kill -KILL "$recorder" 2> /dev/null
	echo '-:append/probe' >> "$tracefs/uprobe_events"
	rm -rf "$dir"
}
trap cleanup EXIT

# add NUMBER: a probe where /bin/true begins; printf, as echo may know \1 as an octal number
entry=$(od -A n -t x8 -j 24 -N 8 /bin/true | tr -d ' ')
add()
{
	printf 'p:append/probe %s:0x%s number=\\%d\n' "$(realpath /bin/true)" "$entry" "$1" \
		>> "$tracefs/uprobe_events"
}

add 1 || exit 1
# Of one task, so that it matters which uprobes the event has when it is closed
perf record -e append:probe -p $$ -o "$dir/perf.data" -- sleep 600 > "$dir/said" 2>&1 &
recorder=$!
for ((i = 0; i < 300; i++)); do
	pgrep -P "$recorder" -x sleep > /dev/null && break
	sleep 0.1
done
add 2 || exit 1
kill -INT "$recorder"
wait "$recorder"
status=$?
recorder=
cat "$dir/said"
# As the workload, which perf ends by SIGTERM; the kernel kills (137) who was in an oops
((status == 143)) || { echo "FAIL: perf ended with status $status"; exit 1; }
