"""Expressions are held against events in a process of their own, which is given up when it takes too long."""

from __future__ import annotations

import re
import subprocess
import time
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from pmagent.console.pages.reading import searching
from pmagent.console.pages.reading.searching import picking
from pmagent.events.event import StoredEvent
from pmagent.log.query import BadFilter, Query, compiled
from pmagent.log.ranges import TooSlow
from tests.support.cases import each
from tests.support.hostile import CORPUS


def event(position: int, text: str) -> StoredEvent:
    """An event with a text."""
    data = msgspec.Raw(msgspec.json.encode({"text": text}))
    return StoredEvent(
        position, 1, "2026-11-22T12:00:00.000000Z", f"e{position}", "fact", "toy", "toy.noted", "run", 0, data, "0" * 64
    )


EVENTS = [event(n, text) for n, text in enumerate((*CORPUS.values(), "plain", "x" * 70_000, "aaa"), 1)]


LONG = 60.0
"""Seconds; no expression here takes so long, however much the machine has to do."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that are started, and no other's: what else this one has, or ends, is other tests' affair."""
    made: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def noted(*given: Any, **more: Any) -> subprocess.Popen[bytes]:
        made.append(popen(*given, **more))
        return made[-1]

    monkeypatch.setattr(searching, "subprocess", SimpleNamespace(
        Popen=noted, PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL,
    ))  # fmt: skip
    return made


@each("grep", ["plain", r"\bowned\b", "^toy", "x{60}", "a{3}", "evil|gnp", "nothing at all", "é?"])
def test_what_is_found_is_what_the_command_line_finds(grep: str) -> None:
    query = Query(grep=grep)
    with picking(query, LONG) as pick:
        assert pick(EVENTS) == [*filter(compiled(query), EVENTS)]
        assert pick([]) == []
        assert pick(EVENTS * 8) == [*filter(compiled(query), EVENTS)] * 8, "more than are given at once"


def test_other_filters_hold_as_well() -> None:
    with picking(Query(grep="plain", fields=["position=1"]), LONG) as pick:
        assert pick(EVENTS) == []


def test_without_an_expression_there_is_no_process(started: list[subprocess.Popen[bytes]]) -> None:
    with picking(Query(types=["toy.*"])) as pick:
        assert pick(EVENTS) == EVENTS
    assert started == []


def test_an_expression_that_takes_for_ever_is_given_up_and_leaves_no_process(
    started: list[subprocess.Popen[bytes]],
) -> None:
    with picking(Query(grep="(a+)+$x"), 0.2) as pick:
        with pytest.raises(TooSlow, match="takes too long"):
            pick([event(1, "a" * 64)])
        assert [one.returncode for one in started] == [None]
    assert [one.returncode for one in started] == [-9], "killed in its own search, and waited for"


def test_how_late_its_process_begins_says_nothing_of_an_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    late = 0.0
    begin = searching._Expression._started

    def begun(self: searching._Expression) -> subprocess.Popen[bytes]:
        nonlocal late
        process = begin(self)
        late += 2 * LONG
        return process

    monkeypatch.setattr(searching._Expression, "_started", begun)
    monkeypatch.setattr(searching, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + late))
    with picking(Query(grep="(a+)+$x"), LONG) as pick:
        assert pick([event(1, "a" * 18)]) == [], "it takes a few milliseconds"


def test_an_expression_that_takes_all_memory_is_given_up() -> None:
    with picking(Query(grep="((((a?){200}){200}){200}){200}"), LONG) as pick, pytest.raises(TooSlow):
        pick([event(1, "a" * 60_000)])


def test_where_no_process_can_be_started_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.console.pages.reading.searching._COMMAND", ("/nowhere/python",))
    with picking(Query(grep="x")) as pick, pytest.raises(TooSlow, match="no process can be started"):
        pick(EVENTS)


def test_an_expression_that_is_none_is_told_before_there_is_a_process(started: list[subprocess.Popen[bytes]]) -> None:
    for grep in ("(", "a{99999999999}", "(" * 4000 + ")" * 4000, "(?P<a>x)(?P<a>y)", "*"):
        with pytest.raises(BadFilter, match=re.escape("--grep")), picking(Query(grep=grep)):
            pass
    assert started == []
