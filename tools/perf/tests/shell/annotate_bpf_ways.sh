#!/bin/bash
# perf annotate of BPF after pipe, inject, archive and switch-output (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# The code of a BPF program is in the header of perf.data, which is written last, or,
# in pipes, in records of its own. Test that perf annotate gets it on each way that a
# recording may take. The code of one function is longer than a record can be.

# shellcheck disable=SC2154 # dir and pin come from lib/annotate_bpf.sh

set -e

# shellcheck source=lib/annotate_bpf.sh
. "$(dirname "$0")"/lib/annotate_bpf.sh

begin annotate_bpf_ways

load ways <<- 'EOF'
	struct xdp_md;

	static __attribute__((noinline)) unsigned int bpf_ways_mix(unsigned int n)
	{
		volatile unsigned int mixed = n;

		for (int i = 0; i < 200; i++)
			mixed = mixed * 31 + i;
		return mixed;
	}

	static __attribute__((noinline)) unsigned int bpf_ways_long(unsigned int n)
	{
		volatile unsigned int longest = n;

		longest = longest * 33 + n;
		__asm__ volatile(".rept 20000\n\t%0 += 1\n\t.endr" : "+r"(n));
		return longest + n;
	}

	__attribute__((section("xdp"), used)) int bpf_ways_main(struct xdp_md *ctx)
	{
		return (bpf_ways_mix(1) + bpf_ways_long(2)) & 1 ? 2 : 1;
	}

	char _license[] __attribute__((section("license"), used)) = "GPL";
EOF

# One program is loaded before perf starts. The workload loads another one, and unloads
# it while perf still records. Both run once, or until RUN_SECONDS have passed.
head -c 64 /dev/zero > "${dir}/packet"
cat > "${dir}/workload" <<- EOF
	#!/bin/sh
	bpftool prog load "${dir}/ways.bpf.o" "${pin}_later"
	end=\$((\$(date +%s) + \${RUN_SECONDS:-0}))
	while
		for prog in "${pin}" "${pin}_later"; do
			bpftool prog run pinned "\${prog}" data_in "${dir}/packet" \\
				repeat 20000 > /dev/null
		done
		[ "\$(date +%s)" -lt "\${end}" ]
	do
		:
	done
	rm "${pin}_later"
EOF
chmod +x "${dir}/workload"

# $1: output file of perf record
record() {
	perf record -q -e cpu-clock -F 999 -a -o "$1" -- "${dir}/workload" 2> "${dir}/err"
}

# $1: how the recording was made; $2: FUNCTION:VARIABLE in the output of perf annotate
check_annotated() {
	grep -q "${2#*:} = ${2#*:} \* 3" "${dir}/out" || {
		sed -i 40q "${dir}/out"
		fail "$1: no source of bpf_ways_${2%:*}"
	}
	grep '^ *[0-9.]*[1-9][0-9.]* : *[0-9a-f]*: .*[a-z]' "${dir}/out" \
		> "${dir}/sampled" && return
	sed -i 40q "${dir}/out"
	fail "$1: no samples in the code of bpf_ways_${2%:*}"
}

# $1: how the recording was made; $2: its file; $3: "-" to read it from a pipe
check() {
	for function in mix:mixed long:longest; do
		symbol=$(grep "_bpf_ways_${function%:*}$" "${dir}/symbols")
		perf annotate -i "${3:-$2}" --stdio --source -s "${symbol}" \
			< "$2" > "${dir}/out" 2> "${dir}/err" || true
		check_annotated "$1" "${function}"
	done
	echo "$1: annotated with its source"
}

# The reader runs while perf records.
check_live_pipes() {
	symbol=$(grep "_bpf_ways_mix$" "${dir}/symbols")
	record - | perf report -i - --stdio -g none --sort sym > "${dir}/out" 2> "${dir}/err2"
	grep -q "${symbol}" "${dir}/out" || fail "record -o - | report -i -: no ${symbol}"
	echo "record -o - | report -i -: names the programs"
	record - | perf annotate -i - --stdio --source -s "${symbol}" \
		> "${dir}/out" 2> "${dir}/err2" || true
	check_annotated "record -o - | annotate -i -" mix:mixed
	echo "record -o - | annotate -i -: annotated with its source"
}

check_pipes() {
	record - > "${dir}/pipe.data" || fail "perf record -o -"
	check "record -o -, from a file" "${dir}/pipe.data"
	check "record -o -, from a file as a pipe" "${dir}/pipe.data" -
	perf inject -i - -o - < "${dir}/pipe.data" > "${dir}/data" 2> "${dir}/err" ||
		fail "perf inject between pipes"
	check "record -o - | inject | annotate" "${dir}/data" -
	perf inject -i - -o "${dir}/data" < "${dir}/pipe.data" 2> "${dir}/err" ||
		fail "perf inject from a pipe"
	check "record -o - | inject -o file" "${dir}/data"

	perf report -i - --header-only -I < "${dir}/pipe.data" > "${dir}/out" 2> "${dir}/err" ||
		fail "perf report --header-only of a pipe"
	while read -r symbol; do
		grep -q "${symbol} addr" "${dir}/out" ||
			fail "report --header-only -I of a pipe does not list ${symbol}"
	done < "${dir}/symbols"
	echo "record -o - | report --header-only -I: lists the programs"
}

check_inject() {
	perf inject -i "${dir}/perf.data" -o "${dir}/data" 2> "${dir}/err" ||
		fail "perf inject"
	check "inject" "${dir}/data"
	perf inject -i "${dir}/perf.data" -o - > "${dir}/data" 2> "${dir}/err" ||
		fail "perf inject to a pipe"
	check "inject -o - | annotate" "${dir}/data" -
}

# Only the files from perf archive are available in the other directory.
check_elsewhere() {
	mkdir "${dir}/elsewhere" "${dir}/home"
	cp "${dir}/perf.data" "${dir}/elsewhere"
	(cd "${dir}" && perf archive > "${dir}/out" 2> "${dir}/err") ||
		fail "perf archive"
	cp "${dir}/perf.data.tar.bz2" "${dir}/elsewhere" || fail "no archive"
	cd "${dir}/elsewhere"
	HOME="${dir}/home" PERF_BUILDID_DIR="${dir}/home/.debug" \
		perf archive --unpack > "${dir}/out" 2> "${dir}/err" || fail "perf archive --unpack"
	rm "${pin}"
	HOME="${dir}/home" PERF_BUILDID_DIR="${dir}/home/.debug" \
		check "archive, another directory" perf.data
	cd - > /dev/null
}

switch_output() {
	rm -f "${dir}"/part.*
	RUN_SECONDS="$1" perf record -q -e cpu-clock -F 999 -a --switch-output=1s \
		-o "${dir}/part" -- "${dir}/workload" 2> "${dir}/err" ||
		fail "perf record --switch-output"
	annotated=0
	for part in "${dir}"/part.*; do
		sampled=$(perf script -i "${part}" -F ip,sym 2> /dev/null |
			  grep -c '_bpf_ways_mix$' || true)
		echo "${part##*.}: ${sampled} samples in bpf_ways_mix"
		[ "${sampled}" -gt 0 ] || continue
		annotated=$((annotated + 1))
		[ "${annotated}" -gt 2 ] || check "a file of --switch-output" "${part}"
	done
}

# A slow machine writes fewer files in the same time.
check_switch_output() {
	for seconds in 4 8 16 32; do
		switch_output "${seconds}"
		[ "${annotated}" -gt 1 ] && return
	done
	fail "fewer than two files have samples"
}

record "${dir}/perf.data" || fail "perf record"
perf script -i "${dir}/perf.data" -F ip,sym 2> /dev/null |
	grep -o 'bpf_prog_[0-9a-f]*_bpf_ways_[a-z]*' | sort -u > "${dir}/symbols"
check "record" "${dir}/perf.data"
check_live_pipes
check_pipes
check_inject
check_switch_output
check_elsewhere
cleanup
echo "PASS"
