"""A started sandbox: what is said to it, what comes out of it, what it uses, and its end, with all that it started.

Here are only descriptors, pipes, time and signals; what may be seen and written was decided before.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, Literal

import anyio
import anyio.to_thread
import msgspec

from actors.sandbox.egress.gateway import Gateway
from actors.sandbox.launch import Launch, start
from actors.sandbox.monitor import Monitor
from actors.sandbox.pid_namespace import PidNamespace
from actors.sandbox.spec import Limits, Outcome, SandboxUnavailable

Heard = Callable[[Literal["stdout", "stderr"], bytes], None]
"""Gets what is kept of the output as it comes."""

MonitorOf = Callable[[PidNamespace], Monitor]

OPEN_GATE: Final = b"\n"
"""The line that ``arguments.GATE`` waits for."""

_CHUNK: Final = 64 * 1024
_KILLS: Final = frozenset((2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 15, 24, 25, 31))
"""Signals that end a program, without HUP; see ``Outcome.signal``."""

_LOOK_SECONDS: Final = 0.25
_REST: Final = 9
"""So many times as long as a look took is waited for the next: looking takes a tenth of a processor at most."""
_POLL_SECONDS: Final = 0.005

_DUMPED: Final = "core dumps: a program of this machine gets them (kernel.core_pattern)"
_NO_CGROUP: Final = (
    "processor time of all processes together: no cgroup",
    f"memory and disk space of all processes together: no cgroup; looked at every {_LOOK_SECONDS} seconds",
)


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


class _Kept:
    """What is kept of the stream ``descriptor``, the first ``limit`` bytes or the ``last``, and how many there were."""

    def __init__(self, descriptor: int, limit: int, *, last: bool = False) -> None:
        self.content = bytearray()
        self.total = 0
        self._descriptor = descriptor
        self._limit = limit
        self._last = last
        os.set_blocking(descriptor, False)

    async def read(self, heard: Callable[[bytes], None] | None, full: Callable[[], None] | None = None) -> None:
        """To its end; what is not kept is dropped, so that the writer is not held up. ``full`` is told once that there
        is more than may be kept."""
        while chunk := await self._chunk():
            kept = chunk if self._last else chunk[: max(0, self._limit - len(self.content))]
            self.content += kept
            if self._last:
                del self.content[: -self._limit]
            if full is not None and self.total <= self._limit < self.total + len(chunk):
                full()
            self.total += len(chunk)
            if heard is not None and kept:
                heard(kept)

    async def _chunk(self) -> bytes:
        await anyio.wait_readable(self._descriptor)
        return os.read(self._descriptor, _CHUNK)


class SandboxProcess:
    """A started sandbox. How it ended is known after ``end``."""

    def __init__(
        self, process: subprocess.Popen[bytes], handle: int, status: int, gate: int, limits: Limits, *, tail: int
    ) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.seconds = 0.0
        self.timed_out = False
        self.exceeded = ""
        """What it was killed for, in words; "": it was not."""
        self.failure: SandboxUnavailable | None = None
        """Why it was never let go on."""
        self._process = process
        self._handle = handle
        self._status = status
        self._gate = gate
        self._limits = limits
        self._stdout = _Kept(process.stdout.fileno(), limits.output_bytes)
        self._stderr = _Kept(process.stderr.fileno(), tail or limits.output_bytes, last=bool(tail))
        self._inside: PidNamespace | None = None
        self._told: dict[str, int] = {}
        self._began = time.monotonic()
        self._standing = anyio.Event()
        self._dumped = False

    @classmethod
    def start(cls, launch: Launch, limits: Limits, *, tail: int = 0) -> SandboxProcess:
        """Start it; not in a worker thread, for bubblewrap dies with the thread that started it. Of stdout the first
        ``limits.output_bytes`` are kept, and of stderr as much, or its last ``tail`` bytes.

        Raises OSError.
        """
        with ExitStack() as ours, ExitStack() as theirs:
            status, report = _reports()
            ours.callback(os.close, status)
            theirs.callback(os.close, report)
            # The gate: what is built waits at its stdin until it is spoken to, and ends when this process does, with or
            # without having been seen: only from late in its building on would it die with this process.
            reading, gate = os.pipe2(os.O_CLOEXEC)
            theirs.callback(os.close, reading)
            ours.callback(os.close, gate)
            os.set_blocking(gate, False)
            # bubblewrap reads a byte of it too, before its first process starts the second.
            given = ("--json-status-fd", str(report), "--block-fd", str(reading))
            process = start(
                launch._replace(options=(*launch.options, *given), handed=(*launch.handed, report, reading)), reading
            )
            ours.callback(_abandon, process)
            handle = os.pidfd_open(process.pid)
            made = cls(process, handle, status, gate, limits, tail=tail)
            ours.pop_all()
        return made

    @property
    def stdout(self) -> bytes:
        """What is kept of it."""
        return bytes(self._stdout.content)

    @property
    def stderr(self) -> bytes:
        """What is kept of it."""
        return bytes(self._stderr.content)

    @property
    def exit_code(self) -> int | None:
        """As bubblewrap tells it, 128 + n for signal n; None: it never started the program, or was killed with it."""
        return self._told.get("exit-code")

    async def attend(
        self,
        *,
        heard: Heard | None = None,
        gateway: Gateway | None = None,
        monitor: MonitorOf | None = None,
        prompt: bytes | None = None,
    ) -> None:
        """Let it go on, and read all that it says until it has ended: by itself; by TERM after its time, or when this
        is cancelled, and KILL after the grace; or by KILL when it has used more than it may.

        With a ``prompt`` that is its standard input, and it is killed when it writes more than may be kept. Without
        one it stands at its gate until all is ready.
        """
        stopped, ended = anyio.Event(), anyio.Event()

        async def attended() -> None:
            """Itself not to be cancelled: what is told to end is read and watched until it has."""
            try:
                with anyio.CancelScope(shield=True):
                    await self._to_its_end(heard, gateway, monitor, prompt, stopped)
            finally:
                ended.set()

        async with anyio.create_task_group() as group:
            group.start_soon(attended)
            try:
                await ended.wait()
            except anyio.get_cancelled_exc_class():
                stopped.set()
                raise

    async def _to_its_end(
        self, heard: Heard | None, gateway: Gateway | None, monitor: MonitorOf | None, prompt: bytes | None,
        stopped: anyio.Event,
    ) -> None:
        def tell(name: Literal["stdout", "stderr"]) -> Callable[[bytes], None] | None:
            return None if heard is None else lambda chunk: heard(name, chunk)

        async with anyio.create_task_group() as group:
            group.start_soon(self._stdout.read, tell("stdout"), None if prompt is None else self._full)
            group.start_soon(self._stderr.read, tell("stderr"))
            group.start_soon(self._follow, gateway, prompt)
            if gateway is not None:
                group.start_soon(gateway.serve)
            watching = anyio.CancelScope()
            if monitor is not None:
                group.start_soon(self._watch, monitor, watching)
            with anyio.move_on_after(self._limits.seconds) as time_left:
                await self._wait_or(stopped)
            self.timed_out = time_left.cancelled_caught
            if self.timed_out or stopped.is_set():
                if self._inside is not None:
                    self._inside.terminate()
                with anyio.move_on_after(self._limits.grace_seconds):
                    await self._over()
                self._kill()
                await self._over()
            watching.cancel()
            if gateway is not None:
                gateway.shut()

    async def _over(self) -> None:
        """Wait until bubblewrap has ended."""
        await anyio.wait_readable(self._handle)

    async def _wait_or(self, stopped: anyio.Event) -> None:
        """Return when it has ended, or is told to end."""

        async def told() -> None:
            await stopped.wait()
            race.cancel_scope.cancel()

        async with anyio.create_task_group() as race:
            race.start_soon(told)
            await self._over()
            race.cancel_scope.cancel()

    async def end(self) -> None:
        """Whatever still lives is killed and waited for."""
        self._kill()
        await self._over()
        if self._inside is not None:
            await self._inside.gone()
            self._inside.close()
        self.seconds = time.monotonic() - self._began
        self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
        os.close(self._handle)
        os.close(self._status)
        if self._gate >= 0:
            os.close(self._gate)

    def outcome(self, planted: tuple[str, ...]) -> Outcome:
        """How it ended. Raises SandboxUnavailable when bubblewrap never got to start the program."""
        if self.failure is not None:
            raise self.failure
        code = self.exit_code
        number: int | None
        if code is None and not self.timed_out and not self.exceeded:
            reason = self.stderr.decode(errors="replace").strip().split("\n")[-1][:500]
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
            timed_out=self.timed_out,
            exceeded=self.exceeded,
            stdout=self.stdout,
            stderr=self.stderr,
            stdout_bytes=self._stdout.total,
            stderr_bytes=self._stderr.total,
            seconds=self.seconds,
            planted=planted,
            unenforced=(*_NO_CGROUP, *((_DUMPED,) if self._dumped else ())),
        )

    async def _follow(self, gateway: Gateway | None, prompt: bytes | None) -> None:
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
            if self._inside is None and self.failure is None and "child-pid" in self._told:
                self._inside = self._seen(self._told["child-pid"])
                if self._inside is not None and await self._way_out(self._inside, gateway) and not self.timed_out:
                    await self._let_go_on(prompt)

    def _seen(self, first: int) -> PidNamespace | None:
        try:
            with ExitStack() as kept:
                inside = PidNamespace.of(first)
                if inside is not None:
                    kept.callback(inside.close)
                    self._dumped = not inside.undumped()
                    with contextlib.suppress(BrokenPipeError):  # it has ended; how, will be seen
                        os.write(self._gate, b".")
                kept.pop_all()
                return inside
        except OSError as error:  # too many open files: what cannot be ended must not begin
            self.failure = SandboxUnavailable(f"the sandbox cannot be kept in hand: {error.strerror}", "try again")
            self._kill()
            return None

    async def _let_go_on(self, prompt: bytes | None) -> None:
        """Open the gate, or give it the prompt, without which it does nothing, as soon as the program is there: from
        then on, and not much earlier, it dies with this process."""
        if prompt is None:
            await self._say(OPEN_GATE)
            self._standing.set()
            return
        while not self._is_there() and not self._is_over():  # noqa: ASYNC110 - nobody tells of it
            await anyio.sleep(_POLL_SECONDS)
        await self._say(prompt)
        os.close(self._gate)
        self._gate = -1

    async def _say(self, words: bytes) -> None:
        left = memoryview(words)
        with contextlib.suppress(BrokenPipeError):  # it does not care to read all of it, or has ended
            while left:
                await anyio.wait_writable(self._gate)
                left = left[os.write(self._gate, left[:_CHUNK]) :]

    def _is_there(self) -> bool:
        """Whether process 1 has started the program."""
        assert self._inside is not None
        return bool(self._inside.below())

    def _is_over(self) -> bool:
        ended = select.poll()
        ended.register(self._handle, select.POLLIN)
        return bool(ended.poll(0))

    async def _way_out(self, inside: PidNamespace, gateway: Gateway | None) -> bool:
        """Open the gateway. Where that fails nothing is started: False, and all of it is killed."""
        try:
            if gateway is not None:
                await gateway.open(inside)
        except SandboxUnavailable as failure:
            self.failure = failure
            self._kill()
            return False
        return True

    async def _watch(self, monitor: MonitorOf, scope: anyio.CancelScope) -> None:
        """Look at what it uses until ``scope`` is cancelled; kill it when that is too much."""
        pause = _LOOK_SECONDS
        with scope:
            await self._standing.wait()
            assert self._inside is not None
            watch = monitor(self._inside)
            try:
                while not self.exceeded:
                    await anyio.sleep(pause)
                    began = time.monotonic()
                    self.exceeded = await anyio.to_thread.run_sync(watch.look)
                    pause = max(_LOOK_SECONDS, _REST * (time.monotonic() - began))
            finally:
                watch.close()
            self._kill()

    def _full(self) -> None:
        self.exceeded = f"more than {self._limits.output_bytes} bytes of output"
        self._kill()

    def _kill(self) -> None:
        """KILL to process 1, and the kernel ends the others with it; before the gate all of it is one process group,
        which bubblewrap leads: as long as that has not been waited for, its number is nobody else's."""
        if self._inside is not None:
            self._inside.kill()
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


def _abandon(process: subprocess.Popen[bytes]) -> None:
    """End what stands at its gate, and nobody can attend."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()
