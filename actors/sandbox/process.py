"""A started sandbox: what comes out of it, what it uses, and its end, with all that it started.

Here are only descriptors, pipes, time and signals; what may be seen and written was decided in ``sandbox``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final, Literal, NamedTuple

import anyio
import anyio.abc
import anyio.to_thread
import msgspec

from actors.sandbox.egress.gateway import Gateway
from actors.sandbox.monitor import Monitor
from actors.sandbox.pid_namespace import PidNamespace
from actors.sandbox.spec import Outcome, SandboxSpec, SandboxUnavailable

Heard = Callable[[Literal["stdout", "stderr"], bytes], None]
"""Gets what is kept of the output as it comes."""

_CHUNK: Final = 64 * 1024
_KILLS: Final = frozenset((2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 15, 24, 25, 31))
"""Signals that end a program, without HUP; see ``Outcome.signal``."""

_LOOK_SECONDS: Final = 0.25
_REST: Final = 9
"""So many times as long as a look took is waited for the next: looking takes a tenth of a processor at most."""

_DUMPED: Final = "core dumps: a program of this machine gets them (kernel.core_pattern)"
_NO_CGROUP: Final = (
    "processor time of all processes together: no cgroup",
    f"memory and disk space of all processes together: no cgroup; looked at every {_LOOK_SECONDS} seconds",
)


class Start(NamedTuple):
    """What a sandbox is started with: ``options`` name the open descriptors ``handed`` to it."""

    program: list[str]
    """bubblewrap, or the command that becomes it."""
    options: list[str]
    handed: list[int]
    command: tuple[str, ...]


def _reports() -> tuple[int, int]:
    """A pipe for bubblewrap's reports: our end, and its own, which reads as well. If there were no reader when this
    process has been killed, it would end at its first word, and what it had begun to build would wait for it for ever.
    """
    status, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return status, os.open(f"/proc/self/fd/{writing}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        os.close(status)
        raise
    finally:
        os.close(writing)


def in_memory(data: bytes) -> int:
    """A descriptor from which ``data`` is read."""
    with open(os.memfd_create("sandbox", os.MFD_CLOEXEC), "wb") as file:
        file.write(data)
        file.seek(0)
        return os.dup(file.fileno())


class _Kept:
    """The first bytes of a stream, and how many there were."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.total = 0

    async def read(
        self, stream: anyio.abc.ByteReceiveStream, limit: int, heard: Callable[[bytes], None] | None
    ) -> None:
        """To its end; what is beyond ``limit`` is dropped, so that the writer is not held up."""
        with contextlib.suppress(anyio.EndOfStream):
            while True:
                chunk = await stream.receive(_CHUNK)
                kept = chunk[: max(0, limit - len(self.content))]
                self.content += kept
                self.total += len(chunk)
                if heard is not None and kept:
                    heard(kept)


class SandboxProcess:
    """A started sandbox."""

    def __init__(self, process: anyio.abc.Process, status: int, gate: int) -> None:
        self._process = process
        self._status = status
        self._gate = gate
        self._stdout = _Kept()
        self._stderr = _Kept()
        self._inside: PidNamespace | None = None
        self._told: dict[str, int] = {}
        self._began = time.monotonic()
        self._seconds = 0.0
        self._timed_out = False
        self._exceeded = ""
        self._standing = anyio.Event()
        self._dumped = False
        self._failure: SandboxUnavailable | None = None

    @classmethod
    async def start(cls, start: Start) -> SandboxProcess:
        """Start it. The environment of bubblewrap itself is empty: the tool can read that of process 1.

        Raises OSError.
        """
        with ExitStack() as ours, ExitStack() as theirs:
            status, report = _reports()
            ours.callback(os.close, status)
            theirs.callback(os.close, report)
            arguments = in_memory(b"".join(os.fsencode(option) + b"\0" for option in start.options))
            theirs.callback(os.close, arguments)
            # The gate: what is built waits at its stdin for a line (``sandbox.GATE``), and ends when this process does,
            # with or without having been seen: only from late in its building on would it die with this process.
            reading, gate = os.pipe2(os.O_CLOEXEC)
            theirs.callback(os.close, reading)
            ours.callback(os.close, gate)
            # bubblewrap reads a byte of it too, before its first process starts the second.
            given = ("--args", str(arguments), "--json-status-fd", str(report), "--block-fd", str(reading))
            process = await anyio.open_process(
                [*start.program, *given, "--", *start.command],
                stdin=reading,
                env={},
                cwd="/",
                umask=0o022,
                start_new_session=True,
                pass_fds=(*start.handed, arguments, report, reading),
            )
            ours.pop_all()
        return cls(process, status, gate)

    async def attend(self, spec: SandboxSpec, heard: Heard | None, gateway: Gateway | None) -> None:
        """Read all that it says until it has ended: by itself; by TERM after its time, or when this is cancelled, and
        KILL after the grace; or by KILL when it has used more than it may."""
        stopped, ended = anyio.Event(), anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(self._attend, spec, heard, gateway, stopped, ended)
            try:
                await ended.wait()
            except anyio.get_cancelled_exc_class():
                stopped.set()
                raise

    async def _attend(
        self, spec: SandboxSpec, heard: Heard | None, gateway: Gateway | None, stopped: anyio.Event, ended: anyio.Event
    ) -> None:
        """``attend``, itself not to be cancelled: what is told to end is read and watched until it has."""
        try:
            with anyio.CancelScope(shield=True):
                await self._to_its_end(spec, heard, gateway, stopped)
        finally:
            ended.set()

    async def _to_its_end(
        self, spec: SandboxSpec, heard: Heard | None, gateway: Gateway | None, stopped: anyio.Event
    ) -> None:
        limits = spec.limits
        async with anyio.create_task_group() as group:
            for name, stream, kept in self._streams():
                tell = None if heard is None else (lambda chunk, name=name: heard(name, chunk))
                group.start_soon(kept.read, stream, limits.output_bytes, tell)
            group.start_soon(self._follow, gateway)
            if gateway is not None:
                group.start_soon(gateway.serve)
            watching = anyio.CancelScope()
            group.start_soon(self._watch, spec, watching)
            with anyio.move_on_after(limits.seconds) as time_left:
                await self._wait_or(stopped)
            self._timed_out = time_left.cancelled_caught
            if self._timed_out or stopped.is_set():
                if self._inside is not None:
                    self._inside.terminate()
                with anyio.move_on_after(limits.grace_seconds):
                    await self._process.wait()
                self._kill()
                await self._process.wait()
            watching.cancel()
            if gateway is not None:
                gateway.shut()

    async def _wait_or(self, stopped: anyio.Event) -> None:
        """Return when it has ended, or is told to end."""

        async def told() -> None:
            await stopped.wait()
            race.cancel_scope.cancel()

        async with anyio.create_task_group() as race:
            race.start_soon(told)
            await self._process.wait()
            race.cancel_scope.cancel()

    async def end(self) -> None:
        """Whatever still lives is killed and waited for."""
        self._kill()
        await self._process.wait()
        if self._inside is not None:
            await self._inside.gone()
            self._inside.close()
        self._seconds = time.monotonic() - self._began
        await self._process.aclose()
        os.close(self._status)
        os.close(self._gate)

    def outcome(self, planted: tuple[str, ...]) -> Outcome:
        """How it ended. Raises SandboxUnavailable when bubblewrap never got to start the program."""
        if self._failure is not None:
            raise self._failure
        code = self._told.get("exit-code")
        number: int | None
        if code is None and not self._timed_out and not self._exceeded:
            reason = bytes(self._stderr.content).decode(errors="replace").strip().split("\n")[-1][:500]
            raise SandboxUnavailable(
                f"the sandbox could not be built: {reason or 'bubblewrap says nothing'}",
                "pmagent doctor tries one; an ordinary user needs user namespaces (sysctl user.max_user_namespaces)",
            )
        number = signal.SIGKILL if code is None else code - 128
        if number not in _KILLS:
            number = None
        else:
            code = None
        return Outcome(
            exit_code=code,
            signal=number,
            timed_out=self._timed_out,
            exceeded=self._exceeded,
            stdout=bytes(self._stdout.content),
            stderr=bytes(self._stderr.content),
            stdout_bytes=self._stdout.total,
            stderr_bytes=self._stderr.total,
            seconds=self._seconds,
            planted=planted,
            unenforced=(*_NO_CGROUP, *((_DUMPED,) if self._dumped else ())),
        )

    def _streams(self) -> Iterator[tuple[Literal["stdout", "stderr"], anyio.abc.ByteReceiveStream, _Kept]]:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        yield "stdout", self._process.stdout, self._stdout
        yield "stderr", self._process.stderr, self._stderr

    async def _follow(self, gateway: Gateway | None) -> None:
        """Read bubblewrap's own reports to their end: which process is the first inside, and its exit code."""
        pending = b""
        while True:
            await anyio.wait_readable(self._status)
            chunk = os.read(self._status, _CHUNK)
            if not chunk:
                return
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                self._told |= msgspec.json.decode(line, type=dict[str, int])
            if self._inside is None and self._failure is None and "child-pid" in self._told:
                self._inside = self._seen(self._told["child-pid"])
                if self._inside is not None and await self._way_out(self._inside, gateway) and not self._timed_out:
                    self._write(b"\n")
                    self._standing.set()

    def _seen(self, first: int) -> PidNamespace | None:
        try:
            with ExitStack() as kept:
                inside = PidNamespace.of(first)
                if inside is not None:
                    kept.callback(inside.close)
                    self._dumped = not inside.undumped()
                    self._write(b".")
                kept.pop_all()
                return inside
        except OSError as error:  # too many open files: what cannot be ended must not begin
            self._failure = SandboxUnavailable(f"the sandbox cannot be kept in hand: {error.strerror}", "try again")
            self._kill()
            return None

    def _write(self, word: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has ended; how, will be seen
            os.write(self._gate, word)

    async def _way_out(self, inside: PidNamespace, gateway: Gateway | None) -> bool:
        """Open the door. Where that fails nothing is started: False, and all of it is killed."""
        try:
            if gateway is not None:
                await gateway.open(inside)
        except SandboxUnavailable as failure:
            self._failure = failure
            self._kill()
            return False
        return True

    async def _watch(self, spec: SandboxSpec, scope: anyio.CancelScope) -> None:
        """Look at what it uses until ``scope`` is cancelled; kill it when that is too much."""
        pause = _LOOK_SECONDS
        with scope:
            await self._standing.wait()
            assert self._inside is not None
            monitor = Monitor(spec.limits, self._inside, spec.artifacts, spec.writable)
            try:
                while not self._exceeded:
                    await anyio.sleep(pause)
                    began = time.monotonic()
                    self._exceeded = await anyio.to_thread.run_sync(monitor.look)
                    pause = max(_LOOK_SECONDS, _REST * (time.monotonic() - began))
            finally:
                monitor.close()
            self._kill()

    def _kill(self) -> None:
        """Before the gate all of it is one process group; the gate is opened only when process 1 is known."""
        if self._inside is not None:
            self._inside.kill()
        code = self._process.returncode
        if code is None or code < 0:  # ended by itself, it has left nothing, and its number may be another's
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
