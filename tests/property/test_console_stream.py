"""A browser is told each event that it wants once, in order, and of each change, whatever happens on the way."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.events.event import Draft, StoredEvent
from pmagent.events.reader import events
from pmagent.log.query import Query, compiled
from tests.support.console_streams import ACCEPTS, Browser, Console, browsing
from tests.support.effort import examples
from tests.support.hostile import CORPUS

TYPES = ("run.requested", "task.assigned", "task.finished", "pla.proposed", "kernel.observed")
QUERIES: dict[str, tuple[list[tuple[str, str]], Query]] = {
    "everything": ([], Query()),
    "types": ([("type", "task.*"), ("type", "run.requested")], Query(types=["task.*", "run.requested"])),
    "excluded": ([("exclude", "task.*")], Query(excluded=["task.*"])),
    "actor": ([("actor", "b")], Query(actors=["b"])),
    "fields": ([("field", "data.n=1"), ("field", "kind=fact")], Query(fields=["data.n=1", "kind=fact"])),
    "nothing": ([("type", "no.such")], Query(types=["no.such"])),
}
"""Name -> the filters as they stand in an address, and what the command line makes of them."""

_texts = st.sampled_from(["", "short", *CORPUS.values()]).map(lambda text: text[:900])
_events = st.tuples(st.sampled_from(TYPES), st.sampled_from("ab"), st.integers(0, 2), _texts)
_steps = st.lists(
    st.one_of(
        st.lists(_events, min_size=1, max_size=12), st.sampled_from(["told", "seen", "left", "restarted"]),
    ),
    min_size=3, max_size=16,
)
_budgets = st.lists(st.integers(0, 60).map(lambda size: size * size), min_size=1, max_size=8)
"""After so many bytes a connection is cut."""


def _draft(number: int, made: tuple[str, str, int, str]) -> Draft:
    type, actor, n, text = made
    return Draft(type, None, msgspec.json.encode({"n": n, "text": text}), f"f{number}", actor, "run-1")


async def _play(console: Console, browser: Browser, other: Browser, steps: list[Any]) -> None:
    """``other`` begins elsewhere, so that runs begin where ``browser`` is not."""
    count = 0
    async with browsing(other, browser):
        for step in steps:
            if isinstance(step, list):
                console.append(*(_draft(count + n, made) for n, made in enumerate(step)))
                count += len(step)
            elif step == "told":
                console.tell()
                await anyio.lowlevel.checkpoint()
            elif step == "seen":
                console.tell()
                await browser.at(console.tail)
            elif step == "left":
                browser.leave()
            else:
                console.feed.end()
                console.restart()
        console.tell()
        await browser.at(console.tail)


async def _told(
    steps: list[Any], budgets: list[int], path: str, query: list[tuple[str, str]], accepts: str = ACCEPTS
) -> tuple[Browser, list[StoredEvent]]:
    console = Console()
    console.append(_draft(999_999, ("run.requested", "a", 0, "before")))
    console.append(_draft(999_998, ("run.requested", "a", 0, "before")))
    browser = console.browser(path, [("after", "3"), *query], budgets, accepts)
    await _play(console, browser, console.browser(path, [("after", "1")], [300] * 20), steps)
    return browser, [*events(console.reader(), 4)]


@given(
    steps=_steps, budgets=_budgets, name=st.sampled_from(sorted(QUERIES)),
    accepts=st.sampled_from(["", "gzip", ACCEPTS]),
)  # fmt: skip
@settings(max_examples=examples(60), deadline=None)
def test_each_line_that_is_wanted_comes_once_and_in_order(
    steps: list[Any], budgets: list[int], name: str, accepts: str
) -> None:
    parameters, query = QUERIES[name]
    browser, log = anyio.run(_told, steps, budgets, "/live/log", parameters, accepts)
    assert (browser.headers.get("content-encoding") == "deflate") == ("deflate" in accepts)
    assert browser.source.rows() == [event.position for event in log if compiled(query)(event)]
    assert sum(data["count"] for data in browser.source.all("lines")) == len(browser.source.rows())


@given(steps=_steps, budgets=_budgets, topics=st.lists(st.sampled_from(["task.", "run.requested", "pla."]), max_size=2))
@settings(max_examples=examples(40), deadline=None)
def test_each_change_is_told_and_no_other(steps: list[Any], budgets: list[int], topics: list[str]) -> None:
    browser, log = anyio.run(_told, steps, budgets, "/live", [("topics", ",".join(topics))])
    happened = {event.type for event in log if topics and event.type.startswith(tuple(topics))}
    assert {type for data in browser.source.all("changed") for type in data["types"]} == happened


@given(steps=_steps, budgets=_budgets)
@settings(max_examples=examples(30), deadline=None)
def test_positions_only_rise_within_a_stream(steps: list[Any], budgets: list[int]) -> None:
    browser, log = anyio.run(_told, steps, budgets, "/live/log", [("topics", "task.")])
    ids = [int(told.id) for told in browser.source.told if told.id]
    assert ids == sorted(ids)
    assert [event.position for event in log] == browser.source.rows()
