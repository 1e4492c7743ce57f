"""A wall of bubblewrap around a process that reads what others wrote: it sees the interpreter, the system's libraries
and what it is to read, cannot write, and has no network; blocking."""

from __future__ import annotations

import errno
import functools
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from typing import Final

_SYSTEM: Final = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/ld.so.cache",
    "/etc/alternatives",
)
_PROBE_SECONDS: Final = 30.0

_START: Final = "import sys; sys.path += [at for at in sys.argv.pop(1).split(':') if at not in sys.path]; {}"

ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/"}
"""All that the process has of an environment."""


UNWALLED: Final = "bubblewrap is missing or builds no wall here: read within limits of time and memory alone"
"""What is noted where there is no wall."""


def wall(readable: Sequence[str]) -> tuple[str, ...]:
    """What to put before a command so that it runs behind the wall, with the paths ``readable`` (absolute) to be seen
    at their places; empty where the machine has no bubblewrap that can build it. Raises OSError where that could not be
    found out."""
    program = shutil.which("bwrap")
    if program is None or not _builds(program):
        return ()
    return _options(program, readable)


def lending(walls: Sequence[str], devices: Sequence[str]) -> tuple[str, ...]:
    """The ``wall`` with these device files (absolute paths) behind it, to be used; ``walls`` as it is where there is
    none."""
    if not walls:
        return tuple(walls)
    at = list(walls).index("--remount-ro")
    return (*walls[:at], *(word for path in devices for word in ("--dev-bind", path, path)), *walls[at:])


def _options(program: str, readable: Sequence[str]) -> tuple[str, ...]:
    options = [program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    for path in _SYSTEM:
        if os.path.islink(path):
            options += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            options += ["--ro-bind", path, path]
    for path in (*_interpreter(), *readable):
        options += ["--ro-bind", path, path]
    return (*options, "--dev", "/dev", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--")


def _interpreter() -> list[str]:
    """Where Python and what it imports lie, outer folders before inner ones; only what the system's folders lack."""
    named = {sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.path.realpath(sys.executable))}
    named |= {sysconfig.get_path(which) for which in ("stdlib", "platstdlib", "purelib", "platlib")}
    named |= set(imported_from())
    found = {path for name in named for path in (os.path.abspath(name), os.path.realpath(name))}
    found = {path for path in found if os.path.exists(path) and not path.startswith("/usr/") and path != "/"}
    return sorted(found, key=lambda path: path.split("/"))


def imported_from() -> list[str]:
    """Where this program and its libraries are imported from. An isolated interpreter does not look into a user's own
    packages, and this may be one."""
    ours = os.path.abspath(os.path.join(os.path.dirname(__file__), *(os.pardir,) * len(__package__.split("."))))
    return [ours, *(path for path in sys.path if os.path.basename(path) in {"site-packages", "dist-packages"})]


def isolated(statement: str) -> tuple[str, ...]:
    """The command of an interpreter of its own that runs ``statement``; what is put behind it are its arguments."""
    return (sys.executable, "-I", "-c", _START.format(statement), os.pathsep.join(imported_from()))


@functools.cache
def _builds(program: str) -> bool:
    """Whether bubblewrap can build the wall here, and Python finds us behind it; an answer is asked for once. Raises
    OSError where there is none (no memory, no time): that is no reason to go without a wall, now or later."""
    probe = (*_options(program, ()), *isolated("import actors.sandbox.reader.limits"))
    try:
        ended = subprocess.run(
            probe, env=ENVIRONMENT, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=_PROBE_SECONDS, start_new_session=True,  # Ctrl-C in a terminal says nothing about the wall
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from error
    return ended.returncode == 0
