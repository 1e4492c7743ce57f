"""L2's contact with the world: asks the planner program once for a plan (docs/design.md §14.7); and L1's: a run's time.

It is the operator's own program, with the operator's login, so no wall keeps files from it; it is called without tools,
in an empty folder, with little of our environment (``claude_code``). It runs in a process namespace of its own, made by
bubblewrap; so nothing of it outlives the call, or this process, however either ends. System calls are filtered as a
tool's are, but for families of sockets: its login may be kept by a service of this user.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from typing import Final

import anyio
import anyio.to_thread

from pmagent.actors.core.actor import Io, Performers
from pmagent.actors.orchestra.planning import claude_code
from pmagent.actors.orchestra.planning.claude_code import ERR_BYTES_MAX, OUT_BYTES_MAX, Ended
from pmagent.actors.orchestra.running.form import ends_at
from pmagent.actors.sandbox import seccomp
from pmagent.actors.sandbox.arguments import Content
from pmagent.actors.sandbox.bubblewrap import bubblewrap
from pmagent.actors.sandbox.host import machine
from pmagent.actors.sandbox.launch import Launch, opened
from pmagent.actors.sandbox.process import SandboxProcess
from pmagent.actors.sandbox.spec import Limits, SandboxUnavailable
from pmagent.contracts.clock import TimerFired
from pmagent.contracts.orchestra_events import PlannerCallRequested, PlannerFailed, PlannerReplied, RunRequested
from pmagent.events.event import Event

GRACE_SECONDS: Final = 5.0
"""Between TERM and KILL."""

_HOLD: Final = ("--unshare-pid", "--new-session", "--dev-bind", "/", "/", "--proc", "/proc")
"""bubblewrap, as a holder of processes and no more: the machine as it is, but for the processes of others."""


async def ask(event: Event, io: Io) -> PlannerReplied | PlannerFailed:  # noqa: ARG001 - a performer's signature
    """Performer of planner.call_requested."""
    asked: PlannerCallRequested = event.data
    environment = claude_code.environment(os.environ)
    program = await anyio.to_thread.run_sync(_program, environment["PATH"])
    if program is None:
        return claude_code.not_installed(event.position, asked)
    try:
        bwrap = await anyio.to_thread.run_sync(bubblewrap)
        calls = seccomp.program(machine(), any_socket=True)
    except SandboxUnavailable as error:
        return claude_code.unheld(event.position, asked, error.message, error.hint)
    with anyio.CancelScope(shield=True):
        folder = await anyio.to_thread.run_sync(tempfile.mkdtemp, "", "pmagent-planner-")
    try:
        with ExitStack() as stack:
            options, handed = opened((*_HOLD, "--chdir", folder, "--seccomp", Content(calls)), stack)
            launch = Launch((bwrap,), options, (program, *claude_code.arguments(asked.model)), handed, environment)
            limits = Limits(seconds=asked.seconds, grace_seconds=GRACE_SECONDS, output_bytes=OUT_BYTES_MAX)
            process = SandboxProcess.start(launch, limits, tail=ERR_BYTES_MAX)
        try:
            await process.attend(prompt=asked.prompt.encode())
        finally:
            with anyio.CancelScope(shield=True):
                await process.end()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(shutil.rmtree, folder)
    if process.failure is not None:
        raise process.failure
    ended = Ended(
        exit_code=process.exit_code, timed_out=process.timed_out, too_long=bool(process.exceeded),
        stdout=process.stdout.content, stderr=process.stderr.content, seconds=process.seconds,
    )  # fmt: skip
    return claude_code.outcome(event.position, asked, ended)


async def keep_time(event: Event, io: Io) -> TimerFired:
    """Return when the run is over whose request ``event`` is."""
    await io.sleep_until(ends_at(event))
    return TimerFired(request=event.position, name=f"run {event.data.run_id}")


PERFORMERS: Final[Performers] = {PlannerCallRequested: ask, RunRequested: keep_time}


def _program(path: str) -> str | None:
    """The planner's program in one of the folders of ``path``; blocks."""
    return shutil.which(claude_code.PROGRAM, path=path)
