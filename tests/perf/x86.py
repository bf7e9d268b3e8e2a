# SPDX-License-Identifier: GPL-2.0
"""A few x86-64 instructions, each of which is seen at once for what it is.

mov(0x1111) disassembles to `movl $0x1111, %eax` and is in no other function, so
that a test which finds it knows whose bytes were decoded.
"""
from __future__ import annotations

import struct

RET = b"\xc3"
NOP = b"\x90"
TEST_EAX = b"\x85\xc0"


def mov(value: int) -> bytes:
    """`mov $value, %eax`, 5 bytes (struct.error: value is over 32 bits)."""
    return b"\xb8" + struct.pack("<I", value)


def call(at: int, target: int) -> bytes:
    """`call target` for the address at, 5 bytes (struct.error: over 2 GB away)."""
    return b"\xe8" + struct.pack("<i", target - at - 5)


def jmp(at: int, target: int) -> bytes:
    """`jmp target` for the address at, 5 bytes (struct.error: over 2 GB away)."""
    return b"\xe9" + struct.pack("<i", target - at - 5)


def je(skip: int) -> bytes:
    """`je` over the next skip bytes (-128 to 127), 2 bytes."""
    return b"\x74" + struct.pack("<b", skip)
