"""Runs one of our modules over what others wrote, in a process with limits; blocking.

The process gets its request on standard input and answers on standard output. It cannot hurt more than itself: it has
an address space, CPU time and an answer of bounded size, writes no file, ends with us, and where the machine has
bubblewrap it sees nothing but the interpreter and what it is to read, and no network (``wall``).
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO, Final, Literal

import msgspec

from actors.audit.repository.confined import OUT_OF_MEMORY
from actors.audit.repository.wall import ENVIRONMENT, wall

Ended = Literal["done", "timed_out", "memory", "output", "crashed", "stopped"]

TOLD_BYTES: Final = 64 * 1024
"""So much of the end of standard error is kept."""

_CHUNK: Final = 64 * 1024
_LOOK_SECONDS: Final = 0.05
_SIGNALLED: Final = 128


class Limited(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended: ``done`` (exit code 0), by a limit, by itself (``crashed``), or because ``stop`` was set.
    ``output`` is complete only when done. ``signal`` 0: none. ``told`` is the end of its standard error: for tests and
    for reading progress, never for people. ``walled``: it ran behind bubblewrap."""

    output: bytes
    ended: Ended
    exit_code: int
    signal: int
    told: bytes
    walled: bool


def run_limited(
    module: str,
    request: bytes,
    *,
    seconds: float,
    memory_bytes: int,
    output_bytes: int,
    stop: threading.Event | None = None,
    readable: Sequence[str] = (),
) -> Limited:
    """Run ``python -I -m <module>`` within limits: ``seconds`` of time (and of CPU), ``memory_bytes`` of address space,
    ``output_bytes`` of answer. It may read the absolute paths ``readable``. ``stop``, once set, ends it.

    When it returns or raises, nothing of the process is alive. Raises
    OSError where no process can be started."""
    walls = wall(readable)
    held, lifeline = os.pipe()
    try:
        words = (str(memory_bytes), str(math.ceil(seconds) + 1), str(held), module)
        process = subprocess.Popen(
            (*walls, sys.executable, "-I", "-m", "actors.audit.repository.confined", *words),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=ENVIRONMENT, cwd="/", start_new_session=True, pass_fds=(held,), bufsize=0,
        )  # fmt: skip
        talk = _Talk(process, request, output_bytes)
        try:
            early = talk.attend(time.monotonic() + seconds, stop)
        finally:
            _end(process)
    finally:
        os.close(held)
        os.close(lifeline)  # open until here: when we die, the kernel closes it, and the process ends
    code, number = _status(process.returncode, bool(walls))
    ended = early or _judged(code, number)
    return Limited(
        output=bytes(talk.output), ended=ended, exit_code=code, signal=number, told=bytes(talk.told), walled=bool(walls)
    )


class _Talk:
    """What is said to the process, and what it says."""

    def __init__(self, process: subprocess.Popen[bytes], request: bytes, output_bytes: int) -> None:
        self._process = process
        self._pending = memoryview(request)
        self._most = output_bytes
        self._selector = selectors.DefaultSelector()
        self.output = bytearray()
        self.told = bytearray()

    def attend(self, deadline: float, stop: threading.Event | None) -> Ended | None:
        """Talk until it has ended by itself (None), or must be ended, and why."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        with self._selector:
            for pipe, what, act in (
                (self._process.stdin, selectors.EVENT_WRITE, self._feed),
                (self._process.stdout, selectors.EVENT_READ, self._hear),
                (self._process.stderr, selectors.EVENT_READ, self._note),
            ):
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, what, act)
            while self._selector.get_map():
                if stop is not None and stop.is_set():
                    return "stopped"
                left = deadline - time.monotonic()
                if left <= 0:
                    return "timed_out"
                for key, _ in self._selector.select(min(left, _LOOK_SECONDS)):
                    key.data(key.fileobj)
                if len(self.output) > self._most:
                    return "output"
            return self._wait(deadline, stop)

    def _wait(self, deadline: float, stop: threading.Event | None) -> Ended | None:
        """It has closed all its ends: it has ended, or soon will."""
        while self._process.poll() is None:
            if stop is not None and stop.is_set():
                return "stopped"
            left = deadline - time.monotonic()
            if left <= 0:
                return "timed_out"
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(min(left, _LOOK_SECONDS))
        return None

    def _feed(self, pipe: IO[bytes]) -> None:
        try:
            self._pending = self._pending[os.write(pipe.fileno(), self._pending[:_CHUNK]) :]
        except BrokenPipeError:  # it does not care to read all of it
            self._pending = self._pending[:0]
        if not self._pending:
            self._close(pipe)

    def _hear(self, pipe: IO[bytes]) -> None:
        chunk = os.read(pipe.fileno(), _CHUNK)
        self.output += chunk
        if not chunk:
            self._close(pipe)

    def _note(self, pipe: IO[bytes]) -> None:
        chunk = os.read(pipe.fileno(), _CHUNK)
        self.told += chunk
        del self.told[:-TOLD_BYTES]
        if not chunk:
            self._close(pipe)

    def _close(self, pipe: IO[bytes]) -> None:
        self._selector.unregister(pipe)
        pipe.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of it, and wait for it. Until the wall stands, both halves of bubblewrap are in the group."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _status(code: int, walled: bool) -> tuple[int, int]:
    """Exit code and signal; bubblewrap tells a signal as a shell does."""
    if code < 0:
        return 0, -code
    if walled and code > _SIGNALLED:
        return 0, code - _SIGNALLED
    return code, 0


def _judged(code: int, number: int) -> Ended:
    if number == signal.SIGXCPU:
        return "timed_out"
    if code == OUT_OF_MEMORY or number == signal.SIGKILL:  # KILL that is not ours is the kernel's, short of memory
        return "memory"
    return "done" if code == 0 and number == 0 else "crashed"
