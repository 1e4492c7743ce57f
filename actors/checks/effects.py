"""The checker's contact with the world: runs a program of the workspace, behind the wall (docs/checks.md).

The program sees the workspace without ``.pmagent``, and cannot change it; it has no network. Its output is kept as
plain text, whole up to a bound: the intake masks secrets before anything is cut from it.
"""

from __future__ import annotations

import math
import os
import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from pmagent.actors.checks.text import plain
from pmagent.actors.core.actor import Io, Performers
from pmagent.actors.sandbox.artifacts import remove
from pmagent.actors.sandbox.programs import found, git_folder
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Limits, Outcome, SandboxRefused, SandboxSpec, SandboxUnavailable, with_programs
from pmagent.contracts.checks import OUTPUT_BYTES_MAX, CheckRan, CheckRunRequested, CheckUnstarted
from pmagent.contracts.orchestra import Program
from pmagent.events.event import Event
from pmagent.events.evidence import external_evidence

HIDDEN: Final = ".pmagent"
"""Not a check's business: the log, the settings, and the daemon's socket."""
FOLDER: Final = f"{HIDDEN}/checks"
"""Where the folders lie that runs may write into, while they run."""

_TMP_BYTES: Final = 256 * 2**20
_FILE_BYTES: Final = 64 * 2**20
_CORES: Final = 16
"""Processor time beyond what so many cores can give is none that the time limit would leave."""


async def run_check(event: Event, io: Io) -> CheckRan | CheckUnstarted:
    """Performer of check.run_requested. A check that cannot start is an outcome; failed cleanup raises."""
    asked: CheckRunRequested = event.data
    root = await anyio.to_thread.run_sync(os.path.realpath, str(io.workspace))
    folder = f"{root}/{FOLDER}/{event.position}"
    try:
        await anyio.to_thread.run_sync(_make, folder)
        hidden = await anyio.to_thread.run_sync(external_evidence, Path(root))
        programs = await anyio.to_thread.run_sync(found, asked.argv[:1], root, (), (root, *asked.reads))
        git = await anyio.to_thread.run_sync(git_folder, root)
        outcome = await run(check_spec(root, folder, asked, hidden, programs, git))
    except (SandboxRefused, SandboxUnavailable) as refusal:
        return CheckUnstarted(request=event.position, text=refusal.message, mend=refusal.hint)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(remove, folder)
    return ran(event.position, outcome)


PERFORMERS: Final[Performers] = {CheckRunRequested: run_check}


def check_spec(
    root: str, folder: str, asked: CheckRunRequested, hidden: tuple[str, ...] = (), programs: Sequence[Program] = (),
    git: str = "",
) -> SandboxSpec:
    """The sandbox of a check: the workspace at ``root`` to read, ``folder`` to write, and no network. A program named
    by a relative path with a slash lies in the workspace. ``programs`` and ``git`` as for a task."""
    program, *arguments = asked.argv
    if "/" in program:
        program = posixpath.normpath(posixpath.join(root, program))
    spec = SandboxSpec(
        argv=(program, *arguments),
        workdir=root,
        allow_read=(root, *asked.reads),
        hide=(f"{root}/{HIDDEN}", *hidden),
        # git looks at nothing in a repository that belongs to somebody else than the one who asks.
        env={"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": root},
        artifacts=folder,
        limits=Limits(
            seconds=asked.seconds,
            output_bytes=OUTPUT_BYTES_MAX,
            tmp_bytes=_TMP_BYTES,
            file_bytes=_FILE_BYTES,
            artifact_bytes=_FILE_BYTES,
            cpu_seconds=math.ceil(asked.seconds) * _CORES,
        ),
    )
    return with_programs(spec, programs, git)


def ran(request: int, outcome: Outcome) -> CheckRan:
    """The outcome as the log keeps it."""
    return CheckRan(
        request=request, exit_code=outcome.exit_code, signal=outcome.signal, timed_out=outcome.timed_out,
        duration_ms=round(outcome.seconds * 1000), stdout=plain(outcome.stdout, cut=outcome.stdout_cut),
        stderr=plain(outcome.stderr, cut=outcome.stderr_cut), cut=outcome.stdout_cut or outcome.stderr_cut,
        exceeded=outcome.exceeded, unenforced=list(outcome.unenforced),
    )


def _make(folder: str) -> None:
    """The folder, empty: what a process that was killed has left is gone since the start. Blocking. Raises OSError."""
    Path(folder).parent.mkdir(mode=0o700, exist_ok=True)
    os.mkdir(folder, mode=0o700)
