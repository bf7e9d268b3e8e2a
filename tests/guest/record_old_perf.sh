#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Do the distribution's perf and this one, years apart, get along? The old one
# records on this kernel, and reads what this one has recorded: the same samples,
# whoever reads them.
set -u

old=/usr/bin/perf
[[ -x $old ]] || {
	echo "$old is not there: install linux-perf"
	exit 2
}
"$old" --version
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# record PERF FILE
record()
{
	"$1" record -q -e cpu-clock -F 999 -a -o "$2" -- \
		"${SELFTESTS:?}/perf_events/bpf_load_cycles" 100 2 2>"$dir/said" >"$dir/out"
}

# reads PERF FILE HOW: samples that it finds, or what it says
reads()
{
	if "$1" script -i "$3" -F ip,sym <"$2" >"$dir/script" 2>"$dir/said"; then
		grep -c '^ *[0-9a-f]' "$dir/script"
	else
		tail -n 1 "$dir/said"
	fi
}

# same WHAT FILE [HOW]: both find as many samples, some in BPF programs
same()
{
	local ours theirs bpf

	theirs=$(reads "$old" "$2" "${3:-$2}")
	bpf=$(grep -c 'bpf_prog_' "$dir/script")
	ours=$(reads perf "$2" "${3:-$2}")
	echo "$1: read by the old perf: $theirs, $bpf of them in BPF programs; by this one: $ours"
	[[ $ours == "$theirs" && $ours -gt 0 && $bpf -gt 0 ]] || failed=1
}

record "$old" "$dir/old.data" || { echo "the old perf does not record here"; cat "$dir/said"; exit 1; }
same "recorded by the old perf" "$dir/old.data"
record perf - && cp "$dir/out" "$dir/pipe.data"
same "recorded by this one to a pipe" "$dir/pipe.data" -

# No field of the attr is in use that the old one does not know, so it reads the file.
record perf "$dir/new.data" || { cat "$dir/said"; exit 1; }
same "recorded by this one to a file" "$dir/new.data"
exit "$failed"
