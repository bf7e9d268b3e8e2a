#!/bin/bash
# perf annotate --bpf-xlated (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# Record and unload a program with a map, a helper call and two functions. The BPF
# instructions that perf annotate shows are those that bpftool printed of the program.

# shellcheck disable=SC2154 # dir and pin come from lib/annotate_bpf.sh

set -e

# shellcheck source=lib/annotate_bpf.sh
. "$(dirname "$0")"/lib/annotate_bpf.sh

begin annotate_bpf_xlated

load_program() {
	load xlated <<- 'EOF'
	struct xdp_md;

	struct {
		int (*type)[2];		/* BPF_MAP_TYPE_ARRAY */
		int (*max_entries)[1];
		int *key;
		unsigned long *value;
	} sums __attribute__((section(".maps"), used));

	static void *(*lookup)(void *map, const void *key) = (void *)1;
	static unsigned long (*now)(void) = (void *)5;

	static __attribute__((noinline)) unsigned int bpf_xlated_mix(unsigned int n)
	{
		volatile unsigned int mixed = n;

		for (int i = 0; i < 200; i++)
			mixed = mixed * 31 + i;
		return mixed;
	}

	__attribute__((section("xdp"), used)) int bpf_xlated_main(struct xdp_md *ctx)
	{
		int key = 0;
		unsigned long *sum = lookup(&sums, &key);

		if (!sum)
			return 0;
		*sum = now() + 0x123456789abcUL;
		for (int i = 0; i < 10; i++)
			*sum += bpf_xlated_mix(i);
		for (int i = 0; i < 1000; i++)
			*(volatile unsigned long *)sum = *sum * 33 + i;
		return *sum & 1 ? 2 : 1;
	}

	char _license[] __attribute__((section("license"), used)) = "GPL";
	EOF
}

# $@: options of perf record
record() {
	head -c 64 /dev/zero > "${dir}/packet"
	perf record -q -o "${dir}/perf.data" -e cpu-clock -F 999 -a "$@" -- \
		bpftool prog run pinned "${pin}" data_in "${dir}/packet" repeat 20000 \
		> "${dir}/out" 2> "${dir}/err" || fail "perf record"
}

# The instructions that bpftool printed, of both functions
expect() {
	bpftool prog dump xlated pinned "${pin}" > "${dir}/out"
	sed -n 's/^ *\([0-9]*: ([0-9a-f][0-9a-f]) .*\)/\1/p' "${dir}/out" > "${dir}/expected"
	for text in 'call pc.*bpf_prog_.*_bpf_xlated_mix' 'map\[id:' 'call bpf_ktime_get_ns#'; do
		grep -q "${text}" "${dir}/expected" || fail "bpftool prints no '${text}'"
	done
}

# $1: function, $@: options. Leave what perf annotate prints in out.
annotate() {
	symbol="$1"
	shift
	perf annotate -i "${dir}/perf.data" --stdio "$@" -s "${symbol}" \
		> "${dir}/out" 2> "${dir}/err" || fail "perf annotate of ${symbol}"
}

check_instructions() {
	for function in bpf_xlated_main bpf_xlated_mix; do
		annotate "${function}" --bpf-xlated
		sed -n 's/^ *: *\([0-9]*: ([0-9a-f][0-9a-f]) .*\)/\1/p' "${dir}/out"
	done > "${dir}/shown"
	diff "${dir}/expected" "${dir}/shown" > "${dir}/err" ||
		fail "the BPF instructions are not those that bpftool printed"
	echo "$(wc -l < "${dir}/shown") BPF instructions are those that bpftool printed"
}

check_not_recorded() {
	annotate bpf_xlated_mix --bpf-xlated
	grep -q 'No BPF instructions of this program' "${dir}/out" && grep -q 'push' "${dir}/out" ||
		fail "without instructions in perf.data: no message, or no code"
	echo "without instructions in perf.data, it says so"
}

load_program
record
check_not_recorded
expect
record --bpf-xlated
rm "${pin}"
check_instructions
cleanup
echo "PASS"
