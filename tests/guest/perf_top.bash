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
	perf top --stdio -d "${delay:-1}" -e cpu-clock "$@" <"$dir/keys" >"$dir/shown" 2>&1 &
	top=$!
	running+=("$top")
	exec 3>"$dir/keys"
	until_shown '[0-9]%.*\[k\]'
}

# until_shown PATTERN [KEYS]: perf top prints a table each second, on a slow machine
# later. The keys are for what has samples, and typed again until it has.
until_shown()
{
	local i

	for ((i = 0; i < 480; i++)); do
		grep -qE "$1" "$dir/shown" && return
		if [[ -n ${2-} ]] && ((i % 10 == 0)); then
			printf '%s\n' "$2" >&3
		fi
		sleep 0.5
	done
	echo "perf top did not show $1 in 240 s; its last lines:"
	tail -n 40 "$dir/shown"
	return 1
}
