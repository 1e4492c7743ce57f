"""The gateway's limits hold and each question ends once, whatever happens to calls, timers and permits."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.model.actor import Gateway
from pmagent.contracts.clock import TimerRequested
from pmagent.contracts.effect import EffectCancelled, EffectFailed, EffectInterrupted, EffectTimedOut
from pmagent.contracts.model import ModelAsked, ModelCallRequested, ModelFailed, ModelLimits, ModelReplied
from pmagent.events.event import parse_time, time_after
from tests.support.effort import examples
from tests.support.gateway import GatewayBench
from tests.support.toys import Grantor, Poked, refolded

LIMITS = ModelLimits(attempts=3, calls=7, concurrency=2, seconds=40, tokens=400, call_seconds=30)
RUNS = ("one", "two")

steps = st.lists(
    st.tuples(
        st.sampled_from((
            "ask", "ask", "ask", "reply", "reply", "fail", "fail", "reject", "rate", "timed out", "broken",
            "interrupted", "cancelled", "fire", "fire", "fire", "withdraw", "revoke", "settle", "wait",
        )),
        st.integers(0, 50),
    ),
    min_size=15, max_size=80,
)


def step(bench: GatewayBench, what: str, n: int) -> None:
    """One thing that may happen; ``n`` says to whom."""
    calls, timers = bench.calls, bench.open(TimerRequested)
    match what:
        case "ask":
            bench.ask(LIMITS, run=RUNS[n % 2])
        case "withdraw" if asks := bench.of(ModelAsked):
            asked = asks[n % len(asks)]
            bench.withdraw(asked.position, run=asked.correlation)
        case "revoke":
            bench.take(Poked(n=7))
        case "settle":
            bench.settle()
        case "wait":
            bench.seconds += n / 5
        case "fire" if timers:
            bench.fire(timers[n % len(timers)])
        case _ if calls:
            end(bench, what, n)


def end(bench: GatewayBench, what: str, n: int) -> None:
    """One of the calls ends."""
    call = bench.calls[n % len(bench.calls)]
    at = call.position
    match what:
        case "reply":
            bench.reply(call, tokens=n)
        case "fail":
            bench.fail(call)
        case "reject":
            bench.fail(call, "rejected", transient=False)
        case "rate":
            bench.fail(call, "rate_limited", after=float(n))
        case "timed out":
            bench.end(call, EffectTimedOut(request=at, limit_s=1.0))
        case "broken":
            bench.end(call, EffectFailed(request=at, error="ToyError", place="toy"))
        case "interrupted":
            bench.end(call, EffectInterrupted(request=at, reason="crash"))
        case "cancelled":
            bench.end(call, EffectCancelled(request=at, reason="permit_revoked"))


def check(bench: GatewayBench) -> None:
    """The laws that hold at any time."""
    open_calls = Counter(call.correlation for call in bench.calls)
    assert all(number <= LIMITS.concurrency for number in open_calls.values())


def check_history(bench: GatewayBench) -> None:
    """The laws of everything that happened."""
    first: dict[str, str] = {}
    for asked in bench.of(ModelAsked):
        first.setdefault(asked.correlation, asked.time)
    per_run: Counter[str] = Counter()
    for call in bench.of(ModelCallRequested):
        per_run[call.correlation] += 1
        deadline = time_after(first[call.correlation], LIMITS.seconds)
        assert call.time < deadline
        assert 0 < call.data.seconds <= (parse_time(deadline) - parse_time(call.time)).total_seconds()
    assert all(number <= LIMITS.calls for number in per_run.values())
    per_ask = Counter(call.data.ask for call in bench.of(ModelCallRequested))
    assert all(number <= LIMITS.attempts for number in per_ask.values())
    ended_at = {event.data.ask: event.position for event in reversed(bench.of(ModelFailed))}
    for ask in per_ask:
        ended = ended_at.get(ask)
        calls = [call.position for call in bench.of(ModelCallRequested) if call.data.ask == ask]
        assert ended is None or max(calls) < ended, "no call behind the end"


@given(steps)
@settings(max_examples=examples(150), deadline=None)
def test_each_question_ends_once_and_no_limit_is_passed(steps: list[tuple[str, int]]) -> None:
    bench = GatewayBench()
    for what, n in steps:
        step(bench, what, n)
        check(bench)
    while timers := bench.open(TimerRequested):  # at the latest every deadline comes
        bench.settle()
        bench.fire(timers[0])
        check(bench)
    bench.settle()
    check_history(bench)
    failed = Counter(event.data.ask for event in bench.of(ModelFailed))
    for asked in bench.of(ModelAsked):
        replies = [event for event in bench.of(ModelReplied) if event.data.ask == asked.position]
        failures = [event for event in bench.of(ModelFailed) if event.data.ask == asked.position]
        assert len(replies) <= 1
        assert len(failures) <= 1
        assert replies or failures
        if replies and failures:  # the call was being stopped when it replied: the end was told before
            assert failures[0].position < replies[0].position
    assert sum(failed.values()) == len(failed)
    state = bench.engine.states["model"]
    assert not state.asks
    assert not state.calls


@given(steps)
@settings(max_examples=examples(40), deadline=None)
def test_reading_the_history_back_gives_the_same_state(steps: list[tuple[str, int]]) -> None:
    bench = GatewayBench()
    for what, n in steps:
        step(bench, what, n)
    engine = refolded([Grantor(), Gateway()], bench.history)
    engine.complete(bench.now)
    assert engine.states == bench.engine.states
