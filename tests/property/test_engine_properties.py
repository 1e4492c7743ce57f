"""Recovery, replay and restart from a snapshot come to the same, whatever actors do and wherever the log is cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.engine import Engine
from pmagent.actors.core.snapshot import (
    FORMAT,
    EngineState,
    Snapshot,
    decode_snapshot,
    encode_snapshot,
    export_engine,
    restore_engine,
)
from pmagent.contracts.effect import ActorHalted, ActorResumed
from pmagent.contracts.oa import OaPermitGranted
from pmagent.contracts.payload import Effect, OutwardRequest, effect_of
from pmagent.events.event import Event, Tail
from pmagent.events.sequencer import Sequencer
from tests.support.effort import examples
from tests.support.toys import Asked, Bench, Done, Echoed, Grantor, Poked, Toy, outcome, permit_for, refolded, reread


class Step(NamedTuple):
    """One thing that is done to the engine from outside."""

    what: str
    number: int
    who: int


NAMES = ("ada", "bob", "eve")
HEARD: tuple[type[msgspec.Struct], ...] = (Poked, Asked, Echoed, Done, OaPermitGranted, ActorHalted)
steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(["poke", "ask", "permit", "finish", "finish", "resume"]), st.integers(0, 30), st.integers(0, 2),
    ),
    min_size=1, max_size=12,
)


@st.composite
def systems(draw: st.DrawFn) -> list[AnyActor]:
    """Two or three toys, which may raise, and a grantor among them."""
    fails = st.sets(st.integers(0, 30), max_size=2)
    toys: list[AnyActor] = [
        Toy(
            name, [*draw(st.sets(st.sampled_from(HEARD), min_size=2)), OaPermitGranted],
            decide_fails=draw(fails), evolve_fails=draw(fails), depth=draw(st.integers(1, 3)),
        )
        for name in NAMES[: draw(st.integers(1, 3))]
    ]
    toys.insert(draw(st.integers(0, len(toys))), Grantor())
    return toys


def take(bench: Bench, step: Step) -> None:
    """Do ``step``."""
    match step.what:
        case "poke":
            bench.fact(Poked(n=step.number))
        case "ask":
            bench.fact(Asked(n=step.number))
        case "permit":
            bench.fact(permit_for(NAMES[step.who], uses=1 + step.number % 3, seconds=1.0 + step.number))
        case "resume":
            bench.fact(ActorResumed(name=NAMES[step.who]))
        case "finish":
            if open_now := list(bench.engine.effects.open):
                request = open_now[step.number % len(open_now)]
                bench.finish(request, outcome(step.number, request))


def all_of(engine: Engine) -> tuple[EngineState, dict[str, Any]]:
    """Everything an engine knows."""
    return export_engine(engine), engine.states


def run(actors: Sequence[AnyActor], script: Sequence[Step]) -> tuple[Bench, list[tuple[int, EngineState]]]:
    """The bench after ``script``, and length of history and state after each step."""
    bench = Bench(actors)
    marks = []
    for step in script:
        take(bench, step)
        marks.append((len(bench.history), export_engine(bench.engine)))
    return bench, marks


@settings(max_examples=examples(120))
@given(systems(), steps)
def test_a_log_cut_anywhere_recovers_to_what_the_uncut_run_decided(actors: list[AnyActor], script: list[Step]) -> None:
    bench, marks = run(actors, script)
    ends = [length for length, _ in marks]
    states = dict(marks)
    for cut in range(1, len(bench.history) + 1):
        engine = refolded(actors, bench.history[:cut])
        end = next(length for length in ends if length >= cut)
        completed = engine.complete(bench.history[cut - 1].time)
        assert completed.events == bench.history[cut:end]
        assert export_engine(engine) == states[end]
        assert [event.position for event in completed.starts] == [
            event.position for event in completed.events if engine.effects.is_open(event.position)
        ]


@settings(max_examples=examples(60))
@given(systems(), steps, steps, st.data())
def test_what_happens_after_a_recovery_is_what_would_have_happened_without(
    actors: list[AnyActor], before: list[Step], after: list[Step], data: st.DataObject
) -> None:
    bench, marks = run(actors, before)
    start = marks[-2][0] if len(marks) > 1 else 0
    cut = data.draw(st.integers(min(start + 1, len(bench.history)), len(bench.history))) if bench.history else 0
    again = Bench(actors)
    again.second = bench.second
    again.engine = refolded(actors, bench.history[:cut])
    again.history = bench.history[:cut]
    again.history += again.engine.complete(bench.history[cut - 1].time if cut else "").events
    for step in after:
        take(bench, step)
        take(again, step)
    assert again.history == bench.history
    assert all_of(again.engine) == all_of(bench.engine)


@settings(max_examples=examples(60))
@given(systems(), steps, st.data())
def test_a_restart_from_a_snapshot_equals_one_from_the_whole_log(
    actors: list[AnyActor], script: list[Step], data: st.DataObject
) -> None:
    bench, marks = run(actors, script)
    length, state = data.draw(st.sampled_from(marks))
    if length == 0:
        return
    last = bench.history[length - 1]
    kept = Snapshot(FORMAT, "log", Tail(last.position, 1, last.time, "ab"), "code", state, {})
    read = decode_snapshot(encode_snapshot(kept))
    assert read == kept
    cut = data.draw(st.integers(length, len(bench.history)))
    engine = Engine(actors, Sequencer(Tail()))
    restore_engine(engine, read.engine, read.tail)
    for event in bench.history[length:cut]:
        engine.fold(reread(event))
    whole = refolded(actors, bench.history[:cut])
    now = bench.history[cut - 1].time
    assert engine.complete(now) == whole.complete(now)
    assert all_of(engine) == all_of(whole)


@settings(max_examples=examples(60))
@given(systems(), steps)
def test_books_are_kept_whatever_actors_do(actors: list[AnyActor], script: list[Step]) -> None:
    bench, _ = run(actors, script)
    history = bench.history
    assert [event.position for event in history] == list(range(1, len(history) + 1))
    assert len({event.id for event in history}) == len(history)
    causes = [event.causation for event in history if event.kind == "decision"]
    assert causes == sorted(causes), "decisions stand in the order of their causes"
    for event in history:
        if effect_of(event.data) is not None:
            assert isinstance(effect_of(event.data), Effect)
            ends = [other for other in history if _ends(other, event)]
            assert len(ends) == (0 if bench.engine.effects.is_open(event.position) else 1)
    _permits_were_kept(history)


def _ends(event: Event, request: Event) -> bool:
    if event.kind == "fact":
        return event.causation == request.position
    return event.type == "effect.refused" and event.data.request == request.position


def _permits_were_kept(history: Sequence[Event]) -> None:
    """Computed here anew, without the gate: each outward request that was not refused had a good permit."""
    by_position = {event.position: event for event in history}
    refused = {event.data.request for event in history if event.type == "effect.refused"}
    uses: dict[int, int] = {}
    for event in history:
        if not isinstance(event.data, OutwardRequest) or event.position in refused:
            continue
        grant = by_position[event.data.permit]
        assert isinstance(grant.data, OaPermitGranted)
        assert grant.position < event.position
        assert (grant.data.holder, grant.data.action) == (event.actor, "feature_work")
        assert event.time < grant.data.expires_at
        uses[grant.position] = uses.get(grant.position, 0) + 1
        assert uses[grant.position] <= grant.data.uses
        revocations = [other for other in history if other.type == "oa.permit_revoked"]
        assert not any(
            other.data.permit == grant.position and other.causation < event.causation for other in revocations
        )


@given(systems(), steps, st.integers(0, 10_000), st.integers(1, 255))
def test_a_damaged_snapshot_is_none(actors: list[AnyActor], script: list[Step], at: int, flip: int) -> None:
    _, marks = run(actors, script)
    raw = bytearray(encode_snapshot(Snapshot(FORMAT, "log", Tail(), "code", marks[-1][1], {"x": b"y"})))
    raw[at % len(raw)] ^= flip
    assert decode_snapshot(bytes(raw)) is None
    assert decode_snapshot(bytes(raw[: at % len(raw)])) is None


def test_a_snapshot_of_other_actors_leaves_the_engine_as_it_was() -> None:
    bench, marks = run([Toy("ada"), Grantor()], [Step("poke", 3, 0)])
    others: list[list[AnyActor]] = [[Toy("ada")], [Toy("bob"), Grantor()]]
    for actors in others:
        engine = Engine(actors, Sequencer(Tail()))
        before = export_engine(engine)
        try:
            restore_engine(engine, marks[-1][1], Tail(1, 1, bench.now, "ab"))
        except (KeyError, msgspec.ValidationError):
            assert export_engine(engine) == before
        else:
            raise AssertionError("the snapshot does not fit these actors")
