"""An audit has one end, and the same rulings, in whatever order answers come and whatever judges say."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.contracts.audit import JUDGES
from pmagent.contracts.audit_events import (
    AuditCloneRequested,
    AuditConcluded,
    AuditCriterionRuled,
    AuditEvidenceFound,
    AuditFailed,
    AuditOpinionGiven,
    AuditPdfRequested,
    AuditPicturesRequested,
)
from pmagent.contracts.effect import ActorHalted
from pmagent.contracts.model import ModelAsked, ModelCallFailed, ModelCallRequested, ModelReplied
from pmagent.events.event import Event
from tests.support.audits import AUDIT, Court, said
from tests.support.effort import examples, rounds

KINDS = (AuditCloneRequested, AuditPdfRequested, AuditPicturesRequested, ModelCallRequested)
DIMENSIONS = ("state", "safety", "accuracy", "diagram")

Scores = dict[str, int]
scores = st.fixed_dictionaries(
    {f"{judge} {turn} {name}": st.integers(1, 5) for judge in JUDGES for turn in (1, 2) for name in DIMENSIONS}
)


def court_of(given_scores: Scores) -> Court:
    """A court whose judges give these scores, and whose vision model sees something."""
    court = Court()

    def model(event: Event, asked: ModelAsked) -> msgspec.Struct:
        question = str(asked.inputs["question"])
        if question.startswith("image "):
            return said(event, asked, text="three boxes")
        return said(event, asked, given_scores[question])

    court.model = model
    court.ask(engine="langchain", model="toy", vision_model="toy")
    return court


def outcome(court: Court, event: Event) -> msgspec.Struct:
    makers: dict[type, Any] = {
        AuditCloneRequested: court.clone, AuditPdfRequested: court.pdf, AuditPicturesRequested: court.images,
        ModelCallRequested: lambda one: court.model(one, court.history[one.data.ask - 1].data),
    }  # fmt: skip
    made: msgspec.Struct = makers[type(event.data)](event)
    return made


def finished(court: Court, draw: Any) -> AuditConcluded | AuditFailed:
    """Go on until the audit is over; ``draw`` chooses which of the open effects ends next."""
    while (over := court.ended()) is None:
        pending = [event for kind in KINDS for event in court.open(kind)]
        assert pending, "it waits for nothing"
        chosen = pending[draw(st.integers(0, len(pending) - 1))]
        court.end(chosen, outcome(court, chosen))
    return over


def rulings(court: Court) -> list[AuditCriterionRuled]:
    return court.of(AuditCriterionRuled)


@settings(max_examples=rounds(25, 5), deadline=None)
@given(st.data(), scores)
def test_the_order_of_answers_changes_no_ruling(data: st.DataObject, given_scores: Scores) -> None:
    straight, shuffled = court_of(given_scores), court_of(given_scores)
    first, second = straight.audit(), finished(shuffled, data.draw)
    assert rulings(straight) == rulings(shuffled)
    assert isinstance(first, AuditConcluded)
    assert isinstance(second, AuditConcluded)
    assert (first.overall_score, first.remediation_plan) == (second.overall_score, second.remediation_plan)
    latest = [{one.dimension_id: one for one in court.of(AuditEvidenceFound)} for court in (straight, shuffled)]
    assert latest[0] == latest[1]


WRONG = st.one_of(
    st.text(max_size=40),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    ).map(lambda value: msgspec.json.encode(value).decode()),
)


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.one_of(st.none(), WRONG), max_size=12), st.integers(1, 5))
def test_whatever_a_model_says_there_is_one_end_and_no_opinion_that_it_did_not_give(
    texts: list[str | None], score: int
) -> None:
    court = Court()
    told = iter(texts)
    good = 0

    def model(event: Event, asked: ModelAsked) -> msgspec.Struct:
        nonlocal good
        text = next(told, None)
        good += text is None
        return said(event, asked, score, text=text)

    court.model = model
    court.ask(engine="langchain", model="toy")
    over = court.audit()
    given_opinions = court.of(AuditOpinionGiven)
    assert court.of(ActorHalted) == []
    assert len([*court.of(AuditConcluded), *court.of(AuditFailed)]) == 1
    assert len(given_opinions) <= good
    assert all(one.opinion.score == score and one.reply for one in given_opinions)
    assert isinstance(over, AuditConcluded) or over.code == "judge"
    assert bool(rulings(court)) == isinstance(over, AuditConcluded)


TROUBLE = st.dictionaries(
    st.sampled_from([f"{judge} 1 {name}" for judge in JUDGES for name in DIMENSIONS]),
    st.sampled_from(["too_long", "rejected", "overloaded", "no_key"]), max_size=6,
)  # fmt: skip


@settings(max_examples=rounds(25, 5), deadline=None)
@given(st.data(), TROUBLE, scores)
def test_an_audit_that_is_taken_up_again_asks_nothing_twice_and_rules_as_if_nothing_had_failed(
    data: st.DataObject, trouble: dict[str, str], given_scores: Scores
) -> None:
    straight, court = court_of(given_scores), court_of(given_scores)
    answer = court.model

    def failing(event: Event, asked: ModelAsked) -> msgspec.Struct | None:
        code: Any = trouble.get(str(asked.inputs["question"]))
        if code is None:
            return answer(event, asked)
        return ModelCallFailed(request=event.position, ask=event.data.ask, code=code, error="E", transient=False)

    court.model = failing
    over = finished(court, data.draw)
    lost = [one for one in rulings(court) if one.unanswered]
    answered = {court.history[event.data.ask - 1].data.inputs["question"] for event in court.events(ModelReplied)}
    before = len(court.of(ModelAsked))
    assert isinstance(over, AuditFailed) or bool(lost) == bool(trouble)
    straight.audit()
    if isinstance(over, AuditFailed) or lost:
        court.model, again = answer, f"{AUDIT[:-1]}2"
        court.ask(None, again, engine="langchain", model="toy", vision_model="toy", resumes=AUDIT)
        assert isinstance(court.audit(again), AuditConcluded)
    last = rulings(court)[-len(DIMENSIONS) :]
    assert [(one.dimension_id, one.final_score, one.rules) for one in last] == [
        (one.dimension_id, one.final_score, one.rules) for one in rulings(straight)
    ]
    assert answered.isdisjoint(one.inputs["question"] for one in court.of(ModelAsked)[before:])
    assert court.of(ActorHalted) == []
