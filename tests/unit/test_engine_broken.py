"""A reaction that is left unfinished breaks the engine: it takes nothing more, and no snapshot is taken of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pmagent.actors.core import gate
from pmagent.actors.core.engine import Engine
from pmagent.actors.core.gate import Gate, Permit
from pmagent.actors.core.integrity import EngineBroken, Inconsistent, NotItsOutcome
from pmagent.actors.core.ledger import EffectLedger
from pmagent.actors.core.snapshot import export_engine
from pmagent.actors.core.subscribers import Subscribers
from pmagent.contracts.clock import TimerFired
from pmagent.contracts.effect import EffectRefused, EffectTimedOut
from pmagent.contracts.payload import Payload, encode, type_of
from pmagent.events.errors import BadEvent
from pmagent.events.event import DATA_BYTES_MAX, Draft
from tests.support.cases import each
from tests.support.toys import (
    Asked,
    Bench,
    Done,
    Echoed,
    Grantor,
    Poked,
    SendRequested,
    Toy,
    WorkRequested,
    permit_for,
    worker,
)


class Interrupted(BaseException):
    """A second Ctrl-C: nobody's exception."""


PLACES: Mapping[str, tuple[Any, str]] = {
    "the ledger": (EffectLedger, "book"),
    "an actor deciding": (Toy, "decide"),
    "an actor folding": (Toy, "evolve"),
    "the gate": (Gate, "evolve"),
    "placing a decision": (Engine, "_append"),
    "the subscribers": (Subscribers, "of"),
    "the last check": (Engine, "_verify"),
}
"""Where something is raised that is no actor's exception."""


def draft(payload: Payload, id: str, causation: int = 0) -> Draft:
    return Draft(type_of(payload), payload, encode(payload), id, "tests", "", causation)


def counted(call: Callable[..., Any], nth: int, error: BaseException) -> Callable[..., Any]:
    """``call``, which raises ``error`` at the ``nth`` time."""
    calls = [0]

    def counting(*arguments: Any, **more: Any) -> Any:
        calls[0] += 1
        if calls[0] == nth:
            raise error
        return call(*arguments, **more)

    return counting


@given(
    st.sampled_from(sorted(PLACES)), st.integers(1, 12), st.sampled_from([Interrupted, KeyboardInterrupt, SystemExit])
)
def test_wherever_a_reaction_is_cut_off_nothing_more_is_taken(place: str, nth: int, kind: type[BaseException]) -> None:
    bench = Bench([Grantor(), Toy("one"), Toy("two")])
    for n in range(3):
        bench.fact(Poked(n=n))
    with pytest.MonkeyPatch.context() as patch:
        owner, name = PLACES[place]
        patch.setattr(owner, name, counted(getattr(owner, name), nth, kind()))
        try:
            bench.fact(Asked(n=2))
        except kind:
            pass
        else:
            return  # so often it was not called
    broken = bench.engine.broken
    assert broken is not None
    assert broken.exit_code == 70
    assert kind.__name__ in broken.message
    for n in range(3):
        position = bench.engine.sequencer.position
        with pytest.raises(EngineBroken):
            bench.fact(Poked(n=n), f"later-{n}")
        for request in bench.engine.effects.open:
            with pytest.raises(EngineBroken):
                bench.engine.finish(request, draft(Done(n=1), "end", request), bench.now)
        assert bench.engine.sequencer.position == position
    with pytest.raises(ValueError, match="between reactions"):
        export_engine(bench.engine)


@each("error", [MemoryError, KeyError, RecursionError])
def test_a_bug_in_the_engines_own_work_breaks_it(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench([worker(WorkRequested(n=1))])
    monkeypatch.setattr(EffectLedger, "book", counted(EffectLedger.book, 2, error("a secret")))
    with pytest.raises(error):
        bench.fact(Poked(n=1))
    assert bench.engine.broken is not None
    assert "secret" not in bench.engine.broken.message


def test_what_the_log_refuses_breaks_nothing() -> None:
    bench = Bench([])
    for bad in (
        Draft("toy.poked", Poked(n=1), encode(Poked(n=1)), "x" * 10_000, "tests"),
        Draft("toy.poked", Poked(n=1), b'"' + b"x" * DATA_BYTES_MAX + b'"', "large", "tests"),
    ):
        with pytest.raises(BadEvent):
            bench.engine.accept(bad, bench.now)
    assert bench.engine.broken is None
    assert bench.fact(Poked(n=1)).events[0].position == 1


def test_completing_what_a_crash_cut_off_counts_as_a_reaction(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench([worker(Echoed(n=1, depth=1))])
    bench.fact(Poked(n=1))
    engine = Bench([worker(Echoed(n=1, depth=1))]).engine
    engine.fold(bench.history[0])
    monkeypatch.setattr(Engine, "_append", counted(Engine._append, 1, Interrupted()))
    with pytest.raises(Interrupted):
        engine.complete(bench.now)
    with pytest.raises(EngineBroken):
        engine.accept(draft(Poked(n=2), "later"), bench.now)


# --- outcomes -------------------------------------------------------------------------------------------------------


@each("payload", [Poked(n=1), TimerFired(request=2), EffectRefused(request=2, reasons=["no"])])
def test_what_the_request_does_not_declare_ends_no_effect(payload: Payload) -> None:
    bench = Bench([worker(WorkRequested(n=1))])
    bench.fact(Poked(n=1))
    with pytest.raises(NotItsOutcome) as refused:
        bench.finish(2, payload)
    assert refused.value.exit_code == 70
    assert "toy.work_requested" in refused.value.message
    with pytest.raises(NotItsOutcome):
        bench.engine.accept(draft(payload, "by another way", 2), bench.now)
    assert bench.engine.effects.is_open(2)
    assert bench.engine.broken is None
    assert bench.finish(2, Done(n=1)) is not None


def test_the_ends_of_any_effect_end_it() -> None:
    bench = Bench([worker(WorkRequested(n=1))])
    bench.fact(Poked(n=1))
    assert bench.finish(2, EffectTimedOut(request=2, limit_s=1.0)) is not None
    assert not bench.engine.effects.is_open(2)


def test_the_ledger_itself_keeps_open_what_another_fact_names_as_its_cause() -> None:
    bench = Bench([worker(WorkRequested(n=1))])
    bench.fact(Poked(n=1))
    other = Bench([]).fact(Poked(n=5)).events[0]
    ledger = bench.engine.effects
    ledger.book(type(other)(9, other.time, "x", "fact", "tests", "toy.poked", "", 2, other.data, other.raw))
    assert ledger.is_open(2)


# --- the engine's own checks ----------------------------------------------------------------------------------------


def sending() -> Bench:
    """An actor that has a permit for one effect."""
    bench = Bench([Grantor(), worker(SendRequested(n=1, permit=2), n=5, name="toy")])
    bench.fact(permit_for("toy"))
    return bench


def test_a_permit_whose_use_is_not_counted_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = sending()
    monkeypatch.setattr(gate, "replace", lambda what, **to: what if isinstance(what, Permit) else replace(what, **to))
    with pytest.raises(Inconsistent, match="uses"):
        bench.fact(Poked(n=5))


def test_a_ledger_that_does_not_hear_of_a_refusal_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench([Grantor(), worker(SendRequested(n=1, permit=77), n=5, name="toy")])
    monkeypatch.setattr(EffectLedger, "_end", lambda *_: ())
    with pytest.raises(Inconsistent, match="disagree"):
        bench.fact(Poked(n=5))


def test_an_effect_is_not_refused_after_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench([Grantor(), worker(SendRequested(n=1, permit=77), n=5, name="toy")])
    decide = Gate.decide

    def twice(self: Gate, *arguments: Any) -> Any:
        found = list(decide(self, *arguments))
        return [*found, *found]

    monkeypatch.setattr(Gate, "decide", twice)
    with pytest.raises(Inconsistent, match="has ended"):
        bench.fact(Poked(n=5))
