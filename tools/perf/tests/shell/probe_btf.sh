#!/bin/bash
# perf probe: kernel functions without debug information, by BTF (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# All places where perf finds debug information of the kernel and of modules are hidden. Then
# BTF tells where the arguments of functions are: in registers, on the stack, behind pointers,
# in bit-fields, in strings, and in inlined functions. The values are those that the module of
# samples/kprobes/probe_args.c passes. What only debug information has is said.

set -e

# shellcheck source=lib/bpf_object.sh
. "$(dirname "$0")"/lib/bpf_object.sh
err=0 # fail() sets it

need_root
need_tools unshare
need_features bpf dwarf libtraceevent
[[ -e /sys/kernel/tracing/kprobe_events ]] || skip "no kprobe events in /sys/kernel/tracing"
case $(uname -m) in
x86_64|aarch64) ;;
*) skip "registers of arguments are not known on $(uname -m)" ;;
esac

if [[ -z ${WITHOUT_DEBUGINFO} ]]; then
	loaded_before=
	[[ ! -d /sys/module/probe_args ]] || loaded_before=1
	modprobe probe_args || skip "no module probe_args (CONFIG_SAMPLE_KPROBE_ARGS)"
	status=0
	WITHOUT_DEBUGINFO=1 unshare -m "$0" || status=$?
	[[ -n ${loaded_before} ]] || modprobe -r probe_args || true
	exit "${status}"
fi

[[ -e /sys/kernel/btf/probe_args ]] || skip "no BTF of modules"
run=/sys/module/probe_args/parameters/run
dir=$(mktemp -d /tmp/perf-probe-btf.XXXXXX)
group=perf_probe_btf_$$

cleanup()
{
	trap - EXIT TERM INT
	perf probe -q -d "${group}:*" > /dev/null 2>&1 || true
	[[ ${dir} == /tmp/perf-probe-btf.* ]] && rm -rf "${dir}"
}

trap cleanup EXIT
trap 'cleanup; exit 1' TERM INT

for hidden in /boot /usr/lib/debug /lib/modules; do
	[[ ! -d ${hidden} ]] || mount -t tmpfs none "${hidden}"
done
cd /
export HOME="${dir}" DEBUGINFOD_URLS=
! perf probe -q -D 'vfs_read@fs/read_write.c' > /dev/null 2>&1 ||
	skip "debug information is found all the same"

# record EVENT...: the samples of one run, as "EVENT ARG=VALUE ...", in order
record()
{
	perf record -q -a -o "${dir}/data" "${@/#/-e}" -- sh -c "echo run > ${run}" \
		> "${dir}/log" 2>&1 || fail "perf record $*: $(cat "${dir}/log")"
	perf script -i "${dir}/data" -F event,trace 2> /dev/null |
		sed 's/^ *[a-z_0-9]*:\([a-z]*\)[_0-9a-z]*: *([^)]*)/\1/; s/ *$//' | LC_ALL=C sort
}

probes=('place=probe_args_arg* value'
	'fields=probe_args_item bits=item->bits number=item->next->number:x'
	'name=probe_args_item far=item->next->bits name=item->next->name:string'
	'array=probe_args_item second=item[0].number'
	'all=probe_args_arg3 $params')
expected='all a=1 b=2 value=858993459
array second=300
fields bits=33 number=0xfffffffb
name far=77 name="last"
place value=-22
place value=-44
place value=-66
place value=11
place value=55
place value=858993459
place value=99'
if [[ -e /sys/module/probe_args/btf_inline ]]; then
	probes+=('inline=probe_args_inlined value')
	expected=$(printf '%s\ninline value=15' "${expected}" | LC_ALL=C sort)
else
	echo "the kernel does not tell inlined functions (CONFIG_DEBUG_INFO_BTF_INLINE)"
fi
for probe in "${probes[@]}"; do
	perf probe -q -f -m probe_args "${group}:${probe}" > "${dir}/log" 2>&1 ||
		fail "no probe event '${probe}': $(cat "${dir}/log")"
done
same "arguments" "$(record "${group}:*")" "${expected}"
perf probe -q -d "${group}:*"

# refused WORDS PROBE: what is said of it
refused()
{
	! perf probe -m probe_args -D "$2" > "${dir}/log" 2>&1 || fail "'$2' is taken"
	grep -q "$1" "${dir}/log" || fail "'$2': $(cat "${dir}/log")"
}

refused 'Only debug information has lines' 'probe_args_around:2 value'
refused 'Only debug information has source files' 'probe_args_arg1@probe_args.c value'
refused 'Only debug information has variables at an offset' 'probe_args_arg1+4 value'
refused "'more' is not a parameter of probe_args_around()" 'probe_args_around more'
refused 'Only debug information has \$vars' 'probe_args_around $vars'
refused 'Failed to find function probe_args_gone' 'probe_args_gone value'
refused 'has no member' 'probe_args_item item->gone'
refused 'has no member' 'probe_args_item item->'
same "variables" "$(perf probe -m probe_args -V probe_args_arg2 2> /dev/null | tr -s '\t' ' ')" \
"Available variables at probe_args_arg2
 @<probe_args_arg2+0>
 int a
 long int value"

# A program that reads the same
command -v clang > /dev/null && perf check -q feature bpf_skeletons || {
	echo "no clang, or no BPF skeletons: no BPF object file is tested"
	exit ${err}
}
cat > "${dir}/prog.c" << 'EOF'
#define SEC(name) __attribute__((section(name), used))
typedef unsigned long long u64;
char _license[] SEC("license") = "GPL";

SEC("module=probe_args;far=probe_args_item bits=item->next->bits number=item->next->number")
int far(void *ctx, int err, u64 bits, int number)
{
	return !err && bits == 77 && number == -5;
}
EOF
clang -O2 -g --target=bpf -c -o "${dir}/prog.bpf.o" "${dir}/prog.c"
same "a BPF program" "$(record "${dir}/prog.bpf.o")" "far bits=77 number=-5"

exit ${err}
