#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The tests of selftests/bpf that the series adds or changes: all that are in the
# test_progs that `make bpf-selftests` built, but for verifier_ctx, which needs the modules
# of selftests/bpf (`make mainline` runs it). Programs of unprivileged users are skipped
# where they are disabled.
set -u

progs=${SELFTESTS:?}/../out-bpf-selftests/test_progs
[[ -x $progs/test_progs ]] || {
	echo "no $progs/test_progs: run make bpf-selftests"
	exit 1
}

cd "$progs" || exit 1
# btf_func has a test on a function of it
modprobe probe-sample-a || exit 1
trap 'rmmod probe_sample_a' EXIT
# The watchdog would end instances/many after 120 s, which needs 131 s with the debug
# kernel on a slow machine without KVM. What hangs is ended by the limit of this script.
./test_progs -w 600 -d verifier_ctx >"$TMPDIR/said" 2>&1
status=$?
grep -a '^#[0-9]* ' "$TMPDIR/said"
summary=$(grep -a '^Summary:' "$TMPDIR/said")
echo "$summary"
((status == 0)) && [[ $summary =~ ^Summary:\ [1-9].*,\ 0/0\ FAILED$ ]] && exit 0
# A test that the watchdog ends has no failed assertion, but a signal
grep -a -B 3 ':FAIL:\|^WATCHDOG\|^Caught' "$TMPDIR/said" | head -n 100
tail -n 60 "$TMPDIR/said"
exit 1
