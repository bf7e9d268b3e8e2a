#!/bin/bash
# perf annotate of BPF subprograms
# SPDX-License-Identifier: GPL-2.0
#
# Record and unload a program with three functions. Check that perf has the code
# that ran for each of them, and that each disassembler and view shows it, with the
# C source from the program's BTF.

# shellcheck disable=SC2154 # bpf_prog, dir and pin come from lib/annotate_bpf.sh

set -e

# shellcheck source=lib/annotate_bpf.sh
. "$(dirname "$0")"/lib/annotate_bpf.sh

main="bpf_annotate_main"
subs="bpf_annotate_mix bpf_annotate_fold"

begin annotate_bpf
disassemblers=""
perf check feature -q libLLVM && disassemblers="llvm"
perf check feature -q libcapstone && disassemblers="${disassemblers} capstone"

load_program() {
	load annotate <<- 'EOF'
	struct xdp_md;

	static __attribute__((noinline)) unsigned int bpf_annotate_mix(unsigned int n)
	{
		volatile unsigned int mixed = n;

		for (int i = 0; i < 100; i++)
			mixed = mixed * 31 + i;
		return mixed;
	}

	static __attribute__((noinline)) unsigned int bpf_annotate_fold(unsigned int n)
	{
		volatile unsigned int folded = n;

		for (int i = 0; i < 50; i++)
			folded ^= folded >> 7;
		return folded;
	}

	__attribute__((section("xdp"), used)) int bpf_annotate_main(struct xdp_md *ctx)
	{
		volatile unsigned int sum = 0;

		for (int i = 0; i < 10; i++) {
			sum += bpf_annotate_mix(i) + bpf_annotate_fold(sum);
			for (int j = 0; j < 100; j++)
				sum = sum * 33 + j;
		}
		return sum & 1 ? 2 : 1;
	}

	char _license[] __attribute__((section("license"), used)) = "GPL";
	EOF
}

# Record the program, save the code that the kernel reports for it, and unload it.
record() {
	head -c 64 /dev/zero > "${dir}/packet"
	perf record -q -o "${dir}/perf.data" -e cpu-clock -F 999 -a -- \
		bpftool prog run pinned "${pin}" data_in "${dir}/packet" repeat 20000 \
		> "${dir}/out" 2> "${dir}/err" || fail "perf record"
	python3 "${bpf_prog}" jited "${pin}" > "${dir}/jited"
	rm "${pin}"
}

# perf.data has the code that the kernel reported, and each sampled instruction is
# the one in that code. The header lists the functions in the order of their code.
check_bytes() {
	perf report -i "${dir}/perf.data" --header-only -I 2> /dev/null |
		grep -A8 '^# bpf_prog_info' | grep 'sub_prog' | grep 'bpf_annotate_' \
		> "${dir}/functions"
	perf script -i "${dir}/perf.data" -F ip,sym,insn 2> /dev/null |
		grep 'bpf_annotate_' > "${dir}/insns" || true
	python3 - "${dir}" <<- 'EOF'
	import re, sys

	code = open(sys.argv[1] + "/jited", "rb").read()
	start, functions = 0, {}
	for line in open(sys.argv[1] + "/functions"):
	    name, addr, size = re.search(r"(bpf_prog_\w+) addr 0x(\w+) size (\d+)", line).groups()
	    functions[name] = (int(addr, 16), code[start:start + int(size)])
	    start += int(size)
	assert len(functions) == 3, f"not 3 functions: {functions.keys()}"
	assert start == len(code), f"{start} bytes of functions, {len(code)} of code"
	assert code in open(sys.argv[1] + "/perf.data", "rb").read(), "perf.data has other code"

	checked = dict.fromkeys(functions, 0)
	for line in open(sys.argv[1] + "/insns"):
	    ip, name, insn = re.match(r"\s*(\w+) (bpf_prog_\w+).*insn: (.*)", line).groups()
	    addr, bytes_ = functions[name]
	    insn = bytes.fromhex(insn)[:15]
	    offset = int(ip, 16) - addr
	    want = bytes_[offset:offset + len(insn)]
	    # past the end of the function, perf prints zeros or nothing
	    assert insn[:len(want)] == want, f"{line}: the kernel has {want.hex(' ')}"
	    checked[name] += 1
	print("samples whose bytes match the kernel's:", checked)
	assert all(checked.values()), "a function was not sampled"
	EOF
}

# $1: disassembler, $2: view, $3: function, $4: a piece of its source
check_view() {
	cat > "${dir}/config" <<- EOF
	[annotate]
		disassemblers = $1
	EOF
	symbol=$(grep -o "bpf_prog_[0-9a-f]*_$3" "${dir}/functions")
	PERF_CONFIG="${dir}/config" perf annotate -i "${dir}/perf.data" "--$2" --source \
		-s "${symbol}" > "${dir}/out" 2> "${dir}/err" || true

	for text in "$4" 'annotate.bpf.c:' 'push.*rbp' 'retq\?$\|return_thunk'; do
		sed 's/ *$//' "${dir}/out" | grep -q -- "${text}" && continue
		fail "$1, --$2, $3: no '${text}'"
	done
	if [ "$3" = "${main}" ]; then
		for sub in ${subs}; do
			grep -q "call.*bpf_prog_[0-9a-f]*_${sub}" "${dir}/out" && continue
			fail "$1, --$2: $3 does not call ${sub} by name"
		done
	fi
	echo "$1, --$2: $3 is annotated with its source"
}

check_views() {
	for disassembler in ${disassemblers}; do
		for view in stdio stdio2; do
			check_view "${disassembler}" "${view}" bpf_annotate_mix 'mixed \* 31 + i'
			check_view "${disassembler}" "${view}" bpf_annotate_fold 'folded >> 7'
			check_view "${disassembler}" "${view}" "${main}" 'sum +='
		done
	done
}

check_no_source() {
	for view in stdio stdio2; do
		perf annotate -i "${dir}/perf.data" "--${view}" --no-source -s "${symbol}" \
			> "${dir}/out" 2> "${dir}/err" || true
		grep -q 'push' "${dir}/out" && ! grep -q 'annotate.bpf.c' "${dir}/out" && continue
		fail "--${view} --no-source shows the source, or no code"
	done
	echo "--no-source hides the source"
}

# On an emulated CPU, interrupts arrive only between blocks of code. Which lines of a
# loop are sampled depends on the compiler: accept all lines of its function, and
# addresses. clang assigns a load in the loop to no line.
check_srcline() {
	perf report -i "${dir}/perf.data" --stdio --sort sym,srcline 2> /dev/null > "${dir}/out"
	grep 'bpf_annotate_mix' "${dir}/out" > "${dir}/lines" ||
		fail "--sort srcline has no line of bpf_annotate_mix"
	grep -q 'annotate.bpf.c:[3-9] *$' "${dir}/lines" ||
		fail "--sort srcline has no line number in bpf_annotate_mix"
	! grep -v -e 'annotate.bpf.c:[3-9] *$' -e 'bpf_annotate_mix+[0-9]* *$' "${dir}/lines" ||
		fail "--sort srcline has lines outside of bpf_annotate_mix"
	echo "--sort srcline has the line"
}

load_program
record
check_bytes || fail "a function has wrong code"
check_views
check_no_source
check_srcline
cleanup
echo "PASS"
