#!/bin/bash
# perf record: events of a BPF object file in the kernel (-e FILE.bpf.o) (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# The module of samples/kprobes/probe_args.c has the same argument in each register of
# arguments, on the stack, behind pointers, in bit-fields, as a string, and in an inlined
# function. BPF programs at these points are given the values that the module passes and
# that a probe event prints. While one perf uses an event of several points, another one
# leaves all of them as they are.

set -e

# shellcheck source=lib/bpf_object.sh
. "$(dirname "$0")"/lib/bpf_object.sh
err=0 # fail() sets it

need_root
need_tools clang
need_features bpf_skeletons dwarf libtraceevent
[[ -e /sys/kernel/tracing/kprobe_events ]] || skip "no kprobe events in /sys/kernel/tracing"
loaded_before=
[[ ! -d /sys/module/probe_args ]] || loaded_before=1
modprobe probe_args || skip "no module probe_args (CONFIG_SAMPLE_KPROBE_ARGS)"
run=/sys/module/probe_args/parameters/run
module=$(modinfo -F filename probe_args)
perf probe -m "${module}" -V probe_args_arg1 2> /dev/null | grep -q value ||
	skip "probe_args has no debug information"

dir=$(mktemp -d /tmp/perf-record-bpf-object.XXXXXX)
group=perf_bpf_object_$$

cleanup()
{
	trap - EXIT TERM INT
	# Ended by SIGINT, perf ends its workload and removes its events
	jobs -p | xargs -r kill -INT 2> /dev/null || true
	wait
	perf probe -q -d "${group}:*" > /dev/null 2>&1 || true
	[[ -n ${loaded_before} ]] || modprobe -r probe_args || true
	[[ ${dir} == /tmp/perf-record-bpf-object.* ]] && rm -rf "${dir}"
}

trap cleanup EXIT
trap 'cleanup; exit 1' TERM INT

cat > "${dir}/start.h" <<- 'EOF'
	typedef unsigned long long u64;
	#define SEC(name) __attribute__((section(name), used))

	char _license[] SEC("license") = "GPL";
EOF

# build NAME: NAME.bpf.o, of the source that is read
build()
{
	cat > "${dir}/$1.c"
	clang -O2 -g --target=bpf -include "${dir}/start.h" -DMODULE="\"${module}\"" \
		-c -o "${dir}/$1.bpf.o" "${dir}/$1.c" || exit 1
}

# record OPTION...: the samples of one run, as "EVENT ARG=VALUE ...", in order
record()
{
	perf record -q -a -o "${dir}/data" "$@" -- sh -c "echo run > ${run}" \
		> "${dir}/log" 2>&1 || fail "perf record $*: $(cat "${dir}/log")"
	perf script -i "${dir}/data" -F event,trace 2> /dev/null |
		sed 's/^ *[a-z_0-9]*:\([a-z]*\)[_0-9a-z]*: *([^)]*)/\1/; s/ *$//' | LC_ALL=C sort
}

# Each program returns 1 only if its arguments are what the module passes, but for a negative
# bit-field: those of probe events are unsigned
build values <<- 'EOF'
	static long (*read_kernel_str)(void *dst, unsigned int size, const void *from) =
		(void *)115;

	SEC("module=" MODULE ";place=probe_args_arg* value")
	int place(void *ctx, int err, long value)
	{
		return !err && (value == 11 || value == -22 || value == 0x33333333 ||
				value == -44 || value == 55 || value == -66 || value == 99);
	}

	SEC("module=" MODULE ";fields=probe_args_item bits=item->bits "
	    "negative=item->negative_bits number=item->next->number")
	int fields(void *ctx, int err, u64 bits, u64 negative, long number)
	{
		return !err && bits == 33 && negative == 16 && number == -5;
	}

	SEC("module=" MODULE ";name=probe_args_item far=item->next->bits "
	    "name=item->next->name:string")
	int name(void *ctx, int err, u64 far, u64 address)
	{
		char name[8] = {};

		return !err && far == 77 &&
		       read_kernel_str(name, sizeof(name), (void *)address) == 5 &&
		       name[0] == 'l' && name[3] == 't';
	}

	SEC("module=" MODULE ";inline=probe_args_inlined value")
	int inlined(void *ctx, int err, long value)
	{
		return !err && value == 15;
	}

	/* The first statement of the function */
	SEC("module=" MODULE ";line=probe_args_around:2 value")
	int line(void *ctx, int err, long value)
	{
		return !err && value == 14;
	}
EOF
said=$(record -e "${dir}/values.bpf.o")
same "arguments" "${said}" "fields bits=33 negative=16 number=-5
inline value=15
line value=14
name far=77 name=\"last\"
place value=-22
place value=-44
place value=-66
place value=11
place value=55
place value=858993459
place value=99"

# As perf probe prints them
fields="bits=item->bits negative=item->negative_bits number=item->next->number"
for probe in 'place=probe_args_arg* value' "fields=probe_args_item ${fields}" \
	     'name=probe_args_item far=item->next->bits name=item->next->name:string' \
	     'inline=probe_args_inlined value' 'line=probe_args_around:2 value'; do
	perf probe -q -f -m "${module}" "${group}:${probe}" > "${dir}/log" 2>&1 ||
		fail "no probe event '${probe}': $(cat "${dir}/log")"
done
same "perf probe prints the same" "$(record -e "${group}:*")" "${said}"
perf probe -q -d "${group}:*" > /dev/null 2>&1

# Functions of vmlinux: what one is given, and what it returns
build functions <<- 'EOF'
	SEC("opened=do_sys_openat2 dfd=$arg1:s32 name=+0($arg2):ustring")
	int opened(void *ctx, int err, int dfd, u64 name)
	{
		static long (*read_user_str)(void *dst, unsigned int size, const void *from) =
			(void *)114;
		char start[16] = {};

		return !err && dfd == -100 &&
		       read_user_str(start, sizeof(start), (void *)name) == 15 &&
		       start[1] == 'n' && start[9] == 't';
	}

	SEC("failed=do_sys_openat2%return ret=$retval:s32")
	int failed(void *ctx, int err, int ret)
	{
		return !err && ret == -2;
	}
EOF
perf record -q -o "${dir}/data" -e "${dir}/functions.bpf.o" -- \
	bash -c '(cat /nowhere/there /dev/nowhere; true)' > "${dir}/log" 2>&1 ||
	fail "programs on kernel functions: $(cat "${dir}/log")"
perf script -i "${dir}/data" -F event,trace 2> /dev/null > "${dir}/said"
same "functions of vmlinux" \
	"$(grep -o 'opened:.*' "${dir}/said" | sed 's/ *([0-9a-f]*)//; s/ *$//')" \
	'opened: dfd=-100 name="/nowhere/there"'
grep -q 'failed:.* ret=-2$' "${dir}/said" || fail "no failed open: $(cat "${dir}/said")"

# The kernel runs no program while a map is updated: that is told
build updated <<- 'EOF'
	SEC("updated=htab_map_update_elem")
	int updated(void *ctx)
	{
		return 1;
	}
EOF
map=/sys/fs/bpf/perf_updated_$$
if command -v bpftool > /dev/null && mountpoint -q /sys/fs/bpf &&
   bpftool map create "${map}" type hash key 4 value 4 entries 16 name updated; then
	perf record -o "${dir}/data" -e "${dir}/updated.bpf.o" -- bash -c "for i in 1 2 3 4 5; do
		bpftool map update pinned ${map} key \$i 0 0 0 value 0 0 0 0; done" \
		> "${dir}/log" 2>&1 || fail "updates of a map: $(cat "${dir}/log")"
	rm -f "${map}"
	same "hits while a map is updated" \
		"$(sed -n 's/.*: updated: \([0-9]*\) hits.*have no sample.*/\1/p' "${dir}/log")" 5
else
	echo "no bpftool, or /sys/fs/bpf is not mounted: hits that have no sample are not tested"
fi

# A function that the kernel allows no probe in
build refused <<- 'EOF'
	SEC("module=" MODULE ";probe_args_*o* value")
	int place(void *ctx, int err, long value)
	{
		return 1;
	}
EOF
sed 's/SEC("module=/SEC("partial=yes;module=/' "${dir}/refused.c" | build partial
sed 's/SEC("module=/SEC("partial=yes;module=/; s/\*o\*/n*/' "${dir}/refused.c" | build none
if perf probe -q -m "${module}" "${group}:no=probe_args_not_traced" 2> /dev/null; then
	perf probe -q -d "${group}:*"
	echo "no point is refused: CONFIG_KPROBE_EVENTS_ON_NOTRACE"
else
	! perf record -q -e "${dir}/refused.bpf.o" -o "${dir}/data" true > "${dir}/log" 2>&1 ||
		fail "recorded without a point that the kernel refuses"
	grep -q 'the kernel refuses a probe at probe_args_not_traced.*partial=yes' "${dir}/log" ||
		fail "a refused point: $(cat "${dir}/log")"
	same "without a point that the kernel refuses" "$(record -e "${dir}/partial.bpf.o")" \
		"place value=14"
	grep -q '1 of 2 points are skipped' "${dir}/log" || fail "not told: $(cat "${dir}/log")"
	! perf record -q -e "${dir}/none.bpf.o" -o "${dir}/data" true > "${dir}/log" 2>&1 ||
		fail "recorded with no point at all"
	grep -q '1 of 1 points are skipped' "${dir}/log" || fail "not told: $(cat "${dir}/log")"
fi
! grep -h perf_bpf_probe /sys/kernel/tracing/kprobe_events || fail "an event is left"

# A function that is on the kernel's list of those without probes
build listed <<- 'EOF'
	SEC("listed=notifier_call_chain nl")
	int listed(void *ctx, int err, u64 nl)
	{
		return 1;
	}
EOF
if grep -qw notifier_call_chain /sys/kernel/debug/kprobes/blacklist 2> /dev/null &&
   perf probe -V vfs_read 2> /dev/null | grep -q file; then
	! perf probe --bpf "${dir}/listed.bpf.o" > "${dir}/log" 2>&1 ||
		fail "a function on the list has a point"
	grep 'the kernel allows no probe there' "${dir}/log" || fail "$(cat "${dir}/log")"
else
	echo "no such function, or no debug information of the kernel: the list is not tested"
fi

# An event of several points keeps all of them while another perf begins and ends
build many <<- 'EOF'
	SEC("module=" MODULE ";many=probe_args_arg*")
	int many(void *ctx, int err)
	{
		return 1;
	}
EOF
perf record -q -a -o "${dir}/first" -e "${dir}/many.bpf.o" -- sleep 600 > "${dir}/log" 2>&1 &
first=$!
for ((i = 0; i < 600; i++)); do
	pgrep -P "${first}" -x sleep > /dev/null && break
	sleep 0.1
done
same "points of one event" "$(record -e "${dir}/many.bpf.o" | wc -l)" 7
echo run > "${run}"
kill -INT "${first}"
wait "${first}" || true
same "in another perf, twice" "$(perf script -i "${dir}/first" -F event | wc -l)" 14
! grep -h perf_bpf_probe /sys/kernel/tracing/kprobe_events || fail "an event is left"

exit ${err}
