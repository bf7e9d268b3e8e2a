#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Has each file of perf record --switch-output the BPF programs that its samples
# may need, and no others? Programs are loaded, run and closed without end while
# perf goes from file to file: those that the records of a file tell of are in
# its header, and no other, but those of which perf says that it did not wait for
# them. And each sample in the kernel has a name, also those of the moment between
# two files, and if perf leaves the rest of a ring buffer for later. Each file also has the
# code of text that is no program, and was there before.
set -u

dir=$(mktemp -d)
failed=0
holder=
trap 'kill $holder 2>/dev/null; rm -rf "$dir"' EXIT

# unready FILE: of how many programs perf said so before it had written the file, and of
# the last one at its end
unready()
{
	awk -v file="$1" '
	/^\[ .* BPF programs are still being unloaded/	{ nr += $4 }
	/^  [0-9]+ were still being unloaded when perf record ended/	{ nr += $1 }
	/: Dump / { found = index($0, file); if (found) said = nr; nr = 0 }
	END { print said + (found ? nr : 0) }' "$dir/said"
}

# judge FILE: and say what is in it. What ends while the samples of a file are read
# may have samples in the next one, and what is loaded before the header is written
# may be in the one before.
judge()
{
	local unknown missing needless unready code

	perf script -i "$1" --show-bpf-events -F ip,sym >"$dir/script" 2>/dev/null || return 1
	sed -n 's/.*PERF_RECORD_BPF_EVENT.* type 1, .* id \([0-9]*\)$/\1/p' "$dir/script" | sort -u >"$dir/loaded"
	sed -n 's/.*PERF_RECORD_BPF_EVENT.* type 2, .* id \([0-9]*\)$/\1/p' "$dir/script" |
		sort -u - "$dir/loaded" >"$dir/told"
	unknown=$(grep -c ' *ffff[0-9a-f]\{12\} \[unknown\]' "$dir/script")
	needless=$(comm -23 "$dir/early" "$dir/loaded" | wc -l)
	code=$(perf script -i "$1" --show-text-poke-events 2>/dev/null | grep -c PERF_RECORD_TEXT_POKE)
	perf report -i "$1" --header-only -I 2>/dev/null |
		sed -n 's/^# bpf_prog_info \([0-9]*\):.*/\1/p' | sort -u >"$dir/described"
	missing=$(comm -23 "$dir/loaded" "$dir/described" | wc -l)
	unready=$(unready "${1##*/}")
	sort -u "$dir/told" "$dir/before" | comm -13 - "$dir/described" >"$dir/early"
	cp "$dir/told" "$dir/before"
	echo "${1##*/}: $(wc -l <"$dir/told") programs, $missing of them without code" \
		"(perf says $unready), $needless needless in the file before; $unknown kernel samples without a symbol;" \
		"$code records of code"
	((missing <= unready && needless == 0 && unknown == 0 && code > 0))
}

# recorded LOAD OPTIONS: record a shell function with these, and judge each file
recorded()
{
	local file files=0 with_programs=0 needless load=$1

	shift
	rm -rf "${dir:?}"/*
	echo "$load: perf record $*"
	# shellcheck disable=SC2016 # expanded there
	perf record -o "$dir/perf.data" "$@" -a -- \
		timeout 200 bash -c '"$1" &
			until files=("$2".*); ((${#files[@]} > 5)); do sleep 1; done
			kill $!' - "$load" "$dir/perf.data" >"$dir/said" 2>&1 || failed=1
	cat "$dir/said"

	touch "$dir/early" "$dir/before"
	for file in "$dir"/perf.data.*; do
		judge "$file" || failed=1
		((files++))
		[[ ! -s $dir/loaded ]] || ((with_programs++))
	done
	needless=$(wc -l <"$dir/early")
	echo "$files files, $with_programs with programs, $needless programs needless in the last"
	((with_programs > 2 && needless == 0)) || failed=1
}

export cycles="${SELFTESTS:?}/perf_events/bpf_load_cycles"

# programs without end, on all CPUs
many()
{
	exec "$cycles" 100000000 2
}

# a few programs on one CPU, whose ring buffer they don't fill; it is another one whose
# samples fill the file
few()
{
	trap 'kill $busy; exit' TERM
	taskset -c 1 bash -c 'while :; do :; done' &
	busy=$!
	while :; do
		taskset -c 0 "$cycles" 4 1
		sleep 2
	done
}
export -f many few

# A classic BPF program: no bpf_prog_info has its code
coproc "${BASH_SOURCE[0]%/*}/classic_filter.py"
holder=$COPROC_PID
read -r -t 60 _ <&"${COPROC[0]}"

recorded many -e cpu-clock -F 499 --switch-output=2s
recorded few -e cpu-clock:I -F 499 -m 32 --switch-output=64K --mmap-flush=32K
((!failed))
