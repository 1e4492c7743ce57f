"""The daemon's socket: one JSON line asks, one JSON line answers (docs/design.md §11.2).

Before its answer the daemon says at once that it has taken the request, and says so again every ``BEAT_SECONDS`` while
it works on it: a client tells a request that was never taken from one that takes long, and notices a daemon that hangs.
The daemon looks whether its client is still there after it has said "taken", and drops the request if not, unless it
``stops`` something. So a client that leaves and has heard no "taken" knows that nothing will come of its request.

The socket lies in a folder that only this user may enter, has mode 0600, and both sides check whose process is at the
other end. Its path may be longer than a socket address holds, so both sides reach it through the open folder.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from typing import Any, Final

import anyio
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from pmagent.edges import OPERATIONS
from pmagent.events.errors import PmagentError

REQUEST_BYTES_MAX: Final = 24 << 20
REPLY_BYTES_MAX: Final = 64 << 20

BEAT_SECONDS: Final = 0.5
"""How often the daemon says that it is working on a request."""

LOOKING: Final = frozenset(name for name, operation in OPERATIONS.items() if operation.looks)
"""The operations that only look: the log answers them, too."""

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding a message; msgspec does not wrap the last two."""


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request: an operation of ``pmagent.service.operations``. ``heartbeat``: the client wants to be told that it was
    taken; a daemon that knows nothing of that refuses the request, and does not carry it out."""

    operation: str
    arguments: dict[str, Any]
    heartbeat: bool = False


class Failure(msgspec.Struct, frozen=True):
    """An error that crosses the socket: its class's name, what it says, and the exit code."""

    kind: str
    message: str
    hint: str
    exit_code: int


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer, or the failure; or, before it, for how many seconds the daemon has been at work (``taken``)."""

    document: dict[str, Any] | None = None
    exit_code: int = 0
    warnings: list[str] = []
    failure: Failure | None = None
    taken: float | None = None


class BadMessage(PmagentError, exit_code=5):
    """A message over the socket is no request or no reply."""


class RemoteError(PmagentError):
    """An error that the daemon met; ``kind`` is its class's name there."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, failure.hint)
        self.kind = failure.kind
        self.exit_code = failure.exit_code


def peer_uid(connection: socket.socket) -> int:
    """The user id of the process at the other end."""
    return peer(connection)[1]


def peer_pid(connection: socket.socket) -> int:
    """The id of the process at the other end; 0 where it is in no namespace of ours."""
    return peer(connection)[0]


def peer(connection: socket.socket) -> tuple[int, int, int]:
    """Process, user and group at the other end."""
    pid, uid, gid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(pid), int(uid), int(gid)


def has_left(connection: socket.socket) -> bool:
    """Whether the other end has closed, or said that it sends no more."""
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def stops(operation: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a request ends or lowers something, or might: it is carried out even when nobody waits for its answer."""
    known = OPERATIONS.get(operation)
    if known is None:
        return False
    return known.stops(arguments) if callable(known.stops) else known.stops


async def receive_line(stream: BufferedByteReceiveStream, limit: int) -> bytes:
    """One line, without its newline. Raises BadMessage when it is longer than ``limit``, anyio.EndOfStream when the
    other side closed without a whole one."""
    try:
        return await stream.receive_until(b"\n", limit)
    except anyio.DelimiterNotFound:
        raise BadMessage(f"a message over the socket is longer than {limit} bytes") from None
    except anyio.IncompleteRead:
        raise anyio.EndOfStream from None
