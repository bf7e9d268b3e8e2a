#!/bin/bash
# perf record: events of a BPF object file (-e FILE.bpf.o) (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# A program has the same argument in different registers, on the stack, behind pointers,
# as a bit-field, signed, as a string, and in an inlined function. A BPF program at all of
# these points is given the values that a probe event prints, decides which samples are
# recorded, runs only while and where it is recorded, and leaves no probe event behind,
# however perf ends.

set -e

# shellcheck source=lib/bpf_object.sh
. "$(dirname "$0")"/lib/bpf_object.sh
err=0 # fail() sets it

[[ $(uname -m) == x86_64 ]] || skip "the test has registers of x86_64"
need_root
need_tools gcc clang
need_features bpf_skeletons dwarf libtraceevent
tracefs=/sys/kernel/tracing
[[ -e ${tracefs}/uprobe_events ]] || tracefs=/sys/kernel/debug/tracing
[[ -e ${tracefs}/uprobe_events ]] || skip "no uprobe events in tracefs"

dir=$(mktemp -d /tmp/perf-record-bpf-object.XXXXXX)
program=${dir}/program
group=perf_bpf_object_$$
pin=/sys/fs/bpf/perf_runs_$$

cleanup()
{
	trap - EXIT TERM INT
	jobs -p | xargs -r kill -KILL 2> /dev/null || true
	pkill -KILL -f "${dir}" || true
	perf probe -q -d "${group}:*" > /dev/null 2>&1 || true
	rm -f "${pin}"
	[[ ${dir} == /tmp/perf-record-bpf-object.* ]] && rm -rf "${dir}"
}

trap cleanup EXIT
trap 'cleanup; exit 1' TERM INT

cat > "${dir}/program.c" <<- 'EOF'
	#include <stdlib.h>
	#include <string.h>
	#include <sys/mman.h>
	#include <unistd.h>

	#define probed __attribute__((noinline, noclone))
	#define use(x) asm volatile("" :: "r" (x) : "memory")

	struct item {
		char pad;
		unsigned before:3, bits:7;
		int small;
		const char *name;
		struct item *next;
	};

	probed void in_first(long value) { use(value); }
	probed void in_second(void *other, long value) { use(other); use(value); }
	probed void in_third(int a, int b, long value) { use(a); use(b); use(value); }
	probed void on_stack(int a, int b, int c, int d, int e, int f, long value)
	{
		use(a); use(b); use(c); use(d); use(e); use(f); use(value);
	}

	probed void has_item(struct item *item) { use(item); }

	static inline __attribute__((always_inline)) void inlined(long value)
	{
		use(value);
		asm volatile("nop");
	}

	probed void around(long n)
	{
		use(n);
		inlined(n);
		use(n);
	}

	/* Its variable has no place, as the compiler knows its values */
	probed void states(void)
	{
		int state;

		asm volatile("nop");
		state = -1;		/* the first state */
		asm volatile("nop");
		state = 200;		/* the second state */
		asm volatile("nop");
		(void)state;
	}

	struct paged { struct paged *next; long value; };

	probed void has_page(struct paged *first) { use(first); }

	/* Values in pages of a file that nobody has touched in this mapping */
	static void pages(void)
	{
		char path[] = "/tmp/perf-record-bpf-object.pages.XXXXXX";
		char page[4096] = {};
		int fd = mkstemp(path);
		struct paged first = {};

		unlink(path);
		for (long i = 0; i < 16 * 32; i++) {
			((struct paged *)page)->value = 100 + i / 32;
			if (write(fd, page, sizeof(page)) != sizeof(page))
				_exit(1);
		}
		for (int i = 0; i < 16; i++) {
			/* one mapping each: a fault fills the pages around in */
			first.next = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, i * 32 * 4096);
			has_page(&first);
		}
	}

	int main(int argc, char **argv)
	{
		struct item last = { .before = 1, .bits = 77, .small = -5, .name = "last" };
		struct item item = { .before = 2, .bits = 33, .small = 300, .name = "first",
				     .next = &last };
		int loops = argc > 1 ? 1000000 : 1;

		if (argc > 1 && !strcmp(argv[1], "pages")) {
			pages();
			return 0;
		}

		/* A probe cannot read a page that was not there yet */
		use(*(volatile const char *)item.name);

		for (int i = 0; i < loops; i++) {
			in_first(11);
			in_second(&item, -22);
			in_third(1, 2, 0x123456789a);
			on_stack(1, 2, 3, 4, 5, 6, 44);
			has_item(&item);
			around(14);
			states();
			if (loops > 1)
				usleep(1000);
		}
		return 0;
	}
EOF
gcc -O2 -g -o "${program}" "${dir}/program.c"

cat > "${dir}/start.h" <<- 'EOF'
	typedef unsigned long long u64;
	#define SEC(name) __attribute__((section(name), used))

	char _license[] SEC("license") = "GPL";
EOF

# build NAME: NAME.bpf.o, of the source that is read
build()
{
	cat > "${dir}/$1.bpf.c"
	clang -O2 -g --target=bpf -include "${dir}/start.h" -DPROGRAM="\"${program}\"" \
		-DRUNS="${pin##*/}" \
		-c -o "${dir}/$1.bpf.o" "${dir}/$1.bpf.c" || exit 1
}

# record NAME [OPTION...]: the samples of NAME.bpf.o, as "EVENT ARG=VALUE ..."
record()
{
	local name=$1

	shift
	perf record -q -o "${dir}/data" -e "${dir}/${name}.bpf.o" "$@" \
		-- "${program}" > "${dir}/log" 2>&1 || {
		fail "perf record -e ${name}.bpf.o: $(cat "${dir}/log")"
		return
	}
	perf script -i "${dir}/data" -F event,trace 2> /dev/null |
		sed 's/^ *perf_bpf_probe:\([a-z]*\)[_0-9a-z]*: *([0-9a-f]*)/\1/; s/ *$//'
}

events_of_group()
{
	grep "perf_bpf_probe.*${dir}" "${tracefs}/uprobe_events"
}

# Not one that has ended, and is waited for
keepers()
{
	ps -eo stat,comm,args | grep "^[DRS][^ ]* *perf-bpf-probes .*${dir}"
}

# none_left WHEN: no event of the group
none_left()
{
	! events_of_group || fail "an event is left $1"
}

# none_left_soon WHEN: when perf is gone, which had no time to wait for that
none_left_soon()
{
	for ((i = 0; i < 100; i++)); do
		events_of_group > /dev/null || break
		sleep 0.1
	done
	none_left "$1"
	for ((i = 0; i < 100; i++)); do
		keepers > /dev/null || return 0
		sleep 0.1
	done
	fail "a process is left $1: $(keepers)"
}

# Each program returns 1 if its arguments are what main() passed, so that nothing would be
# recorded of a wrong one; and what the event prints of them has to be the same.
build values <<- 'EOF'
	SEC("exec=" PROGRAM ";place=[io]n_* value")
	int place(void *ctx, int err, long value)
	{
		return !err && (value == 11 || value == -22 || value == 0x123456789a ||
				value == 44);
	}

	SEC("exec=" PROGRAM ";fields=has_item "
	    "bits=item->bits small=item->next->small far=item->next->bits")
	int fields(void *ctx, int err, u64 bits, long small, u64 far)
	{
		return !err && bits == 33 && small == -5 && far == 77;
	}

	SEC("exec=" PROGRAM ";inline=inlined value")
	int inlined(void *ctx, int err, long value)
	{
		return !err && value == 14;
	}
EOF
said=$(record values)
same "arguments" "${said}" "place value=11
place value=-22
place value=78187493530
place value=44
fields bits=33 small=-5 far=77
inline value=14"
none_left "behind a recording"

# A variable whose value the compiler knows at the line
first=$(sed -n '/the first state/=' "${dir}/program.c")
second=$(sed -n '/the second state/=' "${dir}/program.c")
build states <<- EOF
	SEC("exec=" PROGRAM ";one=program.c:${first} state")
	int one(void *ctx, int err, int state)
	{
		return !err && state == -1;
	}

	SEC("exec=" PROGRAM ";two=program.c:${second} state")
	int two(void *ctx, int err, int state)
	{
		return !err && state == 200;
	}
EOF
same "a constant" "$(record states)" "one state=-1
two state=200"

# As perf probe prints them
for probe in 'place=in_first value' 'place=in_second value' 'place=in_third value' \
	     'place=on_stack value' 'inline=inlined value' \
	     'fields=has_item bits=item->bits small=item->next->small far=item->next->bits'; do
	perf probe -q -f -x "${program}" "${group}:${probe}" 2> /dev/null ||
		fail "no probe event '${probe}'"
done
perf record -q -o "${dir}/data" -e "${group}:*" -- "${program}"
probes=$(perf script -i "${dir}/data" -F event,trace 2> /dev/null |
	 sed "s/^ *${group}:\([a-z]*\)[_0-9]*: *([0-9a-f]*)/\1/; s/ *$//")
same "perf probe prints the same" "${said}" "${probes}"
perf probe -q -d "${group}:*" > /dev/null 2>&1

# A string is its address; 0 drops the sample
build string <<- 'EOF'
	static long (*read_user_str)(void *dst, unsigned int size, const void *from) =
		(void *)114;

	SEC("exec=" PROGRAM ";name=has_item name=item->name:string")
	int name(void *ctx, int err, u64 address)
	{
		char name[8] = {};

		return !err && read_user_str(name, sizeof(name), (void *)address) == 6 &&
		       name[0] == 'f' && name[4] == 't';
	}

	SEC("exec=" PROGRAM ";dropped=in_first value")
	int dropped(void *ctx, int err, long value)
	{
		return 0;
	}
EOF
same "a string, and a program that drops" "$(record string)" 'name name="first"'

# Each value but 0 keeps the sample, whichever return of the program it is from. What its
# subprograms return is their own.
seed=$$
RANDOM=${seed}
values=(0 1 2 4096 -2 0x80000000 $((RANDOM * 2)) $((RANDOM << 16)) $((-RANDOM)))
echo "seed ${seed}: the program returns ${values[*]}"
letters=({a..z})
kept=
for i in "${!values[@]}"; do
	name=keep${letters[i]}
	((values[i])) && kept+="${name} value=11"$'\n'
	cat <<- EOF
		SEC("exec=" PROGRAM ";${name}=in_first value")
		int ${name}(void *ctx, int err, long value)
		{
			if (value == 12)
				return 1;
			return twice(value) == 22 ? ${values[i]} : 0;
		}
	EOF
done > "${dir}/programs"
build returns <<- EOF
	SEC("exec=" PROGRAM ";keepy=in_first value")
	long keepy(void *ctx, int err, long value)
	{
		return value << 32;
	}

	SEC("exec=" PROGRAM ";keepz=in_first value")
	long keepz(void *ctx, int err, long value)
	{
		return value - 11;
	}

	static __attribute__((noinline)) int twice(long value)
	{
		return value * 2;
	}
	$(cat "${dir}/programs")
EOF
same "values that a program returns" "$(record returns | sort)" "${kept}keepy value=11"

# Memory that cannot be read: the flag is 1 and the arguments are 0
build fault <<- 'EOF'
	SEC("exec=" PROGRAM ";fault=in_first value=+0(%di):u64 other=%di:u64")
	int fault(void *ctx, int err, u64 value, u64 other)
	{
		return err == 1 && !value && !other;
	}
EOF
same "memory that cannot be read" "$(record fault | sed 's/ .*//')" fault

# Memory in pages that are not there, as a plain event reads it; by a program that may not sleep,
# as it has a map that those may not have, the flag says that it was not read
build pages <<- 'EOF'
	SEC("exec=" PROGRAM ";page=has_page value=first->next->value")
	int page(void *ctx, int err, long value)
	{
		return err ? 0 : value;
	}
EOF
build nosleep <<- 'EOF'
	struct {
		int (*type)[7];		/* BPF_MAP_TYPE_STACK_TRACE */
		int (*key_size)[4];
		int (*value_size)[64];
		int (*max_entries)[16];
	} stacks SEC(".maps");

	static long (*get_stackid)(void *ctx, void *map, u64 flags) = (void *)27;

	SEC("exec=" PROGRAM ";page=has_page value=first->next->value")
	int page(void *ctx, int err, long value)
	{
		get_stackid(ctx, &stacks, 0);
		return err || value;
	}
EOF
for name in pages nosleep; do
	perf record -q -o "${dir}/data" -e "${dir}/${name}.bpf.o" -- "${program}" pages \
		> "${dir}/log" 2>&1 || fail "pages that are not there: $(cat "${dir}/log")"
	same "pages that are not there, ${name}" "$(perf script -i "${dir}/data" -F trace |
		sed 's/.*value=//; s/ *$//' | paste -sd ' ')" \
		"100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115"
done

# Programs run for the tasks of the recording only: another one hits the same points
build runs <<- 'EOF'
	struct {
		int (*type)[2];		/* BPF_MAP_TYPE_ARRAY */
		int *key;
		u64 *value;
		int (*max_entries)[1];
		int (*pinning)[1];	/* LIBBPF_PIN_BY_NAME */
	} RUNS SEC(".maps");

	static void *(*lookup)(void *map, const void *key) = (void *)1;

	SEC("exec=" PROGRAM ";runs=in_first value")
	int runs(void *ctx, int err, long value)
	{
		int key = 0;
		u64 *runs = lookup(&RUNS, &key);

		if (runs)
			__sync_fetch_and_add(runs, 1);
		return 1;
	}
EOF
if command -v bpftool > /dev/null && mountpoint -q /sys/fs/bpf; then
	"${program}" forever &
	other=$!
	same "one task recorded" "$(record runs)" "runs value=11"
	runs=$(bpftool -j map dump pinned "${pin}" |
	       sed 's/.*"formatted".*"value": *\([0-9]*\).*/\1/')
	same "runs of the program in it" "${runs}" 1
	rm -f "${pin}"
	kill "${other}"
	wait "${other}" 2> /dev/null || true
else
	echo "no bpftool, or /sys/fs/bpf is not mounted: where programs run is not tested"
fi

# perf stat counts what the program lets pass, of two files
build none <<- 'EOF'
	SEC("exec=" PROGRAM ";none=in_* value")
	int none(void *ctx, int err, long value)
	{
		return 0;
	}
EOF
perf stat -x, -o "${dir}/counts" -e "${dir}/none.bpf.o" -e "${dir}/fault.bpf.o" -- "${program}"
counts=$(sed -n 's/^\([0-9]*\),.*perf_bpf_probe:\([a-z]*\).*/\2=\1/p' "${dir}/counts" | sort -u)
same "perf stat" "${counts}" \
	"fault=1
none=0"
none_left "behind perf stat"
perf stat -r 3 -x, -o "${dir}/counts" -e "${dir}/fault.bpf.o" -- "${program}"
counts=$(sed -n 's/^\([0-9]*\),.*perf_bpf_probe:.*/\1/p' "${dir}/counts")
same "perf stat -r 3, for each run" "${counts}" 1

# A child that has ended, whose event is gone, has not taken the program with it
perf record -q -o "${dir}/data" -e "${dir}/none.bpf.o" -- \
	bash -c "${program}; ${program}; ${program}" > "${dir}/log" 2>&1 ||
	fail "children one after the other: $(cat "${dir}/log")"
same "samples that are dropped in children one after the other" \
	"$(perf script -i "${dir}/data" -F event 2> /dev/null)" ""

# Children of the recorded task
build child <<- 'EOF'
	SEC("exec=" PROGRAM ";child=in_third value")
	int child(void *ctx, int err, long value)
	{
		return !err;
	}
EOF
perf record -q -o "${dir}/data" -e "${dir}/child.bpf.o" -- bash -c "(${program}; true)" \
	> "${dir}/log" 2>&1 || fail "a child: $(cat "${dir}/log")"
same "in a child" "$(perf script -i "${dir}/data" -F event,trace 2> /dev/null |
	grep -o 'child:.*' | sed 's/ *([0-9a-f]*)//; s/ *$//')" 'child: value=78187493530'

# On a line of a function, and with --filter, which both have to let pass
line=$(grep -n 'use(n);' "${dir}/program.c" | sed -n '2s/:.*//p')
build line <<- EOF
	SEC("exec=" PROGRAM ";line=program.c:${line} n")
	int line(void *ctx, int err, long n)
	{
		return !err && n == 14;
	}
EOF
same "a line in the middle of a function" "$(record line)" "line n=14"
same "a filter that passes as well" "$(record line --filter 'n == 14')" "line n=14"
same "a filter that does not" "$(record line --filter 'n == 15')" ""

# One instance at several points can tell them apart
build points <<- 'EOF'
	static u64 (*get_func_ip)(void *ctx) = (void *)173;

	u64 first, others;

	SEC("exec=" PROGRAM ";points=in_*")
	int points(void *ctx)
	{
		u64 ip = get_func_ip(ctx);

		if (!first)
			first = ip;
		else if (ip != first)
			others++;
		return ip > 0;
	}
EOF
perf record -q -o "${dir}/data" --bpf-prog-maps -e "${dir}/points.bpf.o" -- "${program}" \
	> "${dir}/log" 2>&1 || fail "points: $(cat "${dir}/log")"
grep -q '^others = (u64)[1-9]' "${dir}/log" || fail "points: $(cat "${dir}/log")"

# Symbols of the instances, which are named as their events
perf record -q -a -o "${dir}/data" -e "${dir}/values.bpf.o" -- "${program}"
perf script -i "${dir}/data" --show-bpf-events > "${dir}/log"
for instance in place_in_first place_in_second place_in_third place_on_stack fields inline; do
	grep -q "PERF_RECORD_KSYMBOL .* name bpf_prog_[0-9a-f]*_${instance} " "${dir}/log" ||
		fail "no symbol of instance ${instance}"
done

# Nothing would attach the program there
if perf record -o "${dir}/data" -e dummy --switch-output-event "${dir}/fault.bpf.o" \
	-- "${program}" > "${dir}/log" 2>&1; then
	fail "--switch-output-event takes a BPF object file"
fi
grep -q 'takes no BPF object file' "${dir}/log" || fail "$(cat "${dir}/log")"

for behind in :u /config=1; do
	perf record -o "${dir}/data" -e "${dir}/values.bpf.o${behind}" -- "${program}" \
		> "${dir}/log" 2>&1 && fail "${behind} is taken behind a BPF object file"
	grep -q 'no modifiers' "${dir}/log" || fail "$(cat "${dir}/log")"
done
cp "${dir}/values.bpf.o" "${dir}/values.o"
perf record -o "${dir}/data" -e "${dir}/values.o" -- "${program}" > "${dir}/log" 2>&1 &&
	fail "a name that does not end in .bpf.o is taken"
grep -q 'are named FILE.bpf.o' "${dir}/log" || fail "$(cat "${dir}/log")"

# Variables: those of each type with values at random
seed=${RANDOM}
RANDOM=${seed}
build variables <<- 'EOF'
	enum kind { ZERO, FIVE = 5, MINUS = -7 };

	const volatile signed char c = 1;
	const volatile unsigned short us = 1;
	int i;
	const volatile u64 large;
	const volatile _Bool flag;
	const volatile enum kind kind;
	char text[8] = "before";
	const int folded = 3;
	int many[3];

	u64 seen[7];

	SEC("exec=" PROGRAM ";var=in_first value")
	int var(void *ctx, int err, long value)
	{
		seen[0] = c;
		seen[1] = us;
		seen[2] = i;
		seen[3] = large;
		seen[4] = flag;
		seen[5] = kind;
		seen[6] = text[0] == 'x' && !text[5];
		return folded + many[0] + i;
	}
EOF
vars=${dir}/variables.bpf.o
c=$((RANDOM % 256 - 128))
us=$((RANDOM * 2 + RANDOM % 2))
i=$((RANDOM * 65536 - 1073741824))
large=$(printf '0x%x%08x' "$((RANDOM + 32768))" "${RANDOM}")
perf record -q -o "${dir}/data" --bpf-prog-maps \
	-e "${vars}/c=${c},us=${us},i=${i},large=${large},flag=true,kind=MINUS,text=xyzab/" \
	-- "${program}" > "${dir}/log" 2>&1 || fail "variables: $(cat "${dir}/log")"
# as unsigned numbers, which printf makes of negative ones
same "variables (seed ${seed})" \
	"$(sed -n 's/^seen = (u64\[7\])\[\(.*\),\]$/\1/p' "${dir}/log")" \
	"$(printf '%u,%u,%u,%u,1,%u,1' "${c}" "${us}" "${i}" "${large}" -7)"
while read -r assignment text; do
	perf record -q -o "${dir}/data" -e "${vars}/${assignment}/" -- "${program}" \
		> "${dir}/log" 2>&1 && fail "variables: ${assignment} is taken"
	grep -q "variables.bpf.o: .*${text}" "${dir}/log" ||
		fail "${assignment}: $(cat "${dir}/log")"
done <<- 'EOF'
	c=128 does not fit
	us=65536 does not fit
	us=-1 is not a value of its type
	i=2147483648 does not fit
	large=0x10000000000000000 does not fit
	i=five is not a value of its type
	flag=2 is not a value of its type
	kind=SIX is not a value of its type
	text=12345678 does not fit
	folded=4 declare it 'const volatile'
	many=1 only numbers
	nothing=1 there is no global variable 'nothing'
	i is not VARIABLE=VALUE
	i= is not a value of its type
EOF

# In a list, from the directory, with a path as value; and no perf waits for itself
(cd "${dir}" && perf record -o data --bpf-prog-maps \
	-e ./string.bpf.o,./variables.bpf.o/text=/bin/x,c=2/,./line.bpf.o -- "${program}") \
	> "${dir}/log" 2>&1 || fail "a list: $(cat "${dir}/log")"
grep -q '^text = .*"/bin/x"' "${dir}/log" || fail "a path: $(cat "${dir}/log")"
! grep 'Waiting for another perf' "${dir}/log" || fail "perf waits for itself"
perf record -q -o "${dir}/data" -e cpu-clock/name=a.o/,cpu-clock/name=b.bpf.o/ -- true \
	> "${dir}/log" 2>&1 || fail "events that are named so: $(cat "${dir}/log")"

# Programs that libbpf attaches, beside: they share the maps, and go with the events
build beside <<- 'EOF'
	int at_exec, at_point, optional;

	SEC("tp/sched/sched_process_exec")
	int exec(void *ctx)
	{
		__sync_fetch_and_add(&at_exec, 1);
		return 0;
	}

	SEC("?tp/sched/sched_process_exec")
	int not_loaded(void *ctx)
	{
		__sync_fetch_and_add(&optional, 1);
		return 0;
	}

	SEC("perf_event")
	int never(void *ctx)
	{
		return 0;
	}

	SEC("exec=" PROGRAM ";beside=in_first value")
	int beside(void *ctx, int err, long value)
	{
		__sync_fetch_and_add(&at_point, at_exec > 0);
		return 1;
	}
EOF
perf record -o "${dir}/data" --bpf-prog-maps -e "${dir}/beside.bpf.o" -- "${program}" \
	> "${dir}/log" 2>&1 || fail "beside: $(cat "${dir}/log")"
grep -q '^at_exec = (int)[1-9]' "${dir}/log" && grep -q '^at_point = (int)[1-9]' "${dir}/log" &&
	grep -q '^optional = (int)0' "${dir}/log" ||
	fail "programs beside those at points: $(cat "${dir}/log")"
grep -q 'beside.bpf.o: never, SEC("perf_event"), is not attached.*--bpf-prog' "${dir}/log" ||
	fail "nothing is said of a program that does not run: $(cat "${dir}/log")"
build cannot <<- 'EOF'
	SEC("tp/sched/there_is_no_such_event")
	int nowhere(void *ctx)
	{
		return 0;
	}

	SEC("exec=" PROGRAM ";cannot=in_first value")
	int cannot(void *ctx, int err, long value)
	{
		return 1;
	}
EOF
perf record -o "${dir}/data" -e "${dir}/cannot.bpf.o" -- "${program}" > "${dir}/log" 2>&1 &&
	fail "a program that cannot be attached is recorded"
grep -q 'cannot.bpf.o: nowhere, SEC("tp/sched/there_is_no_such_event").*cannot be attached' \
	"${dir}/log" || fail "$(cat "${dir}/log")"
none_left "behind programs of libbpf's"

# What cannot be loaded says why, and leaves nothing behind
build refused <<- 'EOF'
	SEC("exec=" PROGRAM ";refused=in_first value")
	int refused(void *ctx, int err, long value)
	{
		return *(int *)value;
	}
EOF
if perf record -o "${dir}/data" -e "${dir}/refused.bpf.o" -- "${program}" \
	> "${dir}/log" 2>&1; then
	fail "a program that the verifier refuses is recorded"
fi
for text in "R[0-9] invalid mem access 'scalar'" \
	    'refused.bpf.o: refused, SEC(.*cannot be loaded'; do
	grep -q "${text}" "${dir}/log" || fail "no '${text}' in: $(cat "${dir}/log")"
done
none_left "behind a program that was refused"

# What the kernel refuses, in its words
while read -r arguments reason; do
	build reason <<- EOF
		SEC("exec=" PROGRAM ";reason=in_first $(tr ';' ' ' <<< "${arguments}")")
		int reason(void *ctx)
		{
			return 1;
		}
	EOF
	perf record -q -o "${dir}/data" -e "${dir}/reason.bpf.o" -- "${program}" \
		> "${dir}/log" 2>&1 && fail "'${arguments}' is recorded"
	grep -q "the kernel refuses a probe at in_first+0: .*(.*${reason}" "${dir}/log" ||
		fail "'${arguments}', no '${reason}' in: $(cat "${dir}/log")"
done <<- 'EOF'
	value;value already used
	same=value;same=value already used
	value=$retval not available
EOF
none_left "behind what the kernel refused"

# The number of parameters
build few <<- 'EOF'
	SEC("exec=" PROGRAM ";few=in_first value")
	int few(void *ctx, long value)
	{
		return value == 11;
	}
EOF
perf record -o "${dir}/data" -e "${dir}/few.bpf.o" -- "${program}" > "${dir}/log" 2>&1 &&
	fail "a program without the error flag is recorded"
grep -q 'has 2 parameters.*an error flag' "${dir}/log" || fail "$(cat "${dir}/log")"
for parameters in "int err, void *ctx, long value" "void *ctx, void *err, long value" \
		  "void *ctx, int err, float value"; do
	build few <<- EOF
		SEC("exec=" PROGRAM ";few=in_first value")
		int few(${parameters})
		{
			return 1;
		}
	EOF
	perf record -o "${dir}/data" -e "${dir}/few.bpf.o" -- "${program}" > "${dir}/log" 2>&1 &&
		fail "a program with the parameters ${parameters} is recorded"
	grep -q 'parameter . of the program has to be' "${dir}/log" || fail "$(cat "${dir}/log")"
done
build context <<- 'EOF'
	SEC("exec=" PROGRAM ";context=in_first value")
	int context(void *ctx)
	{
		return 1;
	}
EOF
same "the context alone" "$(record context)" "context value=11"

# Children that are forked while perf starts: those that a plain event sees, which is opened
# and disabled behind that of the program, the program has seen as well
cat > "${dir}/forker.c" <<- 'EOF'
	#include <sys/wait.h>
	#include <unistd.h>

	__attribute__((noinline, noclone)) void take(long value)
	{
		asm volatile("" :: "r" (value) : "memory");
	}

	int main(void)
	{
		for (;;) {
			if (!fork()) {
				for (int i = 0; i < 20; i++) {
					take(getpid());
					usleep(100000);
				}
				_exit(0);
			}
			usleep(10000);
			while (waitpid(-1, NULL, WNOHANG) > 0)
				continue;
		}
	}
EOF
gcc -O2 -g -o "${dir}/forker" "${dir}/forker.c"
sed -i '/FORKER/d' "${dir}/start.h"
echo "#define FORKER \"${dir}/forker\"" >> "${dir}/start.h"
build take <<- 'EOF'
	SEC("exec=" FORKER ";take=take value")
	int take(void *ctx, int err, long value)
	{
		return value != 0;
	}
EOF
perf probe -q -x "${dir}/forker" "${group}:plain=take value" 2> /dev/null
"${dir}/forker" &
forker=$!
sleep 0.5
perf record -q -o "${dir}/data" -e "${dir}/take.bpf.o" -e "${group}:plain" -p "${forker}" \
	-- sleep 2 > "${dir}/log" 2>&1 || fail "perf record -p: $(cat "${dir}/log")"
kill "${forker}"
pkill -f "${dir}/forker" || true
wait "${forker}" 2> /dev/null || true
perf script -i "${dir}/data" -F pid,event 2> /dev/null |
	awk -v plain="${group}:plain:" '
		$2 == plain { hits[$1]++; next }
		{ seen[$1] }
		END {
			# not one that has run only between the ends of the two events
			for (pid in hits) {
				nr += hits[pid] > 3
				missing += hits[pid] > 3 && !(pid in seen)
			}
			print (nr > 30), missing + 0
		}' > "${dir}/counts"
same "more than 30 children, and those that the program has missed" \
	"$(cat "${dir}/counts")" "1 0"
perf probe -q -d "${group}:*" > /dev/null 2>&1

suffix=$$	# of this test's sleeps, which outlive a perf that is killed
# However perf ends
for signal in INT TERM HUP KILL; do
	perf record -q -o "${dir}/data" -e "${dir}/values.bpf.o" -a -- sleep "61.${suffix}" \
		> "${dir}/log" 2>&1 &
	perf=$!
	for ((i = 0; i < 600; i++)); do
		perf_fds=$(find "/proc/${perf}/fd" -lname anon_inode:bpf-prog 2> /dev/null |
			   wc -l)
		((perf_fds > 5)) && break
		sleep 0.1
	done
	((perf_fds > 5)) || fail "perf record has no programs: $(cat "${dir}/log")"
	kill -"${signal}" "${perf}"
	wait "${perf}" 2> /dev/null || true
	none_left_soon "behind SIG${signal}"
done
pkill -KILL -f "sleep 61.${suffix}" || true

# If that process is killed, perf removes them
perf record -q -o "${dir}/data" -e "${dir}/values.bpf.o" -- sleep 2 > "${dir}/log" 2>&1 &
for ((i = 0; i < 100; i++)); do
	keepers > /dev/null && break
	sleep 0.1
done
pkill -KILL -x perf-bpf-probes -P $! || fail "no process that removes the events"
wait $! || fail "perf record, whose other process is killed: $(cat "${dir}/log")"
none_left "behind a process that was killed"

# Whenever it ends, in its first second or so
for ((n = 0; n < 12; n++)); do
	signals=(INT TERM KILL QUIT)
	signal=${signals[RANDOM % 4]}
	delay=0.$((RANDOM % 900 + 100))
	perf record -q -o "${dir}/data" -e "${dir}/values.bpf.o" -- sleep 2 > "${dir}/log" 2>&1 &
	sleep "${delay}"
	kill -"${signal}" $! || true
	wait $! 2> /dev/null || true
	none_left_soon "behind SIG${signal} after ${delay} s"
done

# A thread is ended, while another one waits for samples
perf top --stdio -d 1 -e "${dir}/fault.bpf.o" 2> /dev/null < /dev/null | head -n 3 > "${dir}/log"
none_left_soon "behind perf top and SIGPIPE"

# An option behind the event is wrong
perf record -e "${dir}/fault.bpf.o" --no-such-option > "${dir}/log" 2>&1 || true
none_left_soon "behind a wrong option"

# Two at once have events of the same name, and the second one leaves that of the first,
# as it is: with each of its points
build many <<- 'EOF'
	SEC("exec=" PROGRAM ";many=in_*")
	int many(void *ctx, int err)
	{
		return 1;
	}
EOF
perf record -q -o "${dir}/first" -e "${dir}/many.bpf.o" -a -- sleep "61.${suffix}" \
	> "${dir}/log" 2>&1 &
first=$!
for ((i = 0; i < 600; i++)); do
	pgrep -f "^sleep 61.${suffix}" > /dev/null && break
	sleep 0.1
done
same "beside another perf" "$(record many)" "many
many
many"
"${program}"
kill -INT "${first}"
wait "${first}" || true
same "that one, of two runs" "$(perf script -i "${dir}/first" -F event | wc -l)" 6
none_left "behind two at once"

exit ${err}
