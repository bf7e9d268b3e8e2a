#!/bin/bash
# perf annotate of seccomp filters
# SPDX-License-Identifier: GPL-2.0
#
# Classic BPF has no program info: the kernel reports the code in TEXT_POKE records,
# for a filter that exists when the recording begins, and for one that is added later.

# shellcheck disable=SC2154 # dir comes from lib/annotate_bpf.sh

set -e

# shellcheck source=lib/annotate_bpf.sh
. "$(dirname "$0")"/lib/annotate_bpf.sh

begin annotate_cbpf

# Install a filter that computes with the constant $2, then make system calls for $1
# seconds. The filter is long, so that it has samples: 2000 instructions a call.
cat > "${dir}/filtered.py" <<- 'EOF2'
	import ctypes, os, struct, sys, time

	ALU_XOR_K, RET_K, ALLOW = 0xa4, 0x06, 0x7fff0000
	PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2

	seconds, constant = float(sys.argv[1]), int(sys.argv[2], 0)
	insns = struct.pack("HBBI", ALU_XOR_K, 0, 0, constant) * 2000
	insns += struct.pack("HBBI", RET_K, 0, 0, ALLOW)
	insns = ctypes.create_string_buffer(insns, len(insns))
	prog = struct.pack("HxxxxxxP", len(insns) // 8, ctypes.addressof(insns))
	prog = ctypes.create_string_buffer(prog, len(prog))
	libc = ctypes.CDLL(None, use_errno=True)
	if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or
	    libc.prctl(PR_SET_SECCOMP, MODE_FILTER, prog, 0, 0)):
	    sys.exit("no filter: " + os.strerror(ctypes.get_errno()))
	print("filtered", flush=True)
	end = time.monotonic() + seconds
	while time.monotonic() < end:
	    for _ in range(1000):
	        os.getppid()
EOF2

# $1: the constant
check_code() {
	perf report -i "${data}" --stdio --sort sym > "${dir}/out" 2> "${dir}/err" ||
		fail "perf report"
	symbols=$(grep -o 'cbpf_prog_[0-9a-f]*' "${dir}/out" | sort -u)
	[ -n "${symbols}" ] || fail "no sample in a filter"
	for symbol in ${symbols}; do
		perf annotate -i "${data}" --stdio -s "${symbol}" > "${dir}/out" \
			2> "${dir}/err" || true
		if grep -q "xorl\? .*$1" "${dir}/out"; then
			echo "${symbol} is disassembled: its constant is $1"
			return
		fi
	done
	fail "none of ${symbols} computes with $1"
}

data="${dir}/data"

# The filter of a process that runs already
coproc python3 "${dir}/filtered.py" 600 0x12345671
read -r said <&"${COPROC[0]}" || skip "no filter: needs CONFIG_SECCOMP_FILTER"
[ "${said}" = filtered ] || fail "the filter says ${said}"
perf record -q -o "${data}" -e cpu-clock -a -- sleep 2 > "${dir}/out" 2> "${dir}/err" ||
	fail "perf record"
kill "${COPROC_PID}"
perf evlist -v -i "${data}" | grep -q "ksymbol_code: 1" ||
	skip "this kernel does not report code (attr.ksymbol_code)"
check_code 0x12345671

# The filter of the workload
perf record -q -o "${data}" -e cpu-clock -- python3 "${dir}/filtered.py" 2 0x12345672 \
	> "${dir}/out" 2> "${dir}/err" || fail "perf record of a workload"
check_code 0x12345672

cleanup
echo "PASS"
