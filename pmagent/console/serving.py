"""The console's server: uvicorn over a socket that we have made, until the daemon goes away (docs/design.md §18.1)."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pmagent.console.address import Address, alone_at_localhost, bound, tell
from pmagent.console.app import Positioned, application
from pmagent.console.auth.entrance import Entrance
from pmagent.console.auth.guard import Guard
from pmagent.console.auth.peers import is_own
from pmagent.console.live.feed import Feed
from pmagent.console.live.stream import Streams
from pmagent.console.pages.context import PageContext
from pmagent.service.shapes import work_out_shapes
from pmagent.workspace.settings import ConsoleSettings
from pmagent.workspace.trust import resolved

STOP_SECONDS = 3.0
ANSWER_SECONDS = 1.0
"""So long the daemon is still waited for when it goes away; then pages say that it has."""
KEEP_ALIVE_SECONDS = 15
UNREAD_BYTES = 64 * 1024
"""So much may wait to be read by the other end in the kernel, and again here, before nothing more is made for it."""
HEAD_BYTES_MAX = 16_384
"""A request's head, cookies and all."""
HEAD_SECONDS = 20.0
"""So long a connection may take to send one: there are only so many connections."""


class _Server(uvicorn.Server):
    """Signals are the process's affair: it ends when the daemon's pipe ends."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None of ours."""
        yield


class _OwnUserOnly(H11Protocol):
    """Refuses a connection of another user before a byte of it is read, and ends one that sends no whole head. Every
    request's ``state`` has ``hang_up``,
    which ends its connection whatever is still to be sent: for one whose other end does not read."""

    def __init__(self, config, server_state, app_state, _loop=None) -> None:  # type: ignore[no-untyped-def]
        super().__init__(config, server_state, {**app_state, "hang_up": self.hang_up}, _loop)
        self._patience: asyncio.TimerHandle | None = None

    def hang_up(self) -> None:
        """Drop the connection, and what is buffered for it."""
        self.transport.abort()

    def connection_made(self, transport) -> None:  # type: ignore[no-untyped-def]
        """See asyncio.Protocol."""
        connection = transport.get_extra_info("socket")
        if not is_own(connection):
            transport.abort()
            return
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_BYTES)
        transport.set_write_buffer_limits(UNREAD_BYTES)
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        super().data_received(data)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        """Wait for a whole head, from its first byte on (or from the connection's beginning), and not for ever. Between
        two requests uvicorn waits, for ``KEEP_ALIVE_SECONDS``."""
        if self.conn.their_state is not h11.IDLE or self.timeout_keep_alive_task is not None:
            self._stop_waiting()
        elif self._patience is None:
            self._patience = self.loop.call_later(HEAD_SECONDS, self.hang_up)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


async def serve(workspace: Path, ended: anyio.Event, ready: Callable[[Address], None]) -> None:
    """Serve until ``ended``. ``ready`` is called when connections are taken. Raises ConfigError, NotAccepted,
    PortTaken, OSError."""
    settings = resolved(workspace, os.environ).settings.console
    context = PageContext(workspace)
    context.paths.prepare()
    listener, address = bound(settings, context.paths)
    with listener, alone_at_localhost(address, settings):
        far = bool(context.layout.evidence.database)
        streams = Streams(Feed(context.layout.store.reader, context.pulse, far=far), ended)
        config = uvicorn.Config(
            guarded(context, settings, address, streams), http=_OwnUserOnly, ws="none", lifespan="off", log_config=None,
            access_log=False, server_header=False, proxy_headers=False, timeout_keep_alive=KEEP_ALIVE_SECONDS,
            h11_max_incomplete_event_size=HEAD_BYTES_MAX, timeout_graceful_shutdown=int(STOP_SECONDS), backlog=512,
        )
        work_out_shapes()  # all pages are loaded by now
        server = _Server(config)
        tell(context.paths, address)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(streams.run)
            tasks.start_soon(context.pulse.run)
            tasks.start_soon(_stop_at_end, server, context, ended)
            ready(address)
            await server.serve(sockets=[listener])
            tasks.cancel_scope.cancel()


def guarded(context: PageContext, settings: ConsoleSettings, address: Address, streams: Streams) -> Guard:
    """The whole application at ``address``: pages and streams, behind the guard."""
    entrance = Entrance(context.paths, settings, note=context.note)
    app = application(context)
    app.state.entrance = entrance
    app.router.routes[:0] = streams.routes
    return Guard(Positioned(app, context), context=context, entrance=entrance, address=address)


async def _stop_at_end(server: uvicorn.Server, context: PageContext, ended: anyio.Event) -> None:
    """The streams hear of the end themselves, and end; and who asked the daemon something hears that it has gone,
    before uvicorn loses patience. Then there is nothing for it to wait for."""
    await ended.wait()
    server.should_exit = True
    await anyio.sleep(ANSWER_SECONDS)
    context.stop_asking()
