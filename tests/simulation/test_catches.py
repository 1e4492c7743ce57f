"""The simulation notices: each of these faults of our own is put in, and a few seeds must find it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from actors.gate import Gate
from actors.ledger import EffectLedger
from actors.oa.actor import Oa
from contracts.payload import Correlated, Payload
from events.event import Event
from events.head import HeadFile
from events.redact import Redactor
from replay.simulation.disk import SimFile
from replay.simulation.machine import Machine
from replay.simulation.runner import run_seeds

COUNT = 80


def found() -> bool:
    """Whether some seed fails."""
    return bool(run_seeds(1, COUNT, failures_max=1).failures)


def test_a_sync_that_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimFile, "sync", lambda _: None)
    assert found()


def test_head_that_runs_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    write = HeadFile.write

    def ahead(self: HeadFile, tail: Any) -> None:
        import msgspec

        write(self, msgspec.structs.replace(tail, position=tail.position + 1))

    monkeypatch.setattr(HeadFile, "write", ahead)
    assert found()


def test_a_gate_that_lets_everything_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gate, "decide", lambda *_: ())
    assert found()


def test_an_effect_that_may_end_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EffectLedger, "is_open", lambda *_: True)
    assert found()


@pytest.mark.slow
def test_a_cancellation_that_a_crash_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Machine._take_up

    def forgetful(self: Machine, recovered: Any) -> None:
        self.engine.effects.cancelled.clear()
        start(self, recovered)

    monkeypatch.setattr(Machine, "_take_up", forgetful)
    assert run_seeds(1, 400, failures_max=1).failures


def test_a_redactor_that_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redactor, "value", lambda _, value: value)
    assert found()


def test_a_decision_that_depends_on_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = Oa.decide
    calls = iter(range(10**9))

    def moody(self: Oa, state: Any, event: Event) -> Iterable[Payload | Correlated]:
        return () if next(calls) % 50 == 49 else decide(self, state, event)

    monkeypatch.setattr(Oa, "decide", moody)
    assert found()


def test_a_look_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    from events import log

    monkeypatch.setattr(Oa, "initial", lambda _: log.now() and time.time())
    failure = run_seeds(1, 1).failures[0]
    assert "Leak" in failure
    assert "events.log:now calls time.time_ns" in failure
    assert "pmagent sim --seed 1" in failure
