# SPDX-License-Identifier: GPL-2.0
"""Where the System V ABI has the arguments of the functions that BTF describes.

For tests on this machine and in the guest: types as bpftool prints them, of vmlinux and
of its functions by address (Documentation/bpf/btf_func.rst of the kernel's tree).
"""
from __future__ import annotations

import json
import re
import subprocess
from typing import Any, Dict, List

# As perf probe and tracefs name them
REGISTERS = ["%di", "%si", "%dx", "%cx", "%r8", "%r9"]
# By their numbers in DWARF: System V ABI, AMD64, figure 3.36
DWARF_REGISTERS = ["%ax", "%dx", "%cx", "%bx", "%si", "%di", "%bp", "%sp",
                   *(f"%r{number}" for number in range(8, 16))]
MODIFIERS = ("TYPEDEF", "CONST", "VOLATILE", "RESTRICT", "TYPE_TAG")
Type = Dict[str, Any]


class Types:
    """BTF of vmlinux, and split BTF over it.

    base and own are the types of these, as dictionaries of bpftool's JSON.
    """

    def __init__(self, bpftool: str, vmlinux: str, split: str) -> None:
        """CalledProcessError: bpftool cannot read one of these files."""
        self.base = self.dump(bpftool, vmlinux)
        self.own = self.dump(bpftool, split, "-B", vmlinux)
        self.by_id = {entry["id"]: entry for entry in self.base + self.own}

    @staticmethod
    def dump(bpftool: str, *args: str) -> List[Type]:
        """The types that a file has."""
        done = subprocess.run([bpftool, "-j", "btf", "dump", "file", *args], check=True,
                              stdout=subprocess.PIPE)
        return list(json.loads(done.stdout)["types"])

    def words(self, type_id: int) -> int:
        """How many words a parameter takes; of more than two, it is on the stack."""
        kind = self.by_id.get(type_id, {"kind": "VOID"})
        while kind["kind"] in MODIFIERS:
            kind = self.by_id.get(kind["type_id"], {"kind": "VOID"})
        return int(kind["size"] + 7) // 8 if kind["kind"] in ("STRUCT", "UNION", "INT") else 1

    def params(self, func: Type) -> List[Type]:
        """The parameters of a FUNC."""
        return list(self.by_id[func["type_id"]]["params"])

    def places(self, func: Type) -> Dict[str, str]:
        """Where each parameter of a FUNC is, at least its first word."""
        register = 1 if self.words(self.by_id[func["type_id"]]["ret_type_id"]) > 2 else 0
        places, stack = {}, 0
        for param in self.params(func):
            if not param["type_id"]:    # "..."
                break
            words = self.words(param["type_id"])
            if words <= 2 and register + words <= len(REGISTERS):
                places[param["name"]] = REGISTERS[register]
                register += words
            else:
                places[param["name"]] = f"+{8 * stack + 8}(%sp)"
                stack += words
        return places

    def is_unknown(self, func: Type) -> bool:
        """Whether this FUNC of .BTF.func says that nothing is known: "void f(...)"."""
        proto = self.by_id[func["type_id"]]
        return proto["ret_type_id"] == 0 and [p["type_id"] for p in proto["params"]] == [0]

    def entries(self) -> List[Type]:
        """Which FUNCs are where: the elements of the LOCSECs."""
        return [loc for entry in self.own if entry["kind"] == "LOCSEC" for loc in entry["locs"]]

    def locations(self, entry: Type) -> Dict[str, str]:
        """Where the parameters of an entry of entries() are, as its LOC_PROTO says; of a
        parameter in two registers the first one."""
        found = {}
        func = self.by_id[entry["func_type_id"]]
        locs = self.by_id[entry["loc_proto_type_id"]]["params"]
        for param, loc in zip(self.params(func), locs):
            match = re.fullmatch(r"reg(\d+)(?:, reg\d+)?|\*\(reg7 \+ (0x\w+)\)", loc["value"])
            if match and match[1]:
                found[param["name"]] = DWARF_REGISTERS[int(match[1])]
            elif match:
                found[param["name"]] = f"+{int(match[2], 16)}(%sp)"
        return found

    def tags(self, func: Type, key: str) -> List[str]:
        """What the tags of a FUNC say that begin with a key."""
        return [entry["name"][len(key):] for entry in self.own
                if entry["kind"] == "DECL_TAG" and entry["type_id"] == func["id"] and
                entry["name"].startswith(key)]
