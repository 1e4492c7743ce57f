"""The gateway's way with a question: permit, call, attempts, and the one end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.model.actor import Gateway
from pmagent.actors.model.state import GatewayState
from pmagent.contracts.clock import TimerRequested
from pmagent.contracts.effect import (
    ActorHalted,
    ActorResumed,
    EffectCancelled,
    EffectCancelRequested,
    EffectFailed,
    EffectInterrupted,
    EffectRefused,
    EffectTimedOut,
)
from pmagent.contracts.model import ModelCallRequested, ModelLimits, ModelReplied
from pmagent.contracts.oa import OaPermitGranted, OaPermitRequested
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event
from tests.support.cases import each
from tests.support.gateway import GatewayBench, Refuser
from tests.support.toys import Grantor, GrantorState, Poked, Scripted, refolded


def clean(bench: GatewayBench) -> bool:
    """Whether nothing is left of any question."""
    bench.settle()
    state = bench.engine.states["model"]
    return not (state.asks or state.calls or bench.engine.effects.open)


def test_a_question_gets_a_permit_for_its_model_and_then_a_call(bench: GatewayBench) -> None:
    ask = bench.ask(ModelLimits(attempts=4, call_seconds=20, seconds=120))
    [asked] = bench.of(OaPermitRequested)
    assert (asked.data.action, asked.data.subject, asked.data.holder) == ("feature_work", "model:toy:one", "model")
    assert (asked.data.uses, asked.data.seconds) == (4, 120.0)
    [granted], [call] = bench.of(OaPermitGranted), bench.calls
    assert call.data == ModelCallRequested(
        permit=granted.position, ask=ask, attempt=1, model="toy:one", action="feature_work", seconds=20.0
    )
    assert {event.correlation for event in bench.history} == {"run"}


def test_a_reply_ends_the_question_and_leaves_nothing_behind(bench: GatewayBench) -> None:
    ask = bench.ask()
    bench.reply(bench.calls[0])
    assert not bench.failures(ask)
    assert len(bench.of(ModelReplied)) == 1
    assert clean(bench)


def test_a_refused_permit_fails_the_question_with_the_reasons() -> None:
    bench = GatewayBench([Refuser()])
    failed = bench.failure(bench.ask())
    assert (failed.code, failed.text, failed.attempts) == ("not_permitted", "not today; not here", 0)
    assert not bench.of(ModelCallRequested)
    assert clean(bench)


class HaltedGrantor(Grantor):
    """Cannot take a permit request."""

    name = "oa"

    def decide(self, state: GrantorState, event: Event) -> Sequence[Payload]:
        """See the class."""
        raise LookupError(event.position, state.granted)


def test_a_halted_grantor_fails_the_question_instead_of_keeping_it() -> None:
    bench = GatewayBench([HaltedGrantor()])
    failed = bench.failure(bench.ask())
    assert (failed.code, failed.text) == ("not_permitted", "oa is halted")


def test_a_call_that_the_gate_refuses_fails_the_question() -> None:
    """The permit is taken back while the question pauses."""
    bench = GatewayBench()
    ask = bench.ask()
    bench.fail(bench.calls[0])
    bench.take(Poked(n=7))  # the grantor revokes
    bench.fire(bench.timer("pause", ask))
    assert len(bench.of(EffectRefused)) == 1
    failed = bench.failure(ask)
    assert (failed.code, failed.attempts) == ("not_permitted", 2)
    assert "there is no live permit" in failed.text
    assert clean(bench)


def test_a_permit_that_is_revoked_during_the_call_stops_it(bench: GatewayBench) -> None:
    ask = bench.ask()
    bench.take(Poked(n=7))
    bench.settle()
    failed = bench.failure(ask)
    assert (failed.code, failed.text) == ("cancelled", "the call was stopped (permit_revoked)")
    assert clean(bench)


def test_pauses_double_and_each_attempt_uses_the_same_permit(bench: GatewayBench) -> None:
    ask = bench.ask(ModelLimits(attempts=4))
    pauses = []
    for _ in range(3):
        bench.fail(bench.calls[0])
        pause = bench.timer("pause", ask)
        pauses.append(bench.due(pause))
        bench.fire(pause)
    assert pauses == [1.0, 2.0, 4.0]
    assert [event.data.attempt for event in bench.of(ModelCallRequested)] == [1, 2, 3, 4]
    assert len(bench.of(OaPermitRequested)) == 1
    bench.fail(bench.calls[0])
    failed = bench.failure(ask)
    assert (failed.code, failed.attempts) == ("overloaded", 4)
    assert failed.text == "the provider failed (ToyError), 4 times"
    assert clean(bench)


@each("wish, pause", [(None, 1.0), (0.5, 1.0), (7.5, 7.5), (90.0, 90.0)])
def test_a_provider_that_asks_for_a_longer_pause_gets_it(wish: float | None, pause: float) -> None:
    bench = GatewayBench()
    ask = bench.ask()
    bench.fail(bench.calls[0], "rate_limited", after=wish)
    assert bench.due(bench.timer("pause", ask)) == pause


def test_pauses_grow_no_longer_than_a_minute(bench: GatewayBench) -> None:
    ask = bench.ask(ModelLimits(attempts=10, seconds=3600, calls=100))
    pauses = []
    for _ in range(9):
        bench.fail(bench.calls[0])
        pause = bench.timer("pause", ask)
        pauses.append(bench.due(pause))
        bench.fire(pause)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_provider_that_fails_is_waited_for_as_long_as_patience_lasts_and_no_longer(bench: GatewayBench) -> None:
    ask = bench.ask(ModelLimits(attempts=2, seconds=3600, calls=100, patience_minutes=3))
    [asked] = bench.of(OaPermitRequested)
    pauses = []
    while not bench.failures(ask):
        bench.fail(bench.calls[0], "overloaded")
        if not bench.failures(ask):
            pause = bench.timer("pause", ask)
            pauses.append(bench.due(pause))
            bench.fire(pause)
    assert pauses == [1, 2, 4, 8, 16, 32, 60]
    failed = bench.failure(ask)
    assert (failed.code, failed.attempts, failed.text.endswith("8 times in 3 minutes")) == ("overloaded", 8, True)
    assert asked.data.uses >= failed.attempts


@each("code, wish", [("rate_limited", 200.0), ("malformed", None)])
def test_patience_is_for_outages_and_for_no_longer_pause_than_it_lasts(
    bench: GatewayBench, code: str, wish: float | None
) -> None:
    ask = bench.ask(ModelLimits(attempts=1, seconds=3600, patience_minutes=3))
    bench.fail(bench.calls[0], code, after=wish)
    assert bench.failure(ask).attempts == 1


def test_no_pause_goes_beyond_the_deadline(bench: GatewayBench) -> None:
    ask = bench.ask(ModelLimits(seconds=100))
    bench.fail(bench.calls[0], "rate_limited", after=100.0)
    failed = bench.failure(ask)
    assert failed.code == "rate_limited"
    assert failed.text.endswith("no further attempt: the run's time is over before it")
    assert clean(bench)


@each("wish", [1e300, 86_400.0])
def test_no_wish_of_a_provider_is_too_long_to_be_refused(wish: float) -> None:
    bench = GatewayBench()
    ask = bench.ask()
    bench.fail(bench.calls[0], "rate_limited", after=wish)
    assert bench.failure(ask).code == "rate_limited"


def test_a_failure_that_does_not_pass_ends_the_question_at_once(bench: GatewayBench) -> None:
    ask = bench.ask()
    bench.fail(bench.calls[0], "rejected", transient=False)
    failed = bench.failure(ask)
    assert (failed.code, failed.text) == ("rejected", "the provider rejected the call (ToyError)")
    assert clean(bench)


@each("end, code", [
    (lambda at: EffectTimedOut(request=at, limit_s=630.0), "timed_out"),
    (lambda at: EffectInterrupted(request=at, reason="crash"), "interrupted"),
    (lambda at: EffectFailed(request=at, error="ValueError", place="toy"), "failed"),
])
def test_an_effect_without_outcome_is_tried_again_and_named_when_it_was_the_last(
    end: Callable[[int], Payload], code: str
) -> None:
    bench = GatewayBench()
    ask = bench.ask(ModelLimits(attempts=2))
    for _ in range(2):
        [call] = bench.calls
        bench.end(call, end(call.position))
        if not bench.failures(ask):
            bench.fire(bench.timer("pause", ask))
    failed = bench.failure(ask)
    assert (failed.code, failed.attempts) == (code, 2)
    assert clean(bench)


def test_a_cancelled_call_is_not_tried_again(bench: GatewayBench) -> None:
    ask = bench.ask()
    [call] = bench.calls
    bench.end(call, EffectCancelled(request=call.position, reason="permit_revoked"))
    assert bench.failure(ask).code == "cancelled"


def test_the_deadline_stops_the_call_and_fails_the_question(bench: GatewayBench) -> None:
    ask = bench.ask(ModelLimits(seconds=30))
    [call] = bench.calls
    bench.fire(bench.timer("deadline", ask))
    assert bench.failure(ask).code == "time"
    assert [event.data.request for event in bench.of(EffectCancelRequested)] == [call.position]
    assert clean(bench)


def test_the_deadline_ends_a_pause(bench: GatewayBench) -> None:
    ask = bench.ask(ModelLimits(seconds=30))
    bench.fail(bench.calls[0], after=29.0)
    deadline, pause = bench.timer("deadline", ask), bench.timer("pause", ask)
    bench.fire(deadline)
    assert bench.failure(ask).code == "time"
    bench.end(pause, EffectCancelled(request=pause.position, reason="cancel_requested"))
    assert not bench.calls
    assert clean(bench)


def test_a_timer_that_breaks_keeps_nobody_waiting(bench: GatewayBench) -> None:
    ask = bench.ask()
    deadline = bench.timer("deadline", ask)
    bench.end(deadline, EffectFailed(request=deadline.position, error="OSError", place="toy"))
    assert bench.failure(ask).code == "time"


def test_a_reply_after_the_end_is_charged_but_ends_nothing_again() -> None:
    """The performer had its outcome before it was told to stop."""
    bench = GatewayBench()
    ask = bench.ask()
    [call] = bench.calls
    bench.withdraw(ask)
    bench.reply(call, tokens=500)
    assert [failed.code for failed in bench.failures(ask)] == ["withdrawn"]
    assert bench.engine.states["model"].runs["run"].tokens == 500


def test_withdrawing_stops_the_call_and_its_timers(bench: GatewayBench) -> None:
    ask = bench.ask()
    [call], deadline = bench.calls, bench.timer("deadline", ask)
    bench.withdraw(ask)
    assert bench.failure(ask).code == "withdrawn"
    cancelled = [event.data.request for event in bench.of(EffectCancelRequested)]
    assert cancelled == [call.position, deadline.position]
    assert clean(bench)


@each("when", ["queued", "pausing"])
def test_a_question_without_a_call_can_be_withdrawn(when: str) -> None:
    bench = GatewayBench()
    limits = ModelLimits(concurrency=1)
    first = bench.ask(limits)
    ask = bench.ask(limits) if when == "queued" else first
    if when == "pausing":
        bench.fail(bench.calls[0])
    bench.withdraw(ask)
    assert bench.failure(ask).code == "withdrawn"
    if when == "queued":
        bench.reply(bench.calls[0])
    assert clean(bench)


def test_only_who_asked_may_withdraw(bench: GatewayBench) -> None:
    ask = bench.ask()
    bench.withdraw(ask, actor="somebody else")
    assert not bench.failures(ask)
    bench.withdraw(12345)
    assert len(bench.calls) == 1


def test_decisions_stay_in_the_questions_run_whoever_caused_them(bench: GatewayBench) -> None:
    ask = bench.ask()
    bench.withdraw(ask, run="another run")
    decisions = [event for event in bench.history if event.kind == "decision" and event.actor == "model"]
    assert {event.correlation for event in decisions} == {"run"}


def test_a_question_of_no_run_has_limits_of_its_own(bench: GatewayBench) -> None:
    limits = ModelLimits(calls=1)
    for _ in range(3):
        ask = bench.ask(limits, run="")
        bench.reply(bench.calls[0])
        assert not bench.failures(ask)


def test_that_another_actor_is_resumed_ends_no_question(bench: GatewayBench) -> None:
    ask = bench.ask()
    bench.take(ActorResumed(name="oa"))
    assert bench.failures(ask) == []
    assert len(bench.calls) == 1


def test_a_late_reply_right_after_anothers_changes_nothing(bench: GatewayBench) -> None:
    given_up, answered = bench.ask(), bench.ask(run="another run")
    late, call = bench.calls
    bench.withdraw(given_up)
    bench.reply(call)
    before = [event.type for event in bench.history]
    bench.reply(late)
    assert [event.type for event in bench.history] == [*before, "model.replied"]
    assert bench.engine.states["model"].answered is None
    assert (bench.failures(answered), len(bench.failures(given_up))) == ([], 1)


def test_a_halted_gateway_answers_its_questions_when_it_is_resumed() -> None:
    """Calls that end while it is halted cannot be decided on; nobody waits for ever, and what runs is stopped."""

    class Failing(Gateway):
        """Raises while ``broken``."""

        broken = False

        def decide(self, state: GatewayState, event: Event) -> Iterable[Payload | Correlated]:
            """See the class."""
            if self.broken:
                raise LookupError
            return super().decide(state, event)

    gateway = Failing()
    bench = GatewayBench(gateway=gateway)
    asks = [bench.ask(), bench.ask()]
    gateway.broken = True
    bench.fail(bench.calls[0])
    assert bench.of(ActorHalted)
    late = bench.ask()  # the engine refuses it
    gateway.broken = False
    bench.take(ActorResumed(name="model"), actor="operator")
    assert [bench.failure(ask).code for ask in asks] == ["interrupted", "interrupted"]
    assert not bench.failures(late)
    assert clean(bench)


def test_a_crash_after_any_event_changes_nothing() -> None:
    """Folding what was recorded, and completing what was cut off, decides the same."""
    bench = GatewayBench()
    limits = ModelLimits(concurrency=1, attempts=2)
    ask, second = bench.ask(limits), bench.ask(limits)
    bench.fail(bench.calls[0])
    bench.fire(bench.timer("pause", ask))
    bench.reply(bench.calls[0])
    bench.withdraw(second)
    bench.settle()
    actors: list[AnyActor] = [Grantor(), Gateway()]
    for cut in range(1, len(bench.history) + 1):
        engine = refolded(actors, bench.history[:cut])
        completed = engine.complete(bench.history[cut - 1].time).events
        rest = bench.history[cut:]
        facts = next((n for n, event in enumerate(rest) if event.kind == "fact"), len(rest))
        assert [(one.position, one.type, one.raw) for one in completed] == [
            (one.position, one.type, one.raw) for one in rest[:facts]
        ]
    whole = refolded(actors, bench.history)
    whole.complete(bench.now)
    assert whole.states == bench.engine.states


def test_the_state_survives_the_cache(bench: GatewayBench) -> None:
    bench.fail((bench.ask(), bench.calls[0])[1])
    bench.ask(ModelLimits(concurrency=1))
    state = bench.engine.states["model"]
    assert msgspec.json.decode(msgspec.json.encode(state), type=type(state)) == state


def test_others_events_of_the_kinds_it_hears_do_not_concern_it() -> None:
    other = Scripted("other", {1: [TimerRequested(at="2026-11-21T12:00:00.000000Z", name="deadline 1")]}, [Poked])
    bench = GatewayBench([Grantor(), other])
    bench.take(Poked(n=1))
    [timer] = bench.open(TimerRequested)
    bench.fire(timer)
    assert not [event for event in bench.history if event.actor == "model" and event.kind == "decision"]
