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
from tests.support.reasoning import GREEN, LANGCHAIN, STATUS, Desk, envelope, messages, proceeding, replied, scripted


@pytest.mark.parametrize("program", PROGRAM_IDS)
def test_each_program_has_one_result_that_keeps_its_contract_and_lists_the_tools_it_called(
    desk: Desk, program: str
) -> None:
    given = envelope(program)
    result = desk.run(given)
    check_result(result)
    assert result.envelope_id == given.envelope_id
    assert result.program_id == program
    assert result.status in ("OK", "DEGRADED")
    requested = [event.data.tool_id for event in desk.of(OaToolRequested)]
    assert requested == [call.tool_id for call in result.tool_calls]
    assert set(requested) <= set(PROGRAM_TOOLS[program])
    assert messages(result, "engine") == ["the rules answered"]
    assert len(desk.of(ReasoningConcluded)) == 1
    assert not desk.engine.effects.open


def test_a_tool_call_is_recorded_with_arguments_digest_and_time(desk: Desk) -> None:
    result = desk.run(envelope())
    call = next(call for call in result.tool_calls if call.tool_id == "oa.kernel_status")
    asked = desk.of(OaToolRequested)[0]
    assert call.digest == sha256_of(STATUS)
    assert call.at == asked.time
    assert call.ok


def test_all_is_well_so_the_operation_may_proceed(desk: Desk) -> None:
    result = desk.run(envelope())
    assert result.status == "OK"
    assert result.decision["allowed_action"] == "PROCEED"


@pytest.mark.parametrize("program", PROGRAM_IDS)
@pytest.mark.parametrize(
    "state", [{"mode": "BLOCKED"}, {"reality_summary": {**GREEN, "reality_green": False}}, {"reality_summary": {}}],
)
def test_in_diagnostic_mode_only_the_interpreter_runs(desk: Desk, program: str, state: dict[str, Any]) -> None:
    result = desk.run(envelope(program, **state))
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
    desk: Desk, live: dict[str, Any], engine: dict[str, Any]
) -> None:
    desk.tools["oa.kernel_status"] = {**STATUS, **live}
    calls = scripted(desk, proceeding())
    result = desk.run(envelope(), **engine)
    assert result.status == "BLOCKED"
    assert result.decision["allowed_action"] == "ABORT"
    assert calls == []


def test_a_kernel_that_becomes_blocked_ends_the_run_and_takes_its_calls_back(
    desk: Desk, observe: Observe
) -> None:
    running = desk.ask(envelope())
    diagnosing = desk.ask(envelope("GuardFailureInterpreter", 2))
    desk.observe(observe({}))
    assert [one.result.status for one in desk.results(running)] == ["BLOCKED"]
    assert desk.results(diagnosing) == []
    cancelled = [event.data.request for event in desk.of(EffectCancelRequested)]
    assert cancelled == [event.position for event in desk.of(OaToolRequested) if event.data.run == running]
    assert desk.of(ReasoningConcluded)[0].correlation == "reasoning-00000000-0000-4000-8000-000000000001"
    assert desk.of(ModelWithdrawn) == []
    refused = desk.run(envelope("OPSBlockGenerator", 3))
    assert refused.status == "BLOCKED"
    assert refused.tool_calls == []


def test_a_model_that_is_asked_when_the_kernel_becomes_blocked_is_not_heard(desk: Desk, observe: Observe) -> None:
    request = desk.ask(envelope(), **LANGCHAIN)
    while not desk.of(ModelCallRequested):
        assert desk.step()
    desk.observe(observe({}))
    assert desk.results(request)[0].result.status == "BLOCKED"
    call = desk.of(ModelCallRequested)[0]
    assert [event.data.ask for event in desk.of(ModelWithdrawn)] == [call.data.ask]
    if desk.engine.effects.is_open(call.position):
        desk.end(call, replied(call.position, call.data.ask, proceeding()))
    assert len(desk.results(request)) == 1


def test_an_envelope_has_one_result(desk: Desk) -> None:
    first = desk.ask(envelope())
    again = desk.ask(envelope(), anew=True)
    refused = desk.of(ReasoningRefused)
    assert [event.data.request for event in refused] == [again]
    assert refused[0].data.earlier == first
    while desk.step():
        pass
    assert len(desk.of(ReasoningConcluded)) == 1
    desk.ask(envelope(), anew=True)
    assert len(desk.of(ReasoningRefused)) == 2


def test_too_many_runs_at_once_are_refused(desk: Desk) -> None:
    for n in range(RUNS_MAX + 1):
        desk.ask(envelope(n=n))
    (refused,) = desk.of(ReasoningRefused)
    assert refused.data.earlier == 0
    assert refused.data.reasons == [f"{RUNS_MAX} runs are open, and no more fits beside them"]
    while desk.step():
        pass
    assert len(desk.of(ReasoningConcluded)) == RUNS_MAX
    assert desk.engine.states["reasoner"].runs == {}


def test_an_envelope_that_breaks_its_contract_is_refused_and_nothing_is_called(desk: Desk) -> None:
    request = desk.ask(envelope(tools_allowed=["oa.guard.run"]))
    assert [event.data.request for event in desk.of(ReasoningRefused)] == [request]
    assert desk.of(OaToolRequested) == []


@pytest.mark.parametrize("program", PROGRAM_IDS)
@pytest.mark.parametrize("allowed", [[], ["oa.kernel_status"]])
def test_only_allowed_tools_are_called_and_what_cannot_be_verified_is_not_permitted(
    desk: Desk, program: str, allowed: list[str]
) -> None:
    result = desk.run(envelope(program, tools_allowed=allowed))
    assert {event.data.tool_id for event in desk.of(OaToolRequested)} <= set(allowed)
    if program in ("SafeOPSDecision", "PhaseTransitionValidator"):
        assert is_safe(check_payload(program, result.decision))


@pytest.mark.parametrize("end", ["failed", "late", "raised"])
def test_a_tool_that_does_not_answer_leaves_the_operation_unverified(desk: Desk, end: str) -> None:
    request = desk.ask(envelope())
    for event in desk.of(OaToolRequested):
        outcome: msgspec.Struct = {
            "failed": desk._tool(event), "late": EffectTimedOut(request=event.position, limit_s=60.0),
            "raised": EffectFailed(request=event.position, error="OSError", place="tools"),
        }[end]
        if end == "failed":
            desk.tools["oa.reality_summary"] = "share/REALITY_GREEN_SUMMARY.json is missing"
            outcome = desk._tool(event)
        desk.end(event, outcome)
    result = desk.results(request)[0].result
    assert result.decision["allowed_action"] == "ABORT"
    assert not all(call.ok for call in result.tool_calls)


def test_a_halted_gateway_is_a_failed_run(desk: Desk) -> None:
    desk.engine.halted["model"] = 1
    result = desk.run(envelope(), **LANGCHAIN)
    assert result.status == "FAILED"


@pytest.mark.parametrize("fallback", [True, False])
def test_a_gateway_that_halts_ends_the_runs_that_wait_for_it_and_no_others(desk: Desk, fallback: bool) -> None:
    asking = desk.ask(envelope(), fallback=fallback, **LANGCHAIN)
    while desk.step():
        pass
    calling = desk.ask(envelope(n=2))
    desk.tell(ActorHalted(name="context", input=1, error="KeyError", place="here"))
    assert desk.of(ReasoningConcluded) == []
    desk.tell(ActorHalted(name="model", input=1, error="KeyError", place="here"))
    (concluded,) = desk.results(asking)
    assert concluded.result.status == ("DEGRADED" if fallback else "FAILED")
    assert "halted" in "".join(messages(concluded.result, "engine"))
    desk.tell(ActorResumed(name="model"))
    assert list(desk.engine.states["reasoner"].runs) == [calling]


def test_runs_that_a_halted_reasoner_lost_sight_of_end_when_it_may_decide_again(desk: Desk) -> None:
    calling, asking = desk.ask(envelope()), desk.ask(envelope(n=2), **LANGCHAIN)
    for event in desk.of(OaToolRequested):
        if event.data.run == asking:
            desk.end(event, OaToolReturned(request=event.position, tool_id=event.data.tool_id, result=STATUS | GREEN))
    assert desk.of(ModelAsked)
    desk.engine.halted["reasoner"] = len(desk.history)
    desk.tell(ActorResumed(name="model"))
    assert desk.of(ReasoningConcluded) == []
    desk.tell(ActorResumed(name="reasoner"))
    for request in (calling, asking):
        (concluded,) = desk.results(request)
        assert concluded.result.status == "FAILED"
        assert "halted" in concluded.result.rationale
    runs = {event.position: event.correlation for event in desk.of(ReasoningRequested)}
    assert all(event.correlation == runs[event.data.request] for event in desk.of(ReasoningConcluded))
    assert desk.engine.states["reasoner"].runs == {}
    assert desk.engine.effects.open.keys() == desk.engine.effects.cancelled.keys()


def test_a_reasoner_that_slept_through_a_blocked_kernel_answers_nothing_else(desk: Desk, observe: Observe) -> None:
    request = desk.ask(envelope())
    desk.engine.halted["reasoner"] = len(desk.history)
    desk.observe(observe({}))
    assert desk.results(request) == []
    desk.tell(ActorResumed(name="reasoner"))
    assert [one.result.status for one in desk.results(request)] == ["BLOCKED"]


def test_who_asks_a_halted_reasoner_is_refused_and_has_no_run(desk: Desk) -> None:
    desk.engine.halted["reasoner"] = 1
    request = desk.ask(envelope())
    assert [event.data.request for event in desk.of(RequestRefused)] == [request]
    assert desk.engine.states["reasoner"].runs == {}


def test_a_reply_that_comes_after_its_runs_end_is_nobodys(desk: Desk) -> None:
    """The run's time is over while a call of its model goes on; the reply must not be taken for another run's."""
    late = desk.ask(envelope(), **LANGCHAIN)
    while desk.step():
        pass
    (call,) = desk.of(ModelCallRequested)
    (deadline,) = desk.of(TimerRequested)
    other = desk.ask(envelope("GuardFailureInterpreter", 2), **LANGCHAIN)
    desk.end(deadline, TimerFired(request=deadline.position, name=deadline.data.name))
    assert [one.result.status for one in desk.results(late)] == ["FAILED"]
    while desk.step():
        pass
    before = len(desk.of(ReasoningConcluded)), len(desk.of(ModelAsked))
    desk.end(call, replied(call.position, call.data.ask, "no answer that fits"))
    assert desk.of(ModelReplied)
    assert (len(desk.of(ReasoningConcluded)), len(desk.of(ModelAsked))) == before
    assert list(desk.engine.states["reasoner"].runs) == [other]
    assert desk.engine.halted == {}


def test_the_end_of_a_question_is_the_end_of_the_run_that_asked_it(desk: Desk) -> None:
    first, second = desk.ask(envelope(), **LANGCHAIN), desk.ask(envelope(n=2), **LANGCHAIN)
    while desk.step():
        pass
    call = desk.of(ModelCallRequested)[1]
    no = ModelCallFailed(request=call.position, ask=call.data.ask, code="rejected", error="X", transient=False)
    desk.end(call, no)
    assert [one.result.status for one in desk.results(second)] == ["FAILED"]
    assert list(desk.engine.states["reasoner"].runs) == [first]


def test_a_call_that_failed_is_listed_with_the_digest_of_its_error(desk: Desk) -> None:
    desk.tools["oa.reality_summary"] = "no summary"
    calls = {call.tool_id: call for call in desk.run(envelope()).tool_calls}
    assert calls["oa.kernel_status"].ok
    assert not calls["oa.reality_summary"].ok
    assert calls["oa.reality_summary"].digest == sha256_of("no summary")


def test_ends_of_effects_that_are_not_its_own_are_nothing_to_the_reasoner(desk: Desk) -> None:
    request = desk.ask(envelope())
    desk.tell(EffectFailed(request=1, error="OSError", place="kernel"))
    assert list(desk.engine.states["reasoner"].runs) == [request]
    assert desk.engine.halted == {}


def test_a_tools_hint_is_evidence_too(desk: Desk) -> None:
    desk.ask(envelope())
    call = desk.of(OaToolRequested)[0]
    desk.end(call, OaToolFailed(request=call.position, tool_id=call.data.tool_id, error="no kernel", hint="make one"))
    (run,) = desk.engine.states["reasoner"].runs.values()
    assert [one.error for one in run.evidence] == ["no kernel (make one)"]


def test_reasons_of_any_length_make_a_result_that_keeps_its_bounds(desk: Desk) -> None:
    request = desk.ask(envelope())
    run = desk.engine.states["reasoner"].runs[request]
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


def test_while_nobody_watches_the_kernel_it_counts_as_blocked(desk: Desk) -> None:
    running = desk.ask(envelope())
    desk.tell(ActorHalted(name="kernel", input=1, error="KeyError", place="kernel"))
    assert [one.result.status for one in desk.results(running)] == ["BLOCKED"]
    assert desk.run(envelope("PhaseTransitionValidator", 2)).status == "BLOCKED"
    assert desk.run(envelope("GuardFailureInterpreter", 3)).status in ("OK", "DEGRADED")
    desk.tell(ActorResumed(name="kernel"))
    assert desk.run(envelope(n=4)).status == "OK"


def test_envelopes_that_are_too_large_together_are_refused_and_one_alone_is_not(desk: Desk) -> None:
    large = {"text": "x" * 4_000_000}
    for n in range(OPEN_BYTES_MAX // 8_000_000 + 1):
        desk.ask(envelope(n=n, bootstrap=large, ssot_index=large))
    assert len(desk.of(ReasoningRefused)) == 1
    while desk.step():
        pass
    assert len(desk.of(ReasoningConcluded)) == OPEN_BYTES_MAX // 8_000_000
