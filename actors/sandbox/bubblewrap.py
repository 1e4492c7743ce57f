"""Finds the bubblewrap that builds the sandboxes, and refuses one that cannot build them; blocking."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Final

from actors.sandbox.spec import SandboxUnavailable

NEEDED: Final = (
    "--args", "--bind-fd", "--ro-bind-fd", "--ro-bind-data", "--perms", "--size", "--tmpfs", "--remount-ro",
    "--seccomp", "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "--clearenv",
    "--json-status-fd", "--unshare-cgroup-try", "--block-fd",
)  # fmt: skip
"""Options without which bubblewrap would not be the wall that is described here."""

_SUITABLE: Final[set[tuple[str, int, int, int, int]]] = set()
"""Programs that were asked once, and are the same still."""


def bubblewrap() -> str:
    """The path of a bubblewrap that knows all that is needed; blocks. Raises SandboxUnavailable."""
    path = shutil.which("bwrap")
    if path is None:
        raise SandboxUnavailable(
            "bubblewrap is not installed, and no tool runs without it", "apt-get install bubblewrap (0.8 or newer)"
        )
    status = os.stat(path)
    asked = (path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if asked in _SUITABLE:
        return path
    told = subprocess.run([path, "--help"], capture_output=True, text=True, env={}, check=False, timeout=30)
    lacking = sorted(set(NEEDED) - set((told.stdout + told.stderr).split()))
    if told.returncode or lacking:
        raise SandboxUnavailable(
            f"{path} is too old or no bubblewrap: it lacks {', '.join(lacking) or 'everything'}",
            "apt-get install bubblewrap (0.8 or newer)",
        )
    _SUITABLE.add(asked)
    return path
