"""Talks with a process over its three pipes and knows when it has ended; blocking."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from typing import IO, Final, Self

import msgspec

from pmagent.actors.sandbox.launch import Gated
from pmagent.actors.sandbox.pid_namespace import PidNamespace

_CHUNK: Final = 256 * 1024


class Conversation:
    """The conversation with a started process: ``output`` all of its standard output, ``stderr_tail`` the last
    ``kept`` bytes of its standard error. To be used in ``with``: afterwards the process has ended, by itself or killed
    with its group, and has been waited for.

    ``held``: it is bubblewrap with a gate. It is let go on once its namespace is kept in hand, and afterwards nobody is
    left there."""

    def __init__(self, process: subprocess.Popen[bytes], request: bytes, kept: int, held: Gated | None = None) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.output = bytearray()
        self.stderr_tail = bytearray()
        self._process = process
        self._kept = kept
        self._pending = memoryview(request)
        self._held = held
        self._inside: PidNamespace | None = None
        self._reported = b""
        self._handle = -1
        self._selector = selectors.DefaultSelector()
        self._pipes: tuple[IO[bytes], IO[bytes], IO[bytes]] = (process.stdin, process.stdout, process.stderr)

    def __enter__(self) -> Self:
        stdin, stdout, stderr = self._pipes
        try:
            self._handle = os.pidfd_open(self._process.pid)
            for pipe in self._pipes:
                os.set_blocking(pipe.fileno(), False)
            self._selector.register(self._handle, selectors.EVENT_READ, None)
            self._selector.register(stdin, selectors.EVENT_WRITE, self._feed)
            self._selector.register(stdout, selectors.EVENT_READ, self._hear)
            self._selector.register(stderr, selectors.EVENT_READ, self._note)
            if self._held is not None:
                self._selector.register(self._held.status, selectors.EVENT_READ, self._let_go_on)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def goes_on(self, seconds: float) -> bool:
        """Talk for at most ``seconds``; False once the process has ended and what it had said is read."""
        ready = [key.data for key, _ in self._selector.select(seconds)]
        for act in ready:
            if act is not None:
                act()
        return None not in ready or self._hear_out()

    def _hear_out(self) -> bool:
        """It has ended. Bytes left in its pipes are read (False: nothing does); somebody else may hold them open, who
        is not waited for."""
        _, stdout, stderr = self._pipes
        more = False
        for pipe, read in ((stdout, self._hear), (stderr, self._note)):
            if not pipe.closed:
                with contextlib.suppress(BlockingIOError):
                    read()
                    more = True
        return more

    def _feed(self) -> None:
        pipe = self._pipes[0]
        try:
            if self._pending:
                self._pending = self._pending[os.write(pipe.fileno(), self._pending[:_CHUNK]) :]
        except BrokenPipeError:  # it does not care to read all of it
            self._pending = self._pending[:0]
        if not self._pending:
            self._close(pipe)

    def _hear(self) -> None:
        chunk = os.read(self._pipes[1].fileno(), _CHUNK)
        self.output += chunk
        if not chunk:
            self._close(self._pipes[1])

    def _note(self) -> None:
        chunk = os.read(self._pipes[2].fileno(), _CHUNK)
        self.stderr_tail += chunk
        del self.stderr_tail[: -self._kept]
        if not chunk:
            self._close(self._pipes[2])

    def _let_go_on(self) -> None:
        """Take hold of the first process inside, as soon as it is reported, and let it start the others. Raises
        OSError."""
        assert self._held is not None
        chunk = os.read(self._held.status, _CHUNK)
        self._reported += chunk
        if not chunk or b"}" in self._reported:  # who that is comes first
            self._selector.unregister(self._held.status)
        if b"}" in self._reported:
            report = msgspec.json.decode(self._reported.partition(b"}")[0] + b"}", type=dict[str, int])
            self._inside = PidNamespace.of(report["child-pid"])
            with contextlib.suppress(BrokenPipeError):
                self._held.gate.write(b".")

    def _close(self, pipe: IO[bytes]) -> None:
        self._selector.unregister(pipe)
        pipe.close()

    def _end(self) -> None:
        """Kill the group that it leads. It has not been waited for yet, so its number is nobody else's."""
        if self._inside is not None:
            self._inside.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._inside is not None:
            self._inside.wait()
            self._inside.close()
        self._selector.close()
        if self._handle >= 0:
            os.close(self._handle)
        for pipe in self._pipes:
            pipe.close()
