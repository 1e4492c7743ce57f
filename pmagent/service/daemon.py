"""The daemon: a host that stays, with the services of all areas, and answers on its socket (docs/design.md §11.2)."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec
import structlog
from anyio.abc import SocketAttribute, SocketListener

from pmagent.actors.core.area import load
from pmagent.actors.core.integrity import describe_failure
from pmagent.clean import json_bytes
from pmagent.edges import EDGES, OPERATIONS
from pmagent.events.errors import PmagentError
from pmagent.exitcodes import Exit
from pmagent.flat import flat_errors
from pmagent.service.alerts import alert, alert_lost, tell_halt
from pmagent.service.answer import Answer
from pmagent.service.background import READY, STOPPING, Notifier
from pmagent.service.host import Host, asker, load_parts, open_host
from pmagent.service.operations import perform
from pmagent.service.reload import Reloader, has_terminal, values
from pmagent.service.shapes import work_out_shapes
from pmagent.service.standby import Follower, stand_by
from pmagent.service.wire import (
    BEAT_SECONDS,
    LOOKING,
    REQUEST_BYTES_MAX,
    UNDECODABLE,
    BadMessage,
    Failure,
    Reply,
    Request,
    has_left,
    peer_pid,
    peer_uid,
    stops,
)
from pmagent.workspace.layout import Layout, reachable

CONNECTIONS_MAX = 256
"""So many connections are open at once at most; fewer where the process may open few files."""
BURST: Final = 16
"""So many connections are taken in one turn of the event loop at most."""
AT_ONCE_BYTES: Final = 64 * 1024
"""An answer of so many bytes goes into the buffer of a new socket as a whole."""
REQUEST_SECONDS = 10.0
"""So long a client may take to send its request."""

_log = structlog.get_logger("pmagent")


def serve(workspace: Path, ready: Callable[[Host], None] | None = None, *, standby: bool = False) -> int:
    """Run the daemon until SIGTERM or SIGINT, then stop it in order; returns the exit code 0.

    ``ready`` is called when commands are answered. ``standby``: where another one holds the log, wait for it. Raises
    LogLocked, CorruptLog, HistoryError, OSError before it is up, OutcomeUnknown when the log fails later.
    """
    notifier = Notifier()
    with flat_errors():
        anyio.run(partial(_serve, standby=standby), workspace.resolve(), ready, notifier)
    return 0


def _tell(notifier: Notifier, state: bytes) -> None:
    try:
        notifier.tell(state)
    except OSError as error:
        _log.warning("the service manager cannot be told", state=state.decode(), reason=error.strerror)


async def _serve(
    workspace: Path, ready: Callable[[Host], None] | None, notifier: Notifier, *, standby: bool
) -> None:  # fmt: skip
    load_parts()
    work_out_shapes()
    reason = ["error"]  # until somebody asks for the end
    on_terminal = has_terminal()
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals, ExitStack() as stack:
        async with anyio.create_task_group() as beside:  # goes on when a standby takes over
            console, taken = load(_CONSOLE)(workspace), None
            if standby:
                follows = partial(_follow, notifier, partial(beside.start_soon, console.keep))
                taken = await stand_by(workspace, signals, stack, follows)
                if taken is None:
                    await console.end()
                    _log.info("stopped", reason="standing by")
                    return
            async with open_host(workspace, "daemon", lambda: reason[0], taken=taken) as host:
                spare_collector()
                reloader = Reloader(host, await anyio.to_thread.run_sync(values, workspace))
                host.runtime.listen(alert)
                host.documents.on_halt = tell_halt
                for halt in host.halted_projections:
                    tell_halt(halt)
                listener = await _listen(host.layout)
                console.join(host)
                async with listener, anyio.create_task_group() as tasks:
                    tasks.start_soon(_serve_connections, host, listener)
                    if not console.begun:
                        tasks.start_soon(console.keep)
                    for service in (load(service) for edge in EDGES for service in edge.services):
                        if "task_status" in signature(service).parameters:
                            await tasks.start(service, host)
                        else:
                            tasks.start_soon(service, host)
                    _log.info("up", workspace=str(workspace), pid=os.getpid(), position=host.tail.position)
                    if host.unwritten is not None:
                        _log.warning("a document cannot be written", reason=host.unwritten.message)
                    if host.lost:
                        alert_lost(host.lost)
                    host.writer.tell_lost = alert_lost
                    if ready is not None:
                        ready(host)
                    _tell(notifier, READY)
                    async for number in signals:
                        if number == signal.SIGHUP and has_terminal() == on_terminal:
                            await reloader.reload()
                            continue
                        reason[0] = signal.Signals(number).name
                        break
                    _log.info("stopping", reason=reason[0])
                    _tell(notifier, STOPPING)
                    host.layout.socket.unlink(missing_ok=True)
                    tasks.cancel_scope.cancel()
                await console.end()
    _log.info("stopped", reason=reason[0])


_CONSOLE: Final = "pmagent.console.supervisor:Supervisor"


async def _follow(notifier: Notifier, serve_console: Callable[[], object], follower: Follower) -> None:
    """The work of a daemon that stands by, besides following the log."""
    async with await _listen(follower.layout) as listener:
        _log.info("standing by", workspace=str(follower.layout.workspace), pid=os.getpid())
        _tell(notifier, READY)
        serve_console()
        await _serve_connections(follower, listener)


def spare_collector() -> None:
    """Take what is loaded and folded by now out of the collector's rounds, and let it come round less often: events
    hold no cycles, so there is next to nothing for it to find, and a full round in between costs milliseconds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


async def _listen(layout: Layout) -> SocketListener:
    layout.run.chmod(0o700)
    layout.socket.unlink(missing_ok=True)  # left by a daemon that was killed: we hold the lock, so it is nobody's
    with reachable(layout.socket) as address:
        return await anyio.create_unix_listener(address, mode=0o600)


class _Connection:
    """A client. It is ``idle`` until its whole request has come; ``scope`` ends it."""

    def __init__(self) -> None:
        self.idle = True
        self.scope = anyio.CancelScope()


async def _serve_connections(host: Host | Follower, listener: SocketListener) -> None:
    """Answer each connection. Only so many are open at once, so that the log and the documents always find a free
    descriptor. A client that has sent no whole request keeps nobody waiting: where there is no place left, the one that
    has been idle for longest gives up its own; only where all are being answered do further ones wait.

    The sockets are used as they are: the streams made for them would cost more than most requests. A request that is
    there already and can be answered at once (``Operation.quick``) gets no task of its own either."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    places = max(1, min(CONNECTIONS_MAX, soft // 4))
    connections: dict[_Connection, None] = {}  # the oldest first
    left = anyio.Event()
    arrivals = _Arrivals(host, listener.extra(SocketAttribute.raw_socket))

    async def answer(client: socket.socket, content: bytearray, connection: _Connection) -> None:
        nonlocal left
        try:
            with client, connection.scope:
                await _answer(host, client, content, connection)
        finally:
            del connections[connection]
            left.set()
            left = anyio.Event()

    async with anyio.create_task_group() as tasks:
        while True:
            client, content = await arrivals.next()
            connection = _Connection()
            connections[connection] = None
            tasks.start_soon(answer, client, content, connection)
            while len(connections) >= places:
                idle = next((one for one in connections if one.idle and one is not connection), None)
                if idle is not None:
                    idle.idle = False  # it is on its way out
                    idle.scope.cancel()
                await left.wait()


class _Arrivals:
    """New connections. Those whose request is there already, and can be answered at once, are."""

    def __init__(self, host: Host | Follower, listening: socket.socket) -> None:
        self._host = host
        self._listening = listening
        self._loop = asyncio.get_running_loop()
        self._came: asyncio.Future[None] | None = None
        self._first: tuple[socket.socket, bytearray] | None = None

    async def next(self) -> tuple[socket.socket, bytearray]:
        """The next that needs more, with what it has sent. Raises OSError."""
        while (first := self._take()) is None:
            self._came = self._loop.create_future()
            # Watched for as long as nobody needs more: to begin and to end that costs as much as an answer.
            self._loop.add_reader(self._listening, self._arrived)
            try:
                await self._came
            finally:
                self._loop.remove_reader(self._listening)
            if (first := self._first) is not None:
                self._first = None
                break
        return first

    def _arrived(self) -> None:
        assert self._came is not None, "watched only while it is awaited"
        if self._came.done():
            return
        try:
            self._first = self._take()
        except OSError as error:  # too many open files
            self._came.set_exception(error)
        if self._first is not None:
            self._came.set_result(None)

    def _take(self) -> tuple[socket.socket, bytearray] | None:
        for _ in range(BURST):  # then others have a turn
            try:
                client, _ = self._listening.accept()
            except BlockingIOError:
                return None
            except ConnectionAbortedError:
                continue
            client.settimeout(0)
            if (content := _answered_at_once(self._host, client)) is not None:
                return client, content
        return None


def _answered_at_once(host: Host | Follower, client: socket.socket) -> bytearray | None:
    """Answer, and close; or what the client has sent, where it takes more than that."""
    content, reply = bytearray(), b""
    with suppress(EOFError, BadMessage):  # of these, and of bugs, who answers in a task tells
        if peer_uid(client) in (os.getuid(), 0) and (content := _received(client)).find(b"\n") == len(content) - 1:
            request = _request(bytes(content))
            quick = OPERATIONS[request.operation].quick if request.operation in OPERATIONS else ""
            with suppress(Exception):
                answer: Answer | None = load(quick)(host) if quick and not isinstance(host, Follower) else None
                if answer is not None:
                    reply = (_TAKEN if request.heartbeat else b"") + json_bytes(_replied(answer)) + b"\n"
    if not 0 < len(reply) <= AT_ONCE_BYTES:
        return content
    with client, suppress(OSError):  # it has gone, or this machine's buffers are small: it asks again
        client.sendall(reply)
    return None


async def _answer(host: Host | Follower, client: socket.socket, content: bytearray, connection: _Connection) -> None:
    """One request, one reply; whatever is wrong with it is its sender's."""
    try:
        if peer_uid(client) not in (os.getuid(), 0):
            _log.warning("refused a connection of another user")
            return
        try:
            line = await _line(client, content)
            if connection.scope.cancel_called:
                return  # its place was given away before anything was taken
            connection.idle = False
            request = _request(line)
            asker.set(peer_pid(client))
            if request.heartbeat:
                _beat(client, 0.0)
            # Looked at behind the word that it is taken: see ``wire``.
            if has_left(client) and not _runs_without_client(host, request):
                if request.operation not in LOOKING:
                    what = "a request is dropped: its client went away before it was taken"
                    _log.warning(what, operation=request.operation, request=request.arguments.get("request", ""))
                return
            with _beating(client) if request.heartbeat else nullcontext():
                reply = await reply_to(host, request)
        except EOFError:
            return  # somebody only looked whether we answer, or went away
        except TimeoutError:
            _log.warning("a client sent no request in time")
            return
        except BadMessage as error:
            reply = failure_of(error)
        await _send(client, json_bytes(reply) + b"\n")
    except ConnectionError:
        _log.warning("a client went away before its answer")


async def _line(client: socket.socket, content: bytearray) -> bytes:
    """The request, without its newline; ``content`` has come already. Raises BadMessage when it is longer than
    ``REQUEST_BYTES_MAX``, EOFError when the client left without a whole one, TimeoutError."""
    end = content.find(b"\n")
    if end < 0:
        with anyio.fail_after(REQUEST_SECONDS):
            while end < 0 and len(content) <= REQUEST_BYTES_MAX:
                await anyio.wait_readable(client)
                more = _received(client)
                end = more.find(b"\n") + len(content) if b"\n" in more else -1
                content += more
    if not 0 <= end <= REQUEST_BYTES_MAX:
        raise BadMessage(f"a message over the socket is longer than {REQUEST_BYTES_MAX} bytes")
    return bytes(content[:end])


_CHUNK: Final = 256 * 1024


def _received(client: socket.socket) -> bytearray:
    """The bytes that have come; none where there are none yet. Raises EOFError at the end."""
    try:
        content = client.recv(_CHUNK)
    except BlockingIOError:
        return bytearray()
    except ConnectionError as error:
        raise EOFError from error
    if not content:
        raise EOFError
    return bytearray(content)


async def _send(client: socket.socket, content: bytes) -> None:
    """Raises ConnectionError."""
    left = memoryview(content)
    while left:
        try:
            left = left[client.send(left) :]
        except BlockingIOError:
            await anyio.wait_writable(client)


def _request(line: bytes) -> Request:
    """Raises BadMessage."""
    try:
        return msgspec.json.decode(line, type=Request)
    except UNDECODABLE:
        raise BadMessage("this is not a request", "one JSON object: operation, arguments") from None


def _runs_without_client(host: Host | Follower, request: Request) -> bool:
    """Whether a request is carried out though its client has gone: what stops something."""
    known = OPERATIONS.get(request.operation)
    if known is None or not known.outlives or isinstance(host, Follower):
        return stops(request.operation, request.arguments)
    return bool(load(known.outlives)(host, request.arguments))


@contextmanager
def _beating(raw: socket.socket) -> Iterator[None]:
    """Tell the client that its request is worked on, for the length of the block. A timer of the event loop does that,
    and no thread: a loop that is stuck has to be silent."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    timer: asyncio.TimerHandle

    def beat() -> None:
        nonlocal timer
        _beat(raw, loop.time() - began)
        timer = loop.call_later(BEAT_SECONDS, beat)

    timer = loop.call_later(BEAT_SECONDS, beat)
    try:
        yield
    finally:
        timer.cancel()


def _beat(raw: socket.socket, seconds: float) -> None:
    """Say that a request is worked on. So short a line goes as a whole or not at all; a client that does not read, or
    has gone, is nothing to wait for."""
    with suppress(OSError):
        raw.send(_taken(seconds), socket.MSG_DONTWAIT)


def _taken(seconds: float) -> bytes:
    return msgspec.json.encode(Reply(taken=round(seconds, 1))) + b"\n"


_TAKEN: Final = _taken(0.0)


async def reply_to(host: Host | Follower, request: Request) -> Reply:
    """Perform what is asked for; whatever goes wrong is a reply, too."""
    try:
        asked = request.operation, request.arguments
        answer = await (host.perform(*asked) if isinstance(host, Follower) else perform(host, *asked))
    except PmagentError as error:
        return failure_of(error)
    except Exception as error:  # noqa: BLE001 - a bug in one operation is its asker's news, and nobody else's end
        kind, place = describe_failure(error)
        _log.exception("a bug in pmagent", operation=request.operation)
        what = f"a bug in pmagent: {kind} in {place}"
        return Reply(failure=Failure(kind, what, "report it; the daemon goes on", Exit.BUG))
    return _replied(answer)


def _replied(answer: Answer) -> Reply:
    return Reply(document=answer.document, exit_code=answer.exit_code, warnings=answer.warnings)


def failure_of(error: PmagentError) -> Reply:
    """An error as a reply."""
    return Reply(failure=Failure(type(error).__name__, error.message, error.hint, error.exit_code))
