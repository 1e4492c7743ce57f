"""At the daemon's screen the operator is told, unasked, of what they have to know."""

from __future__ import annotations

from typing import Any

import msgspec
from structlog.testing import capture_logs

from pmagent.actors.pla.alerts import ALERTS
from pmagent.actors.pla.violations import HANDLING, violation
from pmagent.contracts.hid import HidOutcomeUnknown
from pmagent.contracts.payload import encode, type_of
from pmagent.contracts.pla_events import PlaExecuted, PlaModeAnswered, PlaModeChanged
from pmagent.events.event import Event
from pmagent.service.alerts import alert
from tests.support.cases import each

IDS: dict[str, Any] = {"session_id": "pla-12345678", "proposal_id": "prop-12345678", "execution_id": "exec-12345678"}

HIT = "the kill switch is DISABLED"


def told(*payloads: msgspec.Struct) -> list[Any]:
    """The alerts of these, as they become durable."""
    events = [
        Event(
            position=number, id=f"e{number}", time="2026-11-22T09:00:00.000000Z", type=type_of(data), kind="decision",
            actor="warden", correlation="c", causation=0, data=data, raw=encode(data),
        )
        for number, data in enumerate(payloads, 1)
    ]  # fmt: skip
    with capture_logs() as found:
        alert(events, [""] * len(events))
    return found


@each("kind", HANDLING)
def test_each_row_of_the_table_of_violations_is_told_with_what_was_done(kind: Any) -> None:
    (line,) = told(violation(kind, "action_proposal", "character 3 is none", "border", session_id="pla-12345678"))
    severity, handling = HANDLING[kind]
    assert (line["log_level"], line["kind"], line["done"]) == (severity, kind, handling)
    assert (line["contract"], line["reason"]) == ("action_proposal", "character 3 is none")


def changed(code: str) -> PlaModeChanged:
    """A mode that changed for this reason."""
    return PlaModeChanged(
        session_id="pla-12345678", previous="EXECUTE", mode="OBSERVE", who="hid", channel="daemon", code=code, why="w"
    )


def test_a_mode_that_fell_by_itself_is_a_warning_and_one_that_was_asked_for_is_none() -> None:
    levels = [line["log_level"] for line in told(changed("killed"), changed("requested"), changed("ended"))]
    assert levels == ["warning", "info", "info"]


def test_how_executions_end_is_told() -> None:
    of: dict[str, Any] = {"action_type": "TYPE_TEXT", "of": 8, "why": "w"}
    hows: tuple[Any, ...] = ("done", "aborted", "not_executed")
    ends = [PlaExecuted(**IDS, **of, outcome=how, done=3, code="") for how in hows]
    lines = told(*ends, HidOutcomeUnknown(**IDS, **of))
    assert [line["log_level"] for line in lines] == ["info", "warning", "warning", "error"]
    assert "never typed again" in lines[3]["mend"]


def test_answers_are_for_who_asked() -> None:
    assert told(PlaModeAnswered(request=1, session_id="pla-12345678", accepted=True, mode="SUGGEST")) == []


@each("data", [
    PlaModeChanged(
        session_id="pla-12345678", previous="EXECUTE", mode="OBSERVE", who="hid", channel="cli", why=HIT, code="killed",
    ),
    PlaExecuted(**IDS, action_type="TYPE_TEXT", outcome="aborted", done=3, of=8, code="KILLED", why=HIT),
    HidOutcomeUnknown(**IDS, action_type="TYPE_TEXT", of=8, why=HIT),
])
def test_the_switch_is_told_in_words_that_cannot_be_read_the_wrong_way_round(data: Any) -> None:
    event = Event(
        position=1, id="e1", time="2026-11-22T09:00:00.000000Z", type=type_of(data), kind="decision", actor="hid",
        correlation="c", causation=0, data=data, raw=encode(data),
    )  # fmt: skip
    judged: Any = next(iter(ALERTS[type_of(data)](event)))
    (line,) = told(data)
    for text in (judged.detail, line["reason"]):
        assert "kill switch is hit: nothing can be typed" in text
        assert "DISABLED" not in text
