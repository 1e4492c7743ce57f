"""The daemon's socket: one JSON line asks, one JSON line answers (DESIGN §7).

The socket lies in a folder that only this user may enter, has mode 0600, and both sides check whose process is at the
other end. Its path may be longer than a socket address holds, so both sides reach it through the open folder.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from anyio.abc import ByteReceiveStream

from events.errors import PmagentError

REQUEST_BYTES_MAX: Final = 24 << 20
REPLY_BYTES_MAX: Final = 64 << 20

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a message may raise; the last two msgspec does not make its own."""


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked: an operation of ``pmagent.operations``."""

    operation: str
    arguments: dict[str, Any]


class Failure(msgspec.Struct, frozen=True):
    """An error that crosses the socket: its class's name, what it says, and the exit code."""

    kind: str
    message: str
    hint: str
    exit_code: int


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer, or the failure."""

    document: dict[str, Any] | None = None
    exit_code: int = 0
    warnings: list[str] = []
    failure: Failure | None = None


class BadMessage(PmagentError):
    """What came over the socket is no request or no reply."""

    exit_code = 5


class RemoteError(PmagentError):
    """An error that the daemon met; ``kind`` is its class's name there."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, failure.hint)
        self.kind = failure.kind
        self.exit_code = failure.exit_code


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """An address for the socket at ``path``, of any length, while the block lasts. Raises OSError."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def peer_uid(connection: socket.socket) -> int:
    """The user id of the process at the other end."""
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(uid)


async def receive_line(stream: ByteReceiveStream, limit: int) -> bytes:
    """One line, without its newline. Raises BadMessage when it is longer than ``limit``, anyio.EndOfStream when the
    other side closed without a whole one."""
    parts: list[bytes] = []
    size = 0
    while True:
        part = await stream.receive()
        end = part.find(b"\n")
        parts.append(part if end < 0 else part[:end])
        size += len(parts[-1])
        if size > limit:
            raise BadMessage(f"a message over the socket is longer than {limit} bytes")
        if end >= 0:
            return b"".join(parts)
