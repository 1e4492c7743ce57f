"""Sandboxes that a killed process left behind or was building: found and ended; blocking.

bubblewrap binds its outer half to us before it lets its inner half go on: killed between the two, the inner one waits
for ever, and has started nothing (docs/threat-model.md). It is process 1 of its namespace, without a child, its outer
half is gone, and it was to die with who started it; nothing that lives looks so, whoever runs sandboxes beside us. What
is not yet that far is known by what it was handed opened, the folder of an attempt or a check: a process that holds the
log is the only one that runs sandboxes over its folders, so before it starts any, each such is left over.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pmagent.actors.sandbox.artifacts import remove
from pmagent.actors.sandbox.launch import BOUND
from pmagent.actors.sandbox.spec import within
from pmagent.events.tree import held

_PROGRAM: Final = "bwrap"
_OURS: Final = "\0".join(BOUND).encode()
"""Stands in the command line of every one that we start."""


def sweep(workspace: Path, *names: str) -> None:
    """End and remove what a process that was killed has left in the folders of these names in the workspace, and end
    what it has left of others; called while the log's lock is held and before anything begins. Raises OSError."""
    root = os.path.realpath(workspace)
    folders = [f"{root}/{name}" for name in names]
    end_orphans(*folders)
    for folder in folders:
        remove(folder)


def end_orphans(*folders: str) -> int:
    """Kill every bubblewrap of this user that holds something in ``folders`` (real paths), or was cut off; how many
    there were."""
    found = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if not _is_bubblewrap(pid):
            continue
        try:
            handle = os.pidfd_open(int(pid))
        except OSError:  # it has ended, or is a thread
            continue
        with held(handle):
            # Looked at with the handle in hand: while that is of a living process, the number is nobody else's.
            if _is_bubblewrap(pid) and (_holds(pid, folders) or _is_cut_off(pid)):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    found += 1
    return found


def _is_bubblewrap(pid: str) -> bool:
    """False also of what is gone, another user's, or outside of our namespace."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == _PROGRAM
    except OSError:
        return False


def _holds(pid: str, folders: Sequence[str]) -> bool:
    try:
        handed = os.listdir(f"/proc/{pid}/fd")
    except OSError:  # it has ended, or is another user's
        return False
    for number in handed:
        with contextlib.suppress(OSError):
            path = os.readlink(f"/proc/{pid}/fd/{number}").removesuffix(" (deleted)")
            if any(within(path, folder) for folder in folders):
                return True
    return False


def _is_cut_off(pid: str) -> bool:
    try:
        if _OURS not in Path(f"/proc/{pid}/cmdline").read_bytes():
            return False
        lines = Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines()
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        first = status["NSpid"].split()[1:] == ["1"]  # of a namespace of its own, one below ours
        return first and not Path(f"/proc/{pid}/task/{pid}/children").read_text() and not _is_bubblewrap(status["PPid"])
    except (OSError, KeyError):  # it has ended
        return False
