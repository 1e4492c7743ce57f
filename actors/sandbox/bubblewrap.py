"""Finds the bubblewrap that builds sandboxes, and refuses one that cannot; blocking."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Set as AbstractSet
from typing import Final

from pmagent.actors.sandbox.launch import Launch, start
from pmagent.actors.sandbox.spec import SandboxUnavailable

NEEDED: Final = frozenset((
    "--args", "--bind-fd", "--ro-bind-fd", "--ro-bind-data", "--perms", "--size", "--tmpfs", "--remount-ro",
    "--seccomp", "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "--clearenv",
    "--json-status-fd", "--unshare-cgroup-try", "--block-fd",
))  # fmt: skip
"""Options that bubblewrap must know to build the sandbox of a tool."""

_SECONDS: Final = 30.0

_Program = tuple[str, int, int, int, int]
_FOUND: Final[dict[str, str]] = {}
"""``PATH``, and the good bubblewrap that was found along it."""
_OPTIONS: Final[dict[_Program, set[str]]] = {}
"""The options of programs that were asked once and did, and are the same still."""
_BUILDS: Final[dict[tuple[_Program, tuple[str, ...]], bool]] = {}
"""Whether such a program builds a sandbox with these options."""


def bubblewrap(needed: AbstractSet[str] = NEEDED) -> str:
    """The path of a bubblewrap that knows all that is needed; blocks. Raises SandboxUnavailable; OSError where that
    could not be found out."""
    path = _FOUND.get(os.environ.get("PATH", ""))
    if path is None or not os.access(path, os.X_OK):
        path = shutil.which("bwrap")
    if path is None:
        raise SandboxUnavailable(
            "bubblewrap is not installed, and no tool runs without it", "apt-get install bubblewrap (0.8 or newer)"
        )
    program = _identified(path)
    if needed <= _OPTIONS.get(program, set()):
        return path
    try:
        help_text = subprocess.run(
            [path, "--help"], capture_output=True, text=True, env={}, check=False, timeout=_SECONDS,
            start_new_session=True,  # Ctrl-C in a terminal says nothing about it
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise _silent() from error
    options = set((help_text.stdout + help_text.stderr).split())
    if help_text.returncode or not needed <= options:
        raise SandboxUnavailable(
            f"{path} is too old or no bubblewrap: it lacks {', '.join(sorted(needed - options)) or 'everything'}",
            "apt-get install bubblewrap (0.8 or newer)",
        )
    _OPTIONS[program] = options
    _FOUND[os.environ.get("PATH", "")] = path
    return path


def builds(launch: Launch) -> bool:
    """Whether bubblewrap can build this wall here, so that its command ends well; an answer is asked for once. Raises
    OSError where there is none (no memory, no time): that is no reason to go without a wall, now or later."""
    asked = (_identified(launch.program[0]), tuple(launch.options))
    if asked not in _BUILDS:
        with start(launch, subprocess.DEVNULL) as process:
            try:
                process.communicate(timeout=_SECONDS)
            except subprocess.TimeoutExpired as error:
                raise _silent() from error
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
        _BUILDS[asked] = process.returncode == 0
    return _BUILDS[asked]


def _identified(path: str) -> _Program:
    status = os.stat(path)
    return path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _silent() -> TimeoutError:
    return TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
