#!/bin/bash
# perf annotate of BPF programs at probe points (-e FILE.bpf.o) (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# A BPF program runs at two functions that have an argument in different registers. perf
# report shows the two instances apart, and perf annotate shows the C source of each, and
# which instructions are the code in front of it that fetches the argument.

set -e

# shellcheck source=lib/bpf_object.sh
. "$(dirname "$0")"/lib/bpf_object.sh
err=0 # fail() sets it

need_root
need_tools gcc clang
need_features bpf_skeletons dwarf libtraceevent
perf check -q feature libLLVM || perf check -q feature libcapstone ||
	skip "perf was built without a disassembler of BPF programs"
[[ -e /sys/kernel/tracing/uprobe_events || -e /sys/kernel/debug/tracing/uprobe_events ]] ||
	skip "no uprobe events in tracefs"

[[ $(cat /proc/sys/net/core/bpf_jit_enable) != 0 ]] ||
	skip "BPF programs are interpreted, so that they have no symbols"

dir=$(mktemp -d /tmp/perf-annotate-bpf-object.XXXXXX)

cleanup()
{
	trap - EXIT TERM INT
	[[ ${dir} == /tmp/perf-annotate-bpf-object.* ]] && rm -rf "${dir}"
}

trap cleanup EXIT
trap 'cleanup; exit 1' TERM INT

cat > "${dir}/program.c" <<- 'EOF'
	#define probed __attribute__((noinline, noclone))
	#define use(x) asm volatile("" :: "r" (x) : "memory")

	probed void in_first(long value) { use(value); }
	probed void in_third(int a, int b, long value) { use(a); use(b); use(value); }

	int main(void)
	{
		for (int i = 0; i < 2000; i++) {
			in_first(i);
			in_third(1, 2, i);
		}
		return 0;
	}
EOF
gcc -O2 -g -o "${dir}/program" "${dir}/program.c"

cat > "${dir}/prog.bpf.c" <<- 'EOF'
	#define SEC(name) __attribute__((section(name), used))

	char _license[] SEC("license") = "GPL";

	SEC("exec=" PROGRAM ";place=in_* value")
	int place(void *ctx, int err, long value)
	{
		volatile unsigned long mixed = value;

		for (int i = 0; i < 2000; i++)
			mixed = mixed * 31 + i;
		return 0;
	}
EOF
clang -O2 -g --target=bpf -DPROGRAM="\"${dir}/program\"" -c -o "${dir}/prog.bpf.o" \
	"${dir}/prog.bpf.c"

perf record -q -e cpu-clock -F 999 -e "${dir}/prog.bpf.o" -o "${dir}/data" -- "${dir}/program" \
	> "${dir}/log" 2>&1 || fail "perf record: $(cat "${dir}/log")"
perf report -i "${dir}/data" --stdio --sort sym > "${dir}/report" 2> /dev/null
# Nothing of the running system is needed behind here
rm "${dir}"/prog*

# Named as their events
for event in place_in_first place_in_third; do
	grep "bpf_prog_[0-9a-f]\{16\}_${event}\$" "${dir}/report" || {
		fail "no instance ${event}: $(cat "${dir}/report")"
		continue
	}
	symbol=$(grep -o "bpf_prog_[0-9a-f]*_${event}\$" "${dir}/report")
	perf annotate -i "${dir}/data" --stdio --source "${symbol}" > "${dir}/code" \
		2> "${dir}/log" ||
		fail "perf annotate ${symbol}: $(cat "${dir}/log")"
	grep -q 'mixed = mixed \* 31 + i;' "${dir}/code" ||
		fail "no source of ${symbol}: $(cat "${dir}/code" "${dir}/log")"
	grep '\[prologue of place: [0-9]* instructions' "${dir}/code" ||
		fail "nothing says what the prologue of ${symbol} is: $(cat "${dir}/code")"
done

exit ${err}
