"""Expressions are held against events in a process of their own, which is given up when it takes too long."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import msgspec
import pytest

from events.event import StoredEvent
from pmagent.console.reading.searching import picking
from pmagent.log.query import BadFilter, Query, compiled
from pmagent.log.ranges import TooSlow
from tests.support.hostile import CORPUS


def event(position: int, text: str) -> StoredEvent:
    """An event with a text."""
    data = msgspec.Raw(msgspec.json.encode({"text": text}))
    return StoredEvent(
        position, 1, "2026-11-22T12:00:00.000000Z", f"e{position}", "fact", "toy", "toy.noted", "run", 0, data, "0" * 64
    )


EVENTS = [event(n, text) for n, text in enumerate((*CORPUS.values(), "plain", "x" * 70_000, "aaa"), 1)]


def children() -> set[int]:
    """The processes that this one has."""
    task = Path(f"/proc/{os.getpid()}/task")
    return {int(one) for file in task.glob("*/children") for one in file.read_text().split()}


@pytest.mark.parametrize("grep", ["plain", r"\bowned\b", "^toy", "x{60}", "a{3}", "evil|gnp", "nothing at all", "é?"])
def test_what_is_found_is_what_the_command_line_finds(grep: str) -> None:
    query = Query(grep=grep)
    with picking(query) as pick:
        assert pick(EVENTS) == [*filter(compiled(query), EVENTS)]
        assert pick([]) == []
        assert pick(EVENTS * 8) == [*filter(compiled(query), EVENTS)] * 8, "more than are given at once"


def test_other_filters_hold_as_well() -> None:
    with picking(Query(grep="plain", fields=["position=1"])) as pick:
        assert pick(EVENTS) == []


def test_without_an_expression_there_is_no_process() -> None:
    before = children()
    with picking(Query(types=["toy.*"])) as pick:
        assert pick(EVENTS) == EVENTS
        assert children() == before


def test_an_expression_that_takes_for_ever_is_given_up_and_leaves_no_process() -> None:
    before = children()
    begun = time.monotonic()
    with picking(Query(grep="(a+)+$x"), 0.2) as pick:
        with pytest.raises(TooSlow, match="takes too long"):
            pick([event(1, "a" * 64)])
        assert len(children() - before) == 1
    assert children() == before
    assert time.monotonic() - begun < 10.0


def test_an_expression_that_takes_all_memory_is_given_up() -> None:
    with picking(Query(grep="((((a?){200}){200}){200}){200}"), 20.0) as pick, pytest.raises(TooSlow):
        pick([event(1, "a" * 60_000)])


def test_where_no_process_can_be_started_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.console.reading.searching._COMMAND", ("/nowhere/python",))
    with picking(Query(grep="x")) as pick, pytest.raises(TooSlow, match="no process can be started"):
        pick(EVENTS)


def test_an_expression_that_is_none_is_told_before_there_is_a_process() -> None:
    before = children()
    for grep in ("(", "a{99999999999}", "(" * 4000 + ")" * 4000, "(?P<a>x)(?P<a>y)", "*"):
        with pytest.raises(BadFilter, match=re.escape("--grep")), picking(Query(grep=grep)):
            pass
    assert children() == before
