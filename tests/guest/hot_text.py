#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Make kernel text that comes and goes, and run it hot meanwhile.

  hot_text.py SECONDS [MODULE.ko]

One process for each source: BPF programs, seccomp filters, kprobes, ftrace
trampolines, and a module if there is one. Prints how many rounds each made;
exit status 1 if one made none.
"""

import ctypes
import os
import pathlib
import struct
import subprocess
import sys
import time
from typing import Callable, Dict, List

LIBC = ctypes.CDLL(None, use_errno=True)
TRACEFS = pathlib.Path("/sys/kernel/tracing")
SYS_BPF = 321
BPF_PROG_LOAD, BPF_PROG_TEST_RUN = 5, 10
BPF_PROG_TYPE_SCHED_CLS = 3
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
RUNS = 100000
CALLS = 3000


def bpf_insn(code: int, regs: int = 0, off: int = 0, imm: int = 0) -> bytes:
    """One instruction of eBPF; `regs` is source << 4 | destination."""
    return struct.pack("<BBhi", code, regs, off, imm)


def bpf(command: int, attr: bytes) -> int:
    """The system call; raises OSError."""
    buffer = ctypes.create_string_buffer(attr, len(attr))
    result = LIBC.syscall(SYS_BPF, command, buffer, len(attr))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return result


def load_program() -> int:
    """A program whose subprogram multiplies for a while; its descriptor."""
    code = (bpf_insn(0x85, regs=0x10, imm=1)             # call the subprogram
            + bpf_insn(0x95)                             # exit
            + bpf_insn(0xb7, regs=0x00, imm=1)           # r0 = 1
            + bpf_insn(0x27, regs=0x00, imm=31) * 200    # r0 *= 31
            + bpf_insn(0x95))
    insns = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"GPL")
    return bpf(BPF_PROG_LOAD, struct.pack(
        "<IIQQIIQII16s", BPF_PROG_TYPE_SCHED_CLS, len(code) // 8,
        ctypes.addressof(insns), ctypes.addressof(licence), 0, 0, 0, 0, 0,
        b"hot_text"))


def bpf_round() -> None:
    """Load a program, run it, unload it."""
    fd = load_program()
    packet = ctypes.create_string_buffer(64)
    bpf(BPF_PROG_TEST_RUN, struct.pack(
        "<IIIIQQII", fd, 0, 64, 0, ctypes.addressof(packet), 0, RUNS, 0))
    os.close(fd)


def call_often(call: Callable[[], object]) -> None:
    """A cheap system call, again and again. Each source has one of its own:
    qemu's emulation does not always see that another CPU patched the code it
    runs, and then the kernel meets an int3 that it has removed."""
    for _ in range(CALLS):
        call()


def seccomp_child() -> None:
    """Install a long filter and run it; ends the process. It looks at an
    argument, as seccomp remembers what it may skip: filters of the number."""
    insn = struct.Struct("<HBBI")
    code = (insn.pack(0x20, 0, 0, 16)                    # load an argument
            + insn.pack(0x15, 0, 0, 0x7fffffff) * 300    # compare it in vain
            + insn.pack(0x06, 0, 0, 0x7fff0000))         # allow
    insns = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("<H6xQ", len(code) // 8, ctypes.addressof(insns))
    arg = ctypes.create_string_buffer(program, len(program))
    failed = (LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
              or LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, arg))
    if not failed:
        call_often(os.getppid)
    os._exit(bool(failed))


def seccomp_round() -> None:
    """A child under a filter that goes with it."""
    child = os.fork()
    if not child:
        seccomp_child()
    _, status = os.waitpid(child, 0)
    if status:
        raise OSError(f"the filter's child ended with status {status}")


def kprobe_event(command: str) -> None:
    """Add or remove one; an open that truncates would remove them all."""
    fd = os.open(TRACEFS / "kprobe_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, command.encode() + b"\n")
    finally:
        os.close(fd)


def kprobe_round() -> None:
    """A probe inside a function, where its detour is out of line."""
    for offset in range(5, 32):     # behind what ftrace owns
        try:
            kprobe_event(f"p:hot/probe __x64_sys_getpgrp+{offset}")
            break
        except OSError:             # not the start of an instruction
            continue
    enable = TRACEFS / "events/hot/probe/enable"
    enable.write_text("1")
    call_often(os.getpgrp)
    enable.write_text("0")
    kprobe_event("-:hot/probe")


def ftrace_round() -> None:
    """An instance with the function tracer, and so with a trampoline."""
    instance = TRACEFS / "instances/hot_text"
    instance.mkdir()
    try:
        (instance / "set_ftrace_filter").write_text("loadavg_proc_show\n")
        (instance / "current_tracer").write_text("function")
        call_often(os.getloadavg)
        (instance / "current_tracer").write_text("nop")
    finally:
        instance.rmdir()


def module_round(path: str) -> None:
    """Load a module and unload it."""
    subprocess.run(["insmod", path], check=True)
    subprocess.run(["rmmod", pathlib.Path(path).stem], check=True)


def work(round_: Callable[[], None], end: float) -> int:
    """Rounds until `end`; their number."""
    rounds = 0
    while time.monotonic() < end:
        round_()
        rounds += 1
    return rounds


def run_sources(sources: Dict[str, Callable[[], None]], seconds: float) -> bool:
    """A process for each source; False if one made no round."""
    end = time.monotonic() + seconds
    children: List[tuple] = []
    for name, round_ in sources.items():
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.write(writer, str(work(round_, end)).encode())
            os._exit(0)
        os.close(writer)
        children.append((name, reader))
    good = True
    for name, reader in children:
        rounds = os.read(reader, 16).decode() or "0"
        print(f"{name}: {rounds} rounds", flush=True)
        good &= rounds != "0"
    return good


def main() -> int:
    """Entry: 0 when each source made a round, 1 otherwise."""
    sources = {"bpf": bpf_round, "seccomp": seccomp_round,
               "kprobe": kprobe_round, "ftrace": ftrace_round}
    if len(sys.argv) > 2:
        sources["module"] = lambda: module_round(sys.argv[2])
    return not run_sources(sources, float(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
