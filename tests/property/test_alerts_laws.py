"""The alert inbox, for drawn histories: its laws, its bound, and that nothing unknown leaves it unseen."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.alerts import actor
from pmagent.actors.alerts.actor import JUDGES, Alerts, AlertsState
from pmagent.actors.core.alerts import Asked
from pmagent.actors.core.engine import Engine
from pmagent.contracts.alerts import AlertAcknowledged, AlertAcknowledgeRefused, AlertAcknowledgeRequested
from pmagent.contracts.control import SignInRefused
from pmagent.contracts.hid import HidOutcomeUnknown
from pmagent.contracts.orchestra_events import RunEnded
from pmagent.contracts.payload import encode, type_of, types
from pmagent.contracts.pla_events import (
    PlaContractBroken,
    PlaProposalClosed,
    PlaProposalRequested,
    PlaProposed,
    PlaViolation,
)
from pmagent.events.event import Draft, Event, Tail
from pmagent.events.sequencer import Sequencer
from pmagent.replay.areas.invariants_alerts import check_alerts
from pmagent.replay.simulation.world import Violation
from tests.support.cases import each
from tests.support.made_values import Made

TIME = "2026-11-26T12:00:00.000000Z"


def unknown(name: str) -> HidOutcomeUnknown:
    """Nobody knows how much of the proposal ``name`` was typed."""
    return HidOutcomeUnknown(
        session_id="pla-1", proposal_id=name, execution_id=f"exec-{name}", action_type="TYPE_TEXT", of=4, why="lost"
    )


def failed(state: Any = "failed") -> RunEnded:
    """A run has ended."""
    return RunEnded(request=1, run_id="run-1", state=state, reasons=["x"], mend=[], done=0, failed=1, security=False)


def broken(by: str) -> PlaContractBroken:
    """A document that is none."""
    return PlaContractBroken(contract="action_proposal", kind="missing_field", pointer="/x", text="no", by=by,
                             channel="cli")  # fmt: skip


VIOLATION = PlaViolation(
    session_id="", kind="missing_field", severity="error", contract="action_proposal", text="no", handling="",
    by="brain",
)  # fmt: skip
ACKNOWLEDGE = st.builds(
    AlertAcknowledgeRequested, alert=st.integers(1, 40), note=st.sampled_from(["seen", "", " "]),
    operator_id=st.sampled_from(["ada", "bert"]), channel=st.just("cli"),
)  # fmt: skip
HAPPENING = st.one_of(
    st.sampled_from(["a", "b", "c", "d", "e"]).map(unknown),
    st.builds(SignInRefused, operator_id=st.just("eve"), reason=st.just("no")),
    st.sampled_from(["failed", "done", "timed_out"]).map(failed),
)


class History:
    """An engine with the inbox alone, and what happened."""

    def __init__(self) -> None:
        self.engine = Engine([Alerts()], Sequencer(Tail()))
        self.events: list[Event] = []

    def take(self, *payloads: Any) -> None:
        """Facts, one after the other."""
        for payload in payloads:
            n = len(self.events)
            draft = Draft(type_of(payload), payload, encode(payload), f"fact-{n}", "source", f"c-{n}", 0)
            output = self.engine.accept(draft, TIME)
            assert output is not None
            self.events += output.events

    @property
    def state(self) -> AlertsState:
        """The inbox."""
        state: AlertsState = self.engine.states["alerts"]
        return state


@given(st.lists(st.one_of(ACKNOWLEDGE, HAPPENING), max_size=40))
def test_only_open_alerts_are_acknowledged_once_by_a_named_person(payloads: list[Any]) -> None:
    history = History()
    for payload in payloads:
        history.take(payload)
        check_alerts(history.events)
    state = history.state
    done = [event.data for event in history.events if isinstance(event.data, AlertAcknowledged)]
    answers = sum(isinstance(event.data, AlertAcknowledged | AlertAcknowledgeRefused) for event in history.events)
    assert answers == sum(isinstance(one, AlertAcknowledgeRequested) for one in payloads)
    assert state.acknowledged == len(done)
    seen = {event.data.proposal_id for event in history.events if isinstance(event.data, HidOutcomeUnknown)}
    handled = {one.subject for one in done if one.kind == "outcome_unknown"}
    assert seen - handled <= {one.subject for one in state.open.values()}, "an unknown outcome left the inbox unseen"
    ranks = [actor.RANKS.index(one.severity) for one in state.ranked]
    assert ranks == sorted(ranks)
    again = Engine([Alerts()], Sequencer(Tail()))
    for event in history.events:
        again.fold(event)
    again.complete(TIME)
    assert again.states["alerts"] == state


@each("broken_law", [{"operator_id": "bert"}, {"note": "other"}, {"number": 2}, {"previous": 1}, {"alert": 2}])
def test_the_law_finds_a_wrong_acknowledgement(broken_law: dict[str, Any]) -> None:
    history = History()
    history.take(unknown("a"), AlertAcknowledgeRequested(alert=1, note="seen", operator_id="ada", channel="cli"))
    check_alerts(history.events)
    last = history.events[-1]
    wrong = msgspec.structs.replace(last, data=msgspec.structs.replace(last.data, **broken_law))
    with pytest.raises(Violation):
        check_alerts([*history.events[:-1], wrong])


def test_the_inbox_has_a_bound_and_gives_up_the_least_severe_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actor, "OPEN_MAX", 3)
    history = History()
    history.take(SignInRefused(operator_id="eve", reason="no"), unknown("a"), unknown("b"), unknown("c"))
    assert [(one.kind, one.subject) for one in history.state.ranked] == [("outcome_unknown", name) for name in "cba"]
    assert history.state.given_up == 1


def test_an_alert_that_happened_again_is_not_acknowledged_by_its_older_number() -> None:
    history = History()
    history.take(failed(), SignInRefused(operator_id="eve", reason="no"), SignInRefused(operator_id="eve", reason="no"))
    (twice,) = [one for one in history.state.open.values() if one.count == 2]
    assert (twice.first, twice.position) == (2, 3)
    history.take(AlertAcknowledgeRequested(alert=2, note="seen", operator_id="ada", channel="cli"))
    assert history.events[-1].data.code == "again"
    history.take(AlertAcknowledgeRequested(alert=3, note="seen", operator_id="ada", channel="cli"))
    assert history.events[-1].data.alert == 3


@each("by, alerts", [("border", 0), ("line", 1)])
def test_what_an_operator_is_told_at_once_is_no_alert(by: str, alerts: int) -> None:
    """A typing error of an operator is answered to them; of the device's nobody else tells."""
    history = History()
    asked = PlaProposalRequested(goal="type: é", requested_by="ada", channel="cli")
    for payload in (broken(by), asked) if by == "border" else (broken(by),):
        history.take(payload)
        position = history.events[-1].position
        violation = Event(position + 1, TIME, "v", "decision", "warden", "pla.violation", "", position, VIOLATION, b"")
        assert len(Alerts().evolve(history.state, violation).open) == alerts


def test_a_request_is_over_with_its_decision_and_is_not_acknowledged() -> None:
    proposed = Made(full=True)
    made = msgspec.convert(proposed.of(msgspec.inspect.type_info(PlaProposed)), PlaProposed)
    history = History()
    history.take(made)
    (request,) = history.state.open.values()
    assert request.severity == "request"
    history.take(AlertAcknowledgeRequested(alert=1, note="seen", operator_id="ada", channel="cli"))
    assert history.events[-1].data.code == "request"
    history.take(PlaProposalClosed(session_id="", proposal_id=made.proposal_id, digest="", outcome="unknown"))
    assert [one.kind for one in history.state.open.values()] == ["outcome_unknown"]


def test_every_judge_takes_every_payload_of_its_type_and_its_title_says_nothing_of_it() -> None:
    mark = "Zq7"
    for name, judge in JUDGES.items():
        for turn in range(4):
            value = Made(turn, texts=iter(lambda: mark, None)).of(msgspec.inspect.type_info(types()[name]))
            try:
                data = msgspec.convert(value, types()[name])
            except msgspec.ValidationError:
                data = msgspec.convert(Made(turn).of(msgspec.inspect.type_info(types()[name])), types()[name])
            for judged in judge(Event(1, TIME, "e", "fact", "x", name, "c", 0, data, b"")):
                assert isinstance(judged, Asked) or mark not in getattr(judged, "title", "")
