"""While effects are paused nothing is armed, ordered or typed; and who asked for it decides nothing at the console."""

from __future__ import annotations

from pmagent.contracts.control import EffectsPaused, EffectsResumed, PauseRequested, ResumeRequested
from pmagent.contracts.hid import HidArmRequested, HidCommitRequested, HidDisarmRequested
from pmagent.contracts.payload import types
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaArmAnswered,
    PlaDecisionRefused,
    PlaExecuted,
    PlaModeAnswered,
    PlaModeChanged,
    PlaProposalClosed,
)
from tests.support.cases import each
from tests.support.pla import ALICE, BOB, Desk, answering


def pause(desk: Desk) -> None:
    desk.tell(PauseRequested(operator_id=BOB, channel="console", reason="the bench is being rewired"))


def resume(desk: Desk) -> None:
    desk.tell(ResumeRequested(operator_id=BOB, channel="console"))


def test_a_pause_lowers_the_mode_disarms_and_withdraws_what_is_open() -> None:
    desk = Desk().ready()
    desk.propose()
    pause(desk)
    assert desk.last(EffectsPaused).operator_id == BOB
    changed = desk.last(PlaModeChanged)
    assert (changed.mode, changed.who, changed.channel) == ("OBSERVE", BOB, "console")
    assert changed.why == "effects are paused: the bench is being rewired"
    assert desk.last(PlaProposalClosed).outcome == "withdrawn"
    assert desk.of(HidDisarmRequested)
    assert not desk.armed


def test_no_mode_is_raised_while_effects_are_paused_and_it_is_raised_again_after() -> None:
    desk = Desk().link()
    pause(desk)
    desk.mode("SUGGEST")
    refused = desk.last(PlaModeAnswered)
    assert (refused.accepted, refused.reasons, refused.mend) == (
        False, [f"effects are paused, by {BOB}"], ["pmagent resume"],
    )  # fmt: skip
    resume(desk)
    desk.mode("SUGGEST", "EXECUTE")
    assert desk.last(PlaModeAnswered).mode == "EXECUTE"


@each("step", ["hid.prepare_requested", "hid.commit_requested"])
def test_what_was_approved_before_a_pause_is_not_ordered_after_it(step: str) -> None:
    desk = Desk().ready()
    answering(desk, step, lambda _: None)  # the pause comes while the device is silent
    desk.decide(desk.propose())
    ordered = len(desk.of(HidCommitRequested))
    pause(desk)
    resume(desk)
    desk.device = desk.obedient
    desk.advance(120.0)
    assert len(desk.of(HidCommitRequested)) == ordered
    assert desk.warden.mode == "OBSERVE"
    assert desk.of(PlaExecuted) or ordered, "what was ordered already ends as the device says"


def test_arming_that_is_asked_for_in_a_pause_is_refused_and_not_kept_for_later() -> None:
    desk = Desk().ready()
    pause(desk)
    desk.arm()
    assert not desk.last(PlaArmAnswered).armed
    armed = len(desk.of(HidArmRequested))
    resume(desk)
    desk.advance(10.0)
    assert len(desk.of(HidArmRequested)) == armed


def test_arming_and_the_order_to_type_never_wait() -> None:
    waits = {name: getattr(cls, "waits", None) for name, cls in types().items() if hasattr(cls, "waits")}
    assert {name for name, may in waits.items() if not may} == {"hid.arm_requested", "hid.commit_requested"}


def test_a_second_pause_says_since_when_and_a_resume_without_one_does_nothing() -> None:
    desk = Desk()
    pause(desk)
    first = desk.last(EffectsPaused).since
    pause(desk)
    assert desk.last(EffectsPaused).since == first
    resume(desk)
    assert desk.last(EffectsResumed).since == first
    resume(desk)
    assert desk.last(EffectsResumed).since == 0


def test_who_asked_for_it_does_not_approve_it_at_the_console_and_somebody_else_does() -> None:
    desk = Desk().ready()
    proposed = desk.propose(requested_by=ALICE)
    desk.decide(proposed, operator_id=ALICE, channel="console")
    assert desk.last(PlaDecisionRefused).code == "self"
    assert desk.of(PlaApproved) == []
    desk.decide(proposed, operator_id=BOB, channel="console")
    assert desk.last(PlaApproved).operator_id == BOB


def test_an_approval_that_saw_another_mode_is_refused() -> None:
    desk = Desk().ready()
    proposed = desk.propose()
    desk.decide(proposed, operator_id=BOB, seen_mode="SUGGEST")
    refused = desk.last(PlaDecisionRefused)
    assert refused.code == "changed"
    assert refused.reasons == ["the mode was SUGGEST when it was shown, and is EXECUTE now"]
    desk.decide(proposed, operator_id=BOB, seen_mode="EXECUTE", looked_ms=4200)
    assert desk.last(PlaApproved).executes
