"""Runs one of our modules over what others wrote, in a process with limits; blocking.

The process gets its request on standard input and answers on standard output. It cannot hurt more than itself: it has
an address space, CPU time and an answer of bounded size, writes no file, makes only the system calls that a tool may,
ends with us, and where the machine has bubblewrap it sees nothing but the interpreter and what it is to read, and no
network (``arguments``).
"""

from __future__ import annotations

import errno
import math
import os
import platform
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final, Literal

import msgspec

from pmagent.actors.sandbox import syscalls
from pmagent.actors.sandbox.launch import Launch, gated, start
from pmagent.actors.sandbox.reader.arguments import BECOME, ENVIRONMENT, bubblewrap_options, isolated
from pmagent.actors.sandbox.reader.limits import OUT_OF_MEMORY
from pmagent.actors.sandbox.reader.pipes import Conversation

Ended = Literal["done", "timed_out", "memory", "output", "crashed", "stopped"]

TOLD_BYTES: Final = 64 * 1024
"""So much of the end of standard error is kept."""

_LOOK_SECONDS: Final = 0.05
_SIGNALLED: Final = 128


class Limited(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended: ``done`` (exit code 0), by a limit, by itself (``crashed``), or because ``stop`` was set.
    ``output`` is complete only when done. ``signal`` 0: none. ``stderr_tail`` is the end of its standard error: for
    tests and for reading progress, never for people. ``sandboxed``: it ran in bubblewrap."""

    output: bytes
    ended: Ended
    exit_code: int
    signal: int
    stderr_tail: bytes
    sandboxed: bool


def run_limited(
    module: str, request: bytes, *, seconds: float, memory_bytes: int, output_bytes: int,
    stop: threading.Event | None = None, readable: Sequence[str] = (), devices: Sequence[str] = (),
) -> Limited:
    """Run a module, as ``python -I -m <module>`` does, within limits: ``seconds`` of time (and of CPU),
    ``memory_bytes`` of address space, ``output_bytes`` of answer. It may read the absolute paths ``readable``, and use
    the device files ``devices``. ``stop``, once set, ends it.

    When it returns or raises, nothing of the process is alive. Raises
    OSError where no process can be started; ENOSYS where this machine's system calls are not known."""
    if platform.machine() not in syscalls.MACHINES:
        raise OSError(errno.ENOSYS, f"no system call filter for {platform.machine()} machines")
    options = bubblewrap_options(readable, devices)
    with ExitStack() as ours:
        held, lifeline = os.pipe()
        ours.callback(os.close, lifeline)  # open until then: when we die, the kernel closes it, and the process ends
        with ExitStack() as theirs:
            theirs.callback(os.close, held)
            words = (str(memory_bytes), str(math.ceil(seconds) + 1), str(held), module)
            launch = Launch(options[:1], options[1:], (*isolated(BECOME), *words), (held,), ENVIRONMENT)
            gate = gated(launch, ours, theirs) if options else None
            process = start(gate.launch if gate is not None else launch)
        with Conversation(process, request, TOLD_BYTES, gate) as talk:
            early = _attend(talk, time.monotonic() + seconds, output_bytes, stop)
    code, number = _status(process.returncode, bool(options))
    ended = early or _judged(code, number)
    return Limited(
        output=bytes(talk.output), ended=ended, exit_code=code, signal=number, stderr_tail=bytes(talk.stderr_tail),
        sandboxed=bool(options),
    )


def _attend(talk: Conversation, deadline: float, output_bytes: int, stop: threading.Event | None) -> Ended | None:
    """Talk until it has ended by itself (None), or must be ended, and why."""
    while talk.goes_on(max(0.0, min(deadline - time.monotonic(), _LOOK_SECONDS))):
        if stop is not None and stop.is_set():
            return "stopped"
        if len(talk.output) > output_bytes:
            return "output"
        if time.monotonic() >= deadline:
            return "timed_out"
    return "output" if len(talk.output) > output_bytes else None


def _status(code: int, sandboxed: bool) -> tuple[int, int]:
    """Exit code and signal; bubblewrap tells a signal as a shell does."""
    if code < 0:
        return 0, -code
    if sandboxed and code > _SIGNALLED:
        return 0, code - _SIGNALLED
    return code, 0


def _judged(code: int, number: int) -> Ended:
    if number == signal.SIGXCPU:
        return "timed_out"
    if code == OUT_OF_MEMORY or number == signal.SIGKILL:  # KILL that is not ours is the kernel's, short of memory
        return "memory"
    return "done" if code == 0 and number == 0 else "crashed"
