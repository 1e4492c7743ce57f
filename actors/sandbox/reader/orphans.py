"""Ends what killed processes have left of walls that they were building; blocking.

bubblewrap binds its outer half to us before it lets its inner half go on: killed between the two, the inner one waits
for ever, and has started nothing (docs/threat-model.md). It is process 1 of its namespace, without a child, and its
parent, the outer half, is gone. Nothing that lives looks so, whoever runs audits beside us.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Final

PROGRAM: Final = "bwrap"
_OURS: Final = b"actors.sandbox.reader.limits"
"""Stands in the command of everything that is run behind a wall."""


def end_cut_off() -> int:
    """Kill every such process of this user; how many there were."""
    found = 0
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            handle = os.pidfd_open(int(name))
        except OSError:  # it has ended, or is a thread
            continue
        try:
            # Looked at with the handle in hand: while that is of a living process, the number is nobody else's.
            if _is_cut_off(name):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    found += 1
        finally:
            os.close(handle)
    return found


def _is_cut_off(pid: str) -> bool:
    try:
        if os.path.basename(os.readlink(f"/proc/{pid}/exe")) != PROGRAM or _OURS not in _read(f"/proc/{pid}/cmdline"):
            return False
        told = dict(line.split(b":\t", 1) for line in _read(f"/proc/{pid}/status").splitlines() if b":\t" in line)
        first = told[b"NSpid"].split()[1:] == [b"1"]  # of a namespace of its own, one below ours
        return first and not _read(f"/proc/{pid}/task/{pid}/children") and not _is_program(told[b"PPid"].decode())
    except (OSError, KeyError):  # it has ended, or is another user's
        return False


def _is_program(pid: str) -> bool:
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == PROGRAM
    except OSError:  # gone, another user's, or outside of our namespace: no outer half of ours
        return False


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
