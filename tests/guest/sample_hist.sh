#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does the example of samples/bpf sum up all samples of a command and its children, and
# pass each tenth one on? Once for each compiler that it was built with: it is written
# as C is, with a pointer to the sample that goes to a function. On a kernel that has
# not the sample as context the verifier refuses it.
set -u

samples=${SELFTESTS:?}/../out-samples
keep=10
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
built=0

# judge NAME: what the example printed
judge()
{
	local sum bad nr no_room kept lost

	read -r sum bad < <(awk '/^ *[0-9]+ +[0-9]+ / { sum += $1; bad += $2 == 0 }
			    END { print sum + 0, bad + 0 }' "$dir/said")
	read -r nr no_room kept lost < <(sed -n \
		's/^\([0-9]*\) samples, \([0-9]*\) without .*; \([0-9]*\) in the ring.*, \([0-9]*\) lost.*/\1 \2 \3 \4/p' \
		"$dir/said")
	[[ ${lost-} ]] || {
		echo "$1:"
		cat "$dir/said"
		failed=1
		return
	}
	echo "$1: $nr samples, $sum in the histogram, $bad rows without a cgroup," \
	     "$kept + $lost in the ring buffers"
	((nr > 1000 && sum == nr && !bad && !no_room)) || failed=1
	((kept + lost == (nr + keep - 1) / keep)) || failed=1
}

for built_by in "$samples"/clang-*; do
	[[ -x $built_by/sample_hist ]] || continue
	built=$((built + 1))
	# shellcheck disable=SC2016 # expanded there
	"$built_by/sample_hist" -k "$keep" -- \
		sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; sh -c /bin/true; done' \
		>"$dir/said" 2>&1
	judge "${built_by##*/}"
done
((built)) || {
	echo "no example in $samples: run \`make samples\`"
	failed=1
}
exit "$failed"
