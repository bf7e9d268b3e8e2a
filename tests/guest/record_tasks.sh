#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does perf know the kernel text that others make while it records one task?
# The task makes system calls without end, and another process lets BPF programs run
# there: every kernel sample has a symbol, and the programs have their code.
# With --per-thread, which has events of one thread alone, perf knows what that one loads.
# What comes while the task is idle is written too, and not kept until it runs.
set -u

dir=$(mktemp -d)
task=
recorder=
trap 'kill $task $recorder 2>/dev/null; rm -rf "$dir"' EXIT

# until_ended PID: it was told to stop, and has two minutes
until_ended()
{
	timeout 120 tail --pid="$1" -f /dev/null
}

# record_while_others_load OPTION...: perf.data of a task in which programs begin to run
record_while_others_load()
{
	rm -f "$dir/control" "$dir/ack"
	mkfifo "$dir/control" "$dir/ack"
	exec 4<>"$dir/control" 5<>"$dir/ack"	# nobody waits at a fifo that perf has left
	perf record -o "$dir/perf.data" -e cpu-clock -F 999 \
		--control "fifo:$dir/control,$dir/ack" "$@" >"$dir/recorded" 2>&1 &
	recorder=$!
	echo ping >&4
	read -r -t 120 _ <&5 || {
		kill "$recorder"
		cat "$dir/recorded"
		return 1
	}
	perf trace -a -s --bpf-summary -- sleep 2 >"$dir/loader" 2>&1 || {
		cat "$dir/loader"
		kill "$recorder"
		until_ended "$recorder"
		return 1
	}
	echo stop >&4
	until_ended "$recorder"
}

# judge WHAT: has each sample a symbol, and each program that has samples its code?
# Functions of the kernel that begin with bpf_prog_ have no tag behind it.
judge()
{
	local undescribed

	perf script -i "$dir/perf.data" -F ip,sym >"$dir/samples" 2>"$dir/said" || return 1
	perf report -i "$dir/perf.data" --header-only -I 2>/dev/null |
		grep -o 'bpf_prog_[0-9a-f]*_[^ ]* addr' | cut -d' ' -f1 | sort -u >"$dir/described"
	undescribed=$(grep -o ' bpf_prog_[0-9a-f]\{16\}_[^ ]*' "$dir/samples" | tr -d ' ' | sort -u |
		comm -23 - "$dir/described")
	awk -v what="$1" -v undescribed="${undescribed//$'\n'/ }" '
	length($1) < 16 || $1 !~ /^ffff/ { next }
	{ kernel++ }
	$2 ~ /^bpf_prog_[0-9a-f]+_/ { bpf++ }
	$2 == "[unknown]" { bad++ }
	END {
		printf "%s: %d samples in the kernel, %d in BPF programs, %d without a symbol; without code: %s\n",
		       what, kernel, bpf, bad, undescribed ? undescribed : "none"
		exit !bpf || bad > 0 || undescribed != ""
	}' "$dir/samples" || {
		cat "$dir/recorded"
		perf script -i "$dir/perf.data" --show-bpf-events 2>&1 | grep BPF_EVENT
		perf report -i "$dir/perf.data" --header-only -I 2>&1 | grep -i bpf_
		return 1
	}
}

failed=0
perf bench syscall basic --loop 1000000000 >/dev/null 2>&1 &
task=$!
for options in "-p $task" "-p $task --no-inherit"; do
	# shellcheck disable=SC2086 # options
	record_while_others_load $options && judge "$options" || failed=1
done
kill "$task"
record_while_others_load -- timeout 250 perf bench syscall basic --loop 1000000000 &&
	judge "-- command" || failed=1

sleep 300 &
task=$!
perf record -o "$dir/perf.data" -e cpu-clock -p "$task" >"$dir/recorded" 2>&1 &
recorder=$!
for ((tries = 0; tries < 20; tries++)); do
	"${SELFTESTS:?}/perf_events/bpf_load_cycles" 20 1 >/dev/null
	sleep 2
	written=$(perf script -i "$dir/perf.data" --show-bpf-events 2>/dev/null |
		grep -c 'KSYMBOL addr .* flags 0x0 name .*_cycle_[0-9]')
	((written >= 10)) && break
done
echo "an idle task: $written of the programs that others loaded are in the file"
((written >= 10)) || failed=1
kill "$recorder" "$task"
until_ended "$recorder"

cat >"$dir/loads.py" <<'END'
from bpf_syscalls import load_program
from record_by_program import code, run
run(load_program("own", code=code(1)), 20000)
END
PYTHONPATH=${BASH_SOURCE[0]%/*} PYTHONDONTWRITEBYTECODE=1 perf record --per-thread -o "$dir/perf.data" \
	-e cpu-clock -F 999 -- /usr/bin/python3 "$dir/loads.py" >"$dir/recorded" 2>&1 &&
	judge "--per-thread" || failed=1
exit "$failed"
