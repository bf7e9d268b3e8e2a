#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does libbpf open perf events with a program on this kernel, and say so where it
# cannot? See libbpf_open.c.
dir=${SELFTESTS:?}/../out-samples
[[ -x $dir/libbpf_open ]] || {
	echo "no libbpf_open in $dir: run \`make samples\`"
	exit 1
}
exec "$dir/libbpf_open" "$dir/libbpf_open.bpf.o"
