"""A started sandbox: what is said to it, what comes out of it, what it uses, and its end, with all that it started.

Here are only descriptors, pipes, time and signals; what may be seen and written was decided before.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import IO, Final, Literal, Self

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec

from pmagent.actors.sandbox.egress.gateway import Gateway
from pmagent.actors.sandbox.launch import Gated, Launch, gated, start
from pmagent.actors.sandbox.monitor import Monitor
from pmagent.actors.sandbox.pid_namespace import PidNamespace, ended, has_ended
from pmagent.actors.sandbox.spec import Limits, Outcome, SandboxUnavailable

Heard = Callable[[Literal["stdout", "stderr"], bytes], None]
"""Gets what is kept of the output as it comes."""

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


class Kept:
    """The kept part of a pipe, where there is one: its first ``limit`` bytes and, of the others, the last ``tail``; and
    how many came."""

    def __init__(self, pipe: IO[bytes] | None, limit: int, tail: int = 0) -> None:
        self.total = 0
        self.descriptor = -1 if pipe is None else pipe.fileno()
        self._limit = limit
        self._tail = tail
        self._first, self._last = bytearray(), bytearray()
        if pipe is not None:
            os.set_blocking(self.descriptor, False)

    @property
    def content(self) -> bytes:
        """The kept part so far."""
        return bytes(self._first + self._last)

    def read(self, heard: Callable[[bytes], None] | None, full: Callable[[], None] | None = None) -> bool:
        """Read what there is; False: that was the end. Bytes beyond the kept ones are dropped, so that the writer
        is not held up. ``full`` is told when there is more than may be kept."""
        chunk = os.read(self.descriptor, _CHUNK)
        if not chunk:
            return False
        first, last = self._first, self._last
        room = max(0, self._limit - len(first))
        kept = chunk if self._tail else chunk[:room]
        first += kept[:room]
        last += kept[room:]
        if len(last) > self._tail:
            del last[: len(last) - self._tail]
        self.total += len(chunk)
        if heard is not None and kept:
            heard(kept)
        if full is not None and self.total > self._limit:
            full()
        return True


class _Reading:
    """Descriptors that the event loop reads, each to its end; leaving the block ends it early. A task for each of them
    would cost a short program more than all else."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._open: set[int] = set()
        self._ended = self._loop.create_future()

    def add(self, descriptor: int, read: Callable[[], bool]) -> None:
        """Call ``read`` whenever there is something to read, until it returns False."""
        if descriptor in self._open:
            return
        self._open.add(descriptor)
        self._loop.add_reader(descriptor, self._readable, descriptor, read)

    def _readable(self, descriptor: int, read: Callable[[], bool]) -> None:
        try:
            if read():
                return
        except Exception as error:  # noqa: BLE001 - whoever waits for the end raises it
            if not self._ended.done():
                self._ended.set_exception(error)
        self._loop.remove_reader(descriptor)
        self._open.discard(descriptor)
        if not self._open and not self._ended.done():
            self._ended.set_result(None)

    async def ended(self) -> None:
        """Wait until all have come to their end, if there is one. Raises what a reader raised."""
        if self._open or self._ended.done():
            await self._ended

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open:
            self._loop.remove_reader(descriptor)
        if not self._ended.done():
            self._ended.cancel()


class SandboxProcess:
    """A started sandbox. Its public fields are known after ``end``."""

    def __init__(self, process: subprocess.Popen[bytes], held_by: Gated, limits: Limits, tail: int) -> None:
        self.stdout = Kept(process.stdout, limits.output_bytes, limits.tail_bytes)
        self.stderr = Kept(process.stderr, 0 if tail else limits.output_bytes, tail or limits.tail_bytes)
        self.exit_code: int | None = None
        """As bubblewrap tells it, 128 + n for signal n; None: it never started the program, or was killed with it."""
        self.seconds = 0.0
        self.timed_out = False
        self.exceeded = ""
        """The reason why it was killed, in words; "": it was not."""
        self.failure: SandboxUnavailable | None = None
        """Why it was never let go on."""
        self._pid = process.pid
        self._handle = os.pidfd_open(process.pid)
        self._status = held_by.status
        self._gate = held_by.gate
        self._held = ExitStack()
        self._limits = limits
        self._inside: PidNamespace | None = None
        self._began = time.monotonic()
        self._standing = asyncio.Event()
        self._ending = False
        self._pending = b""
        self._dumped = False

    @classmethod
    def start(cls, launch: Launch, limits: Limits, *, tail: int = 0, terminal: int = -1) -> SandboxProcess:
        """Start it; not in a worker thread, for bubblewrap dies with the thread that started it. Of stdout as much
        is kept as ``limits`` say, and of stderr as much, or its last ``tail`` bytes; nothing of what goes to a
        ``terminal``.

        Raises OSError.
        """
        with ExitStack() as held, ExitStack() as theirs:
            # The program's stdin is the gate too: it waits there for a line (``arguments.gate``), or for its prompt.
            held_by = gated(launch, held, theirs)
            output = terminal if terminal >= 0 else subprocess.PIPE
            process = held.enter_context(start(held_by.launch, held_by.reading, output))
            try:
                made = cls(process, held_by, limits, tail)
            except OSError:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            made._held = held.pop_all()
        return made

    async def attend(
        self, *, heard: Heard | None = None, gateway: Gateway | None = None, prompt: bytes | None = None,
        monitor: Callable[[PidNamespace], Monitor] | None = None,
    ) -> None:  # fmt: skip
        """Let it go on, and read all that it says until it has ended: by itself; by TERM after its time, or when this
        is cancelled, and KILL after the grace; or by KILL when it has used more than it may.

        With a ``prompt`` that is its standard input, and it is killed when it writes more than may be kept. Without
        one it stands at its gate (``arguments.gate``) until all is ready.
        """
        told, over = anyio.CancelScope(), anyio.Event()
        with _Reading() as reading:

            async def attended() -> None:
                """Itself not to be cancelled: what is told to end is read and watched until it has."""
                try:
                    with anyio.CancelScope(shield=True):
                        await self._to_its_end(reading, gateway, monitor, prompt, told)
                finally:
                    over.set()

            self._read(reading, heard, prompt)
            if gateway is None and prompt is None:
                try:
                    await anyio.lowlevel.checkpoint_if_cancelled()
                    self._read_reports(reading)
                    soon = await self._over_soon()
                except anyio.get_cancelled_exc_class():
                    self._ending = True  # what does not stand yet must not be let go on
                    self._read_reports(reading)
                    told.cancel()
                    await attended()
                    raise
                if soon:
                    with anyio.CancelScope(shield=True):
                        await reading.ended()
                    return
            async with anyio.create_task_group() as group:
                group.start_soon(attended)
                try:
                    await over.wait()
                except anyio.get_cancelled_exc_class():
                    told.cancel()
                    raise

    def _read(self, reading: _Reading, heard: Heard | None, prompt: bytes | None) -> None:
        def tell(name: Literal["stdout", "stderr"]) -> Callable[[bytes], None] | None:
            return None if heard is None else lambda chunk: heard(name, chunk)

        told, told_of_errors, full = tell("stdout"), tell("stderr"), None if prompt is None else self._full
        for stream, hear, over in ((self.stdout, told, full), (self.stderr, told_of_errors, None)):
            if stream.descriptor >= 0:
                reading.add(stream.descriptor, functools.partial(stream.read, hear, over))

    def _read_reports(self, reading: _Reading) -> None:
        reading.add(self._status, lambda: self._reported(self._let_go_on_at_once))

    async def _over_soon(self) -> bool:
        """Whether bubblewrap ends within ``_LOOK_SECONDS``: most do, and need neither watch nor task of their own."""
        if self._limits.seconds <= _LOOK_SECONDS:
            return False
        loop = asyncio.get_running_loop()
        over: asyncio.Future[bool] = loop.create_future()

        def is_over(*, ended: bool) -> None:
            if not over.done():
                over.set_result(ended)

        timer = loop.call_later(_LOOK_SECONDS, lambda: is_over(ended=False))
        loop.add_reader(self._handle, lambda: is_over(ended=True))
        try:
            return await over
        finally:
            loop.remove_reader(self._handle)
            timer.cancel()

    async def _to_its_end(
        self, reading: _Reading, gateway: Gateway | None, monitor: Callable[[PidNamespace], Monitor] | None,
        prompt: bytes | None, told: anyio.CancelScope,
    ) -> None:  # fmt: skip
        """``told`` is cancelled when it is to end."""
        async with anyio.create_task_group() as group:
            if gateway is not None or prompt is not None:
                group.start_soon(self._follow, gateway, prompt)
            if gateway is not None:
                group.start_soon(gateway.serve)
            watching = anyio.CancelScope()
            gone = time.monotonic() - self._began
            with anyio.move_on_after(max(0.0, self._limits.seconds - gone)) as time_left, told:
                with anyio.move_on_after(max(0.0, _LOOK_SECONDS - gone)):
                    await self._over()
                if monitor is not None and not has_ended(self._handle):
                    group.start_soon(self._watch, monitor, watching)
                    monitor = None
                await self._over()
            self.timed_out = time_left.cancelled_caught
            if self.timed_out or told.cancel_called:
                self._ending = True
                if monitor is not None:
                    group.start_soon(self._watch, monitor, watching)
                if self._inside is not None and self._standing.is_set():
                    self._inside.terminate()
                    with anyio.move_on_after(self._limits.grace_seconds):
                        await self._over()
                self._kill()
                await self._over()
            watching.cancel()
            if gateway is not None:
                gateway.shut()
            await reading.ended()

    async def _over(self) -> None:
        """Wait until bubblewrap has ended."""
        await ended(self._handle)

    async def end(self) -> None:
        """Kill all that still lives, and wait for it."""
        self._kill()
        await self._over()
        if self._inside is not None:
            await self._inside.gone()
            self._inside.close()
        self.seconds = time.monotonic() - self._began
        os.close(self._handle)
        self._held.close()

    def outcome(self, planted: tuple[str, ...]) -> Outcome:
        """How it ended. Raises SandboxUnavailable when bubblewrap never got to start the program."""
        if self.failure is not None:
            raise self.failure
        code = self.exit_code
        if code is None and not self.timed_out and not self.exceeded:
            reason = self.stderr.content.decode(errors="replace").strip().split("\n")[-1][:500]
            raise SandboxUnavailable(
                f"the sandbox could not be built: {reason or 'bubblewrap says nothing'}",
                "pmagent doctor tries one; an ordinary user needs user namespaces (sysctl user.max_user_namespaces)",
            )
        number = signal.SIGKILL if code is None else code - 128
        killed = number in _KILLS
        return Outcome(
            exit_code=None if killed else code, signal=number if killed else None, timed_out=self.timed_out,
            exceeded=self.exceeded, stdout=self.stdout.content, stderr=self.stderr.content,
            stdout_bytes=self.stdout.total, stderr_bytes=self.stderr.total, seconds=self.seconds, planted=planted,
            unenforced=(*_NO_CGROUP, *((_DUMPED,) if self._dumped else ())),
        )

    async def _follow(self, gateway: Gateway | None, prompt: bytes | None) -> None:
        """Read bubblewrap's own reports to their end: which process is the first inside, and its exit code."""
        firsts: list[int] = []
        while True:
            await anyio.wait_readable(self._status)
            if not self._reported(firsts.append):
                return
            while firsts:
                try:
                    await self._let_go_on(firsts.pop(0), gateway, prompt)
                except SandboxUnavailable as failure:
                    self.failure = failure
                    self._kill()

    def _reported(self, begun: Callable[[int], None]) -> bool:
        """Read reports; False: that was the end. ``begun`` is told which process is the first inside."""
        chunk = os.read(self._status, _CHUNK)
        *lines, self._pending = (self._pending + chunk).split(b"\n")
        for line in lines:
            report = msgspec.json.decode(line, type=dict[str, int])
            self.exit_code = report.get("exit-code", self.exit_code)
            if "child-pid" in report:
                begun(report["child-pid"])
        return bool(chunk)

    def _let_go_on_at_once(self, first: int) -> None:
        """``_let_go_on``, without gateway and prompt; what fails is kept."""
        try:
            if self._in_hand(first):
                self._standing.set()
                with contextlib.suppress(BrokenPipeError):
                    os.write(self._gate.fileno(), b".\n")  # into an empty pipe
        except SandboxUnavailable as failure:
            self.failure = failure
            self._kill()

    def _in_hand(self, first: int) -> bool:
        """Keep its processes in hand; False: it has ended, or is to end already. Raises SandboxUnavailable where that
        fails: then nothing has started."""
        if self._ending:
            self._kill()
            return False
        try:
            with ExitStack() as kept:
                inside = PidNamespace.of(first)
                if inside is None:
                    return False
                kept.callback(inside.close)
                self._dumped = not inside.undumped()
                kept.pop_all()
        except OSError as error:  # too many open files: what cannot be ended must not begin
            raise SandboxUnavailable(f"the sandbox cannot be kept in hand: {error.strerror}", "try again") from error
        self._inside = inside
        return True

    async def _let_go_on(self, first: int, gateway: Gateway | None, prompt: bytes | None) -> None:
        """Keep its processes in hand, open its gateway, and let it go on. Raises SandboxUnavailable where that fails;
        then nothing has started, nor does anything where it is to end already."""
        if not self._in_hand(first):
            return
        inside = self._inside
        assert inside is not None, "just taken in hand"
        if prompt is not None:
            self._standing.set()
        await self._say(b".")
        if gateway is not None:
            await gateway.open(inside)
        if self._ending:
            return
        if prompt is None:
            self._standing.set()
            await self._say(b"\n")
            return
        # Without its prompt it does nothing. Once it is there, and not much earlier, it dies with this process.
        while not inside.below() and not has_ended(self._handle):  # noqa: ASYNC110 - nobody tells of it
            await anyio.sleep(_POLL_SECONDS)
        await self._say(prompt)
        self._gate.close()

    async def _say(self, words: bytes) -> None:
        left = memoryview(words)
        with contextlib.suppress(BrokenPipeError):  # it does not care to read all of it, or has ended
            while left:
                try:
                    left = left[os.write(self._gate.fileno(), left[:_CHUNK]) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._gate)

    async def _watch(self, monitor: Callable[[PidNamespace], Monitor], scope: anyio.CancelScope) -> None:
        """Look at what it uses until ``scope`` is cancelled; kill it when that is too much."""
        with scope:
            await self._standing.wait()
            assert self._inside is not None
            with closing(monitor(self._inside)) as watch:
                while True:
                    began = time.monotonic()
                    self.exceeded = await anyio.to_thread.run_sync(watch.look)
                    if self.exceeded:
                        break
                    await anyio.sleep(max(_LOOK_SECONDS, _REST * (time.monotonic() - began)))
            self._kill()

    def _full(self) -> None:
        self.exceeded = f"more than {self._limits.output_bytes} bytes of output"
        self._kill()

    def _kill(self) -> None:
        """KILL to process 1, and the kernel ends the others with it; before the gate all of it is one process group,
        which bubblewrap leads: as long as that has not been waited for, its number is nobody else's."""
        if self._inside is not None:
            self._inside.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
