"""Giving way to the daemon: pages wait for the log, never the log for pages (sched(7), sched_setattr(2)).

Niceness says how much of a busy processor a process gets, and nothing of when it lets go of it: who runs keeps it for a
slice, while the daemon, awake for a tenth of a millisecond's work, waits. A process that says that its slices are long
is let go on later, and has to make place at once for who has short ones (Linux 6.12 and newer; older ones take no
notice). All that counts among the processes of one session only, where the kernel schedules sessions as groups.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from typing import Final

SLICE_NS: Final = 10_000_000
"""Ten milliseconds; what has not said otherwise has about one."""

_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
_ATTRIBUTES: Final = struct.Struct("IIQiIQQQII")
"""struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period, two clamps."""


def give_way(niceness: int, policy: int = os.SCHED_OTHER) -> None:
    """Be nice, and let go of a processor as soon as the daemon wants it, or the kernel for the daemon. ``policy``: one
    of those that have slices, SCHED_OTHER, SCHED_BATCH, SCHED_IDLE."""
    os.nice(niceness)
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None:
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    wish = _ATTRIBUTES.pack(_ATTRIBUTES.size, policy, 0, nice, 0, SLICE_NS, 0, 0, 0, 0)
    ctypes.CDLL(None).syscall(number, 0, wish, 0)  # a wish: where it is not granted, niceness is what there is
