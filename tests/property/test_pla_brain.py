"""Each request to the brain has exactly one answer, and one proposal is open, whatever happens in whatever order."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.contracts.effect import ActorHalted, EffectFailed, EffectInterrupted, EffectTimedOut, RequestRefused
from pmagent.contracts.model import ModelCallFailed, ModelCallRequested
from pmagent.contracts.pla import TypeText
from pmagent.contracts.pla_events import (
    PlaEndRequested,
    PlaFrameFailed,
    PlaFrameRequested,
    PlaObserveRequested,
    PlaProposalClosed,
    PlaProposalRequested,
    PlaProposed,
)
from pmagent.events.event import Event
from tests.support.effort import examples
from tests.support.pla import ALICE
from tests.support.pla_brain import MODEL, SOURCE, BrainHarness, asked, frame, reply, said

ASKS: dict[str, Any] = {
    "literal": lambda: asked(TypeText(text="ls\n")),
    "framed": lambda: asked(TypeText(text="ls\n"), frame=SOURCE),
    "unfit": lambda: asked(TypeText(text="")),
    "credential": lambda: asked(TypeText(text="my password is swordfish")),
    "acknowledged": lambda: asked(TypeText(text="my password is swordfish"), policy="acknowledge"),
    "model": lambda: asked(goal="go on", model=MODEL),
    "model and frame": lambda: asked(goal="go on", model=MODEL, frame=SOURCE),
    "nothing": lambda: asked(goal="go on"),
    "look": lambda: PlaObserveRequested(frame=SOURCE, requested_by=ALICE, channel="cli"),
}
FRAMES: dict[str, Any] = {
    "seen": frame,
    "none": lambda e: PlaFrameFailed(request=e.position, code="no_frame", text="empty", mend=""),
    "failed": lambda e: EffectFailed(request=e.position, error="OSError", place="x"),
    "late": lambda e: EffectTimedOut(request=e.position, limit_s=60.0),
    "cut": lambda e: EffectInterrupted(request=e.position, reason="crash"),
}
CALLS: dict[str, Any] = {
    "fits": lambda e: reply(e, said()),
    "misfit": lambda e: reply(e, "no"),
    "credential": lambda e: reply(e, said(TypeText(text="my password is swordfish"))),
    "rejected": lambda e: ModelCallFailed(
        request=e.position, ask=e.data.ask, code="rejected", error="X", transient=False
    ),
    "cut": lambda e: EffectInterrupted(request=e.position, reason="crash"),
}
STEP = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from(sorted(ASKS))),
    st.tuples(st.just("frame"), st.sampled_from(sorted(FRAMES))),
    st.tuples(st.just("call"), st.sampled_from(sorted(CALLS))),
    st.tuples(st.just("mode"), st.sampled_from(("OBSERVE", "SUGGEST", "EXECUTE"))),
    st.tuples(st.just("decide"), st.sampled_from(("APPROVED", "REJECTED"))),
    st.tuples(st.sampled_from(("end", "link")), st.just("")),
    st.tuples(st.just("pass"), st.sampled_from(("1", "30", "400"))),
)


@given(st.lists(STEP, max_size=30), st.integers(0, 5))
@settings(deadline=None, max_examples=examples(120))
def test_each_request_has_exactly_one_answer_and_one_proposal_is_open(steps: list[tuple[str, str]], pick: int) -> None:
    harness = BrainHarness()
    harness.camera = harness.model = lambda _: None
    for what, which in steps:
        act(harness, what, which, pick)
        opened = {event.data.proposal_id for event in harness.of(PlaProposed)}
        opened -= {event.data.proposal_id for event in harness.of(PlaProposalClosed)}
        assert len(opened) <= 1
        assert opened in (set(), {harness.brain.proposal_id})
    harness.camera, harness.model = frame, CALLS["fits"]
    harness.go()
    harness.advance(1000)
    requests = [*harness.of(PlaProposalRequested), *harness.of(PlaObserveRequested)]
    assert [len(harness.answers(request)) for request in requests] == [1] * len(requests)
    assert harness.brain.pending is None
    assert harness.brain.looks == {}
    assert not harness.of(ActorHalted)
    assert not harness.of(RequestRefused)


def act(harness: BrainHarness, what: str, which: str, pick: int) -> None:
    """One step of a history."""
    match what:
        case "ask":
            harness.tell(ASKS[which]())
        case "frame":
            outcome(harness, PlaFrameRequested, FRAMES[which], pick)
        case "call":
            outcome(harness, ModelCallRequested, CALLS[which], pick)
        case "mode":
            harness.mode(which)
        case "decide":
            if harness.warden.open_proposals:
                harness.decide(harness.warden.open_proposals[0].proposed, which, reason="because", acknowledged=True)
        case "end":
            harness.tell(PlaEndRequested(operator_id=ALICE, channel="cli"))
        case "link":
            harness.link()
        case _:
            harness.advance(float(which))


def outcome(harness: BrainHarness, kind: type, make: Any, pick: int) -> None:
    """Something that is open ends, if anything is."""
    waiting: list[Event] = [event for event in harness.engine.effects.open.values() if isinstance(event.data, kind)]
    if waiting:
        event = waiting[pick % len(waiting)]
        harness.finish(event.position, make(event))
        harness.go()
