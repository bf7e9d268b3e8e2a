#!/bin/bash
# perf probe: parameters that are constants
# SPDX-License-Identifier: GPL-2.0
#
# The compiler makes a clone of a function that is only called with certain constants, and
# the parameters are only in its debug information. A constant whose highest bit is set is not
# negative, unless the debug information says so.

set -e

# shellcheck source=lib/probe.sh
. "$(dirname "$0")"/lib/probe.sh

skip_if_no_uprobes_in_c || exit 2

dir=$(mktemp -d /tmp/perf-probe-constants.XXXXXX)
trap 'rm -rf "${dir}"' EXIT TERM INT

cat > "${dir}/constants.c" <<- 'EOF'
	static volatile unsigned long sum;

	static __attribute__((noinline))
	void take(unsigned long byte, unsigned long word, unsigned long nr, int minus, int more)
	{
		sum += byte + word + nr + minus + more;
	}

	int main(int argc, char **argv)
	{
		take(225, 40000, 0x81000200UL, -3, argc);
		take(225, 40000, 0x81000200UL, -3, 2 * argc);
		return 0;
	}
EOF
${CC:-gcc} -O2 -g -o "${dir}/constants" "${dir}/constants.c"
said=$(perf probe -q -x "${dir}/constants" -D 'take byte word nr minus' | grep -o 'byte=.*')
echo "${said}"
[[ ${said} == *'\'* ]] || {
	echo "SKIP: no argument is a constant here"
	exit 2
}
[[ ${said} == 'byte=\225:'*' word=\40000:'*' nr=\2164261376:'*' minus=\-3:'* ]]
