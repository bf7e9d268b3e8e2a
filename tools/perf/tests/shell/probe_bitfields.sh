#!/bin/bash
# perf probe: bit-fields
# SPDX-License-Identifier: GPL-2.0
#
# Compilers write the place of a bit-field in two ways: DW_AT_bit_offset, up to DWARF 4,
# counts from the most significant bit of an integer, DW_AT_data_bit_offset from the
# start of the structure. Record bit-fields of a program that was built with each, and
# compare what perf script prints with what the program wrote to them.

set -e

# shellcheck source=lib/probe.sh
. "$(dirname "$0")"/lib/probe.sh

skip_if_no_uprobes_in_c || exit 2

dir=$(mktemp -d /tmp/perf-probe-bitfields.XXXXXX)
group=perf_bitfields_$$
# The union and the packed structure have no bytes behind their bit-fields
fields=("first=f->in.first" "last=f->in.last" "across=f->in.across" "wide=f->in.wide"
	"byte=f->in.byte" "low=f->un.low" "anon=f->anon" "packed=f->packed.field"
	"bits=f->packed.bits" "crossing=f->bytes.crossing" "own=f->packed.bits:u8"
	"plain=f->plain")
expected="first=5 last=17 across=101 wide=78187493530 byte=171 low=9 anon=33 packed=77 bits=6"
expected+=" crossing=11"
# A type of the user's is for the byte that the compiler declared, the first; DWARF 5 has none
own=([4]=105 [5]=26)

cleanup()
{
	trap - EXIT TERM INT
	perf probe -q -d "${group}:*" > /dev/null 2>&1 || true
	[[ ${dir} == /tmp/perf-probe-bitfields.* ]] && rm -rf "${dir}"
}

trap cleanup EXIT
trap 'cleanup; exit 1' TERM INT

cat > "${dir}/fields.c" <<- 'EOF'
	struct fields {
		char pad;
		struct {
			unsigned first:3, last:5, across:7;
			unsigned long wide:40;
			unsigned byte:8;
		} in;
		union {
			unsigned low:4;
			int all;
		} un;
		struct {
			unsigned before:2, anon:6;
		};
		struct {
			unsigned before:3, field:7, bits:3;
		} __attribute__((packed)) packed;
		/* crosses the bytes that it is declared as: a negative offset in DWARF 4 */
		struct {
			unsigned char before:7, crossing:4;
		} __attribute__((packed)) bytes;
		unsigned plain;
	};

	__attribute__((noinline)) int probed(struct fields *f)
	{
		asm volatile("" ::: "memory");
		return f->plain;
	}

	int main(void)
	{
		struct fields f = {
			.in = { .first = 5, .last = 17, .across = 101, .wide = 78187493530,
				.byte = 171 },
			.un = { .low = 9 },
			.before = 2, .anon = 33,
			.packed = { .before = 1, .field = 77, .bits = 6 },
			.bytes = { .before = 85, .crossing = 11 },
			.plain = 7,
		};

		return probed(&f) != 7;
	}
EOF

err=0
for version in 4 5; do
	program=${dir}/fields${version}
	gcc -w -O1 "-gdwarf-${version}" -o "${program}" "${dir}/fields.c"
	perf probe -q -x "${program}" "${group}:dwarf${version}=probed" "${fields[@]}" || {
		echo "FAIL: no event of DWARF ${version}"
		err=1
		continue
	}
	perf record -q -o "${dir}/data" -e "${group}:dwarf${version}" "${program}"
	said=$(perf script -i "${dir}/data" -F trace:trace)
	echo "DWARF ${version}:${said#*)}"
	[[ ${said#*) } == "${expected} own=${own[version]} plain=0x7" ]] || {
		echo "FAIL: not ${expected} own=${own[version]} plain=0x7"
		err=1
	}
done
exit ${err}
