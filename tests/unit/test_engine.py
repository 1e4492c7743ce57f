"""The engine: what follows from a fact, in what order, and what happens when an actor fails."""

from __future__ import annotations

from collections.abc import Iterable
from unittest.mock import patch

import msgspec
import pytest

from pmagent.actors.core.engine import DECISIONS_MAX, Engine
from pmagent.actors.core.snapshot import export_engine, restore_engine
from pmagent.contracts.control import EffectsResumed, PauseRequested, ResumeRequested
from pmagent.contracts.effect import (
    ActorHalted,
    ActorResumed,
    EffectCancelRequested,
    EffectFailed,
    EffectRefused,
    RequestRefused,
)
from pmagent.contracts.oa import OaPermitRevoked
from pmagent.contracts.payload import Effect, OutwardRequest, Payload, Scope, encode, event_type
from pmagent.events.event import Draft, Event, Tail
from pmagent.events.sequencer import Sequencer
from pmagent.replay.replayer import replay_log
from tests.support.cases import each
from tests.support.recorded import stored_log
from tests.support.toys import (
    EVER,
    Asked,
    Bench,
    Done,
    Echoed,
    Grantor,
    GrantorState,
    Poked,
    Scripted,
    SendRequested,
    Toy,
    ToyState,
    WorkRequested,
    permit_for,
    refolded,
    worker,
)


def test_decisions_follow_their_cause_breadth_first_in_the_order_of_the_actors() -> None:
    script = {1: [Echoed(n=2, depth=1), Echoed(n=3, depth=1)], 4: [Echoed(n=9, depth=3)]}
    first = Scripted("first", script, [Poked, Echoed])
    second = Scripted("second", {1: [Echoed(n=4, depth=1)], 2: [Echoed(n=5, depth=2)]}, [Poked, Echoed])
    bench = Bench([first, second])
    bench.fact(Poked(n=1))
    assert [(event.position, event.id, event.data.n) for event in bench.history] == [
        (1, "fact-1", 1), (2, "1.first.0", 2), (3, "1.first.1", 3), (4, "1.second.0", 4), (5, "2.second.0", 5),
        (6, "4.first.0", 9),
    ]
    assert [event.causation for event in bench.history] == [0, 1, 1, 1, 2, 4]
    assert {event.correlation for event in bench.history} == {"c-fact-1"}
    assert {event.time for event in bench.history} == {bench.now}


def test_an_actors_own_decisions_are_folded_before_its_next_input_and_do_not_wake_it() -> None:
    seen: list[tuple[str, int]] = []

    class Watching(Scripted):
        def evolve(self, state: ToyState, event: Event) -> ToyState:
            seen.append(("evolve", event.position))
            return super().evolve(state, event)

        def decide(self, state: ToyState, event: Event) -> Iterable[Payload]:
            seen.append(("decide", event.position))
            return super().decide(state, event)

    bench = Bench([Watching("one", {1: [Echoed(n=8, depth=1)]}, [Poked, Echoed])])
    bench.fact(Poked(n=1))
    bench.fact(Poked(n=2))
    assert seen == [("evolve", 1), ("decide", 1), ("evolve", 2), ("evolve", 3), ("decide", 3)]


def test_a_fact_with_a_known_id_is_not_taken_again() -> None:
    bench = Bench([worker(Echoed(n=5, depth=1))])
    bench.fact(Poked(n=1), id="once")
    state = export_engine(bench.engine)
    raw = encode(Poked(n=1))
    assert bench.engine.accept(Draft("toy.poked", Poked(n=1), raw, "once", "tests"), bench.now) is None
    assert export_engine(bench.engine) == state


@each("where", ["decide", "evolve"])
def test_an_actor_that_raises_is_halted_once_and_its_requests_are_refused(where: str) -> None:
    failing = Toy("toy", [Asked], decide_fails=[1]) if where == "decide" else Toy("toy", [Asked], evolve_fails=[1])
    bench = Bench([failing])
    bench.fact(Asked(n=1))
    bench.fact(Asked(n=2))
    bench.fact(Asked(n=1))
    halted = bench.of(ActorHalted)
    assert len(halted) == 1
    assert halted[0].actor == "engine"
    data = halted[0].data
    assert (data.name, data.input) == ("toy", 1)
    assert data.place == f"tests.support.toys:Toy.{where}"
    assert "1" not in data.error, "no text of the exception"
    refused = bench.of(RequestRefused)
    assert [event.data.request for event in refused] == [event.position for event in bench.of(Asked)]
    assert bench.engine.halted == {"toy": 1}


def test_nothing_of_what_a_raising_actor_began_to_decide_counts() -> None:
    bench = Bench([Toy("toy", [Poked], decide_fails=range(100))])
    for n in range(20):
        bench.fact(Poked(n=n))
    assert {type(event.data) for event in bench.history} == {Poked, ActorHalted}
    assert len(bench.of(ActorHalted)) == 1


def test_one_actors_failure_leaves_the_others_deciding() -> None:
    bench = Bench([Toy("bad", [Poked], decide_fails=[1]), worker(Echoed(n=5, depth=1))])
    out = bench.fact(Poked(n=1))
    assert [event.id for event in out.events] == ["fact-1", "1.engine.0", "1.worker.0"]


def test_two_actors_halted_by_one_event_get_different_ids() -> None:
    bench = Bench([Toy(name, [Asked], decide_fails=[1]) for name in ("one", "two")])
    out = bench.fact(Asked(n=1))
    assert [event.id for event in out.events[1:]] == ["1.engine.0", "1.engine.1", "1.engine.2", "1.engine.3"]
    assert len({event.id for event in out.events}) == 5


def test_a_resumed_actor_decides_again_from_what_its_inputs_have_folded_to() -> None:
    bench = Bench([Toy("toy", [Poked], decide_fails=[1])])
    bench.fact(Poked(n=1))
    bench.fact(Poked(n=2))
    assert bench.engine.states["toy"].taken == 2
    bench.fact(ActorResumed(name="toy"))
    assert bench.engine.halted == {}
    for n in range(2, 30):
        bench.fact(Poked(n=n))
    assert any(event.actor == "toy" for event in bench.history)


def test_an_endless_cascade_ends_with_the_actors_halted() -> None:
    class Endless(Toy):
        def decide(self, state: ToyState, event: Event) -> Iterable[Payload]:
            del state, event
            yield Echoed(n=0, depth=1)

    bench = Bench([Endless("ping", [Poked, Echoed]), Endless("pong", [Echoed])])
    out = bench.fact(Poked(n=1))
    assert len(out.events) <= DECISIONS_MAX + 4
    assert {event.data.error for event in bench.of(ActorHalted)} == {"ReactionTooLarge"}
    assert bench.engine.quiescent
    for cut in (5000, len(out.events) - 1):
        again = refolded(bench.actors, bench.history[:cut])
        assert [event.id for event in again.complete(bench.now).events] == [event.id for event in bench.history[cut:]]


def test_a_decision_too_large_for_a_line_halts_its_actor() -> None:
    class Large(Toy):
        def decide(self, state: ToyState, event: Event) -> Iterable[Payload]:
            del state, event
            yield EffectRefused(request=0, reasons=["x" * 2_000_000])

    bench = Bench([Large("large", [Poked])])
    bench.fact(Poked(n=1))
    assert bench.types() == ["toy.poked", "actor.halted"]


def test_a_request_opens_an_effect_and_exactly_one_outcome_closes_it() -> None:
    bench = Bench([worker(WorkRequested(n=1))])
    out = bench.fact(Poked(n=1))
    assert [event.position for event in out.starts] == [2]
    assert bench.finish(2, Done(n=1)) is not None
    assert bench.finish(2, Done(n=1)) is None
    assert bench.finish(2, EffectFailed(request=2, error="E", place="p")) is None
    assert bench.finish(77, Done(n=1)) is None
    assert bench.types().count("toy.done") == 1


def test_an_outcome_must_name_its_request_as_its_cause() -> None:
    bench = Bench([worker(WorkRequested(n=1))])
    bench.fact(Poked(n=1))
    draft = Draft("toy.done", Done(n=1), encode(Done(n=1)), "2.outcome", "toy", "", 1)
    assert bench.engine.finish(2, draft, bench.now) is None


def test_only_the_requesting_actor_can_cancel_and_a_cancel_outlives_a_crash() -> None:
    foreign = Scripted("foreign", {2: [EffectCancelRequested(request=2)]}, [Poked])
    owner = Scripted("owner", {1: [WorkRequested(n=1)], 3: [EffectCancelRequested(request=2)]}, [Poked])
    bench = Bench([owner, foreign])
    bench.fact(Poked(n=1))
    assert bench.fact(Poked(n=2)).cancels == []
    assert [(cancel.request, cancel.reason) for cancel in bench.fact(Poked(n=3)).cancels] == [(2, "cancel_requested")]
    again = refolded(bench.actors, bench.history)
    again.complete(bench.now)
    assert again.effects.cancelled == {2: "cancel_requested"}
    restored, last = Engine(bench.actors, Sequencer(Tail())), bench.history[-1]
    restore_engine(restored, export_engine(bench.engine), Tail(last.position, 1, last.time, "ab"))
    assert restored.effects.cancelled == {2: "cancel_requested"}, "also at a start from a snapshot"
    bench.finish(2, Done(n=1))
    assert bench.engine.effects.cancelled == {}
    assert bench.fact(Poked(n=3)).cancels == [], "it has ended"


def test_a_refusal_by_anybody_but_the_gate_closes_no_effect() -> None:
    liar = Scripted("liar", {2: [EffectRefused(request=2, reasons=[])]}, [Poked])
    bench = Bench([worker(WorkRequested(n=1)), liar])
    bench.fact(Poked(n=1))
    bench.fact(Poked(n=2))
    assert bench.engine.effects.is_open(2)


def permitted(**changes: object) -> tuple[Bench, int]:
    """A bench with a worker that sends on Poked(n=permit), and a permit for it."""
    toy = Scripted("worker", {at: [SendRequested(n=at, permit=at)] for at in range(1, 200)}, [Poked])
    bench = Bench([Grantor(), toy])
    asked = msgspec.structs.replace(permit_for("worker"), **changes)
    return bench, bench.fact(asked).events[1].position


def test_an_outward_request_without_a_permit_is_refused_and_starts_nothing() -> None:
    bench, _ = permitted()
    out = bench.fact(Poked(n=78))
    assert out.starts == []
    refused = bench.of(EffectRefused)[0]
    assert refused.actor == "gate"
    assert refused.data.request == out.events[1].position
    assert bench.engine.effects.open == {}


def test_a_permit_is_used_once_and_for_what_it_was_granted() -> None:
    bench, permit = permitted()
    assert len(bench.fact(Poked(n=permit)).starts) == 1
    assert bench.fact(Poked(n=permit)).starts == []
    assert "used up" in bench.of(EffectRefused)[-1].data.reasons[0]


@each("changes, words", [
    ({"holder": "other"}, "is held by other"),
    ({"subject": "other"}, "is for feature_work on other"),
    ({"action": "diagnostic"}, "is for diagnostic on toy"),
    ({"uses": 0}, "used up"),
    ({"seconds": 0.5}, "expired at"),
])
def test_a_permit_for_something_else_does_not_count(changes: dict[str, object], words: str) -> None:
    bench, permit = permitted(**changes)
    assert bench.fact(Poked(n=permit)).starts == []
    assert any(words in reason for reason in bench.of(EffectRefused)[0].data.reasons)


def test_in_a_pause_a_request_is_held_and_one_that_must_not_wait_is_refused() -> None:
    bench, permit = permitted(uses=5)
    bench.fact(PauseRequested(operator_id="ada", channel="cli"))
    assert [start.position in bench.engine.effects.held for start in bench.fact(Poked(n=permit)).starts] == [True]
    with patch.object(SendRequested, "waits", new=False):
        assert bench.fact(Poked(n=permit)).starts == []
    assert "paused, by ada" in bench.of(EffectRefused)[0].data.reasons[0]


def test_a_permit_counts_until_the_moment_it_expires() -> None:
    for seconds, starts in ((1.0, 0), (1.000001, 1)):
        bench, permit = permitted(seconds=seconds)
        assert len(bench.fact(Poked(n=permit)).starts) == starts


def test_a_revoked_permit_stops_what_runs_under_it_and_allows_nothing_more() -> None:
    bench, permit = permitted(uses=5)
    assert permit == 2
    request = bench.fact(Poked(n=permit)).starts[0].position
    out = bench.fact(Poked(n=7))  # the grantor revokes; the worker asks under permit 7, which there is not
    assert [(cancel.request, cancel.reason) for cancel in out.cancels] == [(request, "permit_revoked")]
    assert bench.fact(Poked(n=permit)).starts == []
    assert refolded(bench.actors, bench.history).effects.cancelled == {request: "permit_revoked"}


def test_a_permit_of_a_halted_grantor_allows_nothing_more() -> None:
    class Failing(Grantor):
        def decide(self, state: GrantorState, event: Event) -> Iterable[Payload]:
            if isinstance(event.data, Poked):
                raise ValueError
            return super().decide(state, event)

    toy = Scripted("worker", {at: [SendRequested(n=at, permit=at)] for at in range(1, 20)}, [Poked])
    bench = Bench([toy, Failing()])
    permit = bench.fact(permit_for("worker", uses=9)).events[1].position
    assert len(bench.fact(Poked(n=permit)).starts) == 1
    assert bench.fact(Poked(n=permit)).starts == []


@event_type("toy.unscoped_requested", effect=Effect(repeatable=False))
class UnscopedRequested(OutwardRequest, frozen=True, kw_only=True):
    """An outward effect whose author forgot to say what its permit must be for: the gate cannot judge it."""


def halted_gate() -> tuple[Bench, int]:
    """A bench whose gate is halted, and a good permit. Its worker sends on ``Poked(n=permit)``."""
    script: dict[int, list[Payload]] = {1: [UnscopedRequested(permit=2)], 2: [SendRequested(n=2, permit=2)]}
    bench = Bench([Grantor(), Scripted("worker", script, [Poked])])
    permit = bench.fact(permit_for("worker", uses=9)).events[1].position
    assert bench.fact(Poked(n=1)).starts == []
    assert bench.types()[-3:] == ["toy.unscoped_requested", "actor.halted", "effect.refused"]
    return bench, permit


def test_a_halted_gate_lets_nothing_through_until_it_is_resumed() -> None:
    bench, permit = halted_gate()
    assert bench.fact(Poked(n=permit)).starts == []
    refused = bench.of(EffectRefused)[-1]
    assert (refused.actor, refused.data.request) == ("engine", bench.of(SendRequested)[-1].position)
    assert bench.engine.effects.open == {}
    bench.fact(ActorResumed(name="gate"))
    assert len(bench.fact(Poked(n=permit)).starts) == 1


def test_what_is_refused_for_a_halted_gate_is_refused_once_wherever_the_log_is_cut() -> None:
    bench, permit = halted_gate()
    bench.fact(Poked(n=permit))
    facts = [event.position for event in bench.history if event.kind == "fact"]
    for cut in range(1, len(bench.history) + 1):
        again = refolded(bench.actors, bench.history[:cut])
        completed = again.complete("").events
        end = next((at - 1 for at in facts if at > cut), len(bench.history))
        assert [(event.id, event.raw) for event in completed] == [
            (event.id, event.raw) for event in bench.history[cut:end]
        ]
        assert again.effects.open == {}
    assert replay_log(stored_log(bench.history), bench.actors).equal


def test_no_actor_halts_or_resumes_another() -> None:
    halting = ActorHalted(name="toy", input=2, error="ValueError", place="here")
    liar = Scripted("liar", {1: [halting], 3: [ActorResumed(name="toy")]}, [Poked])
    bench = Bench([Toy("toy", [Poked], decide_fails=[2]), liar])
    bench.fact(Poked(n=1))
    assert bench.engine.halted == {}
    (cause,) = (event for event in bench.fact(Poked(n=2)).events if event.kind == "fact")
    bench.fact(Poked(n=3))
    assert bench.engine.halted == refolded(bench.actors, bench.history).halted == {"toy": cause.position}


def test_a_halted_actor_decides_nothing_until_it_is_resumed() -> None:
    nothing_registered = Payload()
    bench = Bench([Scripted("toy", {1: [Echoed(n=9, depth=1)], 2: [nothing_registered]}, [Poked])])
    bench.fact(Poked(n=2))
    assert list(bench.engine.halted) == ["toy"]
    bench.fact(Poked(n=1))
    assert bench.of(Echoed) == []
    bench.fact(ActorResumed(name="toy"))
    bench.fact(Poked(n=1))
    assert len(bench.of(Echoed)) == 1


def test_no_actor_lets_go_what_an_operator_has_paused() -> None:
    resume = ResumeRequested(operator_id="ada", channel="cli")
    bench = Bench([worker(resume)])
    bench.fact(PauseRequested(operator_id="ada", channel="cli"))
    bench.fact(Poked(n=1))
    assert bench.of(EffectsResumed) == []
    assert bench.engine.effects.paused
    bench.fact(resume)
    assert not bench.engine.effects.paused


def test_too_many_open_effects_halt_who_asks_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.actors.core.ledger.OPEN_EFFECTS_MAX", 2)
    bench = Bench([worker(WorkRequested(n=1)), Scripted("other", {}, [Poked])])
    assert [len(bench.fact(Poked(n=1)).starts) for _ in range(3)] == [1, 1, 0]
    assert [event.data.error for event in bench.of(ActorHalted)] == ["ReactionTooLarge"]
    assert len(bench.engine.effects.open) == 2


def test_expired_permits_are_forgotten_when_another_is_granted() -> None:
    bench = Bench([Grantor()])
    for _ in range(5):
        bench.fact(permit_for("worker", seconds=1.5))
    assert len(bench.engine.states["gate"].permits) <= 2


def test_what_recovery_decides_bears_the_time_of_the_recovery() -> None:
    bench = Bench([worker(Echoed(n=5, depth=0))])
    bench.fact(Poked(n=1))
    (decision,) = refolded(bench.actors, bench.history[:1]).complete(EVER).events
    assert (decision.time, bench.history[1].time < EVER) == (EVER, True)
    assert decision.raw == bench.history[1].raw


def test_no_snapshot_is_taken_within_a_reaction() -> None:
    bench = Bench([worker(Echoed(n=5, depth=0))])
    bench.fact(Poked(n=1))
    engine = refolded(bench.actors, bench.history)
    with pytest.raises(ValueError, match="between reactions"):
        export_engine(engine)
    engine.complete("")
    export_engine(engine)


def test_an_outward_type_that_is_registered_late_needs_a_permit_too() -> None:
    asking = worker(n=1)
    bench = Bench([asking])

    @event_type("toy.late_requested", effect=Effect(repeatable=False))
    class LateRequested(OutwardRequest, frozen=True, kw_only=True):
        def scope(self) -> Scope:
            return Scope("feature_work", "toy")

    asking.script = {1: [LateRequested(permit=0)]}
    assert bench.fact(Poked(n=1)).starts == []
    assert [event.type for event in bench.history] == ["toy.poked", "toy.late_requested", "effect.refused"]


def test_the_gate_still_judges_the_last_of_too_many_requests() -> None:
    many = worker(*[SendRequested(n=1, permit=0)] * (DECISIONS_MAX - 1))
    bench = Bench([many])
    assert bench.fact(Poked(n=1)).starts == []
    assert len(bench.of(EffectRefused)) == DECISIONS_MAX - 1
    assert bench.of(ActorHalted) == []


def test_a_fact_grants_nothing_and_uses_up_nothing() -> None:
    bench, permit = permitted()
    grant = bench.of(type(bench.history[1].data))[0].data
    forged = bench.fact(grant).events[0].position
    bench.fact(SendRequested(n=1, permit=permit), actor="worker")
    assert bench.fact(Poked(n=forged)).starts == []
    assert len(bench.fact(Poked(n=permit)).starts) == 1


def test_a_revocation_told_as_a_fact_is_nobodys_decision() -> None:
    bench, permit = permitted()
    bench.fact(OaPermitRevoked(permit=permit, reason="made up"))
    assert len(bench.fact(Poked(n=permit)).starts) == 1


def test_actors_need_different_names_and_none_is_the_engine() -> None:
    for names in (("a", "a"), ("engine",), ("gate",)):
        with pytest.raises(ValueError, match="different names"):
            Engine([Toy(name) for name in names], Sequencer(Tail()))
