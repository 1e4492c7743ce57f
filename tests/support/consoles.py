"""The console for tests: its whole application behind the guard, over a live workspace in this process.

``live_host`` is a daemon without a process of its own: host, socket and watcher on an event loop in a thread.
``Console`` is a browser without a browser: Starlette's client, signed in by a one-time address, which posts forms as
pages do.
"""

from __future__ import annotations

import html
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.testclient import TestClient

from pmagent.actors.model.models import Models
from pmagent.console.address import Address
from pmagent.console.auth import operators
from pmagent.console.auth.entrance import invite
from pmagent.console.auth.limits import Bucket
from pmagent.console.live.feed import Feed
from pmagent.console.live.stream import Streams
from pmagent.console.pages.context import PageContext
from pmagent.console.paths import ConsolePaths
from pmagent.console.serving import guarded
from pmagent.service.answer import Answer
from pmagent.service.client import new_request
from pmagent.service.daemon import _listen, _serve_connections
from pmagent.service.host import Host, open_host
from pmagent.service.operations import perform
from pmagent.workspace.layout import Layout
from pmagent.workspace.settings import ConsoleSettings
from pmagent.workspace.watching import watch_surfaces
from tests.support.commands import SECONDS, owned

PORT = 8321
ORIGIN = f"http://127.0.0.1:{PORT}"
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')

T = TypeVar("T")


class LiveHost:
    """A live workspace; its coroutines run on the loop of ``portal``."""

    def __init__(self, host: Host, portal: BlockingPortal) -> None:
        self.host = host
        self.portal = portal
        self.workspace = host.layout.workspace

    def perform(self, operation: str, **arguments: Any) -> Answer:
        """Perform an operation as a command's request over the socket would."""
        return self.run(perform, self.host, operation, {"request": new_request(operation), **arguments})

    def run(self, function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Await ``function(*arguments)`` where the host lives."""
        return self.portal.call(function, *arguments)

    @property
    def position(self) -> int:
        """The durable end of its log, once nothing more comes of what was asked: what was taken back with it (a timer)
        ends a little later than it is answered."""
        return self.run(_settled, self.host)


async def _settled(host: Host) -> int:
    with anyio.fail_after(SECONDS):
        await host.until(lambda: not host.runtime.engine.effects.cancelled)
    return host.tail.position


@asynccontextmanager
async def _lived(workspace: Path, models: Models | None) -> AsyncIterator[Host]:
    owned(workspace)
    async with open_host(workspace, "daemon", resources=[models] if models else []) as host:
        listener = await _listen(host.layout)
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(_serve_connections, host, listener)
            tasks.start_soon(watch_surfaces, host)
            await host.ready()
            yield host
            host.layout.socket.unlink(missing_ok=True)
            tasks.cancel_scope.cancel()


@contextmanager
def live_host(workspace: Path, models: Models | None = None) -> Iterator[LiveHost]:
    """A live workspace for the length of a block, which answers on its socket; its surfaces have been read."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(_lived(workspace, models)) as host:
        yield LiveHost(host, portal)


class Console:
    """One browser at the console of ``workspace``."""

    def __init__(self, workspace: Path, settings: ConsoleSettings | None = None) -> None:
        self.context = PageContext(workspace)
        self.context.paths.prepare()
        self.ended = anyio.Event()
        self.address = Address(1, ORIGIN, PORT)
        streams = Streams(Feed(self.context.layout.store.reader), self.ended)
        self.app = guarded(self.context, settings or ConsoleSettings(), self.address, streams)
        self.app._limits.posts = self.app._limits.gets = Bucket(1e4, 10_000, time.monotonic)  # quicker than people
        self.client = TestClient(self.app, base_url=ORIGIN, follow_redirects=False, raise_server_exceptions=False)

    def enter(self, operator: str, role: operators.Role = "approve") -> Console:
        """Sign in, as an operator who is added if there is none of the name."""
        paths = ConsolePaths(Layout(self.context.workspace))
        known = operators.read(paths.operators)
        if operator not in known:
            operators.add(paths.operators, operator, role, None)
            known = operators.read(paths.operators)
        token = invite(paths, known[operator])
        answer = self.client.get(f"/enter?token={token}")
        assert answer.status_code == 303, answer.text
        return self

    def get(self, address: str, **arguments: Any) -> Any:
        """The answer to a GET."""
        return self.client.get(address, **arguments)

    def page(self, address: str) -> str:
        """The text of the page at ``address``, which there is."""
        answer = self.get(address)
        assert answer.status_code == 200, f"{address}: {answer.status_code} {answer.text}"
        return str(answer.text)

    def csrf(self, address: str = "/help") -> str:
        """The token that the forms of a page hold."""
        found = _CSRF.search(self.page(address))
        assert found is not None, f"{address} has no form"
        return html.unescape(found[1])

    def post(self, address: str, *, origin: str = ORIGIN, csrf: str | None = None, **fields: str) -> Any:
        """The answer to a POST of a form, as a page of ours sends it."""
        token = self.csrf() if csrf is None else csrf
        return self.client.post(address, data={"csrf": token, **fields}, headers={"origin": origin})


@contextmanager
def console(workspace: Path, operator: str = "ada", role: operators.Role = "approve") -> Iterator[Console]:
    """A console with somebody signed in; all its requests run on one event loop."""
    made = Console(workspace)
    with start_blocking_portal() as portal:
        made.client.portal = portal
        yield made.enter(operator, role)
