#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Is this perf no worse than the distribution's own one where the kernel has nothing
# of the series? Both record programs that come and go. The names of what runs in the
# kernel have to be as many, and what such a kernel cannot give has to be counted:
# the code of programs that had ended before perf asked for it.
set -u

old=/usr/bin/perf
[[ -x $old ]] || {
	echo "$old is not there: install linux-perf"
	exit 2
}
echo "$(uname -r), $("$old" --version)"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

record()
{
	"$1" record -e cpu-clock -F 999 -a -o "$2" -- \
		"${SELFTESTS:?}/perf_events/bpf_load_cycles" 300 2 >"$2.said" 2>&1 || {
		cat "$2.said"
		exit 1
	}
}

# look PERF FILE: sets loaded, described, kernel, unknown (samples) and bpf (samples)
look()
{
	described=$("$1" report -i "$2" --header-only -I 2>/dev/null |
		grep -o '^# bpf_prog_info [0-9]*' | sort -u | wc -l)
	read -r loaded kernel unknown bpf < <(
		"$1" script -i "$2" --show-bpf-events -F ip,sym 2>/dev/null | awk '
		/PERF_RECORD_BPF_EVENT type 1,/ { loaded++ }
		$1 !~ /^ffff/ { next }
		{ kernel++ }
		$2 == "[unknown]" { unknown++ }
		$2 ~ /^bpf_prog_/ { bpf++ }
		END { print loaded + 0, kernel + 0, unknown + 0, bpf + 0 }')
	echo "$1: $loaded programs loaded, $described with code; $kernel samples in the kernel," \
		"$bpf of them in programs, $unknown without a symbol"
}

fail()
{
	echo "FAIL: $*"
	failed=1
}

record "$old" "$dir/old.data"
look "$old" "$dir/old.data"
old_unknown=$unknown old_kernel=$kernel
look perf "$dir/old.data"
((unknown <= old_unknown)) || fail "of the same recording"

record perf "$dir/perf.data"
look perf "$dir/perf.data"
((loaded == 300)) || fail "not the 300 programs"
((bpf > 0)) || fail "no sample has the name of a program"
((unknown * old_kernel <= (old_unknown + 1) * kernel)) || fail "more samples without a symbol"
counted=$(sed -n 's|^\[ perf record: \([0-9]*\)/[0-9]* BPF programs without code \]|\1|p' \
	"$dir/perf.data.said")
tail -n 4 "$dir/perf.data.said"
((described > 0 && described + ${counted:-0} >= loaded)) || fail "some without code are not counted"
[[ -z ${KEEP_DATA-} ]] || cp "$dir/perf.data" "$KEEP_DATA"
exit "$failed"
