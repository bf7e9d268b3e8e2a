#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does libbpf attach to a function of the module that is named, and to nothing else?
# See libbpf_modules.c.
dir=${SELFTESTS:?}/../out-samples
[[ -x $dir/libbpf_modules ]] || {
	echo "no libbpf_modules in $dir: run \`make samples\`"
	exit 1
}
exec "$dir/libbpf_modules" "$dir/libbpf_modules.bpf.o"
