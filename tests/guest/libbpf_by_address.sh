#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does libbpf attach to functions of a module that a name does not find, and do the programs
# get their arguments? See libbpf_by_address.c.
dir=${SELFTESTS:?}/../out-samples
[[ -x $dir/libbpf_by_address ]] || {
	echo "no libbpf_by_address in $dir: run \`make samples\`"
	exit 1
}
modprobe probe-sample-c || exit 1
trap 'rmmod probe_sample_c' EXIT
[[ -e /sys/module/probe_sample_c/btf_func ]] || {
	echo "the kernel does not show .BTF.func of modules"
	exit 1
}
"$dir/libbpf_by_address" "$dir/libbpf_by_address.bpf.o"
