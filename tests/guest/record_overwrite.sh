#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does each sample of perf record --overwrite have the name of the program that ran
# then? Programs run one after the other, each for longer than a part of what the
# ring buffers hold, and those that come later take the addresses of those before.
# When the recording ends none is there any more, and the ring buffers have lost the
# record of how the oldest sampled one began. The second recording goes from file to
# file: what had ended before a file began is not in it. A module that goes and comes
# back to its address is there in the end.
set -u

dir=$(mktemp -d)
trap 'rmmod dummy 2>/dev/null; rm -rf "$dir"' EXIT
programs=16
failed=0
module=$(find -L "/lib/modules/$(uname -r)/kernel/drivers/net" -name dummy.ko -print -quit)
[[ $module ]] || {
	echo "there is no dummy.ko for this kernel"
	exit 1
}

# record MILLISECONDS OPTIONS...: so long each program runs
record()
{
	local ms=$1

	shift
	# shellcheck disable=SC2016 # expanded there
	perf record -o "$dir/perf.data" --overwrite -m 8 -a -e cpu-clock -F 999 "$@" -- \
		sh -ec 'insmod "$1"; rmmod dummy; insmod "$1"; "$2" "$3" 1 "$4"' - "$module" \
		"${SELFTESTS:?}/perf_events/bpf_load_cycles" "$programs" "$ms" >"$dir/said" 2>&1 || {
		cat "$dir/said"
		exit 1
	}
	rmmod dummy
}

# judge_module FILE: where the core text of the module is after the last record.
# Sets there, the number of places.
judge_module()
{
	there=$(perf script -i "$1" --show-bpf-events --show-mmap-events 2>/dev/null |
		sed -n -e 's/.*PERF_RECORD_MMAP2 .*\[0x\([0-9a-f]*\)(.* \[dummy\]$/there \1/p' \
		       -e 's/.*PERF_RECORD_KSYMBOL addr \([0-9a-f]*\) .* type 3 flags 0x1 name dummy .*/gone \1/p' |
		awk '{ there[$2] = $1 == "there" } END { for (addr in there) nr += there[addr]; print nr + 0 }')
	echo "${1##*/}: the module is at $there place(s) in the end"
}

# judge FILE: what perf says of the kernel's samples, against what the records say of
# when each program came and went. Sets nr, known, sampled and lost.
judge()
{
	local unknown wrong

	perf script -i "$1" -F time,ip,sym 2>/dev/null |
		awk '$2 ~ /^ffff/ { sub(":", "", $1); print $1, $3 }' >"$dir/samples"
	perf script -i "$1" --show-bpf-events 2>/dev/null |
		sed -n 's/^.*\] *\([0-9.]*\): PERF_RECORD_KSYMBOL .* flags 0x\([01]\) name \(bpf_prog_[0-9a-f]*_cycle_[0-9]*\) .*/\1 \2 \3/p' \
		>"$dir/texts"
	read -r nr unknown wrong sampled lost known < <(awk '
		FILENAME ~ /texts$/ && $2 == 0 && !($3 in began) { began[$3] = $1 }
		FILENAME ~ /texts$/ && $2 == 1			 { ended[$3] = $1 }
		FILENAME ~ /texts$/				 { next }
		!nr++			{ first = $1 }
		$2 == "[unknown]"	{ unknown++ }
		$2 ~ /_cycle_/		{ seen[$2] = 1 }
		$2 ~ /_cycle_/ && (!($2 in began) || $1 < began[$2]) { wrong++ }
		$2 ~ /_cycle_/ && $2 in ended && $1 > ended[$2]	{ wrong++ }
		END {
			for (name in seen) {
				sampled++
				lost += began[name] < first
			}
			for (name in began)
				known++
			print nr + 0, unknown + 0, wrong + 0, sampled + 0, lost + 0, known + 0
		}' "$dir/texts" "$dir/samples")
	echo "${1##*/}: $nr samples in the kernel, $unknown without a symbol, $wrong of programs" \
		"that did not run; $known programs told of, $sampled sampled, $lost of them from" \
		"before the first sample"
	((!unknown && !wrong)) || failed=1
}

# The ring buffers may happen to begin with the oldest program, or to hold no other, on
# a slow machine: then once more.
for ms in 500 250 125 500 1000; do
	record "$ms"
	judge "$dir/perf.data"
	((lost && sampled > 1)) && break
done
((lost && sampled > 1 && known == programs / 2)) || failed=1
judge_module "$dir/perf.data"
((there == 1)) || failed=1

# A file that is begun when the recording ends has no samples. The first ones may end
# before the module has come back: it then is there in all that follow.
record 500 --switch-output=1s
files=0
back=0
for file in "$dir"/perf.data.2*; do
	judge "$file"
	judge_module "$file"
	((there <= 1 && there >= back)) || failed=1
	back=$there
	((nr && ++files))
done
((back && files > 1 && known < programs / 2)) || failed=1

# A flight recorder's file, which has no samples until the recording ends, does not grow
# meanwhile either.
# shellcheck disable=SC2016 # expanded there
perf record -o "$dir/perf.data" --overwrite -m 8 -a -e cpu-clock -F 99 -- sh -ec '
	size() { sleep 1; stat -c %s "$1"; }
	size "$2"; "$1" 50 2 >/dev/null; size "$2"' - \
	"${SELFTESTS:?}/perf_events/bpf_load_cycles" "$dir/perf.data" >"$dir/sizes" 2>"$dir/said" || {
	cat "$dir/said"
	exit 1
}
read -r -d "" before after <"$dir/sizes"
echo "the file has $before bytes, and $after when 50 programs have come and gone"
((before > 0 && before == after)) || failed=1
exit "$failed"
