"""The sequencer: positions without a gap, times that never decrease, each fact once among the latest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.events import sequencer as module
from pmagent.events.errors import BadEvent
from pmagent.events.event import Draft, Tail
from pmagent.events.sequencer import Sequencer
from tests.support.logs import draft, moment


@given(st.lists(st.integers(0, 3000), max_size=30))
def test_positions_have_no_gap_and_time_never_goes_back_though_the_clock_does(clock: list[int]) -> None:
    sequencer = Sequencer(Tail(7, 3, moment(500), "0" * 64))
    admitted = [sequencer.admit(draft(number), moment(second)) for number, second in enumerate(clock)]
    assert [event.position for event in admitted] == list(range(8, 8 + len(clock)))
    times = [moment(500), *(event.time for event in admitted)]
    assert times == sorted(times)
    assert all(event.time >= moment(second) for event, second in zip(admitted, clock, strict=True))


def test_a_refused_event_takes_no_place() -> None:
    sequencer = Sequencer(Tail())
    with pytest.raises(BadEvent):
        sequencer.admit(Draft("", None, b"{}", "i", "a"), moment(1))
    assert sequencer.position == 0
    assert sequencer.time == ""
    assert sequencer.seen("i") is None


def test_the_latest_facts_are_known_and_decisions_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECENT_FACTS_MAX", 3)
    sequencer = Sequencer(Tail(), [("old", 0)])
    for number in range(3):
        sequencer.admit(draft(number), moment(number))
    sequencer.admit(Draft("t", None, b"{}", "3.a.0", "a", kind="decision"), moment(9))
    assert [sequencer.seen(id) for id in ("old", "note-0", "note-2", "3.a.0")] == [None, 1, 3, None]
    assert Sequencer(Tail(), sequencer.recent()).recent() == [("note-0", 1), ("note-1", 2), ("note-2", 3)]


def test_facts_noted_together_are_bounded_like_those_noted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.events.sequencer.RECENT_FACTS_MAX", 3)
    sequencer = Sequencer(Tail(), [("b", 2)])
    sequencer.remember_all([("d", 4), ("a", 1), ("c", 3)])
    assert sequencer.recent() == [("b", 2), ("c", 3), ("d", 4)]
