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
import sys
from functools import partial
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
from tests.support.forked import Fork, kill_at_call, serve
from tests.support.secrets import KNOWN

CALLS = ("open", "mkdir", "write", "fdatasync", "fsync", "rename", "unlink", "close", "listdir")
"""The system calls, as the module ``os`` has them, of a stream."""

CHUNK = 50_000


def content(number: int) -> bytes:
    """Content of any size, with secrets in it."""
    chance = random.Random(number)
    pieces = chance.choice((10, 600, 1_800)) if number else 600
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
    tell = os.write

    async def run() -> str:
        kill_at_call(number, CALLS)
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


def play(workspace: Path, line: str) -> str:
    """Fork a performer, kill one that lives, and say what it was told last, and how it ended."""
    kind, word = line.split()
    number = int(word)
    performer = Fork(partial(step if kind == "step" else live, workspace, number))
    if kind == "live":
        draw = random.Random(number)
        performer.has_reported(1 + draw.randrange(3))  # that it began, and what it streamed; however slow it is
        performer.kill(draw.random() * 0.2)
    code, lines = performer.end()
    return f"{(lines or ['-'])[-1]} {code}"


if __name__ == "__main__":
    serve(partial(play, Path(sys.argv[1])))
