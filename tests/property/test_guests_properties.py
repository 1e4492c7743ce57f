"""The guests' actor for drawn histories: its laws hold in every prefix, and each call ends once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.core.engine import Engine
from pmagent.actors.guests.actor import Guests
from pmagent.contracts.control import EffectsPaused
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.guests import (
    GuestApprovalGiven,
    GuestApprovalUsed,
    GuestCallAsked,
    GuestCallClosed,
    GuestCallDecided,
    GuestSessionEnded,
    GuestWaitEnded,
)
from pmagent.events.event import Tail
from pmagent.events.sequencer import Sequencer
from pmagent.projections.core.documents import Documents
from pmagent.projections.guests.sessions import GuestSessions
from pmagent.replay.areas.invariants_guests import check_guests
from pmagent.replay.simulation.world import Violation
from tests.support.cases import each
from tests.support.guests_alone import RULES, TIME, Alone, Kernel, policy

SESSION = st.sampled_from(["s", "t"])
STEP = st.one_of(
    st.tuples(st.just("ask"), SESSION, st.sampled_from(["ls x", "rm x", "make x", "deploy x"]),
              st.sampled_from(["a", "b", ""]), st.sampled_from(["enforce", "enforce", "observe"])),
    st.tuples(st.just("end"), SESSION, st.sampled_from(["a", "b", ""])),
    st.tuples(st.just("answer"), st.integers(0, 3), st.sampled_from(["ada", "grace"]),
              st.sampled_from(["approve", "approve", "reject"]), st.booleans()),
    st.tuples(st.just("late"), st.integers(0, 3)),
    st.tuples(st.just("time"), st.sampled_from([1.0, 700.0, 4000.0, 90_000.0])),
    st.tuples(st.sampled_from(["restart", "policy", "start", "over", "pause"]), SESSION),
)  # fmt: skip


def play(alone: Alone, step: Any) -> None:
    """One thing happens; each fact is held to the laws at once."""
    match step:
        case "ask", session, line, call, mode:
            alone.ask(line, session, call, mode=mode)
        case "end", session, call:
            alone.end(call, session)
        case "answer", which, operator, decision, proven:
            numbers = [*alone.state.approvals, 1]
            number = numbers[which % len(numbers)]
            alone.answer(number, operator, decision, proof="secret" if proven else "none")
        case "late", which:
            waiting = [(name, at) for name, one in alone.state.sessions.items() for at in one.calls] or [("s", 1)]
            name, at = waiting[which % len(waiting)]
            alone.tell(GuestWaitEnded(session=name, call_asked=at, why="late"))
        case "time", seconds:
            alone.wait(seconds)
        case "restart", _:
            alone.tell(DaemonStarted(version="", python="", surface="daemon"), "daemon")
        case "policy", session:
            from pmagent.contracts.guests import GuestPolicyRead

            alone.tell(GuestPolicyRead(policy=RULES if session == "s" else policy(("Bash(make *)", 2))))
        case "start", session:
            alone.start(session)
        case "over", session:
            alone.tell(GuestSessionEnded(session=session, transcript="read"))
        case "pause", _:  # said in the gate's name by somebody else: nobody believes it
            alone.tell(EffectsPaused(request=1, since=1, operator_id="eve", channel="cli", reason=""), "gate")


@given(st.lists(STEP, max_size=40))
def test_only_what_is_allowed_passes_and_each_call_ends_once(steps: list[Any]) -> None:
    alone = Alone()
    for step in steps:
        play(alone, step)
    for session in ("s", "t"):
        alone.tell(GuestSessionEnded(session=session))
    events = alone.events
    asked = {event.position: event.data for event in events if isinstance(event.data, GuestCallAsked)}
    decided = [event.data for event in events if isinstance(event.data, GuestCallDecided)]
    assert [one.request for one in decided] == [*asked]
    refused = [one.request for one in decided if one.answer == "deny" and asked[one.request].mode == "enforce"]
    closed = [event.data.call_asked for event in events if isinstance(event.data, GuestCallClosed)]
    assert sorted((*refused, *closed)) == [*asked]
    assert alone.state.sessions == {}
    assert not alone.state.paused
    again = Engine([Kernel(), Guests()], Sequencer(Tail()))
    for event in events:
        again.fold(event)
    again.complete(TIME)
    assert again.states == alone.engine.states


@given(st.lists(STEP, max_size=30))
def test_a_report_holds_every_call_with_its_verdict_and_its_end(steps: list[Any]) -> None:
    alone = Alone()
    for step in steps:
        play(alone, step)
    documents = Documents([GuestSessions()])
    documents.fold(alone.events, [event.id for event in alone.events])
    made = {path: part.content() for path, part in documents.take().items()}
    assert not documents.halted
    calls = [event for event in alone.events if isinstance(event.data, GuestCallAsked)]
    shown: list[int] = []
    for path, content in made.items():
        assert isinstance(content, bytes)
        if path.endswith(".json"):
            report = msgspec.json.decode(content)
            shown += [call["position"] for call in report["calls"]]
            assert all(call["answer"] for call in report["calls"])
            assert report["asked"] == len(report["calls"]) == sum(report[name] for name in ("allow", "ask", "deny"))
    assert sorted(shown) == [event.position for event in calls]


@each("broken", [
    (GuestCallDecided, {"answer": "allow"}, "rule"), (GuestApprovalUsed, {"call_asked": 3}, ""),
    (GuestApprovalGiven, {"operator_id": "eve"}, ""), (GuestCallClosed, {"end": "refused"}, ""),
    (GuestApprovalUsed, {"approval": 4}, ""),
])  # fmt: skip
def test_the_law_finds_what_must_not_be(broken: tuple[type[Any], dict[str, Any], str]) -> None:
    alone = Alone()
    alone.start()
    first, _ = alone.ask("make x", call="a")
    alone.answer(first)
    alone.end("a")
    cls, fields, _ = broken
    at = next(n for n, event in enumerate(alone.events) if isinstance(event.data, cls))
    wrong = msgspec.structs.replace(alone.events[at], data=msgspec.structs.replace(alone.events[at].data, **fields))
    with pytest.raises((Violation, KeyError)):
        check_guests([*alone.events[:at], wrong, *alone.events[at + 1 :]])
    used = next(event for event in alone.events if isinstance(event.data, GuestApprovalUsed))
    with pytest.raises(Violation):
        check_guests([*alone.events, used])
