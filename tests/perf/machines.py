# SPDX-License-Identifier: GPL-2.0
"""Machines that a recording can be from, and a few of their instructions.

Each can load a constant below 0x800 into a register, and a disassembler shows the
constant. loads_in() finds these in what perf prints, so that a test which finds
them knows that the code was decoded for its machine.
"""
from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Callable

import x86
from perfdata import Machine


@dataclass(frozen=True)
class Target:
    """A machine, where its kernel puts BPF code, and instructions."""
    machine: Machine
    text: int
    load: Callable[[int], bytes]
    nop: bytes
    ret: bytes

    def __str__(self) -> str:
        return self.machine.arch


def _word(order: str, value: int) -> bytes:
    return struct.pack(order + "I", value)


def _powerpc(arch: str, order: str) -> Target:
    return Target(Machine(arch, order, 0xc000000000000000), 0xc008000000001000,
                  lambda value: _word(order, 0x38600000 | value),       # li r3, value
                  _word(order, 0x60000000), _word(order, 0x4e800020))


X86_64 = Target(Machine(), 0xffffffffc0001000, x86.mov, x86.NOP, x86.RET)
AARCH64 = Target(Machine("aarch64", "<", 0xffff800080000000), 0xffff80007a000000,
                 lambda value: _word("<", 0x52800000 | value << 5),     # mov w0, #value
                 _word("<", 0xd503201f), _word("<", 0xd65f03c0))
PPC64 = _powerpc("ppc64", ">")
PPC64LE = _powerpc("ppc64le", "<")
RISCV64 = Target(Machine("riscv64", "<", 0xffffffff80000000), 0xffffffff78001000,
                 lambda value: _word("<", 0x513 | value << 20),         # li a0, value
                 b"\x01\x00", b"\x82\x80")                              # compressed
S390X = Target(Machine("s390x", ">", 0x3ffe0000000), 0x3ff80001000,
               lambda value: b"\xa7\x28" + struct.pack(">H", value),    # lhi %r2, value
               b"\x07\x00", b"\x07\xfe")


def loads_in(text: str) -> list[int]:
    """Return the constant of each load, in order."""
    found = re.findall(r"\b(?:movl|movz|mov|li|lhi)\s[^\n]*?(?:0x([0-9a-f]+)|\b(\d{2,}))", text)
    return [int(hexadecimal, 16) if hexadecimal else int(decimal)
            for hexadecimal, decimal in found]
