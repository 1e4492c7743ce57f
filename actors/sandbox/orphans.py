"""What a killed process has left of sandboxes that it was building; blocking.

bubblewrap binds its outer half to us before it lets its inner half go on: killed between the two, the inner one waits
for ever. It has started nothing. It is known by what it was handed opened: the folder of an attempt. Whoever holds the
log has no other process that runs sandboxes over its folders, so before it starts any, each such is left over.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Final

from actors.sandbox.spec import within

_PROGRAM: Final = "bwrap"


def end_orphans(folder: str) -> int:
    """Kill every bubblewrap of this user that holds something in ``folder`` (a real path); how many there were."""
    found = 0
    for pid in _programs():
        try:
            handle = os.pidfd_open(pid)
        except OSError:  # it has ended
            continue
        try:
            # Looked at with the handle in hand: while that is of a living process, the number is nobody else's.
            if _holds(pid, folder):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    found += 1
        finally:
            os.close(handle)
    return found


def _programs() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.path.basename(os.readlink(f"/proc/{name}/exe")) == _PROGRAM:
                    yield int(name)


def _holds(pid: int, folder: str) -> bool:
    try:
        handed = os.listdir(f"/proc/{pid}/fd")
    except OSError:  # it has ended, or is another user's
        return False
    for number in handed:
        with contextlib.suppress(OSError):
            path = os.readlink(f"/proc/{pid}/fd/{number}").removesuffix(" (deleted)")
            if within(path, folder):
                return True
    return False
