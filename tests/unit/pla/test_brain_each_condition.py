"""Each condition of the brain by itself: with all of them something is proposed, and without any one of them it is not,
whatever the warden and an operator would have said."""

from __future__ import annotations

from typing import Any

from pmagent.actors.pla.brain.actor import Brain
from pmagent.actors.pla.brain.state import BrainState, Look
from pmagent.contracts.effect import ActorHalted, ActorResumed, EffectCancelRequested, RequestRefused
from pmagent.contracts.model import ModelAsked, ModelImage, ModelMessage, ModelWithdrawn
from pmagent.contracts.pla import KeyCombo, MouseMove, TypeText, digest
from pmagent.contracts.pla_events import (
    PlaFrameFailed,
    PlaFrameRequested,
    PlaModeChanged,
    PlaObserved,
    PlaProposalClosed,
    PlaProposalRefused,
    PlaProposed,
    PlaSessionBegan,
    PlaSessionEnded,
    PlaViolation,
)
from pmagent.events.secret_forms import MASK
from tests.support.brain_alone import (
    ASKED,
    EMPTY,
    FILMED,
    LOOK,
    LOOKING,
    MASKED,
    MODEL,
    NAME,
    NOW,
    OF_MODEL,
    PENDING,
    SECRET,
    SESSION,
    SOURCE,
    TEXT,
    WAITING,
    frame,
    happened,
    kinds,
    made,
    remembered,
    replace,
    replied,
)
from tests.support.cases import each

# --- what is taken up -----------------------------------------------------------------------------------------------


def test_with_every_condition_it_is_proposed() -> None:
    (proposed,) = made(EMPTY, happened(ASKED))
    assert isinstance(proposed, PlaProposed)
    assert (proposed.action, proposed.digest, proposed.credential_warning) == (TEXT, digest(TEXT), False)
    assert kinds(EMPTY, happened(replace(ASKED, action=KeyCombo(keys=["a"]), digest=""))) == {PlaProposed}
    assert kinds(EMPTY, happened(OF_MODEL)) == {ModelAsked}
    assert kinds(EMPTY, happened(replace(ASKED, frame=SOURCE))) == {PlaFrameRequested}


LACKS: dict[str, dict[str, Any]] = {
    "warden": {"halted": True},
    "mode": {"mode": "OBSERVE"},
    "session": {"session_id": ""},
    "another is open": {"proposal_id": NAME},
    "another is under way": {"pending": PENDING},
}


@each("lack", LACKS)
@each("asked", [ASKED, OF_MODEL, MASKED, replace(ASKED, frame=SOURCE)])
def test_without_one_nothing_is_proposed(lack: str, asked: Any) -> None:
    assert kinds(replace(EMPTY, **LACKS[lack]), happened(asked)) == {PlaProposalRefused}


@each(
    "changes",
    [
        {"action": None}, {"action": None, "model": MODEL, "objection": "x"}, {"objection": "x"},
        {"action": SECRET, "digest": digest(SECRET)}, {"action": TypeText(text=f"a {MASK}"), "digest": ""},
        {"digest": "ab" * 32}, {"findings": ["password"]},
        {"action": TypeText(text="x" * 1025), "digest": ""}, {"action": TypeText(text=""), "digest": ""},
        {"action": KeyCombo(keys=["hyper"]), "digest": ""}, {"action": MouseMove(x=5001, y=0), "digest": ""},
    ],
)  # fmt: skip
def test_what_may_not_be_typed_is_not_proposed(changes: Any) -> None:
    decided = kinds(EMPTY, happened(replace(ASKED, **changes)))
    assert PlaProposalRefused in decided
    assert decided <= {PlaProposalRefused, PlaViolation}


@each("changes", [{"action": TypeText(text=f"a {MASK}"), "digest": ""}, {"digest": "ab" * 32}])
def test_what_was_masked_on_its_way_is_not_proposed_whatever_the_policy(changes: Any) -> None:
    asked = replace(ASKED, policy="acknowledge", **changes)
    assert kinds(EMPTY, happened(asked)) == {PlaProposalRefused}


@each(
    "changes, taken",
    [
        ({}, True), ({"chars": 1}, True), ({"chars": 1024}, True), ({"chars": 0}, False), ({"chars": 1025}, False),
        ({"digest": ""}, False), ({"digest": "ab" * 32 + "\n"}, False), ({"digest": "0" + "ab" * 32}, False),
        ({"objection": "x"}, False), ({"action": KeyCombo(keys=["a"])}, False), ({"policy": "refuse"}, False),
        ({"policy": "refuse", "findings": []}, False),
    ],
)  # fmt: skip
def test_what_is_masked_takes_its_digest_its_length_and_the_policy(changes: Any, taken: bool) -> None:
    assert (PlaProposed in kinds(EMPTY, happened(replace(MASKED, **changes)))) == taken


@each(
    "changes, found",
    [
        ({}, ["password"]),
        ({"findings": []}, ["masked"]),
        ({"action": SECRET, "digest": digest(SECRET), "masked": False, "findings": []}, ["password"]),
        ({"action": TEXT, "digest": digest(TEXT), "masked": False, "findings": ["declared"]}, ["declared"]),
    ],
)
def test_a_proposal_with_credentials_says_so(changes: Any, found: list[str]) -> None:
    (proposed,) = made(EMPTY, happened(replace(MASKED, **changes)))
    assert proposed.credential_warning
    assert proposed.findings == found


def test_a_proposal_says_who_asked_by_which_policy_and_whether_it_takes_two() -> None:
    asked = replace(MASKED, requested_by="eve", two_persons=True, lifetime_s=60.0)
    (proposed,) = made(EMPTY, happened(asked))
    assert (proposed.requested_by, proposed.policy, proposed.two_persons) == ("eve", "acknowledge", True)
    assert (proposed.masked, proposed.digest, proposed.expires_at) == (True, "ab" * 32, "2026-11-22T09:01:00.000000Z")


# --- whose word counts ----------------------------------------------------------------------------------------------


NO_FRAME = PlaFrameFailed(request=35, code="no_frame", text="x", mend="x")
GAVE_UP = ActorResumed(name="brain")


@each(
    "state, data",
    [
        (EMPTY, ASKED), (EMPTY, LOOK), (WAITING, replied()), (FILMED, frame()), (LOOKING, frame()), (FILMED, NO_FRAME),
        (LOOKING, NO_FRAME), (WAITING, GAVE_UP),
    ],
)  # fmt: skip
@each("actor", ["intruder", "warden"])
def test_what_comes_from_outside_is_no_actors_word(state: BrainState, data: Any, actor: str) -> None:
    assert made(state, happened(data))
    event = happened(data, actor, "decision")
    assert Brain().evolve(state, event) == state
    assert made(state, event) == []


def test_that_the_warden_is_halted_ends_with_an_operators_word_alone() -> None:
    halt = ActorHalted(name="warden", input=1, error="ValueError", place="x")
    state = remembered(WAITING, halt, "engine")
    assert state.halted
    assert kinds(WAITING, happened(halt, "engine", "decision")) == {ModelWithdrawn, PlaProposalRefused}
    assert not remembered(WAITING, replace(halt, name="audit"), "engine").halted
    assert remembered(state, ActorResumed(name="warden"), "intruder").halted
    assert remembered(state, ActorResumed(name="audit"), "operator", "fact").halted
    assert not remembered(state, ActorResumed(name="warden"), "operator", "fact").halted


CHANGED = PlaModeChanged(
    session_id=SESSION, previous="SUGGEST", mode="OBSERVE", who="ada", channel="cli", code="requested", why="x"
)
OVER = PlaSessionEnded(session_id=SESSION, state="complete", reason="x")
CLOSED = PlaProposalClosed(session_id=SESSION, proposal_id=NAME, digest="", outcome="rejected")


@each(
    "state, data",
    [
        (replace(EMPTY, session_id=""), PlaSessionBegan(session_id=SESSION, operator_id="ada", mode="SUGGEST")),
        (EMPTY, OVER),
        (WAITING, CHANGED),
        (replace(EMPTY, proposal_id=NAME), CLOSED),
    ],
)
@each("actor, kind", [("intruder", "decision"), ("warden", "fact")])
def test_session_mode_and_what_is_closed_are_the_wardens_word(state: Any, data: Any, actor: str, kind: str) -> None:
    assert remembered(state, data) != state
    assert remembered(state, data, actor, kind) == state


def test_of_the_warden_it_knows_session_and_mode_whole() -> None:
    state = replace(WAITING, proposal_id=NAME)
    began = PlaSessionBegan(session_id="pla-2", operator_id="ada", mode="EXECUTE")
    assert remembered(state, began) == replace(state, session_id="pla-2", mode="EXECUTE", proposal_id="")
    assert remembered(state, OVER) == replace(state, session_id="", mode="OBSERVE", proposal_id="")
    lower = replace(PENDING, mode="OBSERVE")
    assert remembered(state, CHANGED) == replace(state, mode="OBSERVE", pending=lower)


@each("data", [CHANGED, OVER])
def test_with_the_mode_and_the_session_goes_what_is_under_way(data: Any) -> None:
    assert kinds(WAITING, happened(data, "warden", "decision")) == {ModelWithdrawn, PlaProposalRefused}
    assert kinds(FILMED, happened(data, "warden", "decision")) == {EffectCancelRequested, PlaProposalRefused}
    assert made(WAITING, happened(data, "intruder", "decision")) == []
    assert made(EMPTY, happened(data, "warden", "decision")) == []


def test_the_closing_of_another_proposal_makes_no_room() -> None:
    state = replace(EMPTY, proposal_id="prop-0002")
    assert remembered(state, CLOSED) == state


PROPOSED = PlaProposed(
    request=30, session_id=SESSION, proposal_id=NAME, mode="SUGGEST", action=TEXT, masked=False, digest="", chars=2,
    rationale="", credential_warning=False, findings=[], policy="refuse", requested_by="ada", proposed_by="rules",
    channel="cli", expires_at=NOW,
)  # fmt: skip


@each("data", [PROPOSED, PlaProposalRefused(request=30, session_id=SESSION, code="x", reasons=[], mend=[])])
@each("actor, kind", [("intruder", "decision"), ("brain", "fact")])
def test_its_answers_are_its_own(data: Any, actor: str, kind: str) -> None:
    assert remembered(WAITING, data, "brain").pending is None
    assert remembered(WAITING, data, actor, kind) == WAITING


@each("name", ["warden", "gateway"])
def test_another_actors_refusal_is_not_its_own(name: str) -> None:
    refused = RequestRefused(request=30, name=name, reason="halted")
    assert remembered(WAITING, refused, "engine") == WAITING
    assert remembered(WAITING, replace(refused, name="brain"), "engine").pending is None
    assert remembered(WAITING, replace(refused, name="brain", request=29), "engine") == WAITING


@each(
    "state, data",
    [(WAITING, replied(ask=34)), (WAITING, replied(ask=0)), (FILMED, frame(request=34)), (EMPTY, frame(request=0)),
     (replace(EMPTY, pending=replace(PENDING, waits=0)), replied(ask=0)), (LOOKING, replace(NO_FRAME, request=34)),
     (replace(EMPTY, looks={29: Look(29, "look")}), frame(request=0))],
)  # fmt: skip
def test_an_answer_to_something_else_is_none(state: BrainState, data: Any) -> None:
    assert made(state, happened(data)) == []


def test_what_it_asks_for_is_what_it_waits_for() -> None:
    (question,) = made(EMPTY, happened(OF_MODEL))
    more = [ModelMessage(role="user", content="x")] * 4
    asked = replace(question, messages=[*question.messages, *more])
    pending = replace(PENDING, waits=0, model=False)
    state = replace(EMPTY, pending=pending)
    after = replace(pending, waits=41, model=True, more=more, tries=2)
    assert remembered(state, asked, "brain").pending == after
    assert remembered(state, asked, "intruder") == state
    picture = [ModelImage(sha256="ab" * 32)]
    asked.messages[1] = ModelMessage(role="user", content="x", images=picture)
    assert remembered(state, asked, "brain").pending == replace(after, pictured=True)
    assert remembered(EMPTY, asked, "brain") == EMPTY
    for cause, waits in ((40, 41), (39, 0)):
        framing = replace(EMPTY, pending=replace(pending, request=cause), looks={cause - 1: Look(cause - 1, "look")})
        framed = remembered(framing, PlaFrameRequested(source=SOURCE), "brain")
        assert framed.pending is not None
        assert framed.pending.waits == waits
    looking = remembered(replace(EMPTY, looks={40: Look(40, "look")}), PlaFrameRequested(source=SOURCE), "brain")
    assert looking.looks == {40: Look(40, "look", 41)}
    seen = PlaObserved(request=40, session_id=SESSION, frame=41)
    assert remembered(looking, seen, "brain").looks == {}
    assert remembered(looking, replace(seen, request=39), "brain") == looking


def test_a_frame_that_has_come_is_not_waited_for_any_more() -> None:
    (pending,) = [Brain().evolve(FILMED, happened(frame())).pending]
    assert pending is not None
    assert (pending.waits, pending.frame, pending.seen) == (0, 41, frame())
