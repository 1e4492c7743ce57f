"""The log, the violations and the job of a session of the PLA, event by event."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from pmagent.contracts.effect import ActorHalted, RequestRefused
from pmagent.contracts.hid import HidArmed, HidDisarmed, HidLost, HidTripped
from pmagent.contracts.pla import KeyCombo, MouseClick, MouseMove, TypeText
from pmagent.contracts.pla_events import (
    PlaArmAnswered,
    PlaArmRequested,
    PlaDecisionRequested,
    PlaModeAnswered,
    PlaModeRequested,
    PlaObserved,
    PlaProposalRefused,
    PlaProposalRequested,
)
from pmagent.projections.core.documents import Documents
from pmagent.projections.sessions import sessions
from pmagent.projections.sessions.sessions import Sessions
from tests.support.cases import each
from tests.support.hostile import CORPUS
from tests.support.pla_sessions import (
    EXECUTION,
    LOG_ID,
    PROPOSAL,
    SESSION,
    Tale,
    entries,
    folded,
    job,
    plain,
    shown,
    sums,
    typing,
    view,
)

LOG = f"sessions/{SESSION}.jsonl"
VIOLATIONS = f"sessions/{SESSION}.violations.jsonl"


def begun(mode: str = "SUGGEST") -> Tale:
    tale = Tale()
    tale.begin()
    tale.mode("OBSERVE", mode)
    return tale


def last(tale: Tale, path: str = LOG) -> dict[str, Any]:
    return entries(tale.events, path)[-1]


def test_a_typed_text_leaves_its_whole_story() -> None:
    told = [(one["event_type"], one["mode"], one["operator_id"]) for one in entries(typing().events)]
    assert told == [
        ("MODE_CHANGE", "OBSERVE", "alice"),
        ("MODE_CHANGE", "SUGGEST", "alice"),
        ("PROPOSAL", "SUGGEST", "alice"),
        ("MODE_CHANGE", "EXECUTE", "alice"),
        ("DECISION", "EXECUTE", "bob"),
        ("EXECUTION", "EXECUTE", "bob"),
        ("EXECUTION", "EXECUTE", "bob"),
        ("MODE_CHANGE", "OBSERVE", "alice"),
        ("MODE_CHANGE", "OBSERVE", "pmagent"),
    ]


def test_the_intent_to_type_and_its_end_name_proposal_and_execution() -> None:
    intent, end = (one for one in entries(typing().events) if one["event_type"] == "EXECUTION")
    for one in (intent, end):
        assert (one["proposal_id"], one["execution_id"]) == (PROPOSAL, EXECUTION)
    assert (intent["details"]["phase"], intent["details"]["permit"]) == ("intent", 7)
    assert (end["details"]["outcome"], end["details"]["done"], end["details"]["of"]) == ("done", 10, 10)


def test_each_entry_names_the_event_that_it_comes_from() -> None:
    tale = typing()
    for one in entries(tale.events):
        event = tale.events[one["details"]["position"] - 1]
        assert one["details"]["event"] == event.type
        assert one["details"]["sum"] == sums([event])[0]
        assert one["timestamp"] == event.time
        assert one["log_id"] == f"log-{LOG_ID[:12]}-{event.position}-1"


def test_a_checksum_is_that_of_the_canonical_entry_with_the_one_before() -> None:
    before = "0" * 64
    for line in shown(folded(typing().events))[LOG].splitlines():
        entry = json.loads(line)
        stated = entry.pop("checksum")
        assert entry["previous_log_checksum"] == before
        raw = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        before = sha256(raw).hexdigest()
        assert stated == before


def test_an_approval_in_suggest_is_recorded_and_followed_by_no_execution() -> None:
    tale = begun()
    tale.propose()
    tale.approve(executes=False, credential_acknowledged=True)
    tale.close("recorded")
    one = last(tale)
    assert (one["event_type"], one["details"]["decision"], one["details"]["executes"]) == (
        "DECISION",
        "APPROVED",
        False,
    )
    assert one["details"]["credential_acknowledged"] is True
    assert not [one for one in entries(tale.events) if one["event_type"] == "EXECUTION"]


def test_a_rejection_is_told_with_its_reason_and_once() -> None:
    tale = begun()
    tale.propose()
    tale.reject()
    tale.close("rejected", "wrong window")
    decisions = [one for one in entries(tale.events) if one["event_type"] == "DECISION"]
    assert [(one["details"]["decision"], one["details"]["why"]) for one in decisions] == [("REJECTED", "wrong window")]


@each("outcome", ["expired", "withdrawn"])
def test_what_nobody_decided_on_is_a_decision_of_nobody(outcome: str) -> None:
    tale = begun()
    tale.propose()
    tale.close(outcome)
    one = last(tale)
    assert (one["event_type"], one["operator_id"], one["details"]["outcome"]) == ("DECISION", "pmagent", outcome)
    assert "decision" not in one["details"]


def test_a_refused_decision_names_who_wanted_it() -> None:
    tale = begun()
    tale.propose()
    asked = PlaDecisionRequested(
        proposal_id=PROPOSAL, decision="APPROVED", digest="", operator_id="mallory", channel="cli"
    )
    tale.refuse("digest", at=tale.tell(asked).position)
    one = last(tale)
    assert (one["event_type"], one["operator_id"], one["proposal_id"]) == ("ERROR", "mallory", PROPOSAL)
    assert (one["details"]["code"], one["details"]["error_message"]) == ("digest", "the decision is on other bytes")


def test_an_unknown_outcome_ends_the_execution_and_is_an_error() -> None:
    tale = begun("EXECUTE")
    tale.propose()
    tale.approve()
    tale.commit()
    tale.unknown()
    tale.close("unknown")
    *_, ended, error = entries(tale.events)
    assert (ended["event_type"], ended["details"]["outcome"]) == ("EXECUTION", "unknown")
    assert (error["event_type"], error["details"]["code"], error["execution_id"]) == (
        "ERROR", "outcome_unknown", EXECUTION
    )  # fmt: skip
    assert ended["log_id"] != error["log_id"]
    assert view(tale.events).tally.unknown == 1


def test_an_execution_that_only_the_warden_closes_is_unknown_too() -> None:
    """Where the link is halted it tells nothing of the end."""
    tale = begun("EXECUTE")
    tale.propose()
    tale.approve()
    tale.commit()
    tale.close("unknown", "the HID link is halted; look at the screen")
    *_, ended, error = entries(tale.events)
    assert (ended["details"]["outcome"], ended["execution_id"]) == ("unknown", EXECUTION)
    assert error["details"]["error_message"] == "the HID link is halted; look at the screen"
    tale.close("unknown", "again")
    assert entries(tale.events)[-1] == error


def test_the_device_armed_and_disarmed_is_told_with_who_wanted_it() -> None:
    tale = begun("EXECUTE")
    asked = tale.tell(PlaArmRequested(operator_id="carol", channel="cli")).position
    tale.tell(HidArmed(request=asked, boot_id="0" * 16, lease_ms=5000))
    tale.tell(PlaArmAnswered(request=asked, session_id=SESSION, armed=True, accepted=True))
    tale.tell(HidDisarmed(request=asked, boot_id="0" * 16))
    armed, answered, disarmed = entries(tale.events)[-3:]
    assert [one["event_type"] for one in (armed, answered, disarmed)] == ["MODE_CHANGE"] * 3
    assert (armed["details"]["armed"], armed["details"]["lease_ms"]) == (True, 5000)
    assert (answered["details"]["armed"], answered["operator_id"]) == (True, "carol")
    assert (disarmed["details"]["armed"], disarmed["operator_id"]) == (False, "pmagent")


def test_what_is_refused_or_lost_is_an_error() -> None:
    tale = begun()
    asked = tale.tell(PlaModeRequested(mode="EXECUTE", operator_id="carol", channel="cli")).position
    told = [
        PlaModeAnswered(request=asked, session_id=SESSION, accepted=False, mode="SUGGEST", reasons=["no device"]),
        PlaArmAnswered(request=asked, session_id=SESSION, armed=False, accepted=False, reasons=["not in EXECUTE"]),
        PlaProposalRefused(request=asked, session_id=SESSION, code="goal", reasons=["no goal"], mend=[]),
        PlaObserved(request=asked, session_id=SESSION, frame=0, reasons=["no frame"]),
        HidTripped(session_id=SESSION, boot_id="", code="killed", text="the kill switch is DISABLED"),
        HidLost(boot_id="0" * 16, code="unplugged", text="gone"),
        ActorHalted(name="hid", input=1, error="ValueError", place="x:1"),
        RequestRefused(request=asked, name="brain", reason="halted"),
    ]
    for payload in told:
        tale.tell(payload)
    found = entries(tale.events)[-len(told) :]
    assert {one["event_type"] for one in found} == {"ERROR"}
    messages = [(one["details"]["code"], one["operator_id"]) for one in found]
    assert messages == [
        ("mode", "carol"), ("arm", "carol"), ("goal", "carol"), ("frame", "carol"),
        ("killed", "pmagent"), ("unplugged", "pmagent"), ("halted", "pmagent"), ("halted", "carol"),
    ]  # fmt: skip


def test_other_actors_halts_are_not_the_sessions_business() -> None:
    tale = begun()
    tale.tell(ActorHalted(name="auditor", input=1, error="ValueError", place="x:1"))
    assert last(tale)["event_type"] == "MODE_CHANGE"


@each(
    "action, told",
    [
        (TypeText(text='a "b"\n\t'), 'text: "a \\"b\\"\\n\\t" (7 characters)'),
        (TypeText(text="größe\u00a0€", layout="de"), 'text: "größe\\u00a0€" (7 characters)'),
        (KeyCombo(keys=["ctrl", "alt", "t"]), "keys: ctrl+alt+t"),
        (MouseMove(x=10, y=-5), "move: 10 -5"),
        (MouseClick(button="left"), "click: left"),
    ],
)
def test_a_proposal_says_what_would_be_typed(action: Any, told: str) -> None:
    tale = begun()
    tale.propose(action)
    assert last(tale)["details"]["payload_summary"] == told


def test_a_long_text_is_cut_to_what_the_contract_allows() -> None:
    tale = begun()
    tale.propose(TypeText(text="x" * 1024))
    summary = last(tale)["details"]["payload_summary"]
    assert len(summary) == 500
    assert summary.endswith("… (1024 characters)")


def test_a_masked_proposal_says_so_and_shows_what_the_event_shows() -> None:
    tale = begun()
    tale.propose(
        TypeText(text="***REDACTED***"), masked=True, chars=12, credential_warning=True, findings=["password", "pem"]
    )
    details = last(tale)["details"]
    assert details["payload_summary"] == 'text: "***REDACTED***" (12 characters)'
    assert (details["masked"], details["credential_warning"], details["findings"]) == (True, True, "password; pem")


@each("text", CORPUS.values())
def test_nothing_hides_in_a_line(text: str) -> None:
    tale = begun()
    tale.propose(rationale=text[:2000])
    tale.reject(text[:500])
    tale.violate(text=text)
    content = shown(folded(tale.events))
    for path in (LOG, VIOLATIONS):
        for line in content[path].decode().split("\n"):
            assert not set(line) & set("\x00\x07\x08\x0b\x0c\r\x1b\x7f\x85\x9b\u200b\u202e\u2028\u2029\u00ad\ufeff")
            assert not line or json.loads(line)


# --- who may say it ------------------------------------------------------------------------------------------------


def test_what_another_actor_forges_is_an_error_and_counts_for_nothing() -> None:
    tale = begun()
    tale.propose()
    before = view(tale.events)
    for event in typing().events[3:]:
        tale.tell(event.data, "hand")
    after = view(tale.events)
    assert (after.mode, after.state, after.carried) == ("SUGGEST", "running", None)
    assert after.tally.errors == len(typing().events) - 3
    assert after.tally.approved == before.tally.approved == 0
    assert {one["event_type"] for one in entries(tale.events)[before.log.entries :]} == {"ERROR"}
    assert last(tale)["details"]["error_message"].startswith("hand wrote pla.session_ended")


def test_a_fact_is_no_decision_whoever_is_named() -> None:
    tale = begun()
    event = typing().events[5]
    assert event.type == "pla.approved"
    forged = type(event)(
        len(tale.events) + 1, event.time, "e-x", "fact", "warden", event.type, SESSION, 0, event.data, event.raw
    )
    assert entries([*tale.events, forged])[-1]["event_type"] == "ERROR"


# --- outside of sessions -------------------------------------------------------------------------------------------


def test_a_violation_while_no_session_stands_is_told_in_a_log_of_its_own() -> None:
    tale = Tale()
    tale.violate(session_id="")
    tale.refuse(session_id="")
    found = shown(folded(tale.events))
    assert set(found) == {"sessions/outside-2.jsonl", "sessions/outside-2.violations.jsonl"}
    assert len(found["sessions/outside-2.jsonl"].splitlines()) == 2
    assert len(found["sessions/outside-2.violations.jsonl"].splitlines()) == 1


def test_what_is_said_of_a_session_that_is_over_does_not_change_it() -> None:
    tale = typing()
    before = shown(folded(tale.events))
    tale.violate()
    tale.executed()
    found = shown(folded(tale.events))
    assert {path: found[path] for path in before} == before
    lines = [json.loads(line) for line in found["sessions/outside-13.jsonl"].splitlines()]
    assert [one["details"]["session_id"] for one in lines] == [SESSION, SESSION]


def test_outside_begins_anew_after_a_session_and_when_it_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "OUTSIDE_ENTRIES", 3)
    tale = Tale()
    for _ in range(4):
        tale.violate(session_id="")
    tale.begin()
    tale.end()
    tale.violate(session_id="")
    found = shown(folded(tale.events))
    assert [path for path in sorted(found) if "violations" in path] == [
        "sessions/outside-2.violations.jsonl",
        "sessions/outside-5.violations.jsonl",
        "sessions/outside-8.violations.jsonl",
    ]


def test_ordinary_answers_outside_of_sessions_leave_no_document() -> None:
    tale = Tale()
    tale.tell(PlaModeAnswered(request=1, session_id="", accepted=True, mode="OBSERVE"))
    tale.tell(HidDisarmed(request=1, boot_id="0" * 16))
    tale.tell(HidLost(boot_id="0" * 16, code="unplugged", text="gone"))
    assert shown(folded(tale.events)) == {}


def test_a_session_whose_id_is_no_name_for_a_file_gets_no_document() -> None:
    tale = Tale()
    tale.begin("../../etc/passwd")
    assert list(shown(folded(tale.events))) == ["sessions/outside-2.jsonl"]


# --- the job -------------------------------------------------------------------------------------------------------


def test_a_job_is_queued_then_running_then_complete() -> None:
    tale = Tale()
    tale.begin()
    assert job(tale.events)["status"] == "queued"
    tale.mode("OBSERVE", "SUGGEST")
    assert job(tale.events)["status"] == "running"
    done = job(typing().events)
    assert (done["status"], done["service"], done["progress"]) == ("complete", "hexforge-pla", 1.0)
    assert done["result"]["executed"] == 1
    assert done["result"]["checksum"] == entries(typing().events)[-1]["checksum"]
    assert "error" not in done


def test_a_session_that_was_cut_off_failed() -> None:
    tale = begun()
    tale.end("failed", "the process before was cut off")
    told = job(tale.events)
    assert told["status"] == "failed"
    assert told["error"] == {"code": "cut_off", "detail": "the process before was cut off"}
    assert "result" not in told


# --- memory --------------------------------------------------------------------------------------------------------


def test_ended_sessions_leave_the_state_and_are_given_out_before() -> None:
    documents = Documents([Sessions(kept=2)])
    given: dict[str, bytes] = {}
    tale = Tale()
    names = [f"pla-{number:032x}" for number in range(5)]
    for name in names:
        tale.begin(name)
        tale.end(session_id=name)
    for event in tale.events:
        folded([event], documents)
        given |= plain(documents.take_retired())
    assert list(documents._states["pla_sessions"].sessions) == names[-2:]
    assert {f"sessions/{name}.jsonl" for name in names[:3]} <= set(given)
    assert {f"jobs/{name}.json" for name in names[:3]} <= set(given)


def test_who_asked_is_forgotten_after_some_requests() -> None:
    documents = Documents([Sessions()])
    tale = Tale()
    for _ in range(100):
        tale.tell(PlaProposalRequested(goal="type: x", requested_by="alice", channel="cli"))
    folded(tale.events, documents)
    assert len(documents._states["pla_sessions"].asked) == sessions.ASKED_KEPT
