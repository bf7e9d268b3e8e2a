#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Does perf top know text that is no BPF program and was there before it? A task has
# had a seccomp filter for long, and spends its time there.
set -u

# shellcheck source=tests/guest/perf_top.bash
source "${BASH_SOURCE[0]%/*}/perf_top.bash"

# 2000 times A ^= 1, then allow; the numbers are those of linux/filter.h and linux/prctl.h
cat >"$dir/filtered.py" <<'END'
import ctypes, os, struct
code = struct.pack("HBBI", 0xa4, 0, 0, 1) * 2000 + struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000)
code = ctypes.create_string_buffer(code, len(code))
prog = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(code))
prog = ctypes.create_string_buffer(prog, len(prog))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, prog, 0, 0) == 0
print("filtered", flush=True)
while True:
    os.getppid()
END
coproc /usr/bin/python3 "$dir/filtered.py"
running+=("$COPROC_PID")
read -r said <&"${COPROC[0]}" && [[ $said == filtered ]] || exit 1
start_top -a || exit 1
# perf top drops old samples little by little: the filter is among the first in any table
until_shown '[0-9]%.*cbpf_prog_[0-9a-f]+' || exit 1
awk '/PerfTop:/ { last = table; table = "" } { table = table $0 "\n" } END { printf "%s", last }' \
	"$dir/shown" >"$dir/table"
nameless=$(grep -cE '%.* 0xf[0-9a-f]{15}' "$dir/table")
echo "the filter has a name; lines without a symbol: $nameless"
((nameless == 0)) || cat "$dir/table"
exit $((nameless > 0))
