"""Workspaces for pages: a history of the harness or of the court, or a recorded one, as a log on the real disk."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

from anyio.from_thread import start_blocking_portal
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from pmagent.console.app import Positioned, application
from pmagent.console.auth.entrance import Visitor
from pmagent.console.pages.context import PageContext
from pmagent.contracts.payload import encode, typed
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.errors import PmagentError
from pmagent.events.event import Event, LogCreated, Tail
from pmagent.events.line import seal
from pmagent.events.reader import events
from pmagent.events.segment_store import SegmentStorage
from pmagent.events.storage import BLOB_PREFIX
from pmagent.jobs.history import opened
from pmagent.jobs.kinds import Kind
from pmagent.service.answer import Answer
from pmagent.workspace.layout import Layout
from tests.support.audits import Court
from tests.support.histories import FOLDER as HISTORIES
from tests.support.hostile import unseen_in
from tests.support.orchestra import Harness

LOG_ID = "5a" * 16
VISITOR = Visitor("ada", "approve", "session", "csrf", "2026-11-22T12:00:00.000000Z")
_BATCH = 500


class _Begun(Harness):
    """Begins the log, as a real one is begun."""

    def start(self, surface: str = "daemon") -> None:
        """See Harness."""
        if not self.history:
            self.tell(LogCreated(log_id=LOG_ID), f"log.created:{LOG_ID}")
        super().start(surface)


class RunHarness(_Begun):
    """A harness whose history is that of a whole log, which a daemon can go on with."""


class AuditCourt(_Begun, Court):
    """A court whose history is that of a whole log."""


def written(workspace: Path, history: Sequence[Event], blobs: Iterable[bytes] = (), log_id: str = LOG_ID) -> Path:
    """The workspace, with a log that holds ``history`` as it is, in which nothing is missing (behind what it holds
    already); and with these blobs."""
    layout = Layout(workspace)
    disk = RealDisk()
    store = BlobStore(disk, str(layout.blobs))
    for content in (*blobs, *(encode(event.data) for event in history if event.raw.startswith(BLOB_PREFIX))):
        store.put(content)
    storage = SegmentStorage(disk, str(layout.log), log_id, 1 << 26)
    for start in range(0, len(history), _BATCH):
        some = history[start : start + _BATCH]
        before = storage.tail()
        assert before.position == some[0].position - 1, "the history has no gap"
        lines, sums = seal(some, before.batch + 1, before)
        storage.append_batch(before, lines, Tail(some[-1].position, before.batch + 1, some[-1].time, sums[-1]))
    storage.close()
    return workspace


def recorded(workspace: Path, name: str) -> Path:
    """The workspace with a copy of the recorded history ``name``."""
    layout = Layout(workspace)
    for part, place in (("log", layout.log), ("blobs", layout.blobs)):
        shutil.copytree(HISTORIES / name / part, place)
    return workspace


class _Alone(PageContext):
    """A page context without a daemon; nothing looks for one."""

    async def standing(self, operation: str) -> Answer:
        """See Desk."""
        raise PmagentError(f"nobody says {operation} here")


@contextmanager
def pages(workspace: Path, visitor: Visitor = VISITOR, form: Mapping[str, str] | None = None) -> Iterator[TestClient]:
    """The console's pages over a log that nobody writes, without the guard, for ``visitor``: what a page shows is the
    log's affair alone. ``form``: what every POST brings. All requests run on one event loop."""
    context = _Alone(workspace)
    inner = Positioned(application(context), context)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {}).update(visitor=visitor, form=dict(form or {}), cookie="", trace="")
        await inner(scope, receive, send)

    client = TestClient(app, base_url="http://127.0.0.1", follow_redirects=False, raise_server_exceptions=False)
    with start_blocking_portal() as portal:
        client.portal = portal
        yield client


def page(client: TestClient, address: str) -> str:
    """The text of the page at ``address``, which there is."""
    answer = client.get(address)
    assert answer.status_code == 200, f"{address}: {answer.status_code} {answer.text}"
    return str(answer.text)


class _Reader(HTMLParser):
    """Reads a page, and notes what could do harm."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See HTMLParser."""
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """See HTMLParser."""
        self.texts.append(data)


@functools.lru_cache(maxsize=4)
def read(page: str) -> _Reader:
    """The page's elements and texts."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader


def text(page: str) -> str:
    """The text of a page, blanks as one."""
    return re.sub(r"\s+", " ", " ".join(read(page).texts))


def assert_unseen(page: str) -> None:
    """Nothing of it is invisible, reorders, or climbs over other lines."""
    unseen = unseen_in(page)
    assert not unseen, sorted(map(ascii, unseen))
    assert "\u0301" * 5 not in page, "marks do not climb over other lines"


def assert_quiet(page: str) -> None:
    """The page holds nothing of what a text could do beyond being read: no character that is obeyed, reorders or is
    invisible, no element or address that is not the console's own."""
    assert_unseen(page)
    elements = read(page).elements
    scripts = [str(made.get("src")) for tag, made in elements if tag == "script"]
    assert all(re.fullmatch(r"/static/(?:vendor/)?[\w.]+\.js", script) for script in scripts), scripts
    for tag, made in elements:
        assert tag not in {"iframe", "object", "embed", "img", "style", "base"}, tag
        for key, value in made.items():
            assert not key.startswith("on"), (tag, key)
            assert key != "style", (tag, value)
            if key in {"href", "action", "src"}:
                assert re.match(r"/(?!/)|#", str(value)), (tag, value)


def links(page: str) -> list[str]:
    """Where the page's links lead."""
    return [str(attributes["href"]) for tag, attributes in read(page).elements if tag == "a" and "href" in attributes]




def jobs_in(layout: Layout, kind: Kind) -> list[tuple[Event, Event | None]]:
    """The jobs of a kind, newest first: requests, and the ends that name them; read from the front, all of it."""
    with opened(layout) as log:
        wanted = {kind.requested, *kind.end_types}
        found = [typed(stored, log.blobs) for stored in events(log.storage) if stored.type in wanted]
    ends: dict[int, Event] = {}
    for event in found:
        if event.type in kind.end_types:
            ends.setdefault(event.data.request, event)
    return [(event, ends.get(event.position)) for event in reversed(found) if event.type == kind.requested]
