"""Asking the daemon (docs/design.md §11.2)."""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream

from pmagent.clean import json_bytes
from pmagent.edges import EDGES, OPERATIONS
from pmagent.events.errors import PmagentError
from pmagent.events.evidence import requests_of
from pmagent.events.log import now
from pmagent.events.store import Holder
from pmagent.service import liveness
from pmagent.service.answer import Answer
from pmagent.service.wire import (
    LOOKING,
    REPLY_BYTES_MAX,
    REQUEST_BYTES_MAX,
    UNDECODABLE,
    BadMessage,
    RemoteError,
    Reply,
    Request,
    peer_pid,
    peer_uid,
    receive_line,
    stops,
)
from pmagent.when import short
from pmagent.workspace.layout import Layout, reachable

CONNECT_SECONDS: Final = 15.0
"""How long a daemon that holds the lock may take to open its socket: it folds the log first. A command that only looks
reads the log after ``liveness.SILENT_SECONDS``."""

REPLY_SECONDS: Final = 90.0

TRY_SECONDS: Final = 0.02
BUSY_SECONDS: Final = 30.0
"""So long a daemon that computes, and says nothing, is taken to be busy by who asks for more than a look or a stop."""

PATIENCE_SECONDS: Final = 30.0
"""So long a command tries again when others hold the log for a moment each. Requests are idempotent, so it may."""


FAR_BYTES_MAX: Final = 24 << 20
"""A request through the database of the log has so many bytes at most, and so has its answer."""

FAR_PARTS_MAX: Final = 1 << 18
"""A request through the database has so many brackets at most: to read more lists and objects keeps the holder from
others."""

LOOK_SECONDS: Final = 30.0
"""So often who waits for an answer looks whether anybody holds the log."""

SECRETS: Final = ("secret", "by_secret")
"""Arguments that must not lie in a table."""

THERE: Final = "ask on the holder's machine; pmagent status says which it is"

Say = Callable[[str], None]
"""Is told what somebody who waits should know."""


def unheard(_: str) -> None:
    """Nobody is told."""


def new_request(kind: str) -> str:
    """A fresh id for a request; sending the same one twice is harmless."""
    return f"{kind}-{uuid.uuid4()}"


class DaemonUnreachable(PmagentError, exit_code=5):
    """A process holds the log, but does not answer on its socket."""


class HolderGone(DaemonUnreachable):
    """The holder of the log ended before it answered: a command without a socket, or a daemon that was stopping."""


class DaemonStarting(DaemonUnreachable):
    """A process holds the log and does not listen; nothing was asked of it. ``daemon``: how a status says that."""

    def __init__(self, message: str, hint: str, daemon: Literal["starting", "none"]) -> None:
        super().__init__(message, hint)
        self.daemon = daemon


class Unanswered(DaemonUnreachable):
    """The daemon was asked, and does not answer. ``request``: the request's id; ``pid``: the daemon's, 0 where it is
    not known. ``outcome``: ``none`` (nothing was done, and nothing will be) or ``unknown``, with the exit code 6."""

    daemon: Final = "unresponsive"

    def __init__(self, message: str, hint: str, *, outcome: Literal["none", "unknown"], request: str, pid: int) -> None:
        super().__init__(message, hint)
        self.outcome = outcome
        self.request = request
        self.pid = pid
        self.exit_code = 6 if outcome == "unknown" else 5
        self.facts = {"outcome": outcome, "request": request} if request else {"outcome": outcome}


class NotFromHere(DaemonUnreachable):
    """The log is held on another machine, and this cannot be asked through its database."""


class NotTaken(DaemonUnreachable):
    """The holder has not taken the request, and nobody will: nothing was done."""


class FarUnknown(DaemonUnreachable, exit_code=6):
    """The holder may have carried the request out."""


async def call_daemon(
    layout: Layout, name: str, arguments: dict[str, Any], seconds: float = REPLY_SECONDS, say: Say = unheard
) -> Answer:
    """Perform an operation through the daemon, where it is elsewhere through the log's database. It may take
    ``seconds`` to answer as long as it says that it works on it. ``say`` is told what keeps it waiting.

    Raises DaemonStarting, Unanswered, DaemonUnreachable (HolderGone: asking again, with the same request id, is
    harmless and may succeed), RemoteError (what the daemon met), BadMessage.
    """
    if asked_here_first(layout, name, arguments):
        try:
            return await _call_here(layout, name, arguments, seconds, say)
        except RemoteError as error:
            if error.kind != "StandsBy":  # then it did nothing, and the holder is elsewhere
                raise
    if layout.evidence.database and (holder := await _holder(layout)).elsewhere and holder.live:
        require_possible(holder.note, name, arguments)
        if not (OPERATIONS[name].here and daemon_listens(layout)):  # one that stands by
            asked = partial(ask_holder, layout, holder.note, name, arguments, seconds)
            return await anyio.to_thread.run_sync(asked, abandon_on_cancel=True)
    return await _call_here(layout, name, arguments, seconds, say)


def asked_here_first(layout: Layout, name: str, arguments: dict[str, Any]) -> bool:
    """Whether the daemon of this workspace is asked before the database who holds the log: what is to be stopped goes
    on here also while the database is away."""
    return bool(layout.evidence.database) and stops(name, arguments) and daemon_listens(layout)


async def _call_here(
    layout: Layout, name: str, arguments: dict[str, Any], seconds: float, say: Say
) -> Answer:  # fmt: skip
    message = msgspec.json.encode(Request(name, arguments, heartbeat=True)) + b"\n"
    if len(message) > REQUEST_BYTES_MAX:
        raise BadMessage(f"the request is longer than {REQUEST_BYTES_MAX} bytes", "ask for less at once")
    call = _Call(layout, name, arguments)
    try:
        stream = await call.connected(say)
        async with stream:
            reply = await call.replied(stream, message, seconds)
    except (anyio.EndOfStream, anyio.BrokenResourceError) as error:
        raise _unreachable(layout, "went away before its answer", gone=True) from error
    except OSError as error:
        raise _unreachable(layout, f"cannot be reached ({type(error).__name__})") from error
    except UNDECODABLE as error:
        raise BadMessage("the daemon's answer is not understood", "is it of another version? restart it") from error
    if reply.failure is not None and reply.failure.kind == BadMessage.__name__ and not call.taken:
        what = "the daemon does not understand this request, and did nothing"
        raise BadMessage(what, "it is of another version: restart it (end pmagent up, and start it again)")
    if reply.failure is not None:
        raise RemoteError(reply.failure)
    return Answer(document=reply.document or {}, exit_code=reply.exit_code, warnings=reply.warnings)


def held_elsewhere(layout: Layout) -> bool:
    """Whether another machine holds the log; blocking. Raises Unreachable, DatabaseRefused."""
    return bool(layout.evidence.database) and (holder := layout.store.holder()).live and holder.elsewhere


async def _holder(layout: Layout) -> Holder:
    return await anyio.to_thread.run_sync(layout.store.holder, abandon_on_cancel=True)


def require_possible(holder: str, name: str, arguments: Mapping[str, Any]) -> None:
    """Raises NotFromHere for what this machine must not ask ``holder``, on another one, and does not answer itself."""
    known = OPERATIONS.get(name)
    if known is None or not (known.far or known.here):
        there = known.there if known is not None else ""
        raise NotFromHere(f"the log is held by {holder}, and {name} cannot be asked from here", there or THERE)
    for one in known.own:
        if arguments.get(one):
            raise NotFromHere(f"the log is held by {holder}: {name} with {one} cannot be asked from here", known.there)
    if arguments.get("secret"):
        raise NotFromHere("a secret must not lie in the database of the log", THERE)


def require_readable(content: str) -> None:
    """Raises BadMessage where a request through the database is larger than such a one may be."""
    if len(content.encode()) > FAR_BYTES_MAX:
        raise BadMessage(f"the request is longer than {FAR_BYTES_MAX} bytes", "ask for less at once, or there")
    if content.count("[") + content.count("{") > FAR_PARTS_MAX:
        raise BadMessage(f"the request has more than {FAR_PARTS_MAX} brackets", "ask for less at once, or there")


def ask_holder(layout: Layout, holder: str, name: str, arguments: dict[str, Any], seconds: float) -> Answer:
    """Have the holder of the log, which is elsewhere, perform an operation that ``require_possible`` lets through;
    blocking. Raises NotFromHere, RemoteError, NotTaken, FarUnknown, BadMessage; Unreachable, DatabaseRefused."""
    if not OPERATIONS[name].far:
        raise NotFromHere(f"the log is held by {holder}, and no daemon stands by here", "pmagent up --standby")
    arguments = {key: value for key, value in arguments.items() if key != "by_secret"}  # it holds on this machine alone
    arguments = _masked(name, {"request": new_request(name), **arguments})
    content = json_bytes(arguments).decode()
    require_readable(content)
    try:
        found = msgspec.json.decode(_reply(layout, holder, name, arguments["request"], content, seconds), type=Reply)
    except UNDECODABLE as error:
        raise BadMessage("the holder's answer is not understood", "is it of another version?") from error
    if found.failure is not None:
        raise RemoteError(found.failure)
    return Answer(document=found.document or {}, exit_code=found.exit_code, warnings=found.warnings)


def _reply(layout: Layout, holder: str, name: str, request: str, content: str, seconds: float) -> str:
    """The reply to the request. Raises NotTaken, FarUnknown; Unreachable, DatabaseRefused."""
    until = time.monotonic() + seconds
    with closing(requests_of(layout.workspace)) as requests:
        requests.ask(request, name, content, seconds)
        taken, reply = requests.reply(request, min(seconds, REPLY_SECONDS))
        if reply is None and not taken and requests.withdraw(request):
            raise NotTaken(f"{holder} has not taken the request in time; nothing was done", "pmagent status")
        while reply is None and (left := until - time.monotonic()) > 0 and layout.store.holder().live:
            taken, reply = requests.reply(request, min(left, LOOK_SECONDS))
            if reply is None and not taken:  # it was lost with a server that the database has moved away from
                break
    if reply is None:
        hint = "pmagent log tail shows whether it was carried out"
        if OPERATIONS[name].again:
            hint += f"; {_again(request)}"
        raise FarUnknown(f"{holder} has not answered: outcome unknown (request {request})", hint)
    return reply


def _masked(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as they may lie in a table: without secrets. In a request that stops something they
    are masked; any other that holds one is refused, as it would be another request. Raises NotFromHere."""
    from pmagent.events.redact import Redactor, secrets_in  # with all shapes of secrets

    if known := secrets_in(os.environ):
        from pmagent.service.secrets import known_secrets  # which takes the engine to import

        known = known_secrets(os.environ)
    content = {key: arguments[key] for key in OPERATIONS[name].content if key in arguments}
    looked = {key: value for key, value in arguments.items() if key not in content}
    masked: dict[str, Any] = Redactor(known).value(looked)
    if masked != looked and not stops(name, arguments):
        raise NotFromHere("the request holds what looks like a secret, which must not lie in the database", THERE)
    return {**masked, **content}


class _Call:
    """One request, from the connection to its reply; ``taken``: the daemon said that it has taken it."""

    def __init__(self, layout: Layout, name: str, arguments: dict[str, Any]) -> None:
        self.taken = False
        self._layout = layout
        self._name = name
        self._request = str(arguments.get("request", ""))
        self._stops = stops(name, arguments)
        self._since = now()
        self._pid = 0

    async def connected(self, say: Say) -> anyio.abc.SocketStream:
        """A connection to the daemon, which may be starting. Raises DaemonStarting, HolderGone, Unanswered,
        DaemonUnreachable, OSError."""
        notified = False
        began = anyio.current_time()
        while True:
            try:
                with reachable(self._layout.socket) as address, anyio.fail_after(liveness.SILENT_SECONDS):
                    stream = await anyio.connect_unix(address)
            except TimeoutError:  # nobody takes connections, and no more can wait
                raise self._unanswered(f"does not answer ({self._whose}, since {short(self._since)} UTC)") from None
            except (FileNotFoundError, ConnectionRefusedError):
                if not self._layout.store.holder().live:
                    raise _unreachable(self._layout, "has ended", gone=True) from None
            else:
                raw: socket.socket = stream.extra(SocketAttribute.raw_socket)
                self._pid = peer_pid(raw)
                if peer_uid(raw) not in (os.getuid(), 0):
                    await stream.aclose()
                    where = f"look at {self._layout.socket}"
                    raise DaemonUnreachable("the socket belongs to another user's process", where)
                return stream
            waited = anyio.current_time() - began
            patience = min(liveness.SILENT_SECONDS, CONNECT_SECONDS) if self._name in LOOKING else CONNECT_SECONDS
            if waited >= patience:
                raise _starting(self._layout)
            if waited >= liveness.SILENT_SECONDS and not notified:
                notified = True
                say(f"{_starting(self._layout).message}; waiting for it")
            await anyio.sleep(TRY_SECONDS)

    async def replied(self, stream: anyio.abc.SocketStream, message: bytes, seconds: float) -> Reply:
        """The reply to ``message``. Raises Unanswered, and what a broken connection raises."""
        lines = BufferedByteReceiveStream(stream)
        raw: socket.socket = stream.extra(SocketAttribute.raw_socket)
        limit = anyio.current_time() + seconds
        try:
            with anyio.fail_after(liveness.SILENT_SECONDS):
                await stream.send(message)
            while True:
                reply = msgspec.json.decode(await self._line(lines), type=Reply)
                if reply.taken is None:
                    return reply
                self.taken = True
                if anyio.current_time() > limit:
                    self._leave(raw, lines)
                    raise self._unanswered(f"has not answered in {seconds:g} s ({self._whose})")
        except TimeoutError:
            self._leave(raw, lines)
            raise self._unanswered(f"does not answer ({self._whose}, since {short(self._since)} UTC)") from None

    async def _line(self, lines: BufferedByteReceiveStream) -> bytes:
        """The next line. A request that only looks, or stops something, waits for no daemon that is silent; everything
        else waits a while for one that is silent because it computes. Raises TimeoutError."""
        urgent = self._stops or self._name in LOOKING
        began, worked = anyio.current_time(), 0 if urgent else _processor_ticks(self._pid)
        while True:
            with anyio.move_on_after(liveness.SILENT_SECONDS):
                return await receive_line(lines, REPLY_BYTES_MAX)
            working = 0 if urgent else _processor_ticks(self._pid)
            if working <= worked or anyio.current_time() - began >= BUSY_SECONDS:
                raise TimeoutError
            worked = working

    def _leave(self, raw: socket.socket, lines: BufferedByteReceiveStream) -> None:
        """Say that nobody waits any more; then look whether the request was taken before that."""
        with suppress(OSError):
            raw.shutdown(socket.SHUT_WR)
            self.taken = self.taken or bool(lines.buffer or raw.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))

    @property
    def _whose(self) -> str:
        return self._layout.store.holder().note or f"pid {self._pid}"

    def _unanswered(self, what: str) -> Unanswered:
        """That the daemon ``what``, with all that is known of what becomes of the request."""
        messages, hints = [f"the daemon {what}"], []
        outcome: Literal["none", "unknown"] = "none"
        if self._name in LOOKING:
            pass
        elif self._stops:
            outcome = "unknown"
            how = "was taken, and not answered" if self.taken else "could not be delivered yet"
            messages.append(f"outcome unknown: the request {how}, and may still happen")
            hints += [edge.by_hand for edge in EDGES if edge.by_hand]
        elif self.taken:
            outcome = "unknown"
            messages.append("outcome unknown: it has taken the request, and may still carry it out")
        else:
            messages.append("it has not taken the request, which is dropped and never carried out")
        if self._name not in LOOKING and self._request:
            messages[-1] += f" (request {self._request})"
            if self._name in OPERATIONS and OPERATIONS[self._name].again:
                hints.append(_again(self._request))
        hints.append(f"if it hangs, end it (kill -9 {self._pid or 'its pid'}), and start pmagent up again")
        request = "" if self._name in LOOKING else self._request
        return Unanswered(": ".join(messages), "; ".join(hints), outcome=outcome, request=request, pid=self._pid)


def _again(request: str) -> str:
    return f"the same command with --request {request} asks again, and does it once"


def _processor_ticks(pid: int) -> int:
    """How long a process has computed so far (clock ticks); -1 when it is stopped, has ended, or is not known."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        return -1 if state in "tTZX" else int(fields[10]) + int(fields[11])
    except (OSError, ValueError, IndexError):
        return -1


def daemon_listens(layout: Layout) -> bool:
    """Whether a daemon accepts connections; who holds the log without one is a command, and done before long."""
    try:
        with reachable(layout.socket) as address, socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(liveness.SILENT_SECONDS)
            probe.connect(address)
    except OSError:
        return False
    return True


def _starting(layout: Layout) -> DaemonStarting:
    holder = layout.store.holder()
    note = holder.note or "unknown"
    if holder.role == "daemon":
        what = f"the daemon ({note}) does not listen: it is starting, or stopping"
        return DaemonStarting(what, "ask again in a moment; pmagent doctor looks closer", "starting")
    what = f"the process that holds the log ({note}) takes no requests"
    return DaemonStarting(what, "wait for that command to end, or stop it; pmagent doctor looks closer", "none")


def _unreachable(layout: Layout, what: str, *, gone: bool = False) -> DaemonUnreachable:
    return (HolderGone if gone else DaemonUnreachable)(
        f"the process that holds the log ({layout.store.holder().note or 'unknown'}) {what}",
        "ask again; pmagent doctor looks closer",
    )
