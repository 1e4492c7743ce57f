"""Asking the daemon (DESIGN §7)."""

from __future__ import annotations

import os
import socket
import uuid
from typing import Any, Final

import anyio
import msgspec
from anyio.abc import SocketAttribute

from events.errors import PmagentError
from events.lock import is_locked
from pmagent.answer import Answer
from pmagent.layout import Layout
from pmagent.wire import (
    REPLY_BYTES_MAX,
    UNDECODABLE,
    BadMessage,
    RemoteError,
    Reply,
    Request,
    peer_uid,
    reachable,
    receive_line,
)

CONNECT_SECONDS: Final = 15.0
"""How long a daemon that holds the lock may take to open its socket: it folds the log first."""

REPLY_SECONDS: Final = 90.0

TRY_SECONDS: Final = 0.02
PATIENCE_SECONDS: Final = 30.0
"""So long a command tries again when others hold the log for a moment each. Requests are idempotent, so it may."""


def new_request(kind: str) -> str:
    """A fresh id for a request; sending the same one twice is harmless."""
    return f"{kind}-{uuid.uuid4()}"


class DaemonUnreachable(PmagentError):
    """A process holds the log, but does not answer on its socket."""

    exit_code = 5


class HolderGone(DaemonUnreachable):
    """Who held the log has ended before it answered: a command without a socket, or a daemon that was stopping."""


async def call_daemon(
    layout: Layout, name: str, arguments: dict[str, Any], seconds: float = REPLY_SECONDS
) -> Answer:
    """Perform an operation through the daemon, which may take ``seconds`` to answer. Raises DaemonUnreachable
    (HolderGone: asking again, with the same request id, is harmless and may succeed), RemoteError (what the daemon
    met)."""
    try:
        stream = await _connect(layout)
        async with stream:
            raw: socket.socket = stream.extra(SocketAttribute.raw_socket)
            if peer_uid(raw) not in (os.getuid(), 0):
                raise DaemonUnreachable("the socket belongs to another user's process", f"look at {layout.socket}")
            with anyio.fail_after(seconds):
                await stream.send(msgspec.json.encode(Request(name, arguments)) + b"\n")
                reply = msgspec.json.decode(await receive_line(stream, REPLY_BYTES_MAX), type=Reply)
    except TimeoutError:
        raise _unreachable(layout, "does not answer in time") from None
    except (anyio.EndOfStream, anyio.BrokenResourceError) as error:
        raise _unreachable(layout, "went away before its answer", gone=True) from error
    except OSError as error:
        raise _unreachable(layout, f"cannot be reached ({type(error).__name__})") from error
    except UNDECODABLE as error:
        raise BadMessage("the daemon's answer is not understood", "is it of another version? restart it") from error
    if reply.failure is not None:
        raise RemoteError(reply.failure)
    return Answer(document=reply.document or {}, exit_code=reply.exit_code, warnings=reply.warnings)


def daemon_listens(layout: Layout) -> bool:
    """Whether a daemon accepts connections; who holds the log without one is a command, and done before long."""
    try:
        with reachable(layout.socket) as address, socket.socket(socket.AF_UNIX) as probe:
            probe.connect(address)
    except OSError:
        return False
    return True


async def _connect(layout: Layout) -> anyio.abc.SocketStream:
    """Connect, waiting for a daemon that is still starting."""
    with anyio.fail_after(CONNECT_SECONDS):
        while True:
            try:
                with reachable(layout.socket) as address:
                    return await anyio.connect_unix(address)
            except (FileNotFoundError, ConnectionRefusedError):
                if not is_locked(*layout.locks):
                    raise _unreachable(layout, "has ended", gone=True) from None
                await anyio.sleep(0.02)


def _unreachable(layout: Layout, what: str, *, gone: bool = False) -> DaemonUnreachable:
    try:
        holder = layout.lock.read_text("utf-8", "replace").strip()
    except OSError:
        holder = ""
    return (HolderGone if gone else DaemonUnreachable)(
        f"the process that holds the log ({holder or 'unknown'}) {what}",
        "wait for that command to end, or stop it; pmagent doctor looks closer",
    )
