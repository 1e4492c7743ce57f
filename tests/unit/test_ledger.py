"""The ledger of effects: what a mode, or the loss of the kernel watcher, does to effects that are under way."""

from __future__ import annotations

import msgspec
import pytest

from actors.kernel.actor import KernelWatcher
from actors.ledger import WATCHER, Cancel, EffectLedger
from contracts.effect import ActorHalted
from contracts.kernel import KernelModeDecided
from contracts.payload import Effect, OutwardRequest, Scope, encode, event_type, type_of
from events.event import Event
from tests.support.toys import START, SendRequested, WorkRequested


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
    """An outward effect (feature_work) and an inward one are open; the outward one's permit is nobody's any more."""
    ledger = EffectLedger()
    assert ledger.book(event(5, SendRequested(n=1, permit=2), "toy"))[0]
    assert ledger.book(event(6, WorkRequested(n=1), "toy"))[0]
    return ledger


@pytest.mark.parametrize(("mode", "previous"), [("BLOCKED", "NORMAL"), ("DEGRADED", "NORMAL"), ("DEGRADED", "BLOCKED")])
def test_a_mode_that_forbids_what_runs_ends_it_even_when_its_permit_has_expired(
    ledger: EffectLedger, mode: str, previous: str
) -> None:
    assert ledger.book(event(9, decided(mode, previous)))[1] == [Cancel(5, "permit_revoked")]
    assert ledger.cancelled == {5: "permit_revoked"}


def test_the_change_to_blocked_ends_even_what_blocked_allows(ledger: EffectLedger) -> None:
    assert ledger.book(event(7, DiagnosticRequested(permit=3), "toy"))[0]
    assert ledger.book(event(8, decided("DEGRADED", "NORMAL")))[1] == [Cancel(5, "permit_revoked")]
    ledger.book(Event(9, START, "o", "fact", "toy", "toy.done", "", 5, None, b"{}"))
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
    assert KernelWatcher().name == WATCHER


def test_when_another_actor_is_halted_effects_go_on(ledger: EffectLedger) -> None:
    halted = ActorHalted(name="toy", input=8, error="ValueError", place="here")
    assert ledger.book(event(9, halted, "engine"))[1] == ()
