#!/bin/bash
# perf annotate of BPF trampolines
# SPDX-License-Identifier: GPL-2.0
#
# No program info describes the trampoline of a BPF program. With a copy of the
# kernel's code, perf disassembles it, and also if the kernel reports the code
# (attr.ksymbol_code). Otherwise perf says what is missing.

# shellcheck disable=SC2154 # bpf_prog, dir and pin come from lib/annotate_bpf.sh

set -e

# shellcheck source=lib/annotate_bpf.sh
. "$(dirname "$0")"/lib/annotate_bpf.sh

begin annotate_bpf_trampoline
[ -r /proc/kcore ] || skip "/proc/kcore is missing or not readable"

load_program() {
	load trampoline <<- 'EOF'
	unsigned long long calls;

	__attribute__((section("fentry/vfs_read"), used)) int count_reads(void *ctx)
	{
		calls++;
		return 0;
	}

	char _license[] __attribute__((section("license"), used)) = "GPL";
	EOF
}

# $1: name of the recording, the rest: options of perf record. A trampoline has few
# instructions of its own, so call it all the time for some seconds. Double the time
# if there was no sample, as may happen on a slow machine.
record() {
	data="${dir}/$1"
	shift
	for seconds in 3 6 12 24 48; do
		python3 "${bpf_prog}" attached "${pin}" \
			perf record -q "$@" -o "${data}" -e cpu-clock -F 1999 -a -- \
			sh -c "timeout ${seconds} dd if=/dev/zero of=/dev/null bs=1 || true" \
			> "${dir}/out" 2> "${dir}/err" || fail "perf record $*"
		perf report -i "${data}" --stdio --sort sym > "${dir}/out" 2> "${dir}/err" ||
			fail "perf report"
		symbols=$(grep -o 'bpf_trampoline_[0-9]*' "${dir}/out") && return
	done
	fail "no sample in a trampoline"
}

annotate() {
	perf annotate -i "${data}" --stdio -s "$1" > "${dir}/out" 2> "${dir}/err" || true
}

# $1: where the code is from
check_code() {
	# other programs may have trampolines too
	for symbol in ${symbols}; do
		annotate "${symbol}"
		grep -q "call.*<bpf_prog_[0-9a-f]*_count_reads>" "${dir}/out" || continue
		grep -q "[0-9.]* : *[0-9a-f]*: *push" "${dir}/out" ||
			fail "${symbol} saves no register"
		echo "${symbol} is disassembled from $1"
		return
	done
	fail "none of ${symbols} calls the program by name"
}

test_with_kcore() {
	record with-kcore --kcore
	check_code "the copy of the kernel's code"
}

test_with_snapshot() {
	record with-snapshot
	if perf evlist -v -i "${data}" | grep -q "ksymbol_code: 1"; then
		check_code "TEXT_POKE records"
	else
		echo "Not tested: this kernel does not report code (attr.ksymbol_code)"
	fi
}

# With --threads there is no snapshot of the text that exists.
test_without() {
	record without --threads
	annotate "${symbols%%[!a-z0-9_]*}"
	grep -q -- "--kcore" "${dir}/err" "${dir}/out" ||
		fail "perf does not say how to get the code of ${symbols}"
	echo "without a copy, perf says how to make one"
}

load_program
test_with_kcore
test_with_snapshot
test_without
cleanup
echo "PASS"
