"""The ledger of effects: what a mode, or the loss of the kernel watcher, does to effects that are under way."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pmagent.actors.core.ledger import GATE, Cancel, EffectLedger
from pmagent.actors.kernel.actor import KernelWatcher
from pmagent.actors.oa.policy import AUTHORITY
from pmagent.contracts.control import EffectsPaused, EffectsResumed
from pmagent.contracts.effect import ActorHalted, EffectCancelRequested, EffectRefused
from pmagent.contracts.hid import HidArmRequested, HidCommitRequested, HidDisarmRequested, HidPingRequested
from pmagent.contracts.kernel import KernelModeDecided
from pmagent.contracts.oa import OaPermitRevoked
from pmagent.contracts.payload import Effect, OutwardRequest, Scope, encode, event_type, type_of
from pmagent.events.event import Event
from tests.support.cases import each
from tests.support.toys import START, Done, SendRequested, WorkRequested


@event_type("toy.diagnostic_requested", effect=Effect(repeatable=True))
class DiagnosticRequested(OutwardRequest, frozen=True, kw_only=True):
    """An outward effect that every mode allows."""

    def scope(self) -> Scope:
        """See OutwardRequest."""
        return Scope("diagnostic", "toy")


def event(position: int, data: msgspec.Struct, actor: str = "kernel") -> Event:
    return Event(position, START, f"{position}", "decision", actor, type_of(data), "", 0, data, encode(data))


def decided(mode: str, previous: str) -> KernelModeDecided:
    raw = {"mode": mode, "previous": previous, "reasons": [], "phase": "1", "branch": "main", "digest": ""}
    return msgspec.convert(raw, KernelModeDecided)


@pytest.fixture
def ledger() -> EffectLedger:
    """See ``opened``."""
    return opened()


def opened() -> EffectLedger:
    """An outward effect (feature_work) and an inward one are open; the outward one's permit is nobody's any more."""
    ledger = EffectLedger(authority=AUTHORITY)
    assert ledger.book(event(5, SendRequested(n=1, permit=2), "toy"))[0]
    assert ledger.book(event(6, WorkRequested(n=1), "toy"))[0]
    return ledger


@each("mode, previous", [("BLOCKED", "NORMAL"), ("DEGRADED", "NORMAL"), ("DEGRADED", "BLOCKED")])
def test_a_mode_that_forbids_what_runs_ends_it_even_when_its_permit_has_expired(mode: str, previous: str) -> None:
    ledger = opened()
    assert ledger.book(event(9, decided(mode, previous)))[1] == [Cancel(5, "permit_revoked")]
    assert ledger.cancelled == {5: "permit_revoked"}


def test_the_change_to_blocked_ends_even_what_blocked_allows(ledger: EffectLedger) -> None:
    assert ledger.book(event(7, DiagnosticRequested(permit=3), "toy"))[0]
    assert ledger.book(event(8, decided("DEGRADED", "NORMAL")))[1] == [Cancel(5, "permit_revoked")]
    ledger.book(Event(9, START, "o", "fact", "toy", "toy.done", "", 5, Done(n=1), b"{}"))
    assert ledger.book(event(10, decided("BLOCKED", "DEGRADED")))[1] == [Cancel(7, "permit_revoked")]
    assert ledger.book(event(11, DiagnosticRequested(permit=4), "toy"))[0]
    assert Cancel(11, "permit_revoked") not in ledger.book(event(12, decided("BLOCKED", "BLOCKED")))[1]


def test_a_mode_that_allows_what_runs_ends_nothing(ledger: EffectLedger) -> None:
    assert ledger.book(event(9, decided("NORMAL", "DEGRADED")))[1] == []
    assert ledger.cancelled == {}


def test_when_the_watcher_is_halted_nothing_outward_goes_on(ledger: EffectLedger) -> None:
    halted = ActorHalted(name="kernel", input=8, error="ValueError", place="here")
    assert ledger.book(event(9, halted, "engine"))[1] == [Cancel(5, "permit_revoked")]


def test_the_watcher_is_the_actor_that_decides_the_mode() -> None:
    assert KernelWatcher().name == AUTHORITY.watcher


def test_when_another_actor_is_halted_effects_go_on(ledger: EffectLedger) -> None:
    halted = ActorHalted(name="toy", input=8, error="ValueError", place="here")
    assert list(ledger.book(event(9, halted, "engine"))[1]) == []


PAUSED = EffectsPaused(request=7, since=7, operator_id="ada", channel="cli", reason="")
RESUMED = EffectsResumed(request=8, since=7, held=1, operator_id="ada", channel="cli")


def test_a_pause_is_the_gates_word_and_holds_what_is_outward_alone(ledger: EffectLedger) -> None:
    ledger.book(event(7, PAUSED, "toy"))
    ledger.book(event(8, SendRequested(n=1, permit=2), "toy"))
    assert not ledger.held, "nobody has paused"
    ledger.book(event(9, PAUSED, GATE))
    held = event(10, SendRequested(n=1, permit=2), "toy")
    assert ledger.book(held) == ((held,), ()), "its scheduler is to know it"
    ledger.book(event(11, WorkRequested(n=1), "toy"))
    ledger.book(event(12, PAUSED, GATE))
    ledger.book(event(12, RESUMED, "toy"))
    assert (ledger.held, ledger.paused) == ({10: held}, True)
    unfinished = ledger.unfinished()
    assert (unfinished.held, unfinished.paused) == ([held], True)
    assert [begun.position for begun in unfinished.begun] == [5, 6, 8, 11]
    assert ledger.book(event(13, RESUMED, GATE)) == ((), ())
    ledger.book(event(14, SendRequested(n=1, permit=2), "toy"))
    assert (ledger.held, ledger.paused) == ({}, False)


@each("closing", [EffectRefused(request=10, reasons=["x"]), None])
def test_what_was_held_and_has_ended_is_not_held_any_more(closing: EffectRefused | None) -> None:
    ledger = opened()
    ledger.book(event(9, PAUSED, GATE))
    ledger.book(event(10, SendRequested(n=1, permit=2), "toy"))
    if closing is not None:
        ledger.book(event(11, closing, "toy"))
        assert ledger.is_open(10), "of another than the gate it is none"
        ledger.book(event(12, closing, GATE))
    else:
        ledger.book(Event(12, START, "o", "fact", "toy", "toy.done", "", 10, Done(n=1), b"{}"))
    assert not ledger.is_open(10)
    assert not ledger.held


def test_a_fact_pauses_resumes_and_requests_nothing(ledger: EffectLedger) -> None:
    def fact(data: msgspec.Struct) -> Event:
        return msgspec.structs.replace(event(9, data, GATE), kind="fact")

    assert ledger.book(fact(SendRequested(n=1, permit=2))) == ((), ())
    assert not ledger.is_open(9)
    ledger.book(event(10, PAUSED, GATE))
    ledger.book(fact(RESUMED))
    ledger.book(event(11, SendRequested(n=1, permit=2), "toy"))
    assert [*ledger.held] == [11]


@each("actor, request_, cancels", [("toy", 5, True), ("oa", 5, False), ("toy", 99, False)])
def test_only_who_asked_takes_it_back(actor: str, request_: int, cancels: bool) -> None:
    ledger = opened()
    taken_back = ledger.book(event(9, EffectCancelRequested(request=request_), actor))[1]
    assert list(taken_back) == ([Cancel(5, "cancel_requested")] if cancels else [])


@each("permit, cancels", [(2, True), (3, False)])
def test_a_permit_that_is_taken_back_ends_what_runs_under_it(permit: int, cancels: bool) -> None:
    ledger = opened()
    revoked = ledger.book(event(9, OaPermitRevoked(permit=permit, reason="x")))[1]
    assert revoked == ([Cancel(5, "permit_revoked")] if cancels else [])


@each("of, cancels", [("hid", True), ("toy", False)])
@each("attended", [
    HidArmRequested(permit=2, device_id="device-1", boot_id="0" * 16, action_class="feature_work"),
    HidPingRequested(boot_id="0" * 16, at=START),
    HidCommitRequested(permit=2, boot_id="0" * 16, execution_id="exec-1", digest="0" * 64, action_class="feature_work"),
])
def test_what_arms_keeps_armed_or_types_ends_with_the_actor_that_asked(attended: Any, of: str, cancels: bool) -> None:
    ledger = opened()
    assert ledger.book(event(7, attended, "hid"))[0]
    assert ledger.book(event(8, HidDisarmRequested(boot_id="0" * 16, why="x"), "hid"))[0]
    halted = ActorHalted(name=of, input=8, error="ValueError", place="here")
    assert list(ledger.book(event(9, halted, "engine"))[1]) == ([Cancel(7, "halted")] if cancels else [])
