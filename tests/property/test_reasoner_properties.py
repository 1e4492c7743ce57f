"""A run keeps to its limits, whatever tools and models answer, and whenever the kernel changes or the process ends."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.kernel.surfaces import HANDOFF
from pmagent.actors.registry import all_actors
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.effect import EffectCancelled, EffectFailed, EffectInterrupted, EffectTimedOut
from pmagent.contracts.model import (
    ModelAsked,
    ModelCallFailed,
    ModelCallRequested,
    ModelLimits,
    ModelReplied,
    ModelToolCall,
    ModelUsage,
)
from pmagent.contracts.reasoning import PAYLOADS, PROGRAM_IDS, PROGRAM_TOOLS, TOOL_IDS
from pmagent.contracts.reasoning_events import (
    OaToolFailed,
    OaToolRequested,
    OaToolReturned,
    ReasoningConcluded,
    ReasoningRefused,
    ReasoningRequested,
)
from pmagent.events.event import Event, time_after
from pmagent.replay.areas.invariants_models import check_models, check_models_ended
from pmagent.replay.areas.invariants_reasoning import check_idle, check_reasoning
from pmagent.replay.areas.models import PERMITTING
from pmagent.replay.replayer import replay_log
from tests.support.effort import examples
from tests.support.oa_loop import Contents, Observe
from tests.support.reasoning import GREEN, RESULTS, STATUS, RunBench, envelope, proceeding
from tests.support.recorded import stored_log
from tests.support.toys import START, refolded

LIMITS = ModelLimits(attempts=2, calls=6, seconds=60.0, call_seconds=20.0, tokens=2_000)

json = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(("", "NORMAL", "BLOCKED", "DEGRADED", "27", "x")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=6,
)
KEYS = ("mode", "reality_green", "reasons", "checks", "current_phase", "phases", "ok", "mismatches", "provisional")
CONTEXT_KEYS = ("constraints", "guard_name", "commands", "claimed_kernel_state")
garbage = st.dictionaries(st.sampled_from(KEYS), json, max_size=4)
status = garbage.map(lambda more: {**STATUS, **more})

extras = {"rationale": "because", "conditions": [], "warnings": []}
answers = st.sampled_from(
    [msgspec.json.encode({**given, **extras}).decode() for given in PERMITTING.values()] * 2
    + [proceeding(rationale=7), "{}", "[]", "", "PROCEED", "{", '{"allowed_action":"PROCEED"}']
)
names = st.sampled_from([
    *(tool.replace(".", "_") for tool in TOOL_IDS), *TOOL_IDS, "rm", "", *(kind.__name__ for kind in PAYLOADS.values()),
])
arguments = st.sampled_from([{}, {"name": "oa_state"}, {"name": "oa_state", "mode": "HINT"}, {"workspace": "/etc"}])
wishes = st.lists(st.tuples(names, arguments | garbage), max_size=3)

envelopes = st.builds(
    lambda program, allowed, mode, green, context: envelope(
        program, mode=mode, reality_summary={**GREEN, "reality_green": green}, oa_context=context,
        tools_allowed=[tool for tool, kept in zip(PROGRAM_TOOLS[program], allowed, strict=False) if kept],
    ),
    st.sampled_from(PROGRAM_IDS),
    st.lists(st.sampled_from((True, True, True, True, False)), min_size=4, max_size=4),
    st.sampled_from(("NORMAL", "NORMAL", "NORMAL", "NORMAL", "DEGRADED", "BLOCKED")),
    st.sampled_from((True, True, True, True, False, None, "yes")),
    st.dictionaries(st.sampled_from(CONTEXT_KEYS), json, max_size=1),
)
requests = st.builds(
    lambda given, engine, fallback: (given, {"engine": engine, "fallback": fallback, "limits": LIMITS} | (
        {} if engine == "rules" else {"model": "toy:one"}
    )),
    envelopes, st.sampled_from(("rules", "langchain", "langchain", "dspy")), st.booleans(),
)

tools = st.one_of(
    st.just(("tool", "as it is")), st.just(("tool", "as it is")), st.tuples(st.just("tool"), status | garbage),
    st.tuples(st.just("tool"), st.sampled_from(("fails", "broken", "timed out", "interrupted", "cancelled"))),
)
models = st.one_of(
    st.just(("model", "permits")), st.just(("model", "permits")),
    st.tuples(st.just("model"), st.tuples(answers, wishes)),
    st.tuples(st.just("model"), st.tuples(answers, st.just([]))),
    st.tuples(st.just("model"), st.sampled_from(("overloaded", "rejected", "broken", "timed out", "interrupted"))),
)
kernels = st.tuples(st.just("kernel"), st.sampled_from(("NORMAL", "NORMAL", "DEGRADED", "BLOCKED")))
others = st.one_of(tools, tools, models, models, kernels, st.sampled_from([("timer", "fire"), ("ask again", "")]))
rounds = st.tuples(st.tuples(st.just("ask"), requests), st.lists(others, max_size=8))
steps = st.lists(rounds, min_size=2, max_size=8).map(
    lambda drawn: [one for asked, then in drawn for one in (("kernel", "NORMAL"), asked, *then)]
)


class Table(RunBench):
    """A bench on which everything that may happen is done by name; ``n`` counts envelopes."""

    def __init__(self, observe: Observe, contents: Contents) -> None:
        super().__init__()
        self._observe = observe
        self._contents = contents
        self.n = 0
        self.asked: list[tuple[Any, dict[str, Any]]] = []
        self.kernel("NORMAL")

    def kernel(self, mode: str) -> None:
        """The kernel is read, and is so."""
        contents = {} if mode == "BLOCKED" else dict(self._contents)
        if mode == "DEGRADED":
            contents[HANDOFF] = {**contents[HANDOFF], "mode": "DEGRADED"}
        self.tell(self._observe(contents))

    def do(self, what: str, how: Any) -> None:
        """One thing that may happen."""
        match what:
            case "ask":
                given, more = how
                self.n += 1
                given = msgspec.structs.replace(given, envelope_id=f"00000000-0000-4000-8000-{self.n:012d}")
                self.asked.append((given, more))
                self.ask(given, **more)
            case "ask again" if self.asked:
                given, more = self.asked[-1]
                self.ask(given, anew=True, **more)
            case "kernel":
                self.kernel(how)
            case "timer" if timers := self.open(TimerRequested):
                self.fire(timers[0])
            case "tool" if calls := self.open(OaToolRequested):
                self.end(calls[-1], tool_outcome(calls[-1], how))
            case "model" if calls := self.open(ModelCallRequested):
                asked: ModelAsked = self.history[calls[0].data.ask - 1].data
                outcome = permitting(calls[0], asked) if how == "permits" else model_outcome(calls[0], how)
                self.end(calls[0], outcome)

    def open(self, kind: type[msgspec.Struct]) -> list[Event]:
        """Requested effects that have no end yet and that nobody has taken back."""
        self.settle()
        return [event for event in self.engine.effects.open.values() if type(event.data) is kind]

    def settle(self) -> None:
        """Effects that were taken back end, as the runtime has them end."""
        for position, reason in list(self.engine.effects.cancelled.items()):
            self.end(self.engine.effects.open[position], EffectCancelled(request=position, reason=reason))

    def fire(self, timer: Event) -> None:
        """The time comes for which a timer is."""
        while time_after(START, self.seconds) < timer.data.at:
            self.seconds += 1.0
        self.end(timer, TimerFired(request=timer.position, name=timer.data.name))

    def finish_all(self) -> None:
        """All that is open ends: calls fail, timers fire."""
        while self.engine.effects.open:
            if self.open(OaToolRequested):
                self.do("tool", "as it is")
            elif self.open(ModelCallRequested):
                self.do("model", "permits")
            elif self.open(TimerRequested):
                self.do("timer", "fire")

    def crash(self, kept: int) -> None:
        """The process ends when ``kept`` events are durable, and the next one reads them back and completes."""
        del self.history[kept:]
        self.engine = refolded(all_actors(), self.history)
        before = list(self.engine.effects.open.values())
        self.seconds += 1.0
        self.history += self.engine.complete(time_after(START, self.seconds)).events
        for event in before:
            if isinstance(event.data, ModelCallRequested) and self.engine.effects.is_open(event.position):
                self.end(event, EffectInterrupted(request=event.position, reason="crash"))

    def check(self) -> None:
        """The laws of everything that happened so far."""
        check_reasoning(self.history)
        check_models(self.history)
        assert not [event for event in self.history if event.type == "actor.halted"]

    def check_ended(self) -> None:
        """The laws that hold when nothing is left to happen."""
        self.check()
        check_models_ended(self.history)
        check_idle(self.engine.states)
        for asked in self.of(ReasoningRequested):
            ends = [
                event for event in [*self.of(ReasoningConcluded), *self.of(ReasoningRefused)]
                if event.data.request == asked.position
            ]
            assert len(ends) == 1, asked.position


def tool_outcome(call: Event, how: Any) -> msgspec.Struct:
    """How a tool call ends: with ``how`` as its result, or in the way that it names."""
    at, tool = call.position, call.data.tool_id
    if isinstance(how, dict):
        return OaToolReturned(request=at, tool_id=tool, result=how)
    match how:
        case "fails":
            return OaToolFailed(request=at, tool_id=tool, error="share/X.json is missing", hint="pmagent init")
        case "broken":
            return EffectFailed(request=at, error="ToyError", place="toy")
        case "timed out":
            return EffectTimedOut(request=at, limit_s=60.0)
        case "interrupted":
            return EffectInterrupted(request=at, reason="crash")
        case "cancelled":
            return EffectCancelled(request=at, reason="stop")
    return OaToolReturned(request=at, tool_id=tool, result=RESULTS[tool])


def model_outcome(call: Event, how: Any) -> msgspec.Struct:
    """How a call of a model ends: with text and tool calls, or in the way that ``how`` names."""
    at, ask = call.position, call.data.ask
    match how:
        case "overloaded" | "rejected":
            return ModelCallFailed(request=at, ask=ask, code=how, error="ToyError", transient=how == "overloaded")
        case "broken":
            return EffectFailed(request=at, error="ToyError", place="toy")
        case "timed out":
            return EffectTimedOut(request=at, limit_s=630.0)
        case "interrupted":
            return EffectInterrupted(request=at, reason="stop")
    text, wanted = how
    return saying(call, text, wanted, {})


def saying(call: Event, text: str, wanted: list[tuple[str, dict[str, Any]]], fields: dict[str, Any]) -> ModelReplied:
    """A model's reply: text, tools by name, and a prediction's fields."""
    return ModelReplied(
        request=call.position, ask=call.data.ask, content=text, latency_ms=1, fields=fields,
        tool_calls=[ModelToolCall(id=f"id-{n}", name=name, args=args) for n, (name, args) in enumerate(wanted)],
        usage=ModelUsage(input_tokens=300, output_tokens=len(text), counted=True),
    )


def permitting(call: Event, asked: ModelAsked) -> ModelReplied:
    """An answer that fits the question, and permits whatever can be permitted."""
    assert asked.answer is not None, "the reasoner says what it wants"
    answer = {**PERMITTING[asked.answer.name], **extras}
    if asked.engine == "dspy":
        return saying(call, "", [], answer)
    return saying(call, msgspec.json.encode(answer).decode(), [], {})


Steps = list[tuple[str, Any]]


@given(steps)
@settings(max_examples=examples(150), deadline=None)
def test_a_runs_bounds_hold_whatever_is_answered(observe: Observe, example_contents: Contents, steps: Steps) -> None:
    table = Table(observe, example_contents)
    for what, how in steps:
        table.do(what, how)
    table.check()
    table.finish_all()
    table.check_ended()


@given(steps)
@settings(max_examples=examples(50), deadline=None)
def test_a_history_reads_back_and_replays(observe: Observe, example_contents: Contents, steps: Steps) -> None:
    table = Table(observe, example_contents)
    for what, how in steps:
        table.do(what, how)
    engine = refolded(all_actors(), table.history)
    assert not engine.complete("").events
    assert engine.states == table.engine.states
    result = replay_log(stored_log(table.history), all_actors())
    assert (result.stopped, result.divergences, result.events) == ("", [], len(table.history))


@given(steps, st.lists(st.floats(0.0, 1.0), min_size=1, max_size=3), steps)
@settings(max_examples=examples(80), deadline=None)
def test_a_process_that_ends_anywhere_changes_none_of_it(
    observe: Observe, example_contents: Contents, before: Steps, ends: list[float], after: Steps
) -> None:
    table = Table(observe, example_contents)
    for what, how in before:
        table.do(what, how)
    for end in ends:
        table.crash(1 + int(end * (len(table.history) - 1)))
        table.check()
    for what, how in after:
        table.do(what, how)
    table.finish_all()
    table.check_ended()
    result = replay_log(stored_log(table.history), all_actors())
    assert (result.stopped, result.divergences) == ("", [])


def test_the_choices_lead_to_every_kind_of_end(observe: Observe, example_contents: Contents) -> None:
    """The runs drawn above are not all refused at the door."""
    table = Table(observe, example_contents)
    for program in PROGRAM_IDS:
        for engine, model in (("rules", ""), ("langchain", "toy:one"), ("dspy", "toy:one")):
            table.do("ask", (envelope(program), {"engine": engine, "model": model, "limits": LIMITS}))
            while table.open(OaToolRequested):
                table.do("tool", "as it is")
            while table.open(ModelCallRequested):
                table.do("model", "permits")
    table.finish_all()
    table.check_ended()
    ends = [event.data for event in table.of(ReasoningConcluded)]
    assert {one.engine for one in ends} == {"rules", "langchain", "dspy"}
    decisions = [one.result.decision for one in ends]
    assert "PROCEED" in [one.get("allowed_action") for one in decisions]
    assert any(one.get("ops_block") for one in decisions)
