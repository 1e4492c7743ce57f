"""One execution: only what was approved, ordered once, and its outcome found out or told to be unknown."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from pmagent.actors.pla.hid.execution import VIOLATIONS
from pmagent.contracts.daemon import DaemonStarted, DaemonStopped
from pmagent.contracts.effect import EffectCancelRequested, EffectFailed, EffectInterrupted, EffectTimedOut
from pmagent.contracts.hid import (
    HidCommitRequested,
    HidDisarmRequested,
    HidEnded,
    HidLost,
    HidOutcomeUnknown,
    HidPrepared,
    HidPrepareRequested,
    HidRefused,
    HidReported,
    HidStatusRequested,
    HidTold,
    HidTripped,
)
from pmagent.contracts.oa import OaPermitGranted
from pmagent.contracts.pla import digest
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaDisarmRequested,
    PlaEndRequested,
    PlaExecuted,
    PlaModeAnswered,
    PlaModeChanged,
    PlaModeRequested,
    PlaProposalClosed,
    PlaViolation,
)
from pmagent.events.event import Event
from tests.support.cases import each
from tests.support.orchestra import kernel
from tests.support.pla import ALICE, BOOT, TEXT, PlaHarness, answering, silent
from tests.support.toys import Poked


def told(state: Any, of: str = "", boot: str = BOOT, **more: Any) -> Any:
    """The device's knowledge of an execution."""

    def answer(event: Event) -> HidTold:
        return HidTold(
            request=event.position, boot_id=boot, execution_id=event.data.execution_id, state=state,
            digest=of or digest(TEXT), done=3, of=12, **more,
        )

    return answer


def begun(kind: str, outcome: Any) -> PlaHarness:
    """A desk where an approved execution meets this."""
    harness = PlaHarness().ready()
    answering(harness, kind, outcome)
    harness.decide(harness.propose())
    return harness


def test_the_order_is_given_under_a_permit_for_just_these_bytes() -> None:
    harness = begun("none", None)
    (order,) = harness.of(HidCommitRequested)
    grant = harness.history[order.data.permit - 1].data
    assert isinstance(grant, OaPermitGranted)
    assert grant.subject == f"hid:{order.data.execution_id}:{digest(TEXT)}"
    assert (grant.uses, grant.holder, order.actor) == (1, "hid", "hid")
    assert harness.of(PlaApproved)[0].position < order.position


@each("code", [*VIOLATIONS, "CAPS_LOCK", "BUSY", "USB"])
def test_what_the_device_refuses_to_prepare_is_not_typed(code: str) -> None:
    refused = lambda event: HidRefused(request=event.position, boot_id=BOOT, code=code, text="it says no")  # noqa: E731
    harness = begun("hid.prepare_requested", refused)
    ended = harness.last(PlaExecuted)
    assert (ended.outcome, ended.code) == ("not_executed", code)
    assert harness.last(PlaProposalClosed).outcome == "not_executed"
    assert harness.of(HidCommitRequested) == []
    kinds = [event.data.kind for event in harness.of(PlaViolation)]
    assert kinds == ([VIOLATIONS[code]] if code in VIOLATIONS else [])


@each("code, trip", [("KILLED", "killed"), ("NOT_ARMED", "lease_lost")])
def test_a_device_that_refuses_the_order_has_typed_nothing(code: str, trip: str) -> None:
    refused = lambda event: HidRefused(request=event.position, boot_id=BOOT, code=code, text="no")  # noqa: E731
    harness = begun("hid.commit_requested", refused)
    assert harness.last(PlaExecuted).outcome == "not_executed"
    assert harness.last(HidTripped).code == trip
    assert harness.warden.mode == "OBSERVE"
    assert len(harness.of(PlaExecuted)) == 1


@each("code", ["NO_HELLO", "BOOT_MISMATCH"])
def test_the_refusal_of_another_boot_does_not_say_that_nothing_was_typed(code: str) -> None:
    refused = lambda event: HidRefused(request=event.position, boot_id=BOOT, code=code, text="no")  # noqa: E731
    harness = begun("hid.commit_requested", refused)
    assert harness.last(HidTripped).code == "device_reset"
    assert harness.warden.mode == "OBSERVE"
    assert [told.data.outcome for told in harness.of(PlaExecuted)] == ["done"], "the device is asked"


def test_what_the_device_prepared_must_be_what_was_approved() -> None:
    def other(event: Event) -> HidPrepared:
        return HidPrepared(
            request=event.position, boot_id=BOOT, execution_id=event.data.execution_id, digest="0" * 64, of=1
        )

    harness = begun("hid.prepare_requested", other)
    assert harness.last(PlaExecuted).why == "the device prepared something else"
    assert harness.of(HidCommitRequested) == []


def test_an_execution_that_was_ended_says_how_far_it_came() -> None:
    def aborted(event: Event) -> HidEnded:
        return HidEnded(
            request=event.position, boot_id=BOOT, execution_id=event.data.execution_id, state="ABORTED", done=5, of=12,
            code="KILLED",
        )

    harness = begun("hid.commit_requested", aborted)
    ended = harness.last(PlaExecuted)
    assert (ended.outcome, ended.done, ended.of, ended.code) == ("aborted", 5, 12, "KILLED")
    assert harness.warden.mode == "OBSERVE"
    assert harness.last(PlaModeChanged).code == "killed"


@each("state", ["DONE", "ABORTED"])
def test_a_lost_answer_is_asked_for_and_the_order_is_not_given_again(state: str) -> None:
    harness = PlaHarness().ready()
    answering(harness, "hid.commit_requested", silent)
    answering(harness, "hid.status_requested", told(state))
    harness.decide(harness.propose())
    assert harness.last(PlaExecuted).outcome == {"DONE": "done", "ABORTED": "aborted"}[state]
    assert len(harness.of(HidCommitRequested)) == 1
    assert harness.of(HidOutcomeUnknown) == []


@each("state", ["NONE", "PREPARED"])
def test_an_order_that_never_arrived_is_told_so_and_cannot_arrive_later(state: str) -> None:
    harness = PlaHarness().ready()
    answering(harness, "hid.commit_requested", silent)
    answering(harness, "hid.status_requested", told(state))
    harness.decide(harness.propose())
    ended = harness.last(PlaExecuted)
    assert (ended.outcome, ended.code) == ("not_executed", "not_arrived")
    assert harness.last(HidDisarmRequested).why == "an order was lost on its way"
    assert len(harness.of(HidCommitRequested)) == 1


def test_an_order_that_was_not_sent_has_typed_nothing() -> None:
    harness = begun("hid.commit_requested", lambda event: silent(event, sent=False))
    assert harness.last(PlaExecuted).outcome == "not_executed"
    assert harness.of(HidStatusRequested) == []


def test_while_it_types_it_is_asked_again() -> None:
    harness = PlaHarness().ready()
    answers = iter([told("RUNNING"), told("RUNNING"), told("DONE")])
    answering(harness, "hid.commit_requested", silent)

    def running(event: Event) -> Any:
        return next(answers)(event)

    answering(harness, "hid.status_requested", running)
    harness.decide(harness.propose())
    harness.advance(3)
    assert harness.last(PlaExecuted).outcome == "done"
    assert len(harness.of(HidStatusRequested)) == 3


UNKNOWABLE: dict[str, Any] = {
    "another boot": told("NONE", boot="f" * 16),
    "other bytes": told("DONE", of="0" * 64),
    "a device that began anew": lambda event: HidRefused(
        request=event.position, boot_id="f" * 16, code="BOOT_MISMATCH", text="no"
    ),
    "silence": silent,
    "a failure": lambda event: EffectFailed(request=event.position, error="OSError", place="here"),
}


@each("name", UNKNOWABLE)
def test_what_nobody_can_tell_is_unknown_disarmed_and_never_typed_again(name: str) -> None:
    harness = PlaHarness().ready()
    answering(harness, "hid.commit_requested", silent)
    answering(harness, "hid.status_requested", UNKNOWABLE[name])
    proposed = harness.propose()
    harness.decide(proposed)
    harness.advance(60)
    (unknown,) = harness.of(HidOutcomeUnknown)
    assert (unknown.data.proposal_id, unknown.data.of) == (proposed.proposal_id, 12)
    assert harness.last(PlaProposalClosed).outcome == "unknown"
    assert harness.warden.mode == "OBSERVE"
    assert not harness.armed
    harness.mode("SUGGEST", "EXECUTE")
    harness.arm()
    harness.decide(proposed)
    assert len(harness.of(HidCommitRequested)) == 1
    assert harness.of(PlaExecuted) == []


@each("end", ["failed", "timed_out", "interrupted"])
def test_however_the_order_ends_the_device_is_asked(end: str) -> None:
    def ended(event: Event) -> msgspec.Struct:
        at = event.position
        return {
            "failed": EffectFailed(request=at, error="OSError", place="here"),
            "timed_out": EffectTimedOut(request=at, limit_s=180.0),
            "interrupted": EffectInterrupted(request=at, reason="crash"),
        }[end]

    harness = begun("hid.commit_requested", ended)
    assert len(harness.of(HidStatusRequested)) == 1
    assert harness.last(PlaExecuted).outcome == "done"


def test_an_unplugged_device_leaves_the_outcome_unknown() -> None:
    harness = PlaHarness().ready()
    harness.mute = {HidCommitRequested, HidStatusRequested}
    harness.decide(harness.propose())
    (order,) = harness.of(HidCommitRequested)
    harness.fact(HidLost(boot_id=BOOT, code="unplugged", text="gone"))
    assert harness.warden.mode == "OBSERVE"
    harness.finish(order.position, silent(order))
    harness.link(boot="e" * 16)
    assert len(harness.of(HidOutcomeUnknown)) == 1


def test_after_a_restart_the_device_with_the_same_boot_is_asked() -> None:
    harness = PlaHarness().ready()
    harness.mute = {HidCommitRequested, HidStatusRequested}
    harness.decide(harness.propose())
    (order,) = harness.of(HidCommitRequested)
    harness.finish(order.position, EffectInterrupted(request=order.position, reason="crash"))
    harness.fact(DaemonStarted(version="0", python="3", surface="daemon"))
    harness.link()
    harness.mute = set()
    harness.go()
    assert harness.last(PlaExecuted).outcome == "done"
    assert len(harness.of(HidCommitRequested)) == 1
    types = harness.types()
    assert types.index("pla.executed") < types.index("pla.session_ended"), "the session waited for the outcome"
    assert harness.warden.session_id == ""


def test_a_daemon_that_comes_back_late_still_asks_though_commands_without_a_line_could_not() -> None:
    harness = PlaHarness().ready()
    harness.mute = {HidCommitRequested}
    harness.decide(harness.propose())
    (order,) = harness.of(HidCommitRequested)
    answering(harness, "hid.status_requested", partial(silent, sent=False))
    harness.finish(order.position, EffectInterrupted(request=order.position, reason="crash"))
    harness.fact(DaemonStarted(version="0", python="3", surface="oa.snapshot"))
    harness.advance(1)
    harness.mute = {HidCommitRequested, HidStatusRequested}  # the command ends, and nobody asks
    harness.fact(DaemonStopped(reason="done"))
    harness.advance(3600)
    harness.fact(DaemonStarted(version="0", python="3", surface="daemon"))
    harness.mute = {HidCommitRequested}
    harness.advance(1)
    assert harness.of(HidOutcomeUnknown) == []
    answering(harness, "hid.status_requested", told("DONE"))
    harness.link()
    harness.advance(8)
    assert harness.last(PlaExecuted).outcome == "done"
    assert harness.of(HidOutcomeUnknown) == []


def test_commands_without_a_line_leave_the_finding_out_to_a_daemon_however_late_they_come() -> None:
    harness = PlaHarness().ready()
    harness.mute = {HidCommitRequested}
    harness.decide(harness.propose())
    (order,) = harness.of(HidCommitRequested)
    answering(harness, "hid.status_requested", partial(silent, sent=False))
    harness.finish(order.position, EffectInterrupted(request=order.position, reason="crash"))
    for _ in range(3):
        harness.fact(DaemonStarted(version="0", python="3", surface="pla.mode"))
        harness.advance(60)
    harness.tell(PlaModeRequested(mode="SUGGEST", operator_id=ALICE, channel="cli"))
    assert harness.last(PlaModeAnswered).mend == ["pmagent up: a daemon asks the device"]
    harness.tell(PlaEndRequested(operator_id=ALICE, channel="cli"))
    assert harness.last(PlaModeAnswered).accepted
    assert "as soon as it is known" in harness.last(PlaModeAnswered).reasons[0]
    harness.fact(DaemonStarted(version="0", python="3", surface="daemon"))
    answering(harness, "hid.status_requested", told("DONE"))
    harness.link()
    harness.advance(8)
    assert harness.last(PlaExecuted).outcome == "done"
    assert harness.of(HidOutcomeUnknown) == []
    assert harness.warden.session_id == ""


def test_a_daemon_that_hears_of_no_device_says_after_half_a_minute_that_nobody_knows() -> None:
    harness = PlaHarness().ready()
    harness.mute = {HidCommitRequested}
    harness.decide(harness.propose())
    (order,) = harness.of(HidCommitRequested)
    answering(harness, "hid.status_requested", partial(silent, sent=False))
    harness.finish(order.position, EffectInterrupted(request=order.position, reason="crash"))
    harness.fact(DaemonStarted(version="0", python="3", surface="pla.mode"))
    harness.advance(60)
    harness.fact(DaemonStarted(version="0", python="3", surface="daemon"))
    harness.advance(29)
    assert harness.of(HidOutcomeUnknown) == []
    harness.advance(20)
    assert len(harness.of(HidOutcomeUnknown)) == 1


@each(
    "fact",
    [
        HidReported(boot_id=BOOT, mode="EXECUTE", led_state=True, kill_switch_state="DISABLED"),
        HidLost(boot_id=BOOT, code="unplugged", text="gone"),
        PlaDisarmRequested(operator_id=ALICE, channel="cli"),
        kernel("BLOCKED"),
        DaemonStarted(version="0", python="3", surface="daemon"),
        DaemonStopped(reason="SIGTERM"),
    ],
)
def test_what_is_not_begun_never_begins(fact: msgspec.Struct) -> None:
    harness = PlaHarness().ready()
    prepared: list[Event] = []

    def hold(event: Event) -> msgspec.Struct | None:
        if isinstance(event.data, HidPrepareRequested):
            prepared.append(event)
            return None
        return obedient(event)

    obedient = harness.device
    harness.device = hold
    harness.decide(harness.propose())
    out = harness.fact(fact)
    (ended,) = [event.data for event in out.events if isinstance(event.data, PlaExecuted)]
    assert (ended.outcome, ended.done) == ("not_executed", 0)
    taken_back = [event.data.request for event in out.events if isinstance(event.data, EffectCancelRequested)]
    assert prepared[0].position in taken_back, "the device is handed nothing more of it"
    harness.finish(prepared[0].position, obedient(prepared[0]) or Poked(n=1))  # too late
    harness.go()
    assert harness.of(HidCommitRequested) == []
