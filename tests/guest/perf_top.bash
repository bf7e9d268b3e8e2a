# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# For tests that type into perf top --stdio and read what it prints; sourced.

trap '' PIPE	# perf top may have ended: what it said is shown

dir=$(mktemp -d)
running=()
trap 'kill "${running[@]}" 2>/dev/null; kill -CONT "${running[@]}" 2>/dev/null; rm -rf "$dir"' EXIT
mkfifo "$dir/keys"

# start_top ARG...: leaves its process number in $top; $delay seconds between tables, or one
start_top()
{
	stdbuf -oL perf top --stdio -d "${delay:-1}" -e cpu-clock "$@" <"$dir/keys" >>"$dir/shown" 2>&1 &
	top=$!
	running+=("$top")
	exec 3>"$dir/keys"
	until_shown '[0-9]%.*\[k\]'
}

# until_shown PATTERN: perf top prints a table each $delay seconds, on a slow machine later
until_shown()
{
	local i

	for ((i = 0; i < 480; i++)); do
		grep -qE "$1" "$dir/shown" && return
		sleep 0.5
	done
	echo "perf top did not show $1 in 240 s; its last lines:"
	tail -n 40 "$dir/shown"
	return 1
}

# until_said PATTERN KEYS: types the keys, again if "Sorry, SYMBOL is not active." or
# "Couldn't annotate SYMBOL", as the kernel may still be unloading its program, each time
# behind a new table. Before that, perf top would drop one of the letters and take the
# others for keys.
until_said()
{
	local i

	for ((i = 0; i < 20; i++)); do
		: >"$dir/shown"
		until_shown PerfTop: || return
		printf '%s\n' "$2" >&3
		until_shown "$1|Sorry, |Couldn't annotate" || return
		grep -qE "$1" "$dir/shown" && return
		grep -E "Sorry, |Couldn't annotate" "$dir/shown"
	done
	tail -n 40 "$dir/shown"
	return 1
}
