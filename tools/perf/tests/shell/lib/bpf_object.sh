#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What tests have in common that compile BPF programs and run them in perf.

skip()
{
	echo "SKIP: $*"
	exit 2
}

fail()
{
	echo "FAIL: $*"
	# shellcheck disable=SC2034 # the test exits with it
	err=1
}

# same WHAT SAID EXPECTED
same()
{
	if [[ $2 == "$3" ]]; then
		echo "$1: $(echo "$2" | paste -sd ' ')"
	else
		fail "$1: $(printf '\n%s\nexpected:\n%s' "$2" "$3")"
	fi
}

need_root()
{
	[[ $(id -u) == 0 ]] || skip "loads BPF programs, so it needs root"
}

need_tools()
{
	local tool

	for tool in "$@"; do
		command -v "${tool}" > /dev/null || skip "no ${tool}"
	done
}

need_features()
{
	local feature

	for feature in "$@"; do
		perf check -q feature "${feature}" || skip "perf was built without ${feature}"
	done
}
