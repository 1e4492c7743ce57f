"""The command line for tests: in this process, with what it wrote; or as a process of its own
(``tests.support.warm``)."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pmagent.cli.app import run
from pmagent.cli.output import Output
from pmagent.console.auth import operators
from pmagent.console.paths import ConsolePaths
from pmagent.events.disk import RealDisk
from pmagent.events.errors import NotFound, PmagentError
from pmagent.events.segments import SegmentReader
from pmagent.workspace.layout import Layout
from pmagent.workspace.trust import accept
from pmagent.workspace.user_registry import Registry, describe
from tests.support import warm

PMAGENT = [sys.executable, "-I", "-m", "pmagent"]
SECONDS = 120.0
"""Nothing here takes so long; a test that would wait for ever fails instead."""


class Ran(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Its output on stdout."""
        return self.out.decode()

    @property
    def errors(self) -> str:
        """Its output on stderr."""
        return self.err.decode()

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return msgspec.json.decode(self.out)

    @property
    def lines(self) -> list[str]:
        """The lines on stdout."""
        return self.text.splitlines()


def invoke(*arguments: str, environ: Mapping[str, str] | None = None) -> Ran:
    """Run a command in this process, its output piped; of the environment it sees ``environ`` alone."""
    out, err = _Stream(), _Stream()
    given = environ or {}
    code = run(arguments, Output(out, err, given), given)
    return Ran(int(code), out.getvalue(), err.getvalue())


def accepted(workspace: Path) -> Path:
    """``workspace``, with its configuration accepted as it lies there now."""
    if workspace.is_dir():
        with suppress(PmagentError, OSError):  # what it cannot be accepted for is the command's to say
            accept(workspace)
    return workspace


def owned(workspace: Path) -> Path:
    """``workspace``, which was copied or made by hand, with its configuration and operators accepted, and its log, if
    there is one, registered as it lies there: as if it had been begun there."""
    layout = Layout(workspace)
    listed = ConsolePaths(layout).operators
    if listed.is_file():
        operators.accept(listed, listed.read_bytes())
    with suppress(NotFound), closing(SegmentReader(RealDisk(), str(layout.log))) as storage:
        Registry().note(workspace, describe(layout, storage.log_id(), storage.tail()))
    return accepted(workspace)


def pmagent(workspace: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> Ran:
    """``invoke`` on ``workspace``, whose configuration is accepted."""
    accepted(workspace)
    return invoke(*arguments, environ={"PMAGENT_WORKSPACE": str(workspace), **(environ or {})})


class _Stream(io.BytesIO):
    """A stream without a descriptor, as ``Output`` takes it."""

    def fileno(self) -> int:
        """There is none. Raises ValueError."""
        raise ValueError("no descriptor")


def clean_environment(**more: str) -> dict[str, str]:
    """This process's environment without settings of ours, and with ``more``. Daemons serve no console, which few
    tests look at and each start would pay for, unless ``more`` says so."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PMAGENT_")}
    return {**kept, "PMAGENT_CONSOLE_ENABLED": "false", **more}


def spawn(*arguments: str, cwd: Path, **more: str) -> Ran:
    """Run a command as a process in ``cwd``, an accepted workspace, with ``more`` in its environment."""
    accepted(cwd)
    done = warm.run(
        [*PMAGENT, *arguments], cwd=cwd, env=clean_environment(**more), capture_output=True, check=False,
        stdin=subprocess.DEVNULL, timeout=SECONDS,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


_IN_TURN = """
import shlex, sys
from pmagent.cli.app import run
for line in sys.argv[1:]:
    if code := run(shlex.split(line)):
        sys.exit(f"{line}: exit {code}")
    print(end=chr(30), flush=True)
"""


def in_turn(lines: Iterable[str]) -> list[str]:
    """Arguments of a Python that runs these lines of arguments of pmagent, one behind the other: what each imports
    takes longer than what it does. It fails where one does; ``answers`` parts what it wrote."""
    return ["-c", _IN_TURN, *lines]


def answers(written: str) -> list[str]:
    """The files that each line wrote."""
    return written.split(chr(30))[:-1]
