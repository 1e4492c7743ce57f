"""The limits of questions and runs, each with what it leaves of the run."""

from __future__ import annotations

from typing import Any

import pytest

from pmagent.actors.model import state as gateway_state
from pmagent.actors.model.state import ASKS_MAX
from pmagent.contracts.effect import EffectTimedOut
from pmagent.contracts.model import (
    PROMPT_BYTES_MAX,
    ModelAsked,
    ModelCallRequested,
    ModelFailed,
    ModelLimits,
    ModelMessage,
    ModelPrice,
)
from pmagent.contracts.oa import OaPermitRequested
from pmagent.contracts.payload import encode
from tests.support.cases import each
from tests.support.gateway import GatewayBench, question
from tests.support.toys import Scripted

PRICE = ModelPrice(input_usd=2.0, output_usd=8.0)


def spent(bench: GatewayBench, run: str = "run") -> Any:
    """The run's use of its limits."""
    return bench.engine.states["model"].runs[run]


def test_a_run_makes_no_more_calls_than_it_may_and_other_runs_are_not_concerned(bench: GatewayBench) -> None:
    limits = ModelLimits(calls=2)
    for _ in range(2):
        bench.ask(limits)
        bench.reply(bench.calls[0])
    failed = bench.failure(bench.ask(limits))
    assert (failed.code, failed.text) == ("calls", "the run has made its 2 calls")
    bench.ask(limits, run="another")
    assert len(bench.calls) == 1


def test_attempts_count_as_calls_of_the_run(bench: GatewayBench) -> None:
    ask = bench.ask(ModelLimits(calls=2, attempts=5))
    bench.fail(bench.calls[0])
    bench.fire(bench.timer("pause", ask))
    bench.fail(bench.calls[0])
    failed = bench.failure(ask)
    assert (failed.code, failed.attempts) == ("overloaded", 2)
    assert failed.text == "the provider failed (ToyError); no further attempt: the run has made its 2 calls"


def test_the_last_call_of_a_run_goes_to_the_oldest_question(bench: GatewayBench) -> None:
    limits = ModelLimits(calls=2, concurrency=1)
    first, second, third = (bench.ask(limits) for _ in range(3))
    bench.reply(bench.calls[0])
    bench.reply(bench.calls[0])
    assert [event.data.ask for event in bench.of(ModelCallRequested)] == [first, second]
    assert bench.failure(third).code == "calls"


def test_tokens_are_those_in_and_out_of_every_call_of_the_run(bench: GatewayBench) -> None:
    limits = ModelLimits(tokens=100)
    for tokens in (60, 39):
        bench.ask(limits)
        bench.reply(bench.calls[0], tokens=tokens)
    bench.ask(limits)
    bench.reply(bench.calls[0], tokens=1)
    failed = bench.failure(bench.ask(limits))
    assert (failed.code, failed.text) == ("tokens", "the run has used 100 tokens; 100 are allowed")


def test_a_call_of_unknown_outcome_is_charged_with_its_question(bench: GatewayBench) -> None:
    ask = bench.ask(messages=[ModelMessage(role="user", content="x" * 4000)])
    [call] = bench.calls
    bench.end(call, EffectTimedOut(request=call.position, limit_s=1.0))
    assert 1000 < spent(bench).tokens < 1200
    bench.fire(bench.timer("pause", ask))
    bench.fail(bench.calls[0], "timed_out")
    assert 2000 < spent(bench).tokens < 2400


@each("code", ["rate_limited", "overloaded", "rejected", "no_key", "unavailable"])
def test_a_call_that_the_provider_did_not_take_costs_nothing(code: str) -> None:
    bench = GatewayBench()
    bench.ask()
    bench.fail(bench.calls[0], code)
    assert (spent(bench).tokens, spent(bench).calls) == (0, 1)


def test_cost_follows_from_price_and_tokens_and_is_limited(bench: GatewayBench) -> None:
    limits = ModelLimits(cost_usd=0.01, tokens=100_000_000)
    bench.ask(limits, price=PRICE)
    bench.reply(bench.calls[0], tokens=2000)
    assert spent(bench).cost_usd == pytest.approx(0.01)
    failed = bench.failure(bench.ask(limits, price=PRICE))
    assert (failed.code, failed.text) == ("cost", "the run has cost 0.0100 US dollars; 0.01 are allowed")


def test_a_limited_cost_needs_a_price(bench: GatewayBench) -> None:
    failed = bench.failure(bench.ask(ModelLimits(cost_usd=1.0)))
    assert (failed.code, failed.attempts) == ("no_price", 0)
    assert not bench.of(OaPermitRequested)


def test_what_costs_nothing_is_allowed_when_nothing_may_be_spent(bench: GatewayBench) -> None:
    free = ModelPrice(input_usd=0.0, output_usd=0.0)
    bench.ask(ModelLimits(cost_usd=0.0), price=free)
    assert len(bench.calls) == 1
    for costly in (PRICE, ModelPrice(input_usd=0.0, output_usd=1.0), ModelPrice(input_usd=1.0, output_usd=0.0)):
        assert bench.failure(bench.ask(ModelLimits(cost_usd=0.0), price=costly)).code == "cost"


def test_time_counts_from_the_runs_first_question(bench: GatewayBench) -> None:
    limits = ModelLimits(seconds=100, call_seconds=60)
    bench.ask(limits)
    bench.reply(bench.calls[0])
    bench.seconds = 70.0
    bench.ask(limits)
    assert bench.calls[0].data.seconds == 30.0
    bench.seconds = 100.0
    failed = bench.failure(bench.ask(limits))
    assert (failed.code, failed.text) == ("time", "the run's 100 seconds are over")


def test_questions_beyond_the_runs_places_wait_their_turn(bench: GatewayBench) -> None:
    limits = ModelLimits(concurrency=2)
    asks = [bench.ask(limits) for _ in range(4)]
    bench.ask(limits, run="another")
    assert [call.data.ask for call in bench.calls][:2] == asks[:2]
    assert len(bench.calls) == 3
    bench.reply(bench.calls[1])
    assert asks[2] in [call.data.ask for call in bench.calls]
    assert asks[3] not in [call.data.ask for call in bench.calls]


def test_a_question_that_waits_for_its_permit_has_a_place() -> None:
    bench = GatewayBench([Scripted("silent", {}, [OaPermitRequested])])
    limits = ModelLimits(concurrency=1, seconds=50)
    first, second = bench.ask(limits), bench.ask(limits)
    assert len(bench.of(OaPermitRequested)) == 1
    bench.withdraw(first)
    assert bench.failure(first).code == "withdrawn"
    assert len(bench.of(OaPermitRequested)) == 2
    bench.fire(bench.timer("deadline", second))
    assert bench.failure(second).code == "time"


def test_a_call_that_is_being_stopped_keeps_its_place(bench: GatewayBench) -> None:
    limits = ModelLimits(concurrency=1)
    first, second = bench.ask(limits), bench.ask(limits)
    bench.withdraw(first)
    assert [call.data.ask for call in bench.calls] == [first]
    bench.settle()
    assert [call.data.ask for call in bench.calls] == [second]


def test_a_pause_leaves_the_place_to_others(bench: GatewayBench) -> None:
    limits = ModelLimits(concurrency=1)
    first, second = bench.ask(limits), bench.ask(limits)
    bench.fail(bench.calls[0])
    assert [call.data.ask for call in bench.calls] == [second]
    bench.fire(bench.timer("pause", first))
    assert [call.data.ask for call in bench.calls] == [second]
    bench.reply(bench.calls[0])
    assert [call.data.ask for call in bench.calls] == [first]


def test_a_queued_question_fails_when_its_time_is_over(bench: GatewayBench) -> None:
    limits = ModelLimits(concurrency=1, seconds=50)
    first, second = bench.ask(limits), bench.ask(limits)
    bench.fire(bench.timer("deadline", second))
    assert bench.failure(second).code == "time"
    assert [call.data.ask for call in bench.calls] == [first]


def test_a_question_may_be_large_but_not_larger(bench: GatewayBench) -> None:
    overhead = len(encode(question(messages=[ModelMessage(role="user", content="")])))
    for extra, taken in ((0, True), (1, False)):
        content = "x" * (PROMPT_BYTES_MAX - overhead + extra)
        ask = bench.ask(messages=[ModelMessage(role="user", content=content)])
        assert bool(bench.failures(ask)) is not taken
    failed = bench.failure(ask)
    assert failed.code == "too_long"
    assert failed.text == f"the question has {PROMPT_BYTES_MAX + 1} bytes; {PROMPT_BYTES_MAX} are allowed"


@each("asked, text", [
    ({"messages": []}, "the question has no messages"),
    ({"model": ""}, "the question names no model"),
    ({"engine": "dspy"}, "there is no program ''"),
    ({"engine": "dspy", "program": "Oracle"}, "there is no program 'Oracle'"),
])
def test_a_question_that_asks_nothing_is_refused(asked: dict[str, Any], text: str) -> None:
    bench = GatewayBench()
    failed = bench.failure(bench.ask(**asked))
    assert (failed.code, failed.text, failed.attempts) == ("invalid", text, 0)


def test_so_many_questions_are_open_and_the_next_is_refused(bench: GatewayBench) -> None:
    limits = ModelLimits(concurrency=1)
    for _ in range(ASKS_MAX):
        assert not bench.failures(bench.ask(limits))
    assert bench.failure(bench.ask(limits)).code == "busy"
    assert bench.failure(bench.ask(limits, run="another")).code == "busy"
    bench.reply(bench.calls[0])
    assert not bench.failures(bench.ask(limits))


def test_only_so_many_runs_are_remembered_and_busy_ones_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_state, "RUNS_MAX", 3)
    bench = GatewayBench()
    bench.ask(run="busy")
    for name in ("a", "b", "c", "d"):
        bench.ask(run=name)
        bench.reply(bench.calls[-1])
    assert list(bench.engine.states["model"].runs) == ["busy", "c", "d"]


def test_every_failure_names_its_question(bench: GatewayBench) -> None:
    asks = [bench.ask(messages=[]) for _ in range(3)]
    assert [event.data.ask for event in bench.of(ModelFailed)] == asks
    assert [event.position for event in bench.of(ModelAsked)] == asks
