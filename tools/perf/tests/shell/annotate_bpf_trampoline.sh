#!/bin/bash
# perf annotate of BPF trampolines
# SPDX-License-Identifier: GPL-2.0
#
# What the kernel generates to call a BPF program has no program info. With a copy
# of the kernel's code it is disassembled; without one, perf says what is missing.

set -e

prog="$(dirname "$0")/lib/bpf_prog.py"

cleanup() {
	trap - EXIT TERM INT
	[ -n "${dir}" ] || return 0
	umount "${dir}/bpffs" 2> /dev/null || true
	rm -rf "${dir}"
}

skip() {
	echo "Skip: $*"
	cleanup
	exit 2
}

[ "$(uname -m)" = x86_64 ] || skip "the instructions it looks for are those of x86_64"
[ "$(id -u)" = 0 ] || skip "loading BPF programs and recording system-wide needs root"
for tool in clang bpftool python3; do
	command -v "${tool}" > /dev/null || skip "${tool} is not installed"
done
perf check feature -q bpf || skip "perf is not linked with libbpf"
perf check feature -q libLLVM || perf check feature -q libcapstone ||
	skip "perf is linked with neither LLVM nor capstone"
[ -r /proc/kcore ] || skip "/proc/kcore is not there, or not readable"

dir=$(mktemp -d /tmp/perf_annotate_bpf_trampoline.XXXXXX)
pin="${dir}/bpffs/prog"

trap_cleanup() {
	echo "Unexpected end in line ${BASH_LINENO[0]}"
	cleanup
	exit 1
}
trap trap_cleanup EXIT TERM INT

fail() {
	echo "FAIL: $*"
	cat "${dir}/out" "${dir}/err" 2> /dev/null || true
	cleanup
	exit 1
}

build_and_load() {
	cat > "${dir}/tramp.bpf.c" <<- 'EOF'
	unsigned long long calls;

	__attribute__((section("fentry/vfs_read"), used)) int count_reads(void *ctx)
	{
		calls++;
		return 0;
	}

	char _license[] __attribute__((section("license"), used)) = "GPL";
	EOF
	clang -g -O2 -target bpf -c "${dir}/tramp.bpf.c" -o "${dir}/tramp.bpf.o" ||
		skip "clang cannot compile BPF"
	mkdir "${dir}/bpffs"
	mount -t bpf none "${dir}/bpffs" || skip "the BPF file system cannot be mounted"
	bpftool prog load "${dir}/tramp.bpf.o" "${pin}"
}

# $1: what is recorded, the rest: options of perf record. A trampoline has few
# instructions of its own: three seconds of nothing but calls of it.
record() {
	data="${dir}/$1"
	shift
	python3 "${prog}" attached "${pin}" \
		perf record -q "$@" -o "${data}" -e cpu-clock -F 1999 -a -- \
		sh -c 'timeout 3 dd if=/dev/zero of=/dev/null bs=1 || true' \
		> "${dir}/out" 2> "${dir}/err" || fail "perf record $*"
	symbols=$(perf report -i "${data}" --stdio --sort sym 2> /dev/null |
		  grep -o 'bpf_trampoline_[0-9]*') || fail "no sample in a trampoline"
}

annotate() {
	perf annotate -i "${data}" --stdio -s "$1" > "${dir}/out" 2> "${dir}/err" || true
}

test_with_kcore() {
	record with-kcore --kcore
	# others' programs may have trampolines too
	for symbol in ${symbols}; do
		annotate "${symbol}"
		grep -q "call.*<bpf_prog_[0-9a-f]*_count_reads>" "${dir}/out" || continue
		grep -q "[0-9.]* : *[0-9a-f]*: *push" "${dir}/out" ||
			fail "${symbol} saves no register"
		echo "${symbol} is disassembled from the copy of the kernel's code"
		return
	done
	fail "none of ${symbols} calls the program by name"
}

test_without() {
	record without
	annotate "${symbols%%[!a-z0-9_]*}"
	grep -q -- "--kcore" "${dir}/err" "${dir}/out" ||
		fail "nothing says how to get the code of ${symbols}"
	echo "without a copy, perf says how to make one"
}

build_and_load
test_with_kcore
test_without
cleanup
echo "PASS"
