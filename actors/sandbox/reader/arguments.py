"""A bubblewrap sandbox for a process that reads untrusted input: it sees the interpreter, the system's libraries and
its input, cannot write, and has no network; blocking."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from typing import Final

from pmagent.actors.sandbox.bubblewrap import bubblewrap, builds
from pmagent.actors.sandbox.launch import Launch
from pmagent.actors.sandbox.reader import limits
from pmagent.actors.sandbox.spec import SYSTEM, SandboxUnavailable

_SYSTEM: Final = (*SYSTEM, "/etc/ld.so.cache", "/etc/alternatives")
NEEDED: Final = frozenset((
    "--args", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "--symlink", "--ro-bind", "--dev",
    "--dev-bind", "--remount-ro", "--chdir",
))  # fmt: skip
"""Options that bubblewrap must know to build this sandbox."""

BECOME: Final = f"from {limits.__name__} import main; main()"
"""The statement by which an interpreter becomes a module with few means."""

_START: Final = "import sys; sys.path += [at for at in sys.argv.pop(1).split(':') if at not in sys.path]; {}"

ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/"}
"""All that the process has of an environment."""


UNSANDBOXED: Final = "bubblewrap is missing or builds no wall here: read within limits of time and memory alone"
"""The note on a result that was read without a sandbox."""


def bubblewrap_options(readable: Sequence[str], devices: Sequence[str] = ()) -> tuple[str, ...]:
    """Bubblewrap and its options for a program that sees the absolute paths ``readable`` at their places and may use
    the device files ``devices``; empty where this machine has no bubblewrap that can build such a sandbox. Raises
    OSError where that could not be found out."""
    try:
        program = bubblewrap(NEEDED)
    except SandboxUnavailable:
        return ()
    # The probe also shows whether Python finds this package inside.
    probe = Launch((program,), _options((), ()), isolated(f"import {limits.__name__}"), environment=ENVIRONMENT)
    return (program, *_options(readable, devices)) if builds(probe) else ()


def _options(readable: Sequence[str], devices: Sequence[str]) -> tuple[str, ...]:
    options = ["--unshare-all", "--new-session", "--cap-drop", "ALL"]
    for path in _SYSTEM:
        if os.path.islink(path):
            options += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            options += ["--ro-bind", path, path]
    for path in (*_interpreter(), *readable):
        options += ["--ro-bind", path, path]
    options += ["--dev", "/dev"]
    for path in devices:
        options += ["--dev-bind", path, path]
    return (*options, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/")


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
