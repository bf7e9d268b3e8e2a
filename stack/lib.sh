# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034 # most variables are for the scripts that source this
# What every script of the stack shares: where things are, how a stage is run
# and told, how a script fails. Sourced, never run.

set -euo pipefail

TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# Another build directory is for another disk, and for the stack's own tests.
BUILD=$(realpath -ms -- "${PERF_BPF_BUILD:-$TOP/build}")
[[ ! ${PERF_BPF_BUILD-} ]] || export PERF_BPF_BUILD=$BUILD
BASE_VERSION=$(<"$TOP/BASE")
# The distribution's python: the one that has the distribution's modules.
PYTHON3=/usr/bin/python3
# What runs the QEMU that stack/setup unpacked, where the system's is too old.
QEMU_UNPACKED=$BUILD/tools/qemu/qemu-system-x86_64
# Elapsed times count from the outermost command, so nested scripts inherit it.
export PERF_BPF_T0=${PERF_BPF_T0:-$(date +%s)}

# die MSG...: one line to stderr, exit status 1.
die()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# elapsed: minutes and seconds since the outermost command began.
elapsed()
{
	local t=$(($(date +%s) - PERF_BPF_T0))

	printf '%d:%02d' $((t / 60)) $((t % 60))
}

# say MSG...: one line of progress.
say()
{
	printf '==> [%s] %s\n' "$(elapsed)" "$*"
}

# stage NAME CMD...: run CMD with its output in build/logs/NAME.log.
# CMD may be a function; it runs in a subshell of its own with `set -e`.
# On failure: the end of the log, its path, and CMD's status as ours.
stage()
{
	local name=$1 log=$BUILD/logs/$1.log status=0 t0

	shift
	t0=$(date +%s)
	mkdir -p "$BUILD/logs"
	say "$name (log: ${log#"$TOP"/})"
	# Not `|| status=$?`: that would switch off errexit inside CMD.
	set +e
	(
		set -e
		"$@"
	) >"$log" 2>&1 </dev/null
	status=$?
	set -e
	if ((status)); then
		{
			printf -- '--- the last lines of %s:\n' "$log"
			tail -n 20 "$log"
			printf -- '--- %s failed after %d s with status %d; whole log: %s\n' \
				"$name" $(($(date +%s) - t0)) "$status" "$log"
		} >&2
		exit "$status"
	fi
	printf '    %s: done in %d s\n' "$name" $(($(date +%s) - t0))
}

# lock NAME: one run at a time for what NAME protects; held until exit.
# Children inherit the descriptor, which is why a stage must not leave any.
lock()
{
	local file=$BUILD/locks/$1 fd

	mkdir -p "$BUILD/locks"
	exec {fd}>"$file"
	flock -n "$fd" && return
	say "waiting for another run that holds ${file#"$TOP"/}"
	flock "$fd"
}

# clean_git ARGS...: git without the user's and the machine's configuration,
# so that what it writes is the same everywhere.
clean_git()
{
	GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null \
		git -c safe.directory='*' -c gc.auto=0 -c core.hooksPath=/dev/null "$@"
}

# need_space DIR MEGABYTES WHAT: stop early, with one line, when DIR is too full.
# PERF_BPF_NEED_MB replaces MEGABYTES (the stack's own tests).
need_space()
{
	local dir=$1 need=${PERF_BPF_NEED_MB:-$2} what=$3 free

	free=$(($(df --output=avail -k "$dir" | tail -n 1) / 1024))
	((free >= need)) ||
		die "$what needs $need MB in $dir, which has $free MB free:" \
		    "make room, or put build/ on another disk (PERF_BPF_BUILD=DIR)"
}

# table FILE: the lines of a list of stack/ that are neither empty nor a comment.
table()
{
	grep -v '^ *\(#\|$\)' "$TOP/stack/$1"
}

# out_dir KIND NAME: the directory of an output, by its line in stack/outputs.
out_dir()
{
	local directory

	directory=$(table outputs | awk -v kind="$1" -v name="$2" \
		'$1 == kind && $2 == name { print $3 }')
	[[ $directory ]] || die "stack/outputs has no $1 of the name $2: it has" \
		"$(table outputs | awk -v kind="$1" '$1 == kind { print $2 }' | paste -sd' ')"
	printf '%s\n' "$BUILD/$directory"
}

# perfbpf MODULE ARGS...: run a module of the Python package in stack/perfbpf.
perfbpf()
{
	local module=$1

	shift
	PYTHONPATH=$TOP/stack "$PYTHON3" -B -m "perfbpf.$module" "$@"
}

# vng_cmd: put the command that runs virtme-ng into the array VNG:
# the user's own, else the one that stack/setup unpacked under build/tools.
vng_cmd()
{
	local root=$BUILD/tools/virtme-ng

	if command -v vng >/dev/null; then
		VNG=(vng)
	elif [[ -e $root/usr/bin/vng ]]; then
		VNG=(env "PYTHONPATH=$root/usr/lib/python3/dist-packages"
		     "PATH=$root/usr/bin:$PATH" "$PYTHON3" "$root/usr/bin/vng")
	else
		die "virtme-ng is missing: no \`vng\` on PATH, nothing in $root; run \`make setup\`"
	fi
}

# with_ccache: compile through ccache where it has its compiler links. Times,
# users and build directories stay out of the objects, so that a clean build
# of the same sources hits.
with_ccache()
{
	local links

	for links in /usr/lib/ccache /usr/lib64/ccache; do
		[[ -d $links ]] && PATH=$links:$PATH && break
	done
	export PATH CCACHE_BASEDIR=$TOP CCACHE_NOHASHDIR=1
	# the tree's absolute path, which this option takes out of the objects
	export CCACHE_IGNOREOPTIONS='-fmacro-prefix-map=*'
	export CCACHE_SLOPPINESS=time_macros,include_file_ctime,include_file_mtime
	export KBUILD_BUILD_TIMESTAMP=2000-01-01 KBUILD_BUILD_USER=perf-bpf KBUILD_BUILD_HOST=perf-bpf
}

# source_of series|base: put the kernel tree to build into SRC, making it
# if need be.
source_of()
{
	case $1 in
	base)
		"$TOP/stack/base"
		SRC=$BUILD/base ;;
	*)
		"$TOP/stack/tree"
		SRC=$BUILD/linux ;;
	esac
}

# sources_key DIR FILE...: one number for all a build of the git tree DIR
# depends on: its commit, what is not committed, the compiler, and FILEs.
sources_key()
{
	local dir=$1

	shift
	{
		clean_git -C "$dir" rev-parse 'HEAD^{tree}'
		clean_git -C "$dir" diff HEAD
		clean_git -C "$dir" ls-files -z -o --exclude-standard |
			(cd "$dir" && xargs -0 -r sha256sum)
		gcc --version
		sha256sum "$@"
	} | sha256sum | cut -d' ' -f1
}

# stamped OUT KEY: was OUT completely built from what KEY stands for?
stamped()
{
	[[ -f $1/.perf-bpf-stamp && $(<"$1/.perf-bpf-stamp") == "$2" ]]
}

# stamp OUT KEY DIR FILE...: note that OUT is complete, unless what KEY stands
# for (DIR and FILEs, as for sources_key) was edited while it was built.
stamp()
{
	local out=$1 key=$2

	shift 2
	if [[ $(sources_key "$@") == "$key" ]]; then
		printf '%s\n' "$key" >"$out/.perf-bpf-stamp"
	else
		echo "$1 changed while it was built, so the next run looks at it again"
	fi
}
