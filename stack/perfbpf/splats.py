# SPDX-License-Identifier: GPL-2.0
"""Which lines of a kernel's log, a console or kmemleak's list are complaints."""
from __future__ import annotations

import re

# Start of a kernel message, after "[   12.345678]" and a caller id if any.
SPLAT = re.compile(r"""^(?:\[[^\]]*\]\s*)*(?:
      WARNING:
    | (?:watchdog:\s)?BUG:
    | (?:\w+:\s)*kernel\ BUG\ at
    | Oops\b | .*\bOops:\ [0-9a-f]{4}
    | (?:traps:\s)?general\ protection\ fault
    | Kernel\ panic
    | ={3,}\ WARNING
    | .*(?:possible\ circular\ locking|inconsistent\ lock\ state
        |possible\ recursive\ locking|suspicious\ RCU\ usage
        |DEBUG_LOCKS_WARN_ON)
    | (?:.*\s)?KASAN: | UBSAN: | KCSAN: | KFENCE:
    | (?:rcu:\s)?INFO:.*(?:stall|blocked\ for\ more\ than)
    | (?:rcu:\s)?.*detected\ stalls?\ on
    | kmemleak:\ (?:Memory\ pool\ empty|Kernel\ memory\ leak\ detector\ disabled)
    )""", re.VERBOSE)
DEATH = re.compile(r"Kernel panic - not syncing|end Kernel panic")
# An assertion of QEMU itself. The debug kernel's boot under TCG of 10.0.2 once ended with
# "hw/pci/msix.c: msix_table_mmio_read: Assertion `addr + size <= ...' failed", while the
# kernel sized a device's BAR. The cause is unknown; possibly another CPU's timer read went
# to what the BAR covered at that moment.
QEMU_ASSERTION = re.compile(r"qemu-system-\S+: .*Assertion .* failed")


def find_splats(log: str) -> list[str]:
    """Return the lines of a kernel's log that are complaints."""
    return [line for line in log.splitlines() if SPLAT.match(line)]


def find_leaks(kmemleak: str) -> list[str]:
    """Return one line for each object of kmemleak's list."""
    return [line for line in kmemleak.splitlines() if line.startswith("unreferenced object")]
