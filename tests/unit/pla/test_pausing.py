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
from tests.support.pla import ALICE, BOB, PlaHarness, answering


def pause(harness: PlaHarness) -> None:
    harness.tell(PauseRequested(operator_id=BOB, channel="console", reason="the bench is being rewired"))


def resume(harness: PlaHarness) -> None:
    harness.tell(ResumeRequested(operator_id=BOB, channel="console"))


def test_a_pause_lowers_the_mode_disarms_and_withdraws_what_is_open() -> None:
    harness = PlaHarness().ready()
    harness.propose()
    pause(harness)
    assert harness.last(EffectsPaused).operator_id == BOB
    changed = harness.last(PlaModeChanged)
    assert (changed.mode, changed.who, changed.channel) == ("OBSERVE", BOB, "console")
    assert changed.why == "effects are paused: the bench is being rewired"
    assert harness.last(PlaProposalClosed).outcome == "withdrawn"
    assert harness.of(HidDisarmRequested)
    assert not harness.armed


def test_no_mode_is_raised_while_effects_are_paused_and_it_is_raised_again_after() -> None:
    harness = PlaHarness().link()
    pause(harness)
    harness.mode("SUGGEST")
    refused = harness.last(PlaModeAnswered)
    assert (refused.accepted, refused.reasons, refused.mend) == (
        False, [f"effects are paused, by {BOB}"], ["pmagent resume"],
    )  # fmt: skip
    resume(harness)
    harness.mode("SUGGEST", "EXECUTE")
    assert harness.last(PlaModeAnswered).mode == "EXECUTE"


@each("step", ["hid.prepare_requested", "hid.commit_requested"])
def test_what_was_approved_before_a_pause_is_not_ordered_after_it(step: str) -> None:
    harness = PlaHarness().ready()
    answering(harness, step, lambda _: None)  # the pause comes while the device is silent
    harness.decide(harness.propose())
    ordered = len(harness.of(HidCommitRequested))
    pause(harness)
    resume(harness)
    harness.device = harness.obedient
    harness.advance(120.0)
    assert len(harness.of(HidCommitRequested)) == ordered
    assert harness.warden.mode == "OBSERVE"
    assert harness.of(PlaExecuted) or ordered, "what was ordered already ends as the device says"


def test_arming_that_is_asked_for_in_a_pause_is_refused_and_not_kept_for_later() -> None:
    harness = PlaHarness().ready()
    pause(harness)
    harness.arm()
    assert not harness.last(PlaArmAnswered).armed
    armed = len(harness.of(HidArmRequested))
    resume(harness)
    harness.advance(10.0)
    assert len(harness.of(HidArmRequested)) == armed


def test_arming_and_the_order_to_type_never_wait() -> None:
    waits = {name: getattr(cls, "waits", None) for name, cls in types().items() if hasattr(cls, "waits")}
    assert {name for name, may in waits.items() if not may} == {"hid.arm_requested", "hid.commit_requested"}


def test_a_second_pause_says_since_when_and_a_resume_without_one_does_nothing() -> None:
    harness = PlaHarness()
    pause(harness)
    first = harness.last(EffectsPaused).since
    pause(harness)
    assert harness.last(EffectsPaused).since == first
    resume(harness)
    assert harness.last(EffectsResumed).since == first
    resume(harness)
    assert harness.last(EffectsResumed).since == 0


def test_who_asked_for_it_does_not_approve_it_at_the_console_and_somebody_else_does() -> None:
    harness = PlaHarness().ready()
    proposed = harness.propose(requested_by=ALICE)
    harness.decide(proposed, operator_id=ALICE, channel="console")
    assert harness.last(PlaDecisionRefused).code == "self"
    assert harness.of(PlaApproved) == []
    harness.decide(proposed, operator_id=BOB, channel="console")
    assert harness.last(PlaApproved).operator_id == BOB


def test_an_approval_that_saw_another_mode_is_refused() -> None:
    harness = PlaHarness().ready()
    proposed = harness.propose()
    harness.decide(proposed, operator_id=BOB, seen_mode="SUGGEST")
    refused = harness.last(PlaDecisionRefused)
    assert refused.code == "changed"
    assert refused.reasons == ["the mode was SUGGEST when it was shown, and is EXECUTE now"]
    harness.decide(proposed, operator_id=BOB, seen_mode="EXECUTE", looked_ms=4200)
    assert harness.last(PlaApproved).executes
