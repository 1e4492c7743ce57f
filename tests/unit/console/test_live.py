"""The live streams: what they tell, when they end and why, and what one of them costs the others."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
import pytest
from starlette.testclient import TestClient

from pmagent.console.live import feed as feeds
from pmagent.console.live import filters
from pmagent.console.live.feed import Feed, Silent
from pmagent.console.live.filters import EXPRESSIONS_MAX
from pmagent.console.live.stream import SKIP_EVENTS
from pmagent.events.errors import NotFound
from pmagent.events.event import Draft, StoredEvent
from pmagent.events.segments import SegmentReader, segment_name
from pmagent.log.query import Query
from pmagent.log.ranges import Pick, TooSlow
from tests.support.cases import each, on_loop
from tests.support.commands import SECONDS
from tests.support.console_streams import FOLDER, Browser, Console, browsing
from tests.support.hostile import CORPUS


def note(number: int, text: str = "", *, type: str = "task.finished") -> Draft:
    """A draft."""
    return Draft(type, None, msgspec.json.encode({"n": number, "text": text}), f"f{number}", "worker", "run-1")


def filled(count: int, text: str = "") -> Console:
    """A console whose log holds so many events beside the first."""
    console = Console()
    for first in range(0, count, 50):
        console.append(*(note(n, text) for n in range(first, min(count, first + 50))))
    return console


async def whole(console: Console, browser: Browser) -> None:
    """Until it has been told all."""
    async with browsing(browser):
        await browser.at(console.tail)


def test_what_came_while_nobody_looked_is_told_at_once() -> None:
    console = filled(7)
    browser = console.browser("/live/log", [("after", "3")])
    anyio.run(whole, console, browser)
    assert browser.source.rows() == [4, 5, 6, 7, 8]
    assert browser.headers["content-type"].startswith("text/event-stream")
    assert 500 <= browser.source.retry < 1500


def test_without_a_position_it_begins_with_now() -> None:
    async def follow() -> list[int]:
        console = filled(5)
        browser = console.browser("/live/log")
        async with browsing(browser):
            await browser.at(6)
            console.append(note(5))
            console.tell()
            await browser.at(7)
        return browser.source.rows()

    assert anyio.run(follow) == [7]


def test_last_event_id_wins_over_after() -> None:
    console = filled(5)
    browser = console.browser("/live/log", [("after", "1")])
    browser.source.last_id = "4"
    anyio.run(whole, console, browser)
    assert browser.source.rows() == [5, 6]


def test_a_page_is_told_which_of_its_types_came() -> None:
    console = filled(2)
    console.append(note(2, type="pla.proposed"), note(3, type="kernel.observed"))
    browser = console.browser("/live", [("after", "1"), ("topics", "pla.,task.,")])
    anyio.run(whole, console, browser)
    types = {type for data in browser.source.all("changed") for type in data["types"]}
    assert types == {"task.finished", "pla.proposed"}
    assert browser.source.all("lines") == []


def test_the_log_page_is_told_of_its_other_parts_too() -> None:
    console = filled(2)
    browser = console.browser("/live/log", [("after", "1"), ("topics", "task."), ("type", "no.such")])
    anyio.run(whole, console, browser)
    assert browser.source.rows() == []
    assert browser.source.all("changed")[-1] == {"position": 3, "types": ["task.finished"]}


def test_a_page_that_is_far_behind_is_stale_whatever_has_happened() -> None:
    console = filled(SKIP_EVENTS + 2)
    browser = console.browser("/live", [("after", "1"), ("topics", "pla.")])
    anyio.run(whole, console, browser)
    assert browser.source.all("changed") == [{"position": console.tail, "types": []}]
    assert console.feed.kept(1) is None, "it was not even read"


@each("path", ["/live", "/live/log"])
def test_a_position_that_the_log_has_not_is_of_another_log(path: str) -> None:
    console = filled(2)
    browser = console.browser(path, [("after", "99")])
    anyio.run(browser.connect)
    assert [told.event for told in browser.source.told] == ["over"]
    assert browser.source.told[0].data["why"] == "replaced"
    assert browser.ended


@each("path", ["/live", "/live/log"])
def test_a_longer_log_of_the_same_place_is_another_log_all_the_same(path: str) -> None:
    console = filled(9)
    known = console.reader().log_id()
    mine, others = (console.browser(path, [("after", "3"), ("log", log)]) for log in (known, "f" * 32))
    anyio.run(whole, console, mine)
    anyio.run(others.connect)
    assert [told.data["why"] for told in others.source.told] == ["replaced"]


def test_all_that_is_intact_is_told_before_a_corrupt_place() -> None:
    console = Console()
    for n in range(40):
        console.append(note(n))
    name = next(name for name in console.disk.names(FOLDER) if name.endswith(".jsonl") and int(name[:20]) > 8)
    broken = int(name[:20])
    console.disk.contents[f"{FOLDER}/{name}"].data[100] ^= 1
    browsers = [console.browser("/live/log", [("after", "2")]) for _ in range(3)]

    async def connect_all() -> None:
        async with anyio.create_task_group() as tasks:
            for browser in browsers:
                tasks.start_soon(browser.connect)

    anyio.run(connect_all)
    for browser in browsers:
        assert browser.source.rows() == [*range(3, broken)]
        last = browser.source.told[-1]
        assert (last.event, last.data["why"]) == ("over", "corrupt")
        assert name in last.data["text"]
        assert browser.source.last_id == str(broken - 1)


@on_loop
async def test_a_log_that_cannot_be_read_is_told_of_and_may_be_mended() -> None:
    def refused() -> SegmentReader:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    console = filled(1)
    console.feed._open = refused
    browser = console.browser("/live/log", [("after", "1")])
    await browser.connect()
    assert browser.source.told[-1].data == {"why": "unreadable", "text": "the log cannot be read: Permission denied"}
    console.feed._open = console.reader
    await whole(console, browser)
    assert browser.source.rows() == [2]


def test_without_a_log_or_without_its_head_the_stream_says_so() -> None:
    console = Console()
    for name, why in (("HEAD", "corrupt"), (segment_name(1), "missing")):
        console.disk.unlink(f"{FOLDER}/{name}")
        browser = console.browser("/live")
        anyio.run(browser.connect)
        assert browser.source.told[-1].data["why"] == why


@each(
    "query",
    [
        "after=-1", "after=x", "after=1.5", "after=99999999999999999", "after=%D9%A1", "field=nofield", "field=data",
        "grep=(", "wrong=1", "since=10m", "until=now", "before=3",
    ],
)  # fmt: skip
def test_what_is_not_understood_opens_no_stream(query: str) -> None:
    console = filled(1)
    with TestClient(console.app, raise_server_exceptions=False) as client:
        assert client.get(f"/live/log?{query}").status_code != 200
    assert not console.streams.open


def test_a_head_request_opens_no_stream() -> None:
    console = filled(1)
    with TestClient(console.app) as client:
        answer = client.head("/live/log?after=1")
    assert (answer.status_code, answer.content) == (200, b"")


@each("name", sorted(CORPUS))
def test_hostile_text_stays_in_its_row(name: str) -> None:
    console = Console()
    console.append(Draft("t." + "<b>", None, msgspec.json.encode({"text": CORPUS[name]}), "1", "<a>&\"'", "\u202e<i>"))
    browser = console.browser("/live/log", [("after", "1")])
    anyio.run(whole, console, browser)
    (data,) = browser.source.all("lines")
    assert data["count"] == 1
    assert "<b>" not in data["html"]
    assert "<i>" not in data["html"]
    assert "<a>" not in data["html"]
    assert "\u202e" not in data["html"]
    assert data["html"].count("<tr ") == 1


def test_an_expression_is_searched_for_beside_the_console() -> None:
    console = filled(4)
    console.append(note(4, "needle"), note(5))
    browser = console.browser("/live/log", [("after", "1"), ("grep", "need.e")])
    anyio.run(whole, console, browser)
    assert browser.source.rows() == [6]


def test_only_so_many_expressions_are_searched_for_at_once() -> None:
    async def follow() -> str:
        console = filled(0)
        some = [console.browser("/live/log", [("grep", f"a{n}")]) for n in range(EXPRESSIONS_MAX)]
        async with browsing(*some):
            for browser in some:
                await browser.at(1)
            same = console.browser("/live/log", [("grep", "a0")])
            async with browsing(same):
                await same.at(1)
            further = console.browser("/live/log", [("grep", "b")])
            await further.connect()
        return str(further.source.told[-1].data["why"])

    assert anyio.run(follow) == "refused"


@on_loop
async def test_an_expression_that_takes_too_long_ends_its_own_stream_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, may_go_on = threading.Event(), threading.Event()

    @contextmanager
    def stuck(query: Query) -> Iterator[Pick]:
        def pick(events: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
            if not query.grep:
                return events
            entered.set()
            assert may_go_on.wait(120)
            raise TooSlow("it takes too long", "a simpler one")

        yield pick

    monkeypatch.setattr(filters, "picking", stuck)
    console = filled(3)
    searching = console.browser("/live/log", [("after", "1"), ("grep", "(a+)+$")])
    other = console.browser("/live/log", [("after", "1")])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(searching.connect)
        await anyio.to_thread.run_sync(entered.wait, 20)
        async with browsing(other):
            await other.at(4)  # while the expression is still being held against the same events
        may_go_on.set()
    assert other.source.rows() == [2, 3, 4]
    assert searching.source.rows() == []
    assert searching.source.told[-1].data == {"why": "refused", "text": "it takes too long (a simpler one)"}


@on_loop
async def test_who_does_not_read_slows_nobody_and_holds_one_message() -> None:
    console = Console(segment_bytes=100_000, run_bytes=feeds.RUN_BYTES, kept_max=4)
    deaf = console.browser("/live/log", [("after", "1")])
    deaf.reads = anyio.Event()
    browser = console.browser("/live/log", [("after", "1")])
    async with browsing(deaf, browser):
        for first in range(0, 1_000, 100):
            console.append(*(note(n, "x" * 300) for n in range(first, first + 100)))
            console.tell()
            await browser.at(console.tail)
        assert browser.source.rows() == [*range(2, 1_002)]
        assert (deaf.sending, deaf.source.told) == (1, [])
        assert sum(1 for position in range(1_001) if console.feed.kept(position)) < 900, "not all of it is held"
        deaf.reads.set()
        await deaf.at(console.tail)
        assert deaf.source.rows() == browser.source.rows()


@on_loop
async def test_events_are_read_once_for_all() -> None:
    console = filled(30)
    reads = []
    read = console.feed._read
    console.feed._read = lambda wanted: (reads.append(wanted), read(wanted))[1]  # type: ignore[method-assign,func-returns-value]
    browsers = [console.browser("/live/log", [("after", "1"), ("type", f"task.*{'*' * n}")]) for n in range(20)]
    async with browsing(*browsers):
        for browser in browsers:
            await browser.at(console.tail)
    assert len(reads) == len(set(reads))
    assert all(browser.source.rows() == [*range(2, 32)] for browser in browsers)


@on_loop
async def test_the_feed_looks_only_while_somebody_listens() -> None:
    console = filled(1)
    looks = []
    look = console.feed.look
    console.feed.look = lambda: (looks.append(1), look())[1]  # type: ignore[method-assign,func-returns-value]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(console.feed.run)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert not looks
        browser = console.browser("/live/log", [("after", "1")])
        async with browsing(browser):
            await browser.at(2)
            console.append(note(9))
            await browser.at(3)
        tasks.cancel_scope.cancel()
    assert looks


@on_loop
async def test_a_page_hears_something_even_when_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "HEARTBEAT_SECONDS", 0.0)
    console = filled(1)
    browser = console.browser("/live", [("after", "2")])
    async with browsing(browser), anyio.create_task_group() as tasks:
        tasks.start_soon(console.feed.run)
        await browser.until(lambda: len(browser.source.all("at")) >= 3)
        tasks.cancel_scope.cancel()
    assert {data["position"] for data in browser.source.all("at")} == {2}


@on_loop
async def test_the_end_is_told_and_is_no_end_for_the_browser() -> None:
    console = filled(3)
    browser = console.browser("/live/log", [("after", "1")])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(console.streams.run)
        tasks.start_soon(browser.connect)
        await browser.at(4)
        console.ended.set()
    assert browser.source.told[-1].data["why"] == "ended"
    assert browser.ended
    assert not console.streams.open


@on_loop
async def test_who_does_not_read_is_hung_up_on_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.console.live.stream.END_SECONDS", 0.05)
    console = filled(3)
    deaf = console.browser("/live/log", [("after", "1")])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(console.streams.run)
        tasks.start_soon(deaf.connect)
        await deaf.until(lambda: deaf.status)
        deaf.reads = anyio.Event()
        console.append(note(9))
        console.ended.set()
    assert not deaf.ended
    assert not console.streams.open


@on_loop
async def test_a_database_that_hangs_holds_up_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end is asked for in a thread. A stream that knows none yet says so, and takes the log for no other one."""
    hangs, went_on = threading.Event(), 0

    def opened() -> Any:
        assert hangs.wait(SECONDS)
        raise NotFound("there is no log", "")

    monkeypatch.setattr(feeds, "FAR_LOOK_SECONDS", 0.05)
    feed = Feed(opened, far=True)
    async with anyio.create_task_group() as tasks:

        async def tick() -> None:
            nonlocal went_on
            while feed.trouble is None:
                went_on += 1
                await anyio.lowlevel.checkpoint()

        tasks.start_soon(tick)
        await feed.looked()
    assert isinstance(feed.trouble, Silent)
    assert went_on > 1
    hangs.set()
    await feed.close()
