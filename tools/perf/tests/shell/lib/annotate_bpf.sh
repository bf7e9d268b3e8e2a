#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Functions for the tests that annotate BPF code and source this file. ${dir} is the
# temporary directory of the test, and load() pins the program at ${pin}.

# shellcheck disable=SC2034 # used by the tests
bpf_prog="$(dirname "${BASH_SOURCE[0]}")/bpf_prog.py"
dir=""
pin=""

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

fail() {
	echo "FAIL: $*"
	tail -n 100 "${dir}/out" "${dir}/err" 2> /dev/null || true
	cleanup
	exit 1
}

trap_cleanup() {
	echo "Unexpected end in line ${BASH_LINENO[0]}"
	cleanup
	exit 1
}

# Create ${dir}, or skip if something is missing that all these tests need.
begin() {
	[ "$(uname -m)" = x86_64 ] || skip "the test looks for x86_64 instructions"
	[ "$(id -u)" = 0 ] || skip "loading BPF programs and recording system-wide needs root"
	for tool in clang bpftool python3; do
		command -v "${tool}" > /dev/null || skip "${tool} is not installed"
	done
	perf check feature -q bpf || skip "perf is not linked with libbpf"
	perf check feature -q libLLVM || perf check feature -q libcapstone ||
		skip "perf is linked with neither LLVM nor capstone"

	trap trap_cleanup EXIT TERM INT
	dir=$(mktemp -d "/tmp/perf_$1.XXXXXX")
	pin="${dir}/bpffs/prog"
}

# $1: name of the C source, which is on stdin
load() {
	cat > "${dir}/$1.bpf.c"
	clang -g -O2 -target bpf -c "${dir}/$1.bpf.c" -o "${dir}/$1.bpf.o" ||
		skip "clang cannot compile BPF"
	mkdir "${dir}/bpffs"
	mount -t bpf none "${dir}/bpffs" || skip "the BPF file system cannot be mounted"
	bpftool prog load "${dir}/$1.bpf.o" "${pin}"
}
