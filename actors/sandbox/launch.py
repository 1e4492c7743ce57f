"""The one place that starts bubblewrap: for tasks, checks, the planner, and readers of foreign files; blocking.

The options differ from caller to caller and are decided elsewhere. The same for all: it dies with this process; options
come in a file, never on the command line, which every user of the machine may read; nothing is handed over but named
descriptors; the process leads a session of its own, and starts in ``/``.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from io import FileIO
from typing import Final, NamedTuple

from pmagent.actors.sandbox.arguments import Argument, Content, HostPath
from pmagent.actors.sandbox.spec import SandboxRefused

BOUND: Final = ("--die-with-parent", "--args")
"""The options that bubblewrap is always started with; orphans are known by them."""


class Launch(NamedTuple):
    """A process behind bubblewrap: ``options`` name the open descriptors ``handed`` to it."""

    program: Sequence[str]
    """bubblewrap, or the command that becomes it. Empty: ``command`` runs without a wall, and has no options."""
    options: Sequence[str]
    command: Sequence[str]
    handed: Sequence[int] = ()
    environment: Mapping[str, str] = {}
    """Of bubblewrap itself, which what runs inside can read, and has where it is not cleared."""
    umask: int = -1
    """-1: ours."""


def start(
    launch: Launch, stdin: int = subprocess.PIPE, output: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """The started process, with unbuffered pipes, or all that it writes going to ``output``. Raises OSError;
    ValueError for an option with a NUL, which would be two in a file. Then nothing runs."""
    options = os.fsencode("\0".join((*launch.options, "")))
    if options.count(b"\0") != len(launch.options):
        raise ValueError("an option of bubblewrap holds a NUL character")
    words, arguments = list(launch.command), -1
    try:
        if launch.program:
            arguments = in_memory(options)
            words = [*launch.program, *BOUND, str(arguments), "--", *words]
        return subprocess.Popen(
            words, stdin=stdin, stdout=output, stderr=output, bufsize=0, cwd="/",
            env=dict(launch.environment), umask=launch.umask, start_new_session=True,
            pass_fds=(*launch.handed, *((arguments,) if arguments >= 0 else ())),
        )  # fmt: skip
    finally:
        if arguments >= 0:
            os.close(arguments)


class Gated(NamedTuple):
    """The ends by which a launch with a gate is followed and let go on."""

    launch: Launch
    status: int
    """Our end of bubblewrap's reports."""
    reading: int
    """bubblewrap's end of the gate."""
    gate: FileIO
    """Ours; never blocks."""


def gated(launch: Launch, ours: ExitStack, theirs: ExitStack) -> Gated:
    """``launch``, such that what is built waits for a byte before its first process starts another, and goes on without
    one when this process has ended: only from late in its building on would it die with this process.

    ``ours`` closes our ends, ``theirs`` the others, which nobody needs here after the start. Raises OSError.
    """
    status, report = _reports()
    ours.callback(os.close, status)
    theirs.callback(os.close, report)
    reading, writing = os.pipe2(os.O_CLOEXEC)
    theirs.callback(os.close, reading)
    gate = ours.enter_context(FileIO(writing, "w"))
    os.set_blocking(writing, False)
    options = (*launch.options, "--json-status-fd", str(report), "--block-fd", str(reading))
    whole = launch._replace(options=options, handed=(*launch.handed, report, reading))
    return Gated(whole, status, reading, gate)


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


def opened(options: Iterable[Argument], stack: ExitStack) -> tuple[list[str], list[int]]:
    """The options with descriptors in them, and these, which ``stack`` closes. Raises SandboxRefused, OSError."""
    handed: list[int] = []

    def hand(descriptor: int) -> str:
        stack.callback(os.close, descriptor)
        handed.append(descriptor)
        return str(descriptor)

    words: list[str] = []
    for argument in options:
        if isinstance(argument, Content):
            words.append(hand(in_memory(argument.data)))
        elif isinstance(argument, HostPath):
            words.append(hand(_as_named(argument.path)))
        else:
            words.append(argument)
    return words, handed


def _as_named(path: str) -> int:
    """A descriptor of what is at ``path`` itself; raises SandboxRefused when a link has come into it since it was
    looked at, or it is gone; OSError where none can be had."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SandboxRefused(f"{path} changed while the sandbox was built: {error.strerror}", "try again") from error
    if os.readlink(f"/proc/self/fd/{descriptor}") != path or stat.S_ISLNK(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SandboxRefused(f"{path} became a link while the sandbox was built", "find out what made it one")
    return descriptor


def in_memory(data: bytes) -> int:
    """A descriptor from which ``data`` is read. Raises OSError."""
    descriptor = os.memfd_create("sandbox", os.MFD_CLOEXEC)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
