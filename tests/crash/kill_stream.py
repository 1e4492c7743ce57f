"""Performers that stream content into the blob store, to be killed; each is a process of its own, made by fork.

Started by ``test_stream_kill.py`` as ``python -m tests.crash.kill_stream WORKSPACE``. For each line on stdin one runs
and ends, and one line on stdout says what it was last told is durable (``-`` for nothing), and its exit code:

``step N``   streams ``content(0)``, and kills itself ahead of its Nth system call
``live N``   opens the workspace as the daemon does and streams ``content(N)``, ``content(N + 1)``, … until it is
             killed, at a moment drawn from N
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from pmagent.actors.core.actor import Io
from pmagent.actors.core.intake import Intake
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.redact import Redactor
from pmagent.service.host import open_host
from pmagent.service.io import RealIo
from pmagent.workspace.layout import Layout
from tests.support.secrets import KNOWN

CALLS = ("open", "mkdir", "write", "fdatasync", "fsync", "rename", "unlink", "close", "listdir")
"""The system calls, as the module ``os`` has them, of a stream."""

CHUNK = 50_000


def content(number: int) -> bytes:
    """Content of any size, with secrets in it."""
    chance = random.Random(number)
    pieces = chance.choice((10, 2_000, 6_000)) if number else 2_000
    return b"".join(chance.randbytes(200) + KNOWN.encode() for _ in range(pieces))


async def stream(io: Io, what: bytes) -> str:
    """Stream ``what``; its hash."""
    async with io.store_stream() as kept:
        for at in range(0, len(what), CHUNK):
            await kept.write(what[at : at + CHUNK])
        return (await kept.finish()).sha256


def unread(_position: int) -> Any:
    """Nothing here reads events."""
    raise AssertionError


def step(workspace: Path, number: int, told: int) -> None:
    """See ``step N``."""
    layout = Layout(workspace)
    io = RealIo(workspace, Intake(Redactor([KNOWN]), BlobStore(RealDisk(), str(layout.blobs))), unread)
    left = [number]
    tell = os.write

    def deadly(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return called

    async def run() -> str:
        for name in CALLS:
            setattr(os, name, deadly(getattr(os, name)))
        return await stream(io, content(0))

    tell(told, f"{anyio.run(run)}\n".encode())


def live(workspace: Path, number: int, told: int) -> None:
    """See ``live N``."""

    async def run() -> None:
        async with open_host(workspace, "test") as host:
            io = host.runtime._io
            os.write(told, b"-\n")
            for n in range(number, number + 100_000):
                os.write(told, f"{await stream(io, content(n))}\n".encode())

    os.environ["TEST_API_" + "KEY"] = KNOWN
    anyio.run(run)


def play(act: Callable[[Path, int, int], None], workspace: Path, number: int, kill_within: float) -> str:
    """Fork a performer, kill it (``kill_within`` > 0: within so many seconds), and say how it ended."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        try:
            act(workspace, number, write_end)
            os._exit(0)
        finally:  # it never returns
            traceback.print_exc()
            os._exit(70)
    os.close(write_end)
    told = b""
    if kill_within:
        draw = random.Random(number)
        wanted = 1 + draw.randrange(3)  # lines: that it began, and what it streamed; however slow the machine is
        while told.count(b"\n") < wanted and (more := os.read(read_end, 1 << 16)):
            told += more
        time.sleep(draw.random() * kill_within)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    while more := os.read(read_end, 1 << 16):
        told += more
    os.close(read_end)
    return f"{(told.decode().split() or ['-'])[-1]} {os.waitstatus_to_exitcode(status)}"


def main() -> None:
    """See the module."""
    workspace = Path(sys.argv[1])
    for line in sys.stdin:
        kind, number = line.split()
        act, within = {"step": (step, 0.0), "live": (live, 0.2)}[kind]
        os.write(1, f"{play(act, workspace, int(number), within)}\n".encode())


if __name__ == "__main__":
    main()
