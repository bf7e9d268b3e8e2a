#!/bin/bash
# perf record: BPF programs of a killed recording, or of a cut file (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# perf record writes the header and the features last. Kill it at random moments, counted
# from its start or from when its file has samples of the program, and cut a file at
# random places: each function of a BPF program that has samples in the rest is annotated
# with its source, and the exit status of perf report says whether there is any sample.
#
# KILLS (4) and CUTS (10) are how many. SEED makes the moments and places again.

# shellcheck disable=SC2154 # dir and pin come from lib/annotate_bpf.sh

set -e

# shellcheck source=lib/annotate_bpf.sh
. "$(dirname "$0")"/lib/annotate_bpf.sh

begin record_bpf_cut
trap 'pkill -f "prog run pinned ${pin}" || true; trap_cleanup' EXIT TERM INT
SEED=${SEED:-$$}
RANDOM=${SEED}
echo "SEED=${SEED}"

load cut <<- 'EOF'
	struct xdp_md;

	static __attribute__((noinline)) unsigned int bpf_cut_mix(unsigned int n)
	{
		volatile unsigned int mixed = n;

		for (int i = 0; i < 200; i++)
			mixed = mixed * 31 + i;
		return mixed;
	}

	__attribute__((section("xdp"), used)) int bpf_cut_main(struct xdp_md *ctx)
	{
		return bpf_cut_mix(1) & 1 ? 2 : 1;
	}

	char _license[] __attribute__((section("license"), used)) = "GPL";
EOF

head -c 64 /dev/zero > "${dir}/packet"
# The ring buffers are small, so that they are read often.
record=(perf record -q -e cpu-clock -F 999 -a -m 2 -o "${dir}/perf.data" --
	bpftool prog run pinned "${pin}" data_in "${dir}/packet" repeat)

# $1: how the file was cut. Set $sampled to the number of samples in the program.
check() {
	local status=0 nr_all

	perf script -i "${dir}/cut.data" -F ip,sym > "${dir}/script" 2> "${dir}/err" || true
	nr_all=$(grep -c '[0-9a-f]' "${dir}/script" || true)
	sampled=$(grep -c '_bpf_cut_mix$' "${dir}/script" || true)
	perf report -i "${dir}/cut.data" --stdio > "${dir}/out" 2> "${dir}/err" || status=$?
	[ $((nr_all > 0)) = $((status == 0)) ] ||
		fail "$1: perf report ended with status ${status}, ${nr_all} samples"
	[ "${sampled}" -gt 0 ] || return 0

	perf annotate -i "${dir}/cut.data" --stdio --source bpf_cut_mix \
		> "${dir}/out" 2> "${dir}/err" || fail "$1: perf annotate failed"
	grep -q "mixed = mixed \* 31" "${dir}/out" || fail "$1: no source of bpf_cut_mix"
	grep -q '^ *[0-9.]*[1-9][0-9.]* : *[0-9a-f]*: .*[a-z]' "${dir}/out" ||
		fail "$1: no samples in the code of bpf_cut_mix"
}

# Wait until 64 KB were written since the program began to run: some of the two pages
# that each CPU has in its ring buffer were read several times by then.
wait_for_samples() {
	local size

	until pgrep -f "^bpftool prog run pinned ${pin}" > /dev/null; do
		kill -0 "${pid}" 2> /dev/null || fail "perf record has ended"
		sleep 0.05
	done
	size=$(stat -c %s "${dir}/perf.data")
	until [ "$(stat -c %s "${dir}/perf.data")" -gt $((size + 65536)) ]; do
		kill -0 "${pid}" 2> /dev/null || fail "perf record has ended"
		sleep 0.05
	done
}

kill_recordings() {
	local with=0 from ms pid

	for ((i = 0; i < ${KILLS:-4}; i++)); do
		rm -f "${dir}/perf.data"
		"${record[@]}" 100000000 > /dev/null 2> "${dir}/err" &
		pid=$!
		from="start"
		if [ $((i % 2)) = 0 ]; then
			from="samples"
			wait_for_samples
		fi
		ms=$((RANDOM % 3000 + 100))
		sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
		kill -KILL "${pid}"
		wait "${pid}" 2> /dev/null || true
		pkill -f "prog run pinned ${pin}" || true
		[ -s "${dir}/perf.data" ] || continue
		mv "${dir}/perf.data" "${dir}/cut.data"
		check "killed ${ms} ms after its ${from}"
		[ "${from}" = start ] || [ "${sampled}" -gt 0 ] ||
			fail "no samples in the program ${ms} ms after it had some"
		[ "${sampled}" = 0 ] || with=$((with + 1))
	done
	echo "${i} recordings were killed, ${with} have samples in the program: all annotated"
}

cut_file() {
	local with=0 size whole

	"${record[@]}" 2000000 > /dev/null 2> "${dir}/err" || fail "perf record"
	whole=$(stat -c %s "${dir}/perf.data")
	for ((i = 0; i < ${CUTS:-10}; i++)); do
		size=$(((RANDOM * 32768 + RANDOM) % whole))
		# a part of the features, as often as of the data
		[ $((i % 2)) = 0 ] || size=$((whole - 1 - RANDOM % 4096))
		head -c "${size}" "${dir}/perf.data" > "${dir}/cut.data"
		[ -s "${dir}/cut.data" ] || continue
		check "cut to ${size} of ${whole} bytes"
		[ "${sampled}" = 0 ] || with=$((with + 1))
	done
	echo "a file was cut ${i} times, ${with} parts have samples in the program: all annotated"
	[ "${with}" -gt 0 ] || fail "no part has samples in the program"
}

kill_recordings
cut_file
cleanup
echo "PASS"
