#!/bin/bash
# perf record: BPF programs for samples (--bpf-prog) (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# A program of a BPF object file runs for each sample of an event, also in children, and
# those for which it returns 0 are not recorded. With --filter both decide. Its maps are
# printed, and what is wrong with a program or an event is said.

set -e

# shellcheck source=lib/bpf_object.sh
. "$(dirname "$0")"/lib/bpf_object.sh
err=0 # fail() sets it

need_root
need_tools clang
need_features bpf_skeletons

dir=$(mktemp -d /tmp/perf-record-bpf-prog.XXXXXX)
pinned=/sys/fs/bpf/perf_filter
own_pinned=

cleanup()
{
	trap - EXIT TERM INT
	[[ -z ${own_pinned} ]] || perf record --setup-filter unpin > /dev/null 2>&1 || true
	[[ ${dir} == /tmp/perf-record-bpf-prog.* ]] && rm -rf "${dir}"
}

trap cleanup EXIT
trap 'cleanup; exit 1' TERM INT

# build NAME: NAME.bpf.o, of the source that is read
build()
{
	clang -O2 -g --target=bpf -x c -c -o "${dir}/$1.bpf.o" - || exit 1
}

build several <<- 'EOF'
	typedef unsigned int u32;
	typedef unsigned long long u64;
	#define SEC(name) __attribute__((section(name), used))

	char _license[] SEC("license") = "GPL";

	static void *(*lookup)(void *map, const void *key) = (void *)1;
	static long (*update)(void *map, const void *key, const void *value, u64 flags) =
		(void *)2;
	static u64 (*get_pid_tgid)(void) = (void *)14;
	static long (*get_comm)(void *buf, u32 size) = (void *)16;

	struct total {
		u64 samples;
		u32 tasks;
	};

	struct {
		int (*type)[2];		/* BPF_MAP_TYPE_ARRAY */
		u32 *key;
		struct total *value;
		int (*max_entries)[1];
	} totals SEC(".maps");

	struct {
		int (*type)[1];		/* BPF_MAP_TYPE_HASH */
		u32 *key;
		u32 *value;
		int (*max_entries)[64];
	} tasks SEC(".maps");

	struct {
		int (*type)[6];		/* BPF_MAP_TYPE_PERCPU_ARRAY */
		u32 *key;
		u64 *value;
		int (*max_entries)[1];
	} cpus SEC(".maps");

	struct {
		int (*type)[27];	/* BPF_MAP_TYPE_RINGBUF */
		int (*max_entries)[4096];
	} ring SEC(".maps");

	int dropped;
	char last_comm[16];

	SEC("perf_event")
	int all(void *ctx)
	{
		u32 zero = 0, one = 1, pid = get_pid_tgid();
		struct total *total = lookup(&totals, &zero);
		u64 *on_cpu = lookup(&cpus, &zero);

		if (!total || !on_cpu)
			return 0;
		if (!lookup(&tasks, &pid) && !update(&tasks, &pid, &one, 0))
			__sync_fetch_and_add(&total->tasks, 1);
		__sync_fetch_and_add(&total->samples, 1);
		(*on_cpu)++;
		get_comm(last_comm, sizeof(last_comm));
		return 1;
	}

	SEC("perf_event")
	int none(void *ctx)
	{
		__sync_fetch_and_add(&dropped, 1);
		return 0;
	}

	SEC("kprobe")
	int other(void *ctx)
	{
		return 0;
	}
EOF
several=${dir}/several.bpf.o

# Some children that run for a while
work='for i in 1 2 3; do (i=0; while ((i < 10000)); do ((++i)); done) & done; wait'

# record OPTION...: samples of the work, and what else perf says
record()
{
	perf record -o "${dir}/data" "$@" -- bash -c "${work}" > "${dir}/log" 2>&1 ||
		fail "perf record $*: $(cat "${dir}/log")"
	samples=$(perf script -i "${dir}/data" -F event 2> /dev/null | wc -l)
}

# said PATTERN: what the only group of the extended regular expression is in the log
said()
{
	sed -n -E "s/^$1\$/\1/p" "${dir}/log"
}

clock=(-e task-clock -c 1000000)
totals='totals\[\(u32\)0\] = \(struct total\)\{\.samples = \(u64\)'

record "${clock[@]}" --bpf-prog "${several}:all" --bpf-prog-maps
seen=$(said "${totals}([0-9]*),.*")
tasks=$(said ".*\.tasks = \(u32\)([0-9]*),}")
on_cpus=$(said 'cpus\[\(u32\)0\] on CPU [0-9]* = \(u64\)([0-9]*)' |
	  awk '{ sum += $1 } END { print sum + 0 }')
((samples > 0 && samples == seen && samples == on_cpus && tasks >= 3)) ||
	fail "${samples} samples, but: $(cat "${dir}/log")"
(($(grep -c '^tasks\[(u32)[0-9]*\] = (u32)1$' "${dir}/log") == tasks)) ||
	fail "${tasks} tasks, but: $(cat "${dir}/log")"
grep -q '^ring: its contents cannot be printed (map type ringbuf)$' "${dir}/log" ||
	fail "nothing about the ring buffer in: $(cat "${dir}/log")"
grep -q '^last_comm = .*"bash"$' "${dir}/log" || fail "no string in: $(cat "${dir}/log")"
echo "a program that keeps all samples: ${samples} in ${tasks} tasks"
perf evlist -v -i "${dir}/data" > "${dir}/log" 2>&1 || fail "perf evlist: $(cat "${dir}/log")"
grep -q task-clock "${dir}/log" || fail "perf evlist shows no event: $(cat "${dir}/log")"
! grep 'bpf_flags\|bpf_fd' "${dir}/log" || fail "a file descriptor is in perf.data"

record "${clock[@]}" --bpf-prog "${several}:none" --bpf-prog-maps
dropped=$(said 'dropped = \(int\)([0-9]*)')
((samples == 0 && dropped > 0)) || fail "${samples} samples, but: $(cat "${dir}/log")"
echo "a program that drops all: ${dropped}"

# One program for the events of one -e
record -e task-clock,cpu-clock -c 1000000 --bpf-prog "${several}:all" --bpf-prog-maps
seen=$(said "${totals}([0-9]*),.*")
((samples > 0 && samples == seen)) ||
	fail "${samples} samples of two events, but: $(cat "${dir}/log")"
echo "one program for two events: ${samples} samples"

# Two files, and an event without
record "${clock[@]}" --bpf-prog "${several}:none" -e cpu-clock
perf script -i "${dir}/data" -F event | grep -q task-clock && fail "the first event has samples"
perf script -i "${dir}/data" -F event | grep -q cpu-clock || fail "the second one has none"

# Both decide
record "${clock[@]}" --filter 'ip > 0' --bpf-prog "${several}:all" --bpf-prog-maps
seen=$(said "${totals}([0-9]*),.*")
((samples > 0 && samples == seen)) ||
	fail "a filter that passes all: ${samples} samples, but: $(cat "${dir}/log")"
record "${clock[@]}" --bpf-prog "${several}:all" --filter 'ip == 0' --bpf-prog-maps
seen=$(said "${totals}([0-9]*),.*")
((samples == 0)) && [[ -z ${seen} ]] && grep -q '^totals: all elements are 0$' "${dir}/log" ||
	fail "a filter that drops all: ${samples} samples, but: $(cat "${dir}/log")"
record "${clock[@]}" --filter 'ip > 0' --bpf-prog "${several}:none" --bpf-prog-maps
dropped=$(said 'dropped = \(int\)([0-9]*)')
((samples == 0 && dropped > 0)) ||
	fail "a filter before a program that drops: ${samples} samples, but: $(cat "${dir}/log")"
echo "with a filter: both decide"

# Without BTF there are bytes, and {...}:S takes samples of its leader only
cat > "${dir}/plain.c" <<- 'EOF'
	#define SEC(name) __attribute__((section(name), used))

	int seen;

	SEC("perf_event")
	int plain(void *ctx)
	{
		seen++;
		return 1;
	}
EOF
clang -O2 --target=bpf -c -o "${dir}/plain.bpf.o" "${dir}/plain.c"
record -e '{task-clock,cpu-clock}:S' -c 1000000 --bpf-prog "${dir}/plain.bpf.o" --bpf-prog-maps
((samples > 0)) || fail "no samples of a group: $(cat "${dir}/log")"
grep '^plain.bss = [0-9a-f ]*$' "${dir}/log" || fail "no bytes in: $(cat "${dir}/log")"

# Variables of the command line, in a file whose name has a comma; histograms; sorted entries
build 'a,b' <<- 'EOF'
	typedef unsigned int u32;
	typedef unsigned long long u64;
	#define SEC(name) __attribute__((section(name), used))

	static void *(*lookup)(void *map, const void *key) = (void *)1;
	static long (*update)(void *map, const void *key, const void *value, u64 flags) =
		(void *)2;

	const volatile int keep;
	const volatile u64 first_value = 1, second_value = 1;

	struct {
		int (*type)[6];		/* BPF_MAP_TYPE_PERCPU_ARRAY */
		u32 *key;
		u64 *value;
		int (*max_entries)[64];
	} cpu_hist SEC(".maps");

	struct {
		int (*type)[1];		/* BPF_MAP_TYPE_HASH */
		u32 *key;
		u64 *value;
		int (*max_entries)[8];
	} by_value SEC(".maps");

	struct pair {
		u32 a, b;
	};

	struct {
		int (*type)[1];		/* BPF_MAP_TYPE_HASH */
		u32 *key;
		struct pair *value;
		int (*max_entries)[8];
	} by_key SEC(".maps");

	struct {
		int (*type)[1];		/* BPF_MAP_TYPE_HASH */
		int *key;
		long long *value;
		int (*max_entries)[8];
	} negative SEC(".maps");

	struct slots {
		u32 slots[4];
	} wrapped_hist = { { 0, 1, 0, 3 } };

	u64 value_hist[64], no_hist[64], histogram[2];
	unsigned char bytes[4] = { 0, 5, 0, 9 };
	_Bool flags[3] = { 1, 0, 1 };

	static int log2(u64 value)
	{
		int slot;

		for (slot = 0; slot < 63 && value > 1; slot++)
			value >>= 1;
		return slot;
	}

	SEC("perf_event")
	int values(void *ctx)
	{
		u32 keys[] = { 3, 1, 2 };
		u64 numbers[] = { 20, 10, 30 };
		u32 slot = log2(first_value);
		u64 *counted = lookup(&cpu_hist, &slot);

		value_hist[log2(first_value)] = 4;
		value_hist[log2(second_value)] = 2;
		if (counted)
			*counted = 1;
		for (int i = -1; i < 2; i++) {
			long long number = i * 10;

			update(&negative, &i, &number, 0);
		}
		for (int i = 0; i < 3; i++) {
			struct pair pair = { i, i };

			update(&by_value, &keys[i], &numbers[i], 0);
			update(&by_key, &keys[i], &pair, 0);
		}
		return keep;
	}
EOF
# power EXPONENT: 2 to it, as "4K"
power()
{
	local unit=KMGTPE

	((10#$1 < 10)) || unit=${unit:$(($1 / 10 - 1)):1}
	((10#$1 >= 10)) || unit=
	echo "$((1 << $1 % 10))${unit}"
}
seed=${RANDOM}
RANDOM=${seed}
first=$((RANDOM % 40 + 1))
second=$((first + 1 + RANDOM % 3))
values="keep=1,first_value=$((1 << first)),second_value=$(((2 << second) - 1))"
record "${clock[@]}" --bpf-prog-maps --bpf-prog "${dir}/a,b.bpf.o,${values}"
((samples > 0)) || fail "keep=1 keeps no sample: $(cat "${dir}/log")"
echo "a histogram of 2^${first} and 2^${second}, seed ${seed}"
bar=$(printf '%40s' '' | tr ' ' @)
shown=$(sed -n '/^value_hist =/,/^[a-z]/p' "${dir}/log" | grep '^ ')
[[ $(head -1 <<< "${shown}" | tr -s ' ') == \
   " [$(power ${first}), $(power $((first + 1)))) 4 |${bar}|" &&
   $(tail -1 <<< "${shown}" | tr -s ' ') == \
   " [$(power ${second}), $(power $((second + 1)))) 2 |${bar:20} |" &&
   $(wc -l <<< "${shown}") == $((second - first + 1)) ]] || fail "histogram: ${shown}"
grep -A 1 '^cpu_hist =' "${dir}/log" | grep -q "\[$(power ${first}), .* [1-9][0-9]* |${bar}|" ||
	fail "the histogram of CPUs: $(cat "${dir}/log")"
grep -A 1 '^no_hist =' "${dir}/log" | grep -q 'all elements are 0' ||
	fail "an empty histogram: $(cat "${dir}/log")"
grep -q '^histogram = (u64\[2\])\[0,0,\]' "${dir}/log" || fail "$(cat "${dir}/log")"
[[ $(said 'by_value\[\(u32\)([0-9])\].*' | xargs) == "2 3 1" ]] ||
	fail "entries are not sorted by value: $(cat "${dir}/log")"
[[ $(said 'by_key\[\(u32\)([0-9])\].*' | xargs) == "1 2 3" ]] ||
	fail "entries are not sorted by key: $(cat "${dir}/log")"
[[ $(said 'negative\[\(int\)(-?[0-9])\].*' | xargs) == "1 0 -1" ]] ||
	fail "negative values are not sorted: $(cat "${dir}/log")"
grep -q '^bytes = .*\[0,5,0,9,\]$' "${dir}/log" && grep -q '^flags = .*\[1,0,1,\]$' "${dir}/log" ||
	fail "bytes that are no text: $(cat "${dir}/log")"
grep -A 3 '^wrapped_hist =' "${dir}/log" | grep -q '\[8, \.\.\.) *3 |@' ||
	fail "a histogram in a structure: $(cat "${dir}/log")"
record "${clock[@]}" --bpf-prog "${dir}/a,b.bpf.o:values,keep=0"
((samples == 0)) || fail "keep=0 keeps samples"

# A program that goes on to another one, a map that cannot be read, and one without entries
build tails <<- 'EOF'
	typedef unsigned int u32;
	#define SEC(name) __attribute__((section(name), used))

	char _license[] SEC("license") = "GPL";

	static void *(*lookup)(void *map, const void *key) = (void *)1;
	static long (*tail_call)(void *ctx, void *map, u32 index) = (void *)12;

	SEC("perf_event") int second(void *ctx);

	struct {
		int (*type)[3];		/* BPF_MAP_TYPE_PROG_ARRAY */
		u32 *key;
		int (*max_entries)[1];
		int (*values[])(void *);
	} next SEC(".maps") = { .values = { (void *)&second } };

	struct {
		int (*type)[2];		/* BPF_MAP_TYPE_ARRAY */
		u32 *key;
		u32 *value;
		int (*max_entries)[1];
		int (*map_flags)[16];	/* BPF_F_WRONLY */
	} unreadable SEC(".maps");

	struct {
		int (*type)[1];		/* BPF_MAP_TYPE_HASH */
		u32 *key;
		u32 *value;
		int (*max_entries)[1];
	} empty SEC(".maps");

	int hits;

	SEC("perf_event")
	int second(void *ctx)
	{
		__sync_fetch_and_add(&hits, 1);
		return 1;
	}

	SEC("perf_event")
	int first(void *ctx)
	{
		u32 zero = 0;

		lookup(&unreadable, &zero);
		lookup(&empty, &zero);
		tail_call(ctx, &next, 0);
		return 0;
	}
EOF
record "${clock[@]}" --bpf-prog "${dir}/tails.bpf.o:first" --bpf-prog-maps
((samples > 0 && samples == $(said 'hits = \(int\)([0-9]*)'))) ||
	fail "a tail call: ${samples} samples, but: $(cat "${dir}/log")"
grep '^unreadable: cannot be read: ' "${dir}/log" || fail "nothing of a map: $(cat "${dir}/log")"
grep '^empty: no entries$' "${dir}/log" || fail "nothing of a map: $(cat "${dir}/log")"

# refused TEXT OPTION...: perf does not record, and says why
refused()
{
	local text=$1

	shift
	if perf record -o "${dir}/data" "$@" -- true > "${dir}/log" 2>&1; then
		fail "perf record $* records"
	elif grep -q -- "${text}" "${dir}/log"; then
		grep -m 1 -- "${text}" "${dir}/log"
	else
		fail "perf record $*: no '${text}' in: $(cat "${dir}/log")"
	fi
}

build wrong <<- 'EOF'
	#define SEC(name) __attribute__((section(name), used))

	SEC("perf_event")
	int wrong(long *ctx)
	{
		return *(int *)*ctx;
	}
EOF
wrong=${dir}/wrong.bpf.o
refused "there is no global variable 'none'" "${clock[@]}" --bpf-prog "${several}:all,none=1"
refused 'has 2 such programs.*name one of these' "${clock[@]}" --bpf-prog "${several}"
refused 'has no program other for perf events' "${clock[@]}" --bpf-prog "${several}:other"
refused 'other, SEC("kprobe"): not for perf events' "${clock[@]}" --bpf-prog "${several}:no"
refused 'cannot be opened as a BPF object file' "${clock[@]}" --bpf-prog "${dir}/no.bpf.o"
refused 'should follow the -e' --bpf-prog "${wrong}"
refused 'an event runs one program' "${clock[@]}" --bpf-prog "${wrong}" --bpf-prog "${wrong}"
refused "R[0-9] invalid mem access 'scalar'" "${clock[@]}" --bpf-prog "${wrong}"
refused "wrong cannot be loaded" "${clock[@]}" --bpf-prog "${wrong}" --bpf-prog-maps
! grep 'Maps of' "${dir}/log" || fail "maps of a program that is not loaded"
refused 'no-bpf-prog. isn.t available' "${clock[@]}" --no-bpf-prog
if [[ -e /sys/kernel/tracing/events/sched/sched_switch ]]; then
	refused 'is a tracing event' -e sched:sched_switch --bpf-prog "${wrong}"
fi

# The pinned filter has no such program, and unpin leaves nothing, whatever it found
if mountpoint -q /sys/fs/bpf && [[ ! -e ${pinned} ]]; then
	own_pinned=1
	perf record --setup-filter unpin > "${dir}/log" 2>&1 && fail "unpin without a pinned filter"
	[[ ! -e ${pinned} ]] || fail "unpin leaves $(ls "${pinned}")"
	for turn in first second; do
		perf record --setup-filter pin > "${dir}/log" 2>&1 ||
			fail "${turn} pin: $(cat "${dir}/log")"
		# As after an unpin that was interrupted
		[[ ${turn} == first ]] || rm "${pinned}/perf_sample_filter" "${pinned}/filters"
		perf record --setup-filter unpin > "${dir}/log" 2>&1 ||
			fail "${turn} unpin: $(cat "${dir}/log")"
		[[ ! -e ${pinned} ]] || fail "unpin leaves $(ls "${pinned}")"
	done
	own_pinned=
else
	echo "/sys/fs/bpf is not mounted, or has a pinned filter: pin and unpin are not tested"
fi

exit ${err}
