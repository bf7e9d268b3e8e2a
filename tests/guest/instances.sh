#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does the example of Documentation/bpf/libbpf/libbpf_instances.rst print what it says
# there, and does no allocation that fails leave anything behind? See instances_faults.c.
set -u

dir=${SELFTESTS:?}/../out-samples
page=${SELFTESTS:?}/../linux/Documentation/bpf/libbpf/libbpf_instances.rst

"$dir/instances" > "$TMPDIR/said" || exit 1
sed -n '/^It prints::/,/^[^ I]/s/^    //p' "$page" > "$TMPDIR/told"
cat "$TMPDIR/said"
[[ -s $TMPDIR/told ]] || {
	echo "nothing in $page to compare it with"
	exit 1
}
diff "$TMPDIR/told" "$TMPDIR/said" || exit 1
exec "$dir/instances_faults" "$dir/instances.bpf.o" sum_values
