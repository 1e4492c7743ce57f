"""A lower priority than the daemon's: pages wait for the log, never the log for pages (sched(7), sched_setattr(2)).

Niceness sets a process's share of a busy processor, not when it yields: a running process keeps its slice while the
daemon waits with a tenth of a millisecond's work. A process with long slices runs later, and yields at once to those
with short ones (Linux 6.12 and newer; older kernels ignore it). All this counts only within one session where the
kernel schedules sessions as groups.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from typing import Final

SLICE_NS: Final = 10_000_000
"""Ten milliseconds; the default is about one."""

_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
_ATTRIBUTES: Final = struct.Struct("IIQiIQQQII")
"""struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period, two clamps."""


def lower_priority(niceness: int, policy: int = os.SCHED_OTHER) -> None:
    """Add ``niceness``, and yield a processor as soon as the daemon needs it, or the kernel on its behalf. ``policy``:
    one that has slices, SCHED_OTHER, SCHED_BATCH or SCHED_IDLE."""
    os.nice(niceness)
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None:
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, policy, 0, nice, 0, SLICE_NS, 0, 0, 0, 0)
    ctypes.CDLL(None).syscall(number, 0, attributes, 0)  # where it is refused, the niceness remains
