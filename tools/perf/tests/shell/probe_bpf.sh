#!/bin/bash
# perf probe: probe points of a BPF object file
# SPDX-License-Identifier: GPL-2.0
#
# Programs in a BPF object file name their probe points and arguments in their sections.
# Show the events for functions that have the same argument in different places, and
# what is said of a section, a point or an argument that is not possible. Nothing is
# probed, so that no privileges are needed.

set -e

[[ $(uname -m) == x86_64 ]] || {
	echo "SKIP: the test has registers of x86_64"
	exit 2
}
for tool in gcc clang; do
	command -v "${tool}" > /dev/null || {
		echo "SKIP: no ${tool}"
		exit 2
	}
done
for feature in bpf dwarf; do
	perf check -q feature "${feature}" || {
		echo "SKIP: perf was built without ${feature}"
		exit 2
	}
done

dir=$(mktemp -d /tmp/perf-probe-bpf.XXXXXX)
program=${dir}/program

cleanup()
{
	trap - EXIT TERM INT
	[[ ${dir} == /tmp/perf-probe-bpf.* ]] && rm -rf "${dir}"
}

trap cleanup EXIT
trap 'cleanup; exit 1' TERM INT

cat > "${dir}/program.c" <<- 'EOF'
	#define probed __attribute__((noinline, noclone))

	struct item {
		int before;
		int number;
	};

	probed int take_first(int number)
	{
		asm volatile("" ::: "memory");
		return number;
	}

	probed int take_first_too(int number)
	{
		asm volatile("" ::: "memory");
		return number + 1;
	}

	probed int take_second(void *other, int number)
	{
		asm volatile("" :: "r" (other) : "memory");
		return number;
	}

	probed int take_none(void)
	{
		asm volatile("" ::: "memory");
		return 0;
	}

	probed int behind_pointer(struct item *item)
	{
		asm volatile("" ::: "memory");
		return item->number;
	}

	int main(void)
	{
		struct item item = { .number = 4 };

		return take_first(1) + take_first_too(1) + take_second(&item, 3) +
		       take_none() + behind_pointer(&item);
	}
EOF
gcc -O2 -g -o "${program}" "${dir}/program.c"
strip -o "${dir}/stripped" "${program}"

err=0
fail()
{
	echo "FAIL: $*"
	err=1
}

# show SECTION [PARAMETERS [OPTION...]]: what perf probe says of a program there
show()
{
	local section=$1 parameters=${2:-void *ctx, int err, long number}

	shift; shift || true
	cat > "${dir}/prog.bpf.c" <<- EOF
		__attribute__((section("${section}"), used))
		int prog(${parameters})
		{
			return 0;
		}

		char _license[] __attribute__((section("license"), used)) = "GPL";
	EOF
	clang -O2 -g --target=bpf -c -o "${dir}/prog.bpf.o" "${dir}/prog.bpf.c" || exit 1
	perf probe --bpf "${dir}/prog.bpf.o" "$@" > "${dir}/said" 2> "${dir}/errors"
}

# expect LINE...: in any order, and no other line that is not of an instruction
expect()
{
	local said expected

	said=$(grep -v -e '^#  *[0-9]*:' "${dir}/said" |
	       sed "s|${program}:0x[0-9a-f]*|PROGRAM|; s|taken_[12] |taken_N |" | sort)
	expected=$(printf '%s\n' "$@" | sort)
	[[ ${said} == "${expected}" ]] ||
		fail "$(printf 'said:\n%s\nexpected:\n%s' "${said}" "${expected}")"
}

# refuse SECTION TEXT [PARAMETERS]: the message has the file, the section and TEXT
refuse()
{
	show "$1" "$3" && {
		fail "SEC(\"$1\") is taken:"
		cat "${dir}/said"
		return
	}
	if grep -q -F "$2" "${dir}/errors" &&
	   grep -q -F "prog.bpf.o: prog, SEC(\"$1\"): " "${dir}/errors"; then
		echo "SEC(\"$1\"): $2"
	else
		fail "SEC(\"$1\") is refused without '$2':"
		cat "${dir}/errors"
	fi
}

exec="exec=${program};"

section="${exec}taken=take_first* number"
show "${section}" || fail "SEC(\"${section}\") is refused"
expect "# prog, SEC(\"${section}\"): 2 points, 1 instance" \
	"# take_first+0:" "p:perf_bpf_probe/taken PROGRAM number=%di:s32" \
	"# take_first_too+0:" "p:perf_bpf_probe/taken PROGRAM number=%di:s32"

section="${exec}partial=yes;taken=take_* number"
show "${section}" || fail "SEC(\"${section}\") is refused"
grep -q '^#   skipped: take_none.*there is no .number., or it is optimized out' "${dir}/said" ||
	fail "take_none, which has no argument, is not listed"
sed -i '/^#   skipped: take_none/d' "${dir}/said"
expect "# prog, SEC(\"${section}\"): 3 points, 2 instances" \
	"# take_first+0:" "p:perf_bpf_probe/taken_N PROGRAM number=%di:s32" \
	"# take_first_too+0:" "p:perf_bpf_probe/taken_N PROGRAM number=%di:s32" \
	"# take_second+0:" "p:perf_bpf_probe/taken_take_second PROGRAM number=%si:s32"
! grep "cannot be fetched\|Sorry" "${dir}/errors" || fail "what is skipped is told twice"

# names of C++ are not for events
if command -v g++ > /dev/null; then
	cat > "${dir}/templates.cpp" <<- 'EOF'
		template <typename T> __attribute__((noinline)) T my_fn(long, T a)
		{
			asm volatile("" :: "r" (a) : "memory");
			return a;
		}

		__attribute__((noinline)) long my_fn_too(long a)
		{
			asm volatile("" :: "r" (a) : "memory");
			return a;
		}

		int main()
		{
			return my_fn<int>(1, 2) + my_fn_too(3);
		}
	EOF
	g++ -O2 -g -o "${dir}/templates" "${dir}/templates.cpp"
	show "exec=${dir}/templates;taken=my_fn* a" || fail "templates: $(cat "${dir}/errors")"
	[[ $(grep -o '/taken_[^ ]*' "${dir}/said" | sort | xargs) == \
	   "/taken_"[12]" /taken_my_fn_too" ]] || fail "templates: $(cat "${dir}/said")"
else
	echo "no g++: names of C++ are not tested"
fi

# without a name of the event, it is the program's
section="${exec}behind_pointer number=item->number"
show "${section}" '' --dump-insns || fail "SEC(\"${section}\") is refused"
expect "# prog, SEC(\"${section}\"): 1 point, 1 instance" \
	"# behind_pointer+0:" "p:perf_bpf_probe/prog PROGRAM number=+4(%di):s32"
for insn in 'r3 = \*(u64 \*)(r6 +112)' 'r3 += 4' 'call bpf_probe_read_user#' 'r1 = r6'; do
	grep -q "^#  *[0-9]*: .*${insn}" "${dir}/said" || fail "no instruction ${insn}"
done

refuse "${exec}take_* number" "there is no 'number', or it is optimized out"
grep -q 'found: take_first+0' "${dir}/errors" || fail "points that were found are not listed"
refuse "${exec}take_none number" 'an argument that no point has'
refuse "${exec}nowhere number" 'no such function'
refuse "${exec}take_first:4711 number" 'no code on that line'
refuse "${exec}max=2;partial=yes;take_* number" 'more than 2 points'
refuse "${exec}max=2;take_*" 'more than 2 points' 'void *ctx, int err'
refuse "${exec}max=none;take_first number" 'max= takes a number of points'
refuse "${exec}inlines=maybe;take_first number" 'inlines= takes yes or no'
refuse "exec=/nowhere;take_first number" 'No such file'
refuse "kernel=yes;take_first number" "'kernel' is not known"
refuse "${exec}take_first;number = number" 'a pattern of source lines is not supported'
refuse "${exec}take_first number number number number" '4 arguments'
refuse "${exec}take_first number=number:u12" "type 'u12'"
refuse "${exec}take_first \$params" '$params is not supported'
long=a_name_with_more_characters_than_an_event_may_have_which_is_63_of_them
refuse_name=${long}_or_not
show "${exec}${refuse_name}=take_first number" &&
	fail "a name of ${#refuse_name} characters is taken"
grep -q 'longer than 63 characters' "${dir}/errors" || fail "$(cat "${dir}/errors")"
refuse "${exec}own:taken=take_first number" 'the group of the event is always perf_bpf_probe'
refuse "${exec}take_first" 'has 3 parameters, but is given the context, an error flag and 0'
refuse "exec=${dir}/stripped;take_first number" 'no debug information'
refuse "${exec}module=nf_tables;take_first number" 'is named already'
refuse "exec=${program}" 'there is no probe point'
for section in kprobe/vfs_read perf_event "?${exec}take_first number"; do
	show "${section}" && fail "SEC(\"${section}\") is taken"
	grep 'prog.bpf.o: has no BPF program at a probe point' "${dir}/errors" ||
		fail "SEC(\"${section}\"): $(cat "${dir}/errors")"
done

perf probe -x "${program}" --bpf "${dir}/prog.bpf.o" > "${dir}/said" 2>&1 && fail "-x is ignored"
perf probe --bpf "${program}" > "${dir}/said" 2>&1 && fail "a program is not a BPF object"
grep -q 'cannot be opened as a BPF object file' "${dir}/said" || fail "$(cat "${dir}/said")"
exit ${err}
