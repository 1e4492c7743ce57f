"""The daemon: a host that stays, watches the surfaces, and answers on its socket (DESIGN §7)."""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
import structlog
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from actors.engine import describe_failure
from events.errors import PmagentError
from pmagent.alerts import alert, alert_lost
from pmagent.console.keeping import keep_console
from pmagent.exitcodes import Exit
from pmagent.flat import flat_errors
from pmagent.host import Host, open_host
from pmagent.layout import Layout
from pmagent.operations import perform
from pmagent.pla.linking import link_device
from pmagent.shapes import work_out_shapes
from pmagent.watching import fail_with_log, watch_surfaces
from pmagent.wire import (
    REQUEST_BYTES_MAX,
    UNDECODABLE,
    BadMessage,
    Failure,
    Reply,
    Request,
    peer_uid,
    reachable,
    receive_line,
)

CONNECTIONS_MAX = 256
"""So many clients are answered at once at most; fewer where the process may open few files."""

_log = structlog.get_logger("pmagent")


def serve(workspace: Path, ready: Callable[[Host], None] | None = None) -> int:
    """Run the daemon until SIGTERM or SIGINT, then stop it in order; returns the exit code 0.

    ``ready`` is called when commands are answered. Raises LogLocked, CorruptLog, HistoryError, OSError before it is
    up, OutcomeUnknown when the log fails later.
    """
    with flat_errors():
        anyio.run(_serve, workspace.resolve(), ready)
    return 0


async def _serve(workspace: Path, ready: Callable[[Host], None] | None) -> None:
    work_out_shapes()
    reason = ["error"]  # until somebody asks for the end
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with open_host(workspace, "daemon", lambda: reason[0]) as host:
            spare_collector()
            host.runtime.listen(alert)
            listener = await _listen(host.layout)
            async with listener, anyio.create_task_group() as tasks:
                tasks.start_soon(_serve_connections, host, listener)
                tasks.start_soon(watch_surfaces, host)
                tasks.start_soon(fail_with_log, host)
                tasks.start_soon(link_device, host)
                tasks.start_soon(keep_console, host)
                _log.info("up", workspace=str(workspace), pid=os.getpid(), position=host.tail.position)
                if host.unwritten is not None:
                    _log.warning("a document cannot be written", reason=host.unwritten.message)
                if host.lost:
                    alert_lost(host.lost)
                host.writer.tell_lost = alert_lost
                if ready is not None:
                    ready(host)
                async for number in signals:
                    reason[0] = signal.Signals(number).name
                    break
                _log.info("stopping", reason=reason[0])
                host.layout.socket.unlink(missing_ok=True)
                tasks.cancel_scope.cancel()
    _log.info("stopped", reason=reason[0])


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


async def _serve_connections(host: Host, listener: SocketListener) -> None:
    """Answer each connection. Only so many at once, so that the log and the documents always find a free descriptor;
    further ones wait to be accepted."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    places = anyio.Semaphore(max(1, min(CONNECTIONS_MAX, soft // 4)))

    async def answer(stream: SocketStream) -> None:
        try:
            await _answer(host, stream)
        finally:
            places.release()

    async with anyio.create_task_group() as tasks:
        while True:
            await places.acquire()
            tasks.start_soon(answer, await listener.accept())


async def _answer(host: Host, stream: SocketStream) -> None:
    """One request, one reply; whatever is wrong with it is its sender's."""
    async with stream:
        raw: socket.socket = stream.extra(SocketAttribute.raw_socket)
        if peer_uid(raw) not in (os.getuid(), 0):
            _log.warning("refused a connection of another user")
            return
        try:
            with anyio.fail_after(10):
                line = await receive_line(stream, REQUEST_BYTES_MAX)
            reply = await _reply(host, line)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return  # somebody only looked whether we answer, or went away
        except TimeoutError:
            _log.warning("a client sent no request in time")
            return
        except BadMessage as error:
            reply = _failure(error)
        try:
            await stream.send(msgspec.json.encode(reply) + b"\n")
        except anyio.BrokenResourceError:
            _log.warning("a client went away before its answer")


async def _reply(host: Host, line: bytes) -> Reply:
    try:
        request = msgspec.json.decode(line, type=Request)
    except UNDECODABLE:
        return _failure(BadMessage("this is not a request", "one JSON object: operation, arguments"))
    try:
        answer = await perform(host, request.operation, request.arguments)
    except PmagentError as error:
        return _failure(error)
    except Exception as error:  # noqa: BLE001 - a bug in one operation is its asker's news, and nobody else's end
        kind, place = describe_failure(error)
        _log.exception("a bug in pmagent", operation=request.operation)
        what = f"a bug in pmagent: {kind} in {place}"
        return Reply(failure=Failure(kind, what, "report it; the daemon goes on", Exit.BUG))
    return Reply(document=answer.document, exit_code=answer.exit_code, warnings=answer.warnings)


def _failure(error: PmagentError) -> Reply:
    return Reply(failure=Failure(type(error).__name__, error.message, error.hint, error.exit_code))
