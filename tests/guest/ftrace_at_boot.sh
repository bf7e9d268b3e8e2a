#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The function tracer is on from the kernel's command line. Its trampoline is registered
# before interrupts may be enabled: lockdep complains if that enables them. ftrace keeps
# this trampoline when the tracer is off.

tracing=/sys/kernel/tracing

fail()
{
	echo "$1"
	exit 1
}

grep -q '^function$' "${tracing}/current_tracer" ||
	fail "the tracer is $(cat "${tracing}/current_tracer"), not that of the command line: $(cat /proc/cmdline)"
grep -q '^#' "${tracing}/set_ftrace_filter" &&
	fail "all functions are traced: ftrace_filter= names none that there is"
grep '\[__builtin__ftrace\]$' /proc/kallsyms ||
	fail "/proc/kallsyms lists no trampoline"
echo nop >"${tracing}/current_tracer"
