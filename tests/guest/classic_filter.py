#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""classic_filter.py: hold a socket with a classic BPF filter until it is killed.

No bpf_prog_info has the code of the filter, and the memory in which programs are stays where
it is while there is one of them. Prints a line when the kernel has the filter's symbol.
"""
import ctypes
import socket
import struct
import time
from pathlib import Path

SO_ATTACH_FILTER, BPF_RET = 26, 6       # asm-generic/socket.h, linux/bpf_common.h


def main() -> None:
    """Attach a filter that accepts a byte of each packet."""
    code = ctypes.create_string_buffer(struct.pack("HBBI", BPF_RET, 0, 0, 1))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                        struct.pack("HP", 1, ctypes.addressof(code)))
        for _ in range(300):
            if " cbpf_prog_" in Path("/proc/kallsyms").read_text(encoding="ascii"):
                break
            time.sleep(0.1)
        print("attached", flush=True)
        time.sleep(1000)


if __name__ == "__main__":
    main()
