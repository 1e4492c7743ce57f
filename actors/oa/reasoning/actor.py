"""The OA's reasoner as an actor: runs a program over an envelope, tool by tool, to one result; pure
(docs/design.md §13).

    reasoning.requested -> oa.tool_requested … oa.tool_returned -> (model.asked … model.replied)* -> reasoning.concluded

It stands beside the OA as an actor of its own, so that a program, or a model's reply that breaks it, can halt no permit
and no session. Three things hold for every engine: a tool is called only when the envelope allows it (``_begin``,
``_wanted``), a program that the mode forbids answers BLOCKED (``_end``), and a run has one end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, cast

import msgspec
from msgspec.structs import replace

from pmagent.actors.model.actor import GATEWAY
from pmagent.actors.oa.reasoning import conclusion
from pmagent.actors.oa.reasoning.prompts import (
    ToolWanted,
    answer_shape,
    as_message,
    feedback,
    guard_tool,
    inputs,
    opening,
    read_answer,
    tools_wanted,
)
from pmagent.actors.oa.reasoning.rules.engine import answer, permitted, plan
from pmagent.actors.oa.reasoning.rules.text import bounded
from pmagent.actors.oa.reasoning.runs import (
    Call,
    ReasonerState,
    Refusal,
    Run,
    answered,
    begun,
    called,
    changed,
    ended,
    of_ask,
    of_tool,
)
from pmagent.contracts.effect import (
    EFFECT_ENDS,
    ENDED,
    ActorHalted,
    ActorResumed,
    EffectCancelRequested,
    EffectEnd,
    EffectFailed,
    EffectTimedOut,
    RequestRefused,
)
from pmagent.contracts.kernel import WATCHER, KernelModeDecided
from pmagent.contracts.model import (
    PROMPT_BYTES_MAX,
    ModelAsked,
    ModelFailed,
    ModelMessage,
    ModelReplied,
    ModelWithdrawn,
)
from pmagent.contracts.payload import Correlated, Payload
from pmagent.contracts.reasoning import CALLS_MAX, TOOL_IDS, ShapeError, ToolId, check_envelope
from pmagent.contracts.reasoning_events import (
    TRIES,
    OaToolFailed,
    OaToolRefused,
    OaToolRequested,
    OaToolReturned,
    ReasoningConcluded,
    ReasoningRefused,
    ReasoningRequested,
)
from pmagent.events.event import Event

ToolEnd = OaToolReturned | OaToolFailed | EffectEnd
"""How a tool call ends."""

Decision = Payload | Correlated

TURNS_MAX = 12
"""So often a model is asked in one run, tries included."""

GUARD_TOOL = "oa.guard.run"
_NO_GATEWAY = "the model gateway is halted"
_ANEW = "ask again, with a new envelope"
NAME_CHARS_MAX = 200
OBJECTION_CHARS_MAX = 2_000


class Reasoner:
    """Runs programs; see the module."""

    name = "reasoner"
    hears: frozenset[type[msgspec.Struct]] = frozenset((
        ReasoningRequested, KernelModeDecided, OaToolReturned, OaToolFailed, ModelReplied, ModelFailed, *EFFECT_ENDS,
        RequestRefused, ActorHalted, ActorResumed,
    ))

    def initial(self) -> ReasonerState:
        """No run."""
        return ReasonerState()

    def evolve(self, state: ReasonerState, event: Event) -> ReasonerState:
        """Fold an input or a decision of its own."""
        data = event.data
        match data:
            case ReasoningRequested():
                return begun(state, event)
            case KernelModeDecided(mode=mode):
                return replace(state, mode=mode)
            case ActorHalted(name=name) if name == WATCHER:
                return replace(state, unwatched=True)
            case ActorResumed(name=name) if name == WATCHER:
                return replace(state, unwatched=False)
            case ReasoningConcluded(request=request) | ReasoningRefused(request=request):
                return ended(state, request)
            case RequestRefused(request=request) if request in state.runs:  # in this actor's stead, while it is halted
                return ended(state, request)
            case ModelReplied(ask=ask):
                run = of_ask(state, ask)
                return state if run is None else changed(state, _heard(run, data))
        if isinstance(data, ToolEnd):
            run = of_tool(state, data.request)
            return state if run is None else changed(state, answered(run, data.request, *_brought(data)))
        return _own(state, event)

    def decide(self, state: ReasonerState, event: Event) -> Iterable[Decision]:
        """The next step of the run that the event concerns."""
        data = event.data
        match data:
            case ReasoningRequested():
                return list(_begin(state, event))
            case KernelModeDecided():
                return _forbidden(state)
            case ActorHalted(name=name) if name == WATCHER:
                return _forbidden(state)
            case ModelReplied(request=request):
                run = state.runs.get(state.current)
                return [] if run is None or run.heard != request else list(_replied(state, run, data))
            case ModelFailed(ask=ask, text=text):
                return _engine_failed(state, of_ask(state, ask), text)
            case RequestRefused(request=request):
                return _engine_failed(state, of_ask(state, request), _NO_GATEWAY)
            case ActorHalted(name=name) if name == GATEWAY:  # what it was asked before has no end either
                asking = [run for run in state.runs.values() if run.ask]
                return [one for run in asking for one in _engine_failed(state, run, _NO_GATEWAY)]
            case ActorResumed(name=name) if name == self.name:  # what came meanwhile was not decided on
                lost = [(run, conclusion.failed(run, "the reasoner was halted", _ANEW)) for run in state.runs.values()]
                return [one for run, end in lost for one in _end(state, run, end)]
        if isinstance(data, ToolEnd):
            run = of_tool(state, data.request)
            return [] if run is None or run.open_calls else list(_informed(state, run))
        return []


def _forbidden(state: ReasonerState) -> list[Decision]:
    """End the runs that a kernel as it is now forbids."""
    forbidden = [run for run in state.runs.values() if conclusion.forbidden(run, blocked=state.blocked)]
    return [one for run in forbidden for one in _end(state, run, conclusion.blocked(run))]


def _engine_failed(state: ReasonerState, run: Run | None, why: str) -> list[Decision]:
    if run is None:
        return []
    return list(_no_answer(state, replace(run, ask=0), why, "ask again later, or use the engine rules"))


# --- folding ------------------------------------------------------------------------------------------------------


def _own(state: ReasonerState, event: Event) -> ReasonerState:
    match event.data:
        case OaToolRequested(run=request) if request in state.runs:
            return changed(state, called(state.runs[request], event))
        case OaToolRefused(run=request) as refused if request in state.runs:
            run = state.runs[request]
            refusal = Refusal(tool=refused.tool, reason=refused.reason, asked_as=refused.asked_as)
            return changed(state, replace(run, refusals=[*run.refusals, refusal]))
        case ModelAsked(messages=messages) if state.current in state.runs:
            run = state.runs[state.current]
            return changed(state, replace(run, ask=event.position, messages=messages, turns=run.turns + 1))
    return state


def _heard(run: Run, reply: ModelReplied) -> Run:
    """The run with a reply taken: its question is closed; when it holds an answer that does not fit, that is a try."""
    run = replace(run, ask=0, heard=reply.request, messages=[*run.messages, as_message(reply)])
    if tools_wanted(run.program, reply, run.turns):
        return run
    try:
        read_answer(run.program, reply)
    except ShapeError as error:
        return replace(run, tries=run.tries + 1, objections=[*run.objections, bounded(str(error), OBJECTION_CHARS_MAX)])
    return replace(run, tries=run.tries + 1)


def _brought(end: ToolEnd) -> tuple[dict[str, Any] | None, str]:
    """Result and error of a tool call."""
    match end:
        case OaToolReturned(result=result):
            return result, ""
        case OaToolFailed(error=error, hint=hint):
            return None, f"{error} ({hint})" if hint else error
        case EffectFailed(error=error):
            return None, f"the tool failed ({error})"
        case EffectTimedOut(limit_s=limit):
            return None, f"the tool took longer than {limit:g} s"
    return None, f"the call {ENDED[type(end)]}"


# --- steps --------------------------------------------------------------------------------------------------------


def _begin(state: ReasonerState, event: Event) -> Iterator[Decision]:
    run = state.runs.get(event.position)
    if run is None:
        yield _refusal(state, event)
        return
    try:
        check_envelope(run.asked.envelope)
    except ShapeError as error:
        yield _refused(event, [str(error)], "build the envelope with pmagent.oa.reasoning.build_envelope")
        return
    if conclusion.forbidden(run, blocked=state.blocked):
        yield from _end(state, run, conclusion.blocked(run))
        return
    if (objection := permitted(run.asked.envelope)) is not None:
        yield from _end(state, run, conclusion.by_answer(run, objection))
        return
    planned = [(tool, args) for tool, args in plan(run.asked.envelope) if tool in run.asked.envelope.tools_allowed]
    for tool, args in planned:
        yield _request(run, tool, args)
    if not planned:
        yield from _informed(state, run)


def _informed(state: ReasonerState, run: Run) -> Iterator[Decision]:
    """Every tool call has ended."""
    if run.asked.engine == "rules":
        yield from _end(state, run, conclusion.by_rules(run))
        return
    verdict = answer(run.asked.envelope, run.evidence, run.asked.edition)
    if not verdict.permitted:  # whatever a model would say: it is not asked
        yield from _end(state, run, conclusion.by_answer(run, verdict))
        return
    if not run.turns:
        yield from _ask(state, run, opening(run.asked.envelope, run.evidence))
        return
    turn = run.turns
    texts = {int(one.asked_as.partition(".")[2]): _outcome(one) for one in run.calls if _of_turn(one.asked_as, turn)}
    texts |= {int(one.asked_as.partition(".")[2]): one.reason for one in run.refusals if _of_turn(one.asked_as, turn)}
    yield from _ask_again(state, run, feedback(run.messages[-1], texts, "not called"))


def _replied(state: ReasonerState, run: Run, reply: ModelReplied) -> Iterator[Decision]:
    if wanted := tools_wanted(run.program, reply, run.turns):
        yield from _wanted(state, run, wanted)
        return
    try:
        verdict = read_answer(run.program, reply)
    except ShapeError as error:
        if run.tries >= TRIES:
            why = f"no answer that fits in {run.tries} tries; the last: {error}"
            yield from _no_answer(state, run, why, "try another model, or the engine rules")
        else:
            text = f"This does not fit: {error}. Answer again with one JSON object of the shape given, nothing else."
            yield from _ask_again(state, run, feedback(run.messages[-1], {}, bounded(text, OBJECTION_CHARS_MAX)))
        return
    yield from _end(state, run, conclusion.by_model(run, verdict))


def _wanted(state: ReasonerState, run: Run, wanted: list[ToolWanted]) -> Iterator[Decision]:
    """A model asks for tools: those that it may have are called, the others are refused, on the record."""
    calls, refusals = len(run.calls), list(run.refusals)
    requested = False
    for key, tool, args in wanted:
        if objection := _objection(run, tool, args, calls):
            name = bounded(tool, NAME_CHARS_MAX)
            refusals.append(Refusal(tool=name, reason=objection, asked_as=key))
            yield _in(run, OaToolRefused(run=run.request, tool=name, reason=objection, asked_as=key))
        else:
            calls, requested = calls + 1, True
            yield _request(run, tool, args, key)
    if not requested:
        yield from _informed(state, replace(run, refusals=refusals))


def _objection(run: Run, tool: str, args: dict[str, Any], calls: int) -> str:
    """Why the run may not call ``tool`` with ``args``; "" when it may. ``calls``: so many it has made."""
    allowed = run.asked.envelope.tools_allowed
    if tool not in TOOL_IDS:
        return f"there is no such tool; allowed: {', '.join(allowed)}"
    if tool not in allowed:
        return f"not allowed in this run; allowed: {', '.join(allowed)}"
    if calls >= CALLS_MAX:
        return f"a run may call {CALLS_MAX} tools"
    if tool != GUARD_TOOL:
        return "it takes no arguments" if args else ""
    name, mode = args.get("name"), args.get("mode", "STRICT")
    if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARS_MAX or mode not in ("STRICT", "HINT"):
        return "its arguments are a guard's name, and the mode STRICT or HINT"
    return "" if set(args) <= {"name", "mode"} else "it takes name and mode, nothing else"


def _ask_again(state: ReasonerState, run: Run, more: list[ModelMessage]) -> Iterator[Decision]:
    if run.turns >= TURNS_MAX:
        why = f"no answer in {run.turns} turns"
        yield from _no_answer(state, run, why, "try another model, or the engine rules")
    else:
        yield from _ask(state, run, [*run.messages, *more])


def _ask(state: ReasonerState, run: Run, messages: list[ModelMessage]) -> Iterator[Decision]:
    """Ask the model, unless the question has become larger than one may be."""
    question = _question(run, messages)
    size = len(msgspec.json.encode(question))
    if size > PROMPT_BYTES_MAX:
        why = f"the question has {size} bytes; {PROMPT_BYTES_MAX} are allowed"
        yield from _no_answer(state, run, why, "ask with a smaller context, or use the engine rules")
    else:
        yield _in(run, question)


def _no_answer(state: ReasonerState, run: Run, why: str, mend: str) -> Iterator[Decision]:
    """The engine has none: the fallback's, or FAILED."""
    concluded = conclusion.by_fallback(run, why) if run.asked.fallback else conclusion.failed(run, why, mend)
    yield from _end(state, run, concluded)


def _end(state: ReasonerState, run: Run, concluded: ReasoningConcluded) -> Iterator[Decision]:
    """The end of a run: what it still waits for is taken back, and the one result is given. By now the kernel may be
    BLOCKED; then nothing else is answered."""
    for call in run.open_calls:
        yield _in(run, EffectCancelRequested(request=call.request))
    if run.ask:
        yield _in(run, ModelWithdrawn(ask=run.ask))
    if conclusion.forbidden(run, blocked=state.blocked):
        concluded = conclusion.blocked(run)
    yield _in(run, concluded)


# --- decisions ----------------------------------------------------------------------------------------------------


def _request(run: Run, tool: str, args: dict[str, Any], key: str = "") -> Decision:
    program, tool_id = run.program, cast(ToolId, tool)
    return _in(run, OaToolRequested(run=run.request, program_id=program, tool_id=tool_id, args=args, asked_as=key))


def _question(run: Run, messages: list[ModelMessage]) -> ModelAsked:
    asked, envelope = run.asked, run.asked.envelope
    engine: Literal["langchain", "dspy"] = "dspy" if asked.engine == "dspy" else "langchain"
    conversing = engine == "langchain"
    return ModelAsked(
        engine=engine, model=asked.model, action="diagnostic", messages=messages if conversing else [],
        tools=[guard_tool()] if conversing and GUARD_TOOL in envelope.tools_allowed else [],
        answer=answer_shape(run.program), program="" if conversing else run.program,
        inputs={} if conversing else inputs(envelope, run.evidence, run.objections), limits=asked.limits,
        price=asked.price,
    )


def _refusal(state: ReasonerState, event: Event) -> Decision:
    """Why a request did not become a run."""
    if earlier := state.earlier(event.data.envelope.envelope_id):
        return _refused(
            event, [f"the envelope was requested before, at position {earlier}; there is one result for each"],
            f"pmagent log why {earlier} shows what came of it; build a new envelope to ask anew", earlier,
        )
    why = f"{len(state.runs)} runs are open, and no more fits beside them"
    return _refused(event, [why], "ask again when some have ended")


def _refused(event: Event, reasons: list[str], mend: str, earlier: int = 0) -> Decision:
    envelope_id = event.data.envelope.envelope_id
    return ReasoningRefused(
        request=event.position, envelope_id=envelope_id, earlier=earlier, reasons=reasons, mend=mend
    )


def _in(run: Run, payload: Payload) -> Decision:
    return Correlated(payload, run.correlation)


def _outcome(call: Call) -> str:
    if call.result is None:
        return f"error: {call.error}"
    return msgspec.json.encode(call.result, order="sorted").decode()


def _of_turn(key: str, turn: int) -> bool:
    return key.partition(".")[0] == str(turn)
