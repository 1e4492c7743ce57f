"""L2's contact with the world: asks the planner program once for a plan (docs/design.md §14.7).

It is the operator's own program, with the operator's login, so no wall keeps files from it; it is called without tools,
in an empty folder, with little of our environment (``claude_code``). It runs in a process namespace of its own, made by
bubblewrap; so nothing of it outlives the call, or this process, however either ends. System calls are filtered as a
tool's are, but for families of sockets: its login may be kept by a service of this user.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
import anyio.to_thread
import msgspec

from actors.actor import Io, Performers
from actors.orchestra import claude_code
from actors.orchestra.claude_code import ERR_BYTES_MAX, OUT_BYTES_MAX, Ended
from actors.sandbox import host as ground
from actors.sandbox import seccomp
from actors.sandbox.bubblewrap import bubblewrap
from actors.sandbox.pid_namespace import PidNamespace
from actors.sandbox.process import in_memory
from actors.sandbox.spec import SandboxUnavailable
from contracts.orchestra_events import PlannerCallRequested, PlannerFailed, PlannerReplied
from events.event import Event

GRACE_SECONDS: Final = 5.0
"""Between TERM and KILL."""

_HOLD: Final = (
    "--die-with-parent", "--unshare-pid", "--new-session", "--dev-bind", "/", "/", "--proc", "/proc",
)  # fmt: skip
"""bubblewrap, as a holder of processes and no more: the machine as it is, but for the processes of others. When this
process is killed in the millisecond in which the namespace is made, half of bubblewrap may stay; it starts nothing."""

_CHUNK: Final = 64 * 1024
_LOOK_SECONDS: Final = 0.005


async def ask(event: Event, io: Io) -> PlannerReplied | PlannerFailed:  # noqa: ARG001 - a performer's signature
    """Performer of planner.call_requested."""
    asked: PlannerCallRequested = event.data
    environment = claude_code.environment(os.environ)
    program = await anyio.to_thread.run_sync(_program, environment["PATH"])
    if program is None:
        return claude_code.not_installed(event.position, asked)
    try:
        bwrap = await anyio.to_thread.run_sync(bubblewrap)
        calls = seccomp.program(ground.machine(), any_socket=True)
    except SandboxUnavailable as error:
        return claude_code.unheld(event.position, asked, error.message, error.hint)
    with anyio.CancelScope(shield=True):
        folder = await anyio.to_thread.run_sync(tempfile.mkdtemp, "", "pmagent-planner-")
    try:
        command = (bwrap, *_HOLD, "--chdir", folder)
        ended = await _asked(command, (program, *claude_code.arguments(asked.model)), environment, asked, calls)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(shutil.rmtree, folder)
    return claude_code.outcome(event.position, asked, ended)


PERFORMERS: Final[Performers] = {PlannerCallRequested: ask}


def _program(path: str) -> str | None:
    """The planner's program in one of the folders of ``path``; blocks."""
    return shutil.which(claude_code.PROGRAM, path=path)


async def _asked(
    holder: tuple[str, ...],
    command: tuple[str, ...],
    environment: dict[str, str],
    asked: PlannerCallRequested,
    calls: bytes,
) -> Ended:
    """Call it, with the filter ``calls``; when this returns or raises, nothing of it is alive."""
    with anyio.CancelScope(shield=True):
        call = await _Call.start(holder, command, environment, calls)
    try:
        await call.attend(asked.prompt.encode(), asked.seconds)
    finally:
        with anyio.CancelScope(shield=True):
            await call.end()
    return call.ended()


class _Call:
    """A started planner."""

    def __init__(self, process: anyio.abc.Process, status: int) -> None:
        self._process = process
        self._status = status
        self._stdout = bytearray()
        self._stderr = bytearray()
        self._inside: PidNamespace | None = None
        self._told: dict[str, int] = {}
        self._began = time.monotonic()
        self._seconds = 0.0
        self._timed_out = False
        self._too_long = False

    @classmethod
    async def start(
        cls, holder: tuple[str, ...], command: tuple[str, ...], environment: dict[str, str], calls: bytes
    ) -> _Call:
        """Start it. It waits for its prompt."""
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            status, report = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            ours.callback(os.close, status)
            theirs.callback(os.close, report)
            filtered = in_memory(calls)
            theirs.callback(os.close, filtered)
            process = await anyio.open_process(
                [*holder, "--json-status-fd", str(report), "--seccomp", str(filtered), "--", *command],
                stdin=subprocess.PIPE,
                env=environment,
                cwd="/",
                start_new_session=True,
                pass_fds=(report, filtered),
            )
            ours.pop_all()
        return cls(process, status)

    async def attend(self, prompt: bytes, seconds: float) -> None:
        """Give it the prompt, and read all that it says until it has ended: by itself, because it said too much, or by
        TERM after ``seconds`` and KILL after the grace."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._read_out)
            group.start_soon(self._read_err)
            group.start_soon(self._follow, prompt)
            with anyio.move_on_after(seconds) as time_left:
                await self._process.wait()
            self._timed_out = time_left.cancelled_caught
            await self._stop()

    async def end(self) -> None:
        """Whatever still lives is ended and waited for."""
        await self._stop()
        if self._inside is not None:
            await self._inside.gone()
            self._inside.close()
        self._seconds = time.monotonic() - self._began
        await self._process.aclose()
        os.close(self._status)

    def ended(self) -> Ended:
        """How it ended."""
        return Ended(
            exit_code=self._told.get("exit-code"),
            timed_out=self._timed_out,
            too_long=self._too_long,
            stdout=bytes(self._stdout),
            stderr=bytes(self._stderr),
            seconds=self._seconds,
        )

    async def _stop(self) -> None:
        """End it, gently at first if it has not ended; what it started goes with it."""
        if self._process.returncode is None and self._inside is not None:
            self._inside.terminate()
            with anyio.move_on_after(GRACE_SECONDS):
                await self._process.wait()
        self._kill()
        await self._process.wait()

    async def _read_out(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(anyio.EndOfStream):
            while True:
                chunk = await self._process.stdout.receive(_CHUNK)
                if self._too_long or len(self._stdout) + len(chunk) > OUT_BYTES_MAX:
                    self._too_long = True
                    self._kill()
                else:
                    self._stdout += chunk

    async def _read_err(self) -> None:
        assert self._process.stderr is not None
        with contextlib.suppress(anyio.EndOfStream):
            while True:
                self._stderr += await self._process.stderr.receive(_CHUNK)
                del self._stderr[:-ERR_BYTES_MAX]

    async def _follow(self, prompt: bytes) -> None:
        """Read bubblewrap's own reports to their end: which process is the first inside, and the exit code."""
        pending = b""
        while True:
            await anyio.wait_readable(self._status)
            chunk = os.read(self._status, _CHUNK)
            if not chunk:
                return
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                self._told |= msgspec.json.decode(line, type=dict[str, int])
            if self._inside is None and "child-pid" in self._told:
                self._inside = PidNamespace.of(self._told["child-pid"])
                await self._feed(prompt)

    async def _feed(self, prompt: bytes) -> None:
        """Give it the prompt, without which it does nothing, as soon as it is there: from then on, and not much
        earlier, it dies with this process."""
        assert self._process.stdin is not None
        while self._process.returncode is None and not self._is_there():  # noqa: ASYNC110 - nobody tells of it
            await anyio.sleep(_LOOK_SECONDS)
        with contextlib.suppress(anyio.BrokenResourceError, OSError):  # it does not care to read all of it
            await self._process.stdin.send(prompt)
        await self._process.stdin.aclose()

    def _is_there(self) -> bool:
        """Whether process 1 has started the program."""
        first = self._told["child-pid"]
        try:
            return bool(Path(f"/proc/{first}/task/{first}/children").read_text())
        except (FileNotFoundError, ProcessLookupError):
            return False

    def _kill(self) -> None:
        """KILL to process 1, and the kernel ends the others with it; as long as that is not known, to bubblewrap's
        process group, which all of it is then."""
        if self._inside is not None:
            self._inside.kill()
        code = self._process.returncode
        if code is None or code < 0:  # ended by itself, it has left nothing, and its number may be another's
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
