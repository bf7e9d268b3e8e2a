#!/bin/bash
# perf record filtering (by BPF) of children that are forked while perf starts
# SPDX-License-Identifier: GPL-2.0
#
# The children of a process that is recorded with -p inherit its events, and the
# filter with them. Test that this includes children that are forked while perf opens
# the events: with a filter that no sample passes, they must not have any sample.

set -e

err=0
forker=
perfdata=$(mktemp /tmp/__perf_test.perf.data.XXXXX)

cleanup() {
  trap - EXIT TERM INT
  # Its children are in its process group
  [ -z "${forker}" ] || kill -KILL -- "-${forker}" 2> /dev/null || :
  rm -f "${perfdata}" "${perfdata}".old
}

trap_cleanup() {
  cleanup
  exit 1
}
trap trap_cleanup EXIT TERM INT

skip() {
  echo "bpf-filter inherit test [Skipped $1]"
  cleanup
  exit 2
}

check_support() {
  # The filter of other users drops all samples of children
  [ "$(id -u)" = 0 ] || skip "not root"

  perf record -e task-clock --filter 'period > 1' -o /dev/null --quiet true \
	  > /dev/null 2>&1 || skip "missing BPF support"

  # Probe the kernel, not perf: this perf may be one that does not use it
  LC_ALL=C grep -q -a -w perf_event_open_bpf_prog /sys/kernel/btf/vmlinux ||
	  skip "kernel without attr.bpf_fd"
}

spin() {
  local i

  for ((i = 0; i < 2000; i++)); do
    :
  done
}

# Fork children all the time, at the lowest priority so that perf is not delayed:
# verifying the program takes some time.
fork_children() {
  local alive=0

  trap - EXIT TERM INT
  renice -n 19 -p "${BASHPID}" || :
  while :; do
    spin &
    alive=$((alive + 1))
    if [ "${alive}" -ge 4 ]; then
      wait -n
      alive=$((alive - 1))
    fi
  done
}

start_forker() {
  # In a process group of its own
  set -m
  fork_children > /dev/null 2>&1 &
  forker=$!
  set +m
  # Its end must not be reported
  disown "${forker}"
}

record_forker() {
  perf record -e task-clock -c 1000000 -p "${forker}" --filter "$1" \
	  -o "${perfdata}" -- sleep 0.5 > /dev/null 2>&1
}

# On a busy machine, half a second may be too short for a sample of a child
test_children_seen() {
  local attempt

  echo "Children are sampled"

  for attempt in 1 2 3 4 5; do
    if ! record_forker 'ip > 0'; then
      echo "Children are sampled [Failed record]"
      err=1
      return
    fi
    if perf script -i "${perfdata}" -F pid | grep -q -v -w "${forker}"; then
      echo "Children are sampled [Success] in attempt ${attempt}"
      return
    fi
  done
  echo "Children are sampled [Failed no sample of a child]"
  err=1
}

# Twice at least, and until a child has run for long enough to be dropped
test_children_filtered() {
  local attempt samples counted=

  echo "Children are filtered"

  for attempt in 1 2 3 4 5; do
    if ! record_forker 'pid == 1'; then
      echo "Children are filtered [Failed record]"
      err=1
      return
    fi
    samples=$(perf script -i "${perfdata}" -F pid | wc -l)
    if [ "${samples}" != 0 ]; then
      echo "Children are filtered [Failed ${samples} samples in attempt ${attempt}]"
      err=1
      return
    fi
    if perf report -i "${perfdata}" --stats | grep -q 'LOST_SAMPLES (BPF)'; then
      counted=1
      [ "${attempt}" = 1 ] || break
    fi
  done
  if [ -z "${counted}" ]; then
    echo "Children are filtered [Failed dropped samples are not counted]"
    err=1
    return
  fi
  echo "Children are filtered [Success] in ${attempt} attempts"
}

# The file descriptor of the program has no meaning to a reader of the file
test_attr() {
  echo "attr.bpf_fd is not in the file"

  if perf evlist -v -i "${perfdata}" | grep 'bpf_flags\|bpf_fd'; then
    echo "attr.bpf_fd is not in the file [Failed]"
    err=1
    return
  fi
  echo "attr.bpf_fd is not in the file [Success]"
}

check_support
start_forker

test_children_seen

if [ $err = 0 ]; then
  test_children_filtered
fi

if [ $err = 0 ]; then
  test_attr
fi

cleanup
exit $err
