#!/bin/bash
# perf probe: arguments that not all functions of a glob have
# SPDX-License-Identifier: GPL-2.0
#
# Probe several functions with one event whose argument some of them do not have, or have
# where no probe can fetch it. They are probed as well, and print a magic number for it.

set -e

# shellcheck source=lib/probe.sh
. "$(dirname "$0")"/lib/probe.sh

skip_if_no_uprobes_in_c || exit 2

dir=$(mktemp -d /tmp/perf-probe-some-args.XXXXXX)
program=${dir}/some_args
group=perf_some_args_$$

cleanup()
{
	trap - EXIT TERM INT
	perf probe -q -d "${group}:*" > /dev/null 2>&1 || true
	[[ ${dir} == /tmp/perf-probe-some-args.* ]] && rm -rf "${dir}"
}

trap cleanup EXIT
trap 'cleanup; exit 1' TERM INT

cat > "${dir}/some_args.c" <<- 'EOF'
	#define probed __attribute__((noinline, noclone))

	probed int has_number(int number)
	{
		asm volatile("" ::: "memory");
		return number;
	}

	probed int has_nothing(void)
	{
		asm volatile("" ::: "memory");
		return 0;
	}

	struct small {
		int x;
	};

	struct big {
		int x, padding[15];
	};

	probed int takes_small(struct small arg)
	{
		asm volatile("" ::: "memory");
		return arg.x;
	}

	probed int takes_big(struct big arg)
	{
		asm volatile("" ::: "memory");
		return arg.x;
	}

	probed int takes_int(int arg)
	{
		asm volatile("" ::: "memory");
		return arg;
	}

	static inline __attribute__((always_inline)) void computed(long tripled)
	{
		asm volatile("" :: "r" (tripled) : "memory");
		asm volatile("nop");
	}

	probed int triple(long number)
	{
		asm volatile("" :: "r" (number) : "memory");
		computed(number * 3);
		return number;
	}

	static inline int inlined_too(int number)
	{
		asm volatile("nop" :: "r" (number) : "memory");
		return number;
	}

	int (*volatile called)(int) = inlined_too;

	int main(void)
	{
		struct small small = { .x = 1 };
		struct big big = { .x = 2 };

		return has_number(7) + has_nothing() != 7 ||
		       takes_small(small) + takes_big(big) + takes_int(3) != 6 ||
		       triple(14) != 14 || inlined_too(2) + called(3) != 5;
	}
EOF
gcc -O1 -g -o "${program}" "${dir}/some_args.c"

# expect EVENT PROBE EXPECTED: each hit of PROBE, without its address, is a line of EXPECTED
expect()
{
	local event=${group}:$1 said

	perf probe -q -x "${program}" "${event}=$2" || {
		echo "FAIL: no event of '$2'"
		return 1
	}
	perf record -q -o "${dir}/data" -e "${event}*" "${program}"
	said=$(perf script -i "${dir}/data" -F trace:trace | sed 's/.*) //')
	[[ ${said} == "$3" ]] || {
		echo "FAIL: '$2' prints ${said//$'\n'/, }; expected ${3//$'\n'/, }"
		return 1
	}
	echo "'$2' prints ${said//$'\n'/, }"
}

err=0
# 0xdeade12d, of the type that the argument has elsewhere
expect missing 'has_* number' $'number=7\nnumber=-559029971' || err=1
# a structure in a register is not supported, and an integer has no member
expect unsupported 'takes_* x=arg.x' $'x=-559029971\nx=2\nx=-559029971' || err=1

# refuse PROBE MESSAGE: no function has the argument
refuse()
{
	perf probe -x "${program}" -D "$1" > "${dir}/said" 2>&1 && {
		echo "FAIL: '$1' is taken"
		return 1
	}
	grep -q "$2" "${dir}/said" || {
		echo "FAIL: '$1' is refused without '$2':"
		cat "${dir}/said"
		return 1
	}
	echo "'$1' is refused: $2"
}

refuse 'has_nothing number' "Failed to find the location of the 'number' variable" || err=1
refuse 'takes_small arg.x' 'Structure on a register is not supported yet' || err=1

# Whether it is in a register is up to the compiler, but it is not in memory
if perf probe -x "${program}" -D 'computed tripled' > /dev/null 2>&1; then
	expect computed 'computed tripled' 'tripled=42' || err=1
else
	refuse 'computed tripled' "we don't support this variable location" || err=1
fi

# --no-inlines finds the copy that is called, by its name as by a glob
for name in inlined_too 'inlined_to*'; do
	definition=$(perf probe -q --no-inlines -x "${program}" -D "${name} number") || err=1
	echo "${definition}"
	[[ $(grep -c ' number=' <<< "${definition}") == 1 ]] || {
		echo "FAIL: '${name}' is not one event"
		err=1
	}
done

# $params is nothing in a function without any
definition=$(perf probe -q -x "${program}" -D 'has_nothing $params') || err=1
echo "${definition}"
[[ ${definition} == *:0x* && ${definition} != *=* ]] || {
	echo "FAIL: not an event without arguments"
	err=1
}
exit ${err}
