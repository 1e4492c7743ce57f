"""The reasoner: tools that the envelope allows, one result, and BLOCKED whenever the kernel says so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pmagent.actors.oa.reasoning import conclusion
from pmagent.actors.oa.reasoning.runs import (
    OPEN_BYTES_MAX,
    PAGE,
    RUNS_MAX,
    SEEN_MAX,
    ReasonerState,
    begun,
    ended,
    sha256_of,
)
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.effect import (
    ActorHalted,
    ActorResumed,
    EffectCancelRequested,
    EffectFailed,
    EffectTimedOut,
    RequestRefused,
)
from pmagent.contracts.model import ModelAsked, ModelCallFailed, ModelCallRequested, ModelReplied, ModelWithdrawn
from pmagent.contracts.reasoning import (
    PROGRAM_IDS,
    PROGRAM_TOOLS,
    ReasoningResult,
    check_payload,
    check_result,
    is_safe,
)
from pmagent.contracts.reasoning_events import (
    OaToolFailed,
    OaToolRequested,
    OaToolReturned,
    ReasoningConcluded,
    ReasoningRefused,
    ReasoningRequested,
)
from pmagent.events.event import Event
from tests.support.oa_loop import Observe
from tests.support.reasoning import (
    GREEN,
    LANGCHAIN,
    STATUS,
    RunBench,
    envelope,
    messages,
    proceeding,
    replied,
    scripted,
)


@pytest.mark.parametrize("program", PROGRAM_IDS)
def test_each_program_has_one_result_that_keeps_its_contract_and_lists_its_tools(bench: RunBench, program: str) -> None:
    given = envelope(program)
    result = bench.run(given)
    check_result(result)
    assert result.envelope_id == given.envelope_id
    assert result.program_id == program
    assert result.status in ("OK", "DEGRADED")
    requested = [event.data.tool_id for event in bench.of(OaToolRequested)]
    assert requested == [call.tool_id for call in result.tool_calls]
    assert set(requested) <= set(PROGRAM_TOOLS[program])
    assert messages(result, "engine") == ["the rules answered"]
    assert len(bench.of(ReasoningConcluded)) == 1
    assert not bench.engine.effects.open


def test_a_tool_call_is_recorded_with_arguments_digest_and_time(bench: RunBench) -> None:
    result = bench.run(envelope())
    call = next(call for call in result.tool_calls if call.tool_id == "oa.kernel_status")
    asked = bench.of(OaToolRequested)[0]
    assert call.digest == sha256_of(STATUS)
    assert call.at == asked.time
    assert call.ok


def test_all_is_well_so_the_operation_may_proceed(bench: RunBench) -> None:
    result = bench.run(envelope())
    assert result.status == "OK"
    assert result.decision["allowed_action"] == "PROCEED"


@pytest.mark.parametrize("program", PROGRAM_IDS)
@pytest.mark.parametrize(
    "state", [{"mode": "BLOCKED"}, {"reality_summary": {**GREEN, "reality_green": False}}, {"reality_summary": {}}],
)
def test_in_diagnostic_mode_only_the_interpreter_runs(bench: RunBench, program: str, state: dict[str, Any]) -> None:
    result = bench.run(envelope(program, **state))
    if program == "GuardFailureInterpreter":
        assert result.status == "DEGRADED"
        assert result.tool_calls
    else:
        assert result.status == "BLOCKED"
        assert is_safe(check_payload(program, result.decision))
        assert result.tool_calls == []
        assert [one for one in result.diagnostics if one.severity == "block"]


@pytest.mark.parametrize("live", [{"mode": "BLOCKED"}, {"mode": "DEGRADED", "reality_green": False}])
@pytest.mark.parametrize("engine", [{}, LANGCHAIN])
def test_the_kernel_as_it_is_now_counts_more_than_the_envelope(
    bench: RunBench, live: dict[str, Any], engine: dict[str, Any]
) -> None:
    bench.tools["oa.kernel_status"] = {**STATUS, **live}
    calls = scripted(bench, proceeding())
    result = bench.run(envelope(), **engine)
    assert result.status == "BLOCKED"
    assert result.decision["allowed_action"] == "ABORT"
    assert calls == []


def test_a_kernel_that_becomes_blocked_ends_the_run_and_takes_its_calls_back(bench: RunBench, observe: Observe) -> None:
    running = bench.ask(envelope())
    diagnosing = bench.ask(envelope("GuardFailureInterpreter", 2))
    bench.observe(observe({}))
    assert [one.result.status for one in bench.results(running)] == ["BLOCKED"]
    assert bench.results(diagnosing) == []
    cancelled = [event.data.request for event in bench.of(EffectCancelRequested)]
    assert cancelled == [event.position for event in bench.of(OaToolRequested) if event.data.run == running]
    assert bench.of(ReasoningConcluded)[0].correlation == "reasoning-00000000-0000-4000-8000-000000000001"
    assert bench.of(ModelWithdrawn) == []
    refused = bench.run(envelope("OPSBlockGenerator", 3))
    assert refused.status == "BLOCKED"
    assert refused.tool_calls == []


def test_a_model_that_is_asked_when_the_kernel_becomes_blocked_is_not_heard(bench: RunBench, observe: Observe) -> None:
    request = bench.ask(envelope(), **LANGCHAIN)
    while not bench.of(ModelCallRequested):
        assert bench.step()
    bench.observe(observe({}))
    assert bench.results(request)[0].result.status == "BLOCKED"
    call = bench.of(ModelCallRequested)[0]
    assert [event.data.ask for event in bench.of(ModelWithdrawn)] == [call.data.ask]
    if bench.engine.effects.is_open(call.position):
        bench.end(call, replied(call.position, call.data.ask, proceeding()))
    assert len(bench.results(request)) == 1


def test_an_envelope_has_one_result(bench: RunBench) -> None:
    first = bench.ask(envelope())
    again = bench.ask(envelope(), anew=True)
    refused = bench.of(ReasoningRefused)
    assert [event.data.request for event in refused] == [again]
    assert refused[0].data.earlier == first
    while bench.step():
        pass
    assert len(bench.of(ReasoningConcluded)) == 1
    bench.ask(envelope(), anew=True)
    assert len(bench.of(ReasoningRefused)) == 2


def test_too_many_runs_at_once_are_refused(bench: RunBench) -> None:
    for n in range(RUNS_MAX + 1):
        bench.ask(envelope(n=n))
    (refused,) = bench.of(ReasoningRefused)
    assert refused.data.earlier == 0
    assert refused.data.reasons == [f"{RUNS_MAX} runs are open, and no more fits beside them"]
    while bench.step():
        pass
    assert len(bench.of(ReasoningConcluded)) == RUNS_MAX
    assert bench.engine.states["reasoner"].runs == {}


def test_an_envelope_that_breaks_its_contract_is_refused_and_nothing_is_called(bench: RunBench) -> None:
    request = bench.ask(envelope(tools_allowed=["oa.guard.run"]))
    assert [event.data.request for event in bench.of(ReasoningRefused)] == [request]
    assert bench.of(OaToolRequested) == []


@pytest.mark.parametrize("program", PROGRAM_IDS)
@pytest.mark.parametrize("allowed", [[], ["oa.kernel_status"]])
def test_only_allowed_tools_are_called_and_what_cannot_be_verified_is_not_permitted(
    bench: RunBench, program: str, allowed: list[str]
) -> None:
    result = bench.run(envelope(program, tools_allowed=allowed))
    assert {event.data.tool_id for event in bench.of(OaToolRequested)} <= set(allowed)
    if program in ("SafeOPSDecision", "PhaseTransitionValidator"):
        assert is_safe(check_payload(program, result.decision))


@pytest.mark.parametrize("end", ["failed", "late", "raised"])
def test_a_tool_that_does_not_answer_leaves_the_operation_unverified(bench: RunBench, end: str) -> None:
    request = bench.ask(envelope())
    for event in bench.of(OaToolRequested):
        outcome: msgspec.Struct = {
            "failed": bench._tool(event), "late": EffectTimedOut(request=event.position, limit_s=60.0),
            "raised": EffectFailed(request=event.position, error="OSError", place="tools"),
        }[end]
        if end == "failed":
            bench.tools["oa.reality_summary"] = "share/REALITY_GREEN_SUMMARY.json is missing"
            outcome = bench._tool(event)
        bench.end(event, outcome)
    result = bench.results(request)[0].result
    assert result.decision["allowed_action"] == "ABORT"
    assert not all(call.ok for call in result.tool_calls)


def test_a_halted_gateway_is_a_failed_run(bench: RunBench) -> None:
    bench.engine.halted["model"] = 1
    assert bench.run(envelope(), **LANGCHAIN).status == "FAILED"


@pytest.mark.parametrize("fallback", [True, False])
def test_a_gateway_that_halts_ends_the_runs_that_wait_for_it_and_no_others(bench: RunBench, fallback: bool) -> None:
    asking = bench.ask(envelope(), fallback=fallback, **LANGCHAIN)
    while bench.step():
        pass
    calling = bench.ask(envelope(n=2))
    bench.tell(ActorHalted(name="context", input=1, error="KeyError", place="here"))
    assert bench.of(ReasoningConcluded) == []
    bench.tell(ActorHalted(name="model", input=1, error="KeyError", place="here"))
    (concluded,) = bench.results(asking)
    assert concluded.result.status == ("DEGRADED" if fallback else "FAILED")
    assert "halted" in "".join(messages(concluded.result, "engine"))
    bench.tell(ActorResumed(name="model"))
    assert list(bench.engine.states["reasoner"].runs) == [calling]


def test_runs_that_a_halted_reasoner_lost_sight_of_end_when_it_may_decide_again(bench: RunBench) -> None:
    calling, asking = bench.ask(envelope()), bench.ask(envelope(n=2), **LANGCHAIN)
    for event in bench.of(OaToolRequested):
        if event.data.run == asking:
            bench.end(event, OaToolReturned(request=event.position, tool_id=event.data.tool_id, result=STATUS | GREEN))
    assert bench.of(ModelAsked)
    bench.engine.halted["reasoner"] = len(bench.history)
    bench.tell(ActorResumed(name="model"))
    assert bench.of(ReasoningConcluded) == []
    bench.tell(ActorResumed(name="reasoner"))
    for request in (calling, asking):
        (concluded,) = bench.results(request)
        assert concluded.result.status == "FAILED"
        assert "halted" in concluded.result.rationale
    runs = {event.position: event.correlation for event in bench.of(ReasoningRequested)}
    assert all(event.correlation == runs[event.data.request] for event in bench.of(ReasoningConcluded))
    assert bench.engine.states["reasoner"].runs == {}
    assert bench.engine.effects.open.keys() == bench.engine.effects.cancelled.keys()


def test_a_reasoner_that_slept_through_a_blocked_kernel_answers_nothing_else(bench: RunBench, observe: Observe) -> None:
    request = bench.ask(envelope())
    bench.engine.halted["reasoner"] = len(bench.history)
    bench.observe(observe({}))
    assert bench.results(request) == []
    bench.tell(ActorResumed(name="reasoner"))
    assert [one.result.status for one in bench.results(request)] == ["BLOCKED"]


def test_who_asks_a_halted_reasoner_is_refused_and_has_no_run(bench: RunBench) -> None:
    bench.engine.halted["reasoner"] = 1
    request = bench.ask(envelope())
    assert [event.data.request for event in bench.of(RequestRefused)] == [request]
    assert bench.engine.states["reasoner"].runs == {}


def test_a_reply_that_comes_after_its_runs_end_is_nobodys(bench: RunBench) -> None:
    """The run's time is over while a call of its model goes on; the reply must not be taken for another run's."""
    late = bench.ask(envelope(), **LANGCHAIN)
    while bench.step():
        pass
    (call,) = bench.of(ModelCallRequested)
    (deadline,) = bench.of(TimerRequested)
    other = bench.ask(envelope("GuardFailureInterpreter", 2), **LANGCHAIN)
    bench.end(deadline, TimerFired(request=deadline.position, name=deadline.data.name))
    assert [one.result.status for one in bench.results(late)] == ["FAILED"]
    while bench.step():
        pass
    before = len(bench.of(ReasoningConcluded)), len(bench.of(ModelAsked))
    bench.end(call, replied(call.position, call.data.ask, "no answer that fits"))
    assert bench.of(ModelReplied)
    assert (len(bench.of(ReasoningConcluded)), len(bench.of(ModelAsked))) == before
    assert list(bench.engine.states["reasoner"].runs) == [other]
    assert bench.engine.halted == {}


def test_the_end_of_a_question_is_the_end_of_the_run_that_asked_it(bench: RunBench) -> None:
    first, second = bench.ask(envelope(), **LANGCHAIN), bench.ask(envelope(n=2), **LANGCHAIN)
    while bench.step():
        pass
    call = bench.of(ModelCallRequested)[1]
    no = ModelCallFailed(request=call.position, ask=call.data.ask, code="rejected", error="X", transient=False)
    bench.end(call, no)
    assert [one.result.status for one in bench.results(second)] == ["FAILED"]
    assert list(bench.engine.states["reasoner"].runs) == [first]


def test_a_call_that_failed_is_listed_with_the_digest_of_its_error(bench: RunBench) -> None:
    bench.tools["oa.reality_summary"] = "no summary"
    calls = {call.tool_id: call for call in bench.run(envelope()).tool_calls}
    assert calls["oa.kernel_status"].ok
    assert not calls["oa.reality_summary"].ok
    assert calls["oa.reality_summary"].digest == sha256_of("no summary")


def test_ends_of_effects_that_are_not_its_own_are_nothing_to_the_reasoner(bench: RunBench) -> None:
    request = bench.ask(envelope())
    bench.tell(EffectFailed(request=1, error="OSError", place="kernel"))
    assert list(bench.engine.states["reasoner"].runs) == [request]
    assert bench.engine.halted == {}


def test_a_tools_hint_is_evidence_too(bench: RunBench) -> None:
    bench.ask(envelope())
    call = bench.of(OaToolRequested)[0]
    bench.end(call, OaToolFailed(request=call.position, tool_id=call.data.tool_id, error="no kernel", hint="make one"))
    (run,) = bench.engine.states["reasoner"].runs.values()
    assert [one.error for one in run.evidence] == ["no kernel (make one)"]


def test_reasons_of_any_length_make_a_result_that_keeps_its_bounds(bench: RunBench) -> None:
    request = bench.ask(envelope())
    run = bench.engine.states["reasoner"].runs[request]
    result = conclusion.failed(run, "\x01" * 100_000, "y" * 100_000).result
    check_result(msgspec.json.decode(msgspec.json.encode(result), type=ReasoningResult))
    (diagnostic,) = result.diagnostics
    assert len(diagnostic.message) == len(diagnostic.remediation or "") == conclusion.MESSAGE_CHARS_MAX
    assert diagnostic.message.startswith("rules: ")


def test_the_newest_envelopes_are_remembered_and_the_oldest_forgotten() -> None:
    state, given = ReasonerState(), envelope()
    for n in range(SEEN_MAX + PAGE):
        asked = ReasoningRequested(envelope=msgspec.structs.replace(given, envelope_id=f"{n}"))
        event = Event(n + 1, "", "", "fact", "", "reasoning.requested", "", 0, asked, b"")
        state = ended(begun(state, event), n + 1)
    assert sum(len(page) for page in state.seen) == SEEN_MAX
    assert state.earlier("0") == 0
    assert state.earlier(f"{PAGE}") == PAGE + 1
    assert state.earlier(f"{SEEN_MAX + PAGE - 1}") == SEEN_MAX + PAGE


def test_while_nobody_watches_the_kernel_it_counts_as_blocked(bench: RunBench) -> None:
    running = bench.ask(envelope())
    bench.tell(ActorHalted(name="kernel", input=1, error="KeyError", place="kernel"))
    assert [one.result.status for one in bench.results(running)] == ["BLOCKED"]
    assert bench.run(envelope("PhaseTransitionValidator", 2)).status == "BLOCKED"
    assert bench.run(envelope("GuardFailureInterpreter", 3)).status in ("OK", "DEGRADED")
    bench.tell(ActorResumed(name="kernel"))
    assert bench.run(envelope(n=4)).status == "OK"


def test_envelopes_that_are_too_large_together_are_refused_and_one_alone_is_not(bench: RunBench) -> None:
    large = {"text": "x" * 4_000_000}
    for n in range(OPEN_BYTES_MAX // 8_000_000 + 1):
        bench.ask(envelope(n=n, bootstrap=large, ssot_index=large))
    assert len(bench.of(ReasoningRefused)) == 1
    while bench.step():
        pass
    assert len(bench.of(ReasoningConcluded)) == OPEN_BYTES_MAX // 8_000_000
