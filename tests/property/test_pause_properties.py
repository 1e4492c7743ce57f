"""Nothing outward starts in a pause, and each held effect starts in its order or has one end that says why, whatever
is asked for, revoked and ended meanwhile, and wherever the log is cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.engine import Engine, Output
from pmagent.actors.core.gate import GateState
from pmagent.actors.core.scheduler import Action, Conclude, Perform, Scheduler, Stop
from pmagent.actors.core.snapshot import (
    FORMAT,
    Snapshot,
    decode_snapshot,
    encode_snapshot,
    export_engine,
    restore_engine,
)
from pmagent.contracts.control import EffectsPaused, EffectsResumed, PauseRequested, ResumeRequested
from pmagent.contracts.effect import EffectRefused
from pmagent.contracts.oa import OaPermitGranted
from pmagent.contracts.payload import OutwardRequest, effect_of
from pmagent.events.event import Event, Tail
from pmagent.events.sequencer import Sequencer
from tests.support.effort import examples
from tests.support.toys import Asked, Bench, Done, Echoed, Grantor, Poked, Toy, outcome, permit_for, refolded, reread

NAMES = ("ada", "bob")


class Step(NamedTuple):
    """One thing that is done to the engine from outside."""

    what: str
    number: int


KINDS = ("poke", "poke", "ask", "permit", "permit", "finish", "finish", "pause", "pause", "resume")
steps = st.lists(st.builds(Step, st.sampled_from(KINDS), st.integers(0, 30)), min_size=4, max_size=30)


def actors() -> list[AnyActor]:
    """Two that use permits as numbers have it, and who grants them."""
    return [*(Toy(name, [Poked, Asked, Echoed, Done, OaPermitGranted]) for name in NAMES), Grantor()]


class Paused(Bench):
    """A bench with a scheduler: each output is durable at once, and a performer that is told to stop ends at once."""

    def __init__(self, actors: Sequence[AnyActor]) -> None:
        super().__init__(actors)
        self.scheduler = Scheduler(self.engine.effects)
        self.started: list[int] = []

    def take(self, step: Step) -> None:
        """Do ``step``, and hold the engine to what it may do."""
        out: Output | None = None
        match step.what:
            case "poke":
                out = self.fact(Poked(n=step.number))
            case "ask":
                out = self.fact(Asked(n=step.number))
            case "permit":
                holder = NAMES[step.number % len(NAMES)]
                out = self.fact(permit_for(holder, uses=1 + step.number % 4, seconds=2.0 + step.number))
            case "pause":
                out = self.fact(PauseRequested(operator_id="ada", channel="cli"))
            case "resume":
                out = self.fact(ResumeRequested(operator_id="ada", channel="cli"))
            case "finish":
                running = [request for request in self.started if self.engine.effects.is_open(request)]
                if running:
                    request = running[step.number % len(running)]
                    self._end(request, outcome(step.number, request))
        if out is not None:
            self._carry_out(self.scheduler.durable(out.events, out.starts, out.cancels))
        agree(self.engine)

    def _carry_out(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case Perform(event):
                    outward = isinstance(event.data, OutwardRequest)
                    assert not (outward and self.engine.effects.paused), "nothing outward starts in a pause"
                    self.started.append(event.position)
                case Stop(request):
                    self._end(request, None)
                case Conclude(event, ended):
                    if (out := self.finish(event.position, ended)) is not None:
                        self._carry_out(self.scheduler.durable(out.events, out.starts, out.cancels))

    def _end(self, request: int, ended: msgspec.Struct | None) -> None:
        self._carry_out(self.scheduler.ended(request, ended))
        self._carry_out(self.scheduler.recorded(request))


def agree(engine: Engine) -> None:
    """Gate and ledger hold the same, and hold nothing unless effects are paused."""
    gate: GateState = engine.states["gate"]
    assert engine.effects.paused == (gate.pause is not None)
    assert list(engine.effects.held) == list(gate.held)
    assert engine.effects.paused or not gate.held
    assert engine.effects.held.keys() <= engine.effects.open.keys()


def run(script: Sequence[Step]) -> tuple[Paused, list[int]]:
    """The bench after ``script``, and the length of its history after each step."""
    bench, lengths = Paused(actors()), []
    for step in script:
        bench.take(step)
        lengths.append(len(bench.history))
    return bench, lengths


@settings(max_examples=examples(100), deadline=None)
@given(steps)
def test_nothing_outward_starts_in_a_pause_and_what_was_held_starts_in_order_or_ends_once(script: list[Step]) -> None:
    bench, _ = run(script)
    bench.take(Step("resume", 0))
    assert not bench.engine.effects.held
    assert len(bench.started) == len(set(bench.started)), "nothing starts twice"
    paused, held, ends = False, list[int](), dict[int, int]()
    for event in bench.history:
        data = event.data
        if isinstance(data, EffectRefused):
            ends[data.request] = ends.get(data.request, 0) + 1
        elif event.kind == "fact":
            ends[event.causation] = ends.get(event.causation, 0) + 1
        elif isinstance(data, EffectsPaused | EffectsResumed):
            paused = isinstance(data, EffectsPaused)
        elif isinstance(data, OutwardRequest) and paused:
            held.append(event.position)
    for event in bench.history:
        if effect_of(event.data) is not None:
            at = event.position
            assert ends.get(at, 0) == (0 if bench.engine.effects.is_open(at) else 1)
            waits = bench.scheduler.state(at) == "queued"
            assert waits or at in bench.started or ends[at] == 1, "it starts, or it is told why not"
    for kind in {event.type for event in bench.history}:
        released = [at for at in bench.started if at in held and bench.history[at - 1].type == kind]
        assert released == sorted(released), "in the order in which it was asked for"


@settings(max_examples=examples(100), deadline=None)
@given(steps)
def test_who_resumes_is_told_how_much_starts_and_nothing_starts_that_has_expired(script: list[Step]) -> None:
    bench, _ = run([*script, Step("resume", 0)])
    by_position = {event.position: event for event in bench.history}
    for resumed in bench.of(EffectsResumed):
        at = resumed.causation
        asked_at = by_position[at].time
        since = [one.position for one in bench.of(EffectsPaused) if one.position < at]
        others = [one.position for one in bench.of(EffectsResumed) if one.position < at]
        began = next((one for one in since if one > max(others, default=0)), None)
        if began is None:
            assert (resumed.data.since, resumed.data.held) == (0, 0)
            continue
        assert resumed.data.since == by_position[began].causation
        waited = [
            event.position for event in bench.history[began:at]
            if isinstance(event.data, OutwardRequest) and not _ended(bench.history[: at - 1], event.position)
        ]
        refused = [e.data.request for e in bench.of(EffectRefused) if e.causation == at]
        expired = [one for one in waited if asked_at >= by_position[by_position[one].data.permit].data.expires_at]
        assert refused == expired
        assert resumed.data.held == len(waited) - len(expired)


def _ended(history: Sequence[Event], request: int) -> bool:
    return any(
        e.data.request == request if isinstance(e.data, EffectRefused) else e.kind == "fact" and e.causation == request
        for e in history
    )


@settings(max_examples=examples(40), deadline=None)
@given(steps)
def test_a_log_cut_anywhere_is_paused_as_it_was_and_comes_to_the_same_decisions(script: list[Step]) -> None:
    bench, lengths = run(script)
    facts = [event.position - 1 for event in bench.history if event.kind == "fact"]
    ends = [*facts[1:], len(bench.history)] if facts else []
    for cut in range(1, len(bench.history) + 1):
        engine = refolded(bench.actors, bench.history[:cut])
        completed = engine.complete(bench.history[cut - 1].time)
        end = next(length for length in ends if length >= cut)
        assert completed.events == bench.history[cut:end]
        agree(engine)
    assert lengths[-1] == len(bench.history)


@settings(max_examples=examples(40), deadline=None)
@given(steps, st.data())
def test_a_start_from_a_snapshot_in_a_pause_holds_what_others_hold(script: list[Step], data: st.DataObject) -> None:
    bench, lengths = run(script)
    length = data.draw(st.sampled_from([0, *lengths]))
    engine = Engine(actors(), Sequencer(Tail()))
    if length:
        known = refolded(bench.actors, bench.history[:length])
        assert known.complete(bench.history[length - 1].time).events == []
        last = bench.history[length - 1]
        kept = Snapshot(FORMAT, "log", Tail(last.position, 1, last.time, "ab"), "code", export_engine(known), {})
        read = decode_snapshot(encode_snapshot(kept))
        assert read is not None
        restore_engine(engine, read.engine, read.tail)
    for event in bench.history[length:]:
        engine.fold(reread(event))
    whole = refolded(bench.actors, bench.history)
    now = bench.history[-1].time if bench.history else ""
    assert engine.complete(now) == whole.complete(now)
    assert _all_of(engine) == _all_of(whole) == _all_of(bench.engine)


def _all_of(engine: Engine) -> tuple[Any, dict[str, Any]]:
    return export_engine(engine), engine.states
