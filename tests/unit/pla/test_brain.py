"""The brain: one proposal at a time, and one answer to each request whatever fails."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pmagent.actors.core.engine import Engine
from pmagent.actors.core.snapshot import EngineState, export_engine, restore_engine
from pmagent.actors.pla.brain.actor import Brain
from pmagent.actors.pla.brain.state import BrainState
from pmagent.contracts.effect import (
    ActorHalted,
    ActorResumed,
    EffectCancelRequested,
    EffectFailed,
    EffectInterrupted,
    EffectTimedOut,
    RequestRefused,
)
from pmagent.contracts.pla import KeyCombo, MouseMove, TypeText, declared, digest
from pmagent.contracts.pla_events import (
    PlaFrameFailed,
    PlaFrameRequested,
    PlaObserved,
    PlaObserveRequested,
    PlaProposalRefused,
    PlaProposed,
    PlaViolation,
)
from pmagent.events.event import Tail, time_after
from pmagent.events.secret_forms import MASK
from pmagent.events.sequencer import Sequencer
from tests.support.cases import each
from tests.support.pla import ALICE
from tests.support.pla_brain import MODEL, SOURCE, BrainHarness, asked, frame, replies, said
from tests.support.toys import refolded

HELLO = TypeText(text="hello\n")


def refusal(answer: object) -> tuple[str, str]:
    assert isinstance(answer, PlaProposalRefused)
    return answer.code, answer.reasons[0]


# --- what a goal states ----------------------------------------------------------------------------------------------


def test_what_a_goal_states_is_proposed_as_it_stands() -> None:
    harness = BrainHarness()
    request = harness.ask(HELLO, lifetime_s=90, two_persons=True, rationale="the lab wants a greeting")
    proposed = harness.answer(request)
    assert isinstance(proposed, PlaProposed)
    assert (proposed.action, proposed.digest, proposed.chars, proposed.masked) == (HELLO, digest(HELLO), 6, False)
    assert (proposed.mode, proposed.session_id) == ("SUGGEST", harness.warden.session_id)
    assert (proposed.proposed_by, proposed.requested_by, proposed.channel) == ("rules", ALICE, "cli")
    assert proposed.rationale == "the lab wants a greeting"
    assert proposed.expires_at == time_after(harness.of(PlaProposed)[0].time, 90)
    assert proposed.two_persons
    assert not proposed.credential_warning
    assert harness.brain.proposal_id == proposed.proposal_id
    assert [one.proposed.proposal_id for one in harness.warden.open_proposals] == [proposed.proposal_id]


@each("given", ["", "why", "   "])
def test_a_reason_that_is_too_short_is_made_long_enough_for_the_contract(given: str) -> None:
    proposed = BrainHarness().asked_for(HELLO, rationale=given)
    assert isinstance(proposed, PlaProposed)
    assert 10 <= len(proposed.rationale) <= 2000
    assert given.strip() in proposed.rationale


def test_each_proposal_has_an_id_of_its_own() -> None:
    harness = BrainHarness()
    ids = []
    for _ in range(3):
        proposed = harness.asked_for(HELLO)
        assert isinstance(proposed, PlaProposed)
        ids.append(proposed.proposal_id)
        harness.decide(proposed, "REJECTED", reason="no")
    assert len(set(ids)) == 3
    assert all(one.startswith("prop-") and len(one) == 37 for one in ids)


def test_nothing_is_proposed_in_observe() -> None:
    harness = BrainHarness("OBSERVE")
    assert refusal(harness.asked_for(HELLO)) == ("mode", "proposing needs SUGGEST or EXECUTE, the mode is OBSERVE")
    assert not harness.of(PlaProposed)
    assert [event.data.kind for event in harness.of(PlaViolation)] == ["mode_mismatch"]


def test_there_is_one_open_proposal_and_the_next_may_come_when_it_is_closed() -> None:
    harness = BrainHarness()
    first = harness.asked_for(HELLO)
    assert isinstance(first, PlaProposed)
    code, reason = refusal(harness.asked_for(HELLO))
    assert code == "open"
    assert first.proposal_id in reason
    harness.decide(first, "REJECTED", reason="not now")
    assert harness.brain.proposal_id == ""
    assert isinstance(harness.asked_for(HELLO), PlaProposed)


def test_one_request_is_under_way_at_a_time() -> None:
    harness = BrainHarness()
    harness.camera = lambda _: None
    first = harness.ask(HELLO, frame=SOURCE)
    assert refusal(harness.asked_for(HELLO)) == ("open", "another request for a proposal is under way")
    harness.camera = frame
    harness.go()
    assert isinstance(harness.answer(first), PlaProposed)


@each(
    "action, kind, said",
    [
        (TypeText(text=""), "missing_field", "empty"),
        (TypeText(text="x" * 1025), "bound_exceeded", "1025 characters"),
        (TypeText(text="na\u00efve"), "schema_validation", "character 3 is U+00EF"),
        (TypeText(text="a\x1b[0m"), "schema_validation", "character 2 is U+001B"),
        (KeyCombo(keys=[]), "missing_field", "no key"),
        (KeyCombo(keys=["hyper"]), "schema_validation", "'hyper'"),
        (KeyCombo(keys=["a", "a"]), "schema_validation", "twice"),
        (MouseMove(x=5001, y=0), "bound_exceeded", "x is 5001"),
    ],
)
def test_what_is_out_of_bounds_is_refused_and_told_as_a_violation(action: Any, kind: str, said: str) -> None:
    harness = BrainHarness()
    code, reason = refusal(harness.asked_for(action))
    assert code == "unfit"
    assert said in reason
    violation = harness.last(PlaViolation)
    assert (violation.kind, violation.severity, violation.by) == (kind, "error", "brain")
    assert violation.text == reason
    assert harness.of(PlaViolation)[-1].correlation == harness.warden.session_id
    assert not harness.of(PlaProposed)


def test_a_goal_that_could_not_be_read_is_refused_with_what_is_wrong_in_it() -> None:
    harness = BrainHarness()
    said = "key 1 of 2 is 'control', and there is no such key"
    answer = harness.asked_for(objection=said, objection_kind="schema_validation", model="object:test")
    assert refusal(answer) == ("goal", said)
    assert harness.last(PlaViolation).kind == "schema_validation"


# --- credentials -----------------------------------------------------------------------------------------------------


@each(
    "action, layout, practice, refused",
    [
        (HELLO, "", False, True), (KeyCombo(keys=["ctrl", "c"]), "", False, True), (HELLO, "", True, False),
        (MouseMove(x=1, y=1), "", False, False), (HELLO, "de", False, False),
    ],
)  # fmt: skip
def test_a_board_is_proposed_nothing_that_needs_a_layout_before_one_is_declared(
    action: Any, layout: str, practice: bool, refused: bool
) -> None:
    for given in ({"action": declared(action, layout), "digest": ""}, {"model": MODEL, "goal": "go on"}):
        harness = BrainHarness()
        harness.model = replies(said(action))
        answer = harness.asked_for(layout=layout, undeclared=practice, **given)
        if refused:
            assert isinstance(answer, PlaProposalRefused)
            assert answer.code == "device"
            assert 'layout = "us"' in answer.mend[0]
        else:
            assert isinstance(answer, PlaProposed)
        assert not harness.of(PlaViolation)


def test_a_credential_that_came_in_plain_is_found_here() -> None:
    harness = BrainHarness()
    assert refusal(harness.asked_for(TypeText(text="the password is swordfish")))[0] == "credential"
    proposed = harness.asked_for(TypeText(text="the password is swordfish"), policy="acknowledge")
    assert isinstance(proposed, PlaProposed)
    assert proposed.credential_warning


@each("policy", ["refuse", "acknowledge"])
def test_a_mask_is_never_typed(policy: Any) -> None:
    harness = BrainHarness()
    meant = TypeText(text="export TOKEN=abc")
    answers = [
        harness.asked_for(TypeText(text=f"export TOKEN={MASK}"), policy=policy),
        harness.asked_for(TypeText(text="hello"), digest=digest(meant), policy=policy),
    ]
    assert [refusal(answer)[0] for answer in answers] == ["credential", "credential"]


# --- frames ----------------------------------------------------------------------------------------------------------


def test_a_frame_that_is_asked_for_stands_in_the_proposal() -> None:
    harness = BrainHarness()
    proposed = harness.asked_for(HELLO, frame=SOURCE)
    assert isinstance(proposed, PlaProposed)
    assert harness.history[proposed.frame - 1].type == "pla.frame_observed"
    assert proposed.ocr_text == "login:"


@each(
    "outcome, told",
    [
        (lambda e: PlaFrameFailed(request=e.position, code="no_frame", text="/frames is empty", mend="x"), "empty"),
        (lambda e: EffectFailed(request=e.position, error="OSError EIO", place="frames:take"), "OSError EIO"),
        (lambda e: EffectTimedOut(request=e.position, limit_s=60), "60 s"),
        (lambda e: EffectInterrupted(request=e.position, reason="stop"), "interrupted"),
    ],
)
def test_without_the_frame_there_is_no_proposal(outcome: Any, told: str) -> None:
    harness = BrainHarness()
    harness.camera = outcome
    code, reason = refusal(harness.asked_for(HELLO, frame=SOURCE))
    assert code == "frame"
    assert told in reason
    look = harness.tell(PlaObserveRequested(frame=SOURCE, requested_by=ALICE, channel="cli"))
    (answer,) = harness.answers(look)
    assert answer.data.frame == 0
    assert told in answer.data.reasons[0]


def test_looking_proposes_nothing_and_is_allowed_in_observe() -> None:
    harness = BrainHarness("OBSERVE")
    look = harness.tell(PlaObserveRequested(frame=SOURCE, requested_by=ALICE, channel="cli"))
    (answer,) = harness.answers(look)
    assert isinstance(answer.data, PlaObserved)
    assert harness.history[answer.data.frame - 1].type == "pla.frame_observed"
    assert answer.data.session_id == harness.warden.session_id
    assert not harness.of(PlaProposed)


def test_only_so_many_look_at_once() -> None:
    harness = BrainHarness()
    harness.camera = lambda _: None
    looks = [harness.tell(PlaObserveRequested(frame=SOURCE, requested_by=ALICE, channel="cli")) for _ in range(9)]
    assert [len(harness.answers(look)) for look in looks] == [0] * 8 + [1]
    assert len(harness.of(PlaFrameRequested)) == 8
    harness.camera = frame
    harness.go()
    assert [harness.answers(look)[0].data.frame > 0 for look in looks] == [True] * 8 + [False]
    assert harness.brain.looks == {}


# --- modes, sessions, halts ------------------------------------------------------------------------------------------


def test_what_is_under_way_ends_with_the_mode_and_is_taken_back() -> None:
    harness = BrainHarness()
    harness.camera = lambda _: None
    request = harness.ask(HELLO, frame=SOURCE)
    harness.mode("OBSERVE")
    assert refusal(harness.answer(request))[0] == "mode"
    assert harness.last(EffectCancelRequested).request == harness.of(PlaFrameRequested)[0].position
    harness.mode("SUGGEST")
    assert isinstance(harness.asked_for(HELLO), PlaProposed)


def test_a_proposal_is_of_the_mode_that_holds_when_it_is_made() -> None:
    harness = BrainHarness()
    harness.camera = lambda _: None
    request = harness.ask(HELLO, frame=SOURCE)
    harness.link()
    harness.mode("EXECUTE")
    harness.camera = frame
    harness.go()
    proposed = harness.answer(request)
    assert isinstance(proposed, PlaProposed)
    assert proposed.mode == "EXECUTE"


def test_nothing_is_proposed_while_the_warden_is_halted(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = BrainHarness()
    harness.camera = lambda _: None
    request = harness.ask(HELLO, frame=SOURCE)

    def broken(*_: object) -> object:
        raise ValueError("broken")

    with monkeypatch.context() as patched:
        patched.setattr("pmagent.actors.pla.warden.actor.Warden.decide", broken)
        harness.mode("EXECUTE")
    assert harness.of(ActorHalted)[-1].data.name == "warden"
    assert refusal(harness.answer(request)) == ("mode", "the warden is halted")
    assert refusal(harness.asked_for(HELLO)) == ("mode", "the warden is halted")
    harness.tell(ActorResumed(name="warden"))
    assert not harness.brain.halted


def test_a_brain_that_was_halted_answers_what_was_open(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = BrainHarness()
    harness.camera = lambda _: None
    request = harness.ask(HELLO, frame=SOURCE)
    look = harness.tell(PlaObserveRequested(frame=SOURCE, requested_by=ALICE, channel="cli"))

    def broken(*_: object) -> object:
        raise ValueError("broken")

    with monkeypatch.context() as patched:
        patched.setattr(Brain, "decide", broken)
        lost = harness.tell(asked(HELLO))
    assert harness.of(RequestRefused)[-1].data.request == lost.position
    meanwhile = harness.tell(asked(HELLO))
    assert harness.of(RequestRefused)[-1].data.request == meanwhile.position
    harness.tell(ActorResumed(name="brain"))
    assert "was halted" in refusal(harness.answer(request))[1]
    assert "was halted" in harness.answers(look)[0].data.reasons[0]
    assert harness.brain.pending is None
    assert harness.brain.looks == {}
    assert harness.answers(lost) == harness.answers(meanwhile) == []
    harness.mode("SUGGEST")
    assert isinstance(harness.asked_for(HELLO), PlaProposed)


def test_the_state_can_be_put_away_and_read_back_at_each_step() -> None:
    harness = BrainHarness()
    harness.camera = harness.model = lambda _: None
    request = harness.ask(goal="open a terminal", model=MODEL, frame=SOURCE)
    stages = [restored(harness)]
    harness.camera = frame
    harness.go()
    stages.append(restored(harness))
    harness.model = replies("no", said())
    harness.go()
    stages.append(restored(harness))
    assert stages[0].pending is not None
    assert stages[1].pending is not None
    assert stages[1].pending.model
    assert stages[2].proposal_id
    assert isinstance(harness.answer(request), PlaProposed)


def restored(harness: BrainHarness) -> BrainState:
    """The brain's state as a snapshot gives it back; it is the same."""
    kept = msgspec.msgpack.encode(export_engine(harness.engine))
    anew = Engine([*harness.actors], Sequencer(Tail()))
    end = Tail(harness.engine.sequencer.position, 1, harness.engine.sequencer.time, "ab")
    restore_engine(anew, msgspec.msgpack.decode(kept, type=EngineState), end)
    assert anew.states["brain"] == harness.brain
    return harness.brain


def test_reading_the_history_back_leads_to_the_same_state() -> None:
    harness = BrainHarness()
    harness.model = replies("no", said())
    harness.ask(goal="open a terminal", model=MODEL, frame=SOURCE)
    harness.ask(HELLO)
    again = refolded(harness.actors, harness.history)
    again.complete(harness.now)
    assert again.states["brain"] == harness.brain
