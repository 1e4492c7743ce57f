"""Laws of runs of programs and of writes of CONTEXT.json, computed from the events themselves.

They hold for any prefix of a history; ``check_idle`` for states that came to rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from pmagent.actors.oa.reasoning.rules.answer import Evidence
from pmagent.actors.oa.reasoning.rules.engine import answer
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.effect import EffectCancelRequested
from pmagent.contracts.kernel import KernelModeDecided, KernelObserved
from pmagent.contracts.model import ModelAsked, ModelFailed, ModelReplied, ModelWithdrawn
from pmagent.contracts.reasoning import (
    DIAGNOSTIC_PROGRAMS,
    PROGRAM_TOOLS,
    OPSBlockGeneratorResult,
    Payloads,
    PhaseTransitionValidatorResult,
    SafeOPSDecisionResult,
    ShapeError,
    check_envelope,
    check_result,
    is_safe,
)
from pmagent.contracts.reasoning import check_payload as payload_of
from pmagent.contracts.reasoning_events import (
    TRIES,
    OaContextAnswered,
    OaContextRequested,
    OaContextWriteRequested,
    OaContextWritten,
    OaToolRequested,
    OaToolReturned,
    ReasoningConcluded,
    ReasoningRefused,
    ReasoningRequested,
)
from pmagent.events.event import Event
from pmagent.replay.simulation.world import Violation, require, there

QUESTIONS_MAX: Final = 12
"""So often a model is asked in one run, however it answers."""

STRICTER: Final = ("PROCEED", "WARN", "ABORT")
"""The verdicts, each allowing less than the one before."""


class Run:
    """One request for a run, and what came of it so far. ``ends``: tool call -> the fact that ended it."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self.asked: ReasoningRequested = event.data
        self.calls: list[Event] = []
        self.ends: dict[int, Event] = {}
        self.questions = 0
        self.open_question = 0
        self.taken_back: set[int] = set()
        self.answered = 0
        """Position of its result or refusal."""

    @property
    def program(self) -> str:
        """The program that runs."""
        return self.asked.envelope.program_id

    @property
    def where(self) -> str:
        """How a violation names it."""
        return f"run {self.event.position} ({self.program})"

    def results(self, tool: str = "") -> list[dict[str, Any]]:
        """The results of a tool's calls (of all: "")."""
        ended = (self.ends[call.position] for call in self.calls if call.position in self.ends)
        returned = (end.data for end in ended if isinstance(end.data, OaToolReturned))
        return [data.result for data in returned if tool in ("", data.tool_id)]

    def evidence(self) -> list[Evidence]:
        """The results of the calls that have ended, in the order of the calls."""
        ended = [(call.data, self.ends[call.position].data) for call in self.calls if call.position in self.ends]
        return [
            Evidence(tool_id=call.tool_id, args=call.args, result=getattr(end, "result", None), error="no answer")
            for call, end in ended
        ]


def check_reasoning(history: Sequence[Event]) -> None:
    """Runs keep to their envelopes and the kernel, and each has one result. Raises Violation."""
    check = _Check()
    for event in history:
        check.take(event)


def check_contexts(history: Sequence[Event]) -> None:
    """CONTEXT.json is written only when a request asked for it and the kernel let it, and nobody is told otherwise.
    Raises Violation."""
    mode, seen = "", False
    writes: dict[int, Event] = {}
    written: dict[int, OaContextWritten] = {}
    for event in history:
        match event.data:
            case DaemonStarted():
                seen = False
            case KernelObserved():
                seen = True
            case KernelModeDecided():
                mode = event.data.mode
            case OaContextWriteRequested(request=request, base=base):
                where = f"write {event.position}"
                asked = history[request - 1].data
                require(isinstance(asked, OaContextRequested) and asked.base == base, f"{where}: nobody asked for it")
                require(request not in writes, f"{where}: request {request} is written a second time")
                require(seen and mode not in ("", "BLOCKED"), f"{where}: in mode {mode or 'unknown'}, seen: {seen}")
                writes[request] = event
            case OaContextWritten() if event.kind == "fact":
                written[event.causation] = event.data
            case OaContextAnswered(request=request, success=True, sha256=digest):
                done = written.get(writes[request].position) if request in writes else None
                require(done is not None and done.sha256 == digest, f"request {request}: told as written, and is not")


def check_idle(states: Mapping[str, Any]) -> None:
    """After everything came to rest no actor waits for anything. Raises Violation."""
    waiting = {
        "runs of the reasoner": states["reasoner"].runs, "questions of the gateway": states["model"].asks,
        "calls of the gateway": states["model"].calls,
        "writes of the keeper of CONTEXT.json": states["context"].waiting,
    }
    for what, left in waiting.items():
        require(not left, f"{what} are open though nothing happens any more: {len(left)}")


def may_call(call: Event, run: Run, mode: str) -> None:
    """A model may be called in this mode: nothing forbids the program of the run that asked. Raises Violation."""
    for why in forbidding(run, mode):
        raise Violation(f"call {call.position} of {run.where} is made though {why}")


class _Check:
    """The history so far, as far as runs are concerned."""

    def __init__(self) -> None:
        self._mode = ""
        self._runs: dict[int, Run] = {}
        self._of_call: dict[int, Run] = {}
        self._of_correlation: dict[str, Run] = {}
        self._first: dict[str, int] = {}
        self._results: dict[str, int] = {}

    def take(self, event: Event) -> None:
        """The next event. Raises Violation."""
        call = self._of_call.get(event.causation) if event.kind == "fact" else None
        if call is not None:
            call.ends.setdefault(event.causation, event)
        data = event.data
        match data:
            case KernelModeDecided(mode=mode):
                self._mode = mode
            case ReasoningRequested():
                run = self._runs[event.position] = self._of_correlation[event.correlation] = Run(event)
                self._first.setdefault(run.asked.envelope.envelope_id, event.position)
            case OaToolRequested():
                self._tool(event, data)
            case EffectCancelRequested(request=request) if request in self._of_call:
                self._of_call[request].taken_back.add(request)
            case ModelAsked() if event.actor == "reasoner":
                self._question(event, data)
            case ModelReplied(ask=ask) | ModelFailed(ask=ask) | ModelWithdrawn(ask=ask):
                run_of = self._of_correlation.get(event.correlation)
                if run_of is not None and run_of.open_question == ask:
                    run_of.open_question = 0
            case ReasoningConcluded():
                self._concluded(event, data)
            case ReasoningRefused():
                self._refused(event, data)

    def _open_run(self, event: Event, request: int) -> Run:
        run = there(self._runs.get(request), f"{event.type} {event.position}: there is no run {request}")
        require(not run.answered, f"{event.type} {event.position}: {run.where} has ended at {run.answered}")
        return run

    def _tool(self, event: Event, data: OaToolRequested) -> None:
        run = self._open_run(event, data.run)
        where = f"tool call {event.position} of {run.where}: {data.tool_id}"
        require(data.program_id == run.program, f"{where}: for {data.program_id}")
        require(data.tool_id in run.asked.envelope.tools_allowed, f"{where} is not in tools_allowed")
        require(data.tool_id in PROGRAM_TOOLS[run.program], f"{where} is not in the program's table")
        takes = {"name", "mode"} if data.tool_id == "oa.guard.run" else set()
        require(set(data.args) <= takes, f"{where} is called with {sorted(data.args)}")
        run.calls.append(event)
        self._of_call[event.position] = run

    def _question(self, event: Event, data: ModelAsked) -> None:
        run = self._of_correlation[event.correlation]
        self._open_run(event, run.event.position)
        where = f"question {event.position} of {run.where}"
        run.questions += 1
        require(run.questions <= QUESTIONS_MAX, f"{where} is number {run.questions}")
        require(not run.open_question, f"{where} is put while {run.open_question} is open")
        run.open_question = event.position
        asked = run.asked
        require((data.engine, data.model) == (asked.engine, asked.model), f"{where} is put to another model")
        require((data.limits, data.price) == (asked.limits, asked.price), f"{where} has other limits")
        require(data.action == "diagnostic", f"{where} is for {data.action}")
        allowed = {tool.replace(".", "_") for tool in asked.envelope.tools_allowed}
        require({tool.name for tool in data.tools} <= allowed, f"{where} offers tools that are not allowed")
        for why in forbidding(run, self._mode):
            raise Violation(f"{where} is asked though {why}")

    def _refused(self, event: Event, data: ReasoningRefused) -> None:
        run = self._open_run(event, data.request)
        envelope = run.asked.envelope
        first = self._first[envelope.envelope_id]
        if data.earlier:
            require(first == data.earlier < data.request, f"{run.where} is refused for nothing: first is {first}")
        else:
            require(not _keeps_contract(run.asked), f"{run.where} is refused for nothing: {data.reasons}")
        run.answered = event.position

    def _concluded(self, event: Event, data: ReasoningConcluded) -> None:
        run = self._open_run(event, data.request)
        envelope, result = run.asked.envelope, data.result
        first = self._results.setdefault(envelope.envelope_id, event.position)
        require(first == event.position, f"{run.where}: its envelope has a result at {first}")
        require(self._first[envelope.envelope_id] == data.request, f"{run.where}: its envelope was asked before")
        require(_keeps_contract(run.asked), f"{run.where}: its envelope breaks the contract")
        names = (result.envelope_id, result.program_id, data.envelope_sha256)
        require(names == (envelope.envelope_id, run.program, _digest(envelope)), f"{run.where}: another one's result")
        require(data.tries <= min(TRIES, run.questions), f"{run.where}: {data.tries} tries, {run.questions} questions")
        try:
            check_result(result)
        except ShapeError as error:
            raise Violation(f"{run.where}: {error}") from error
        require(not run.open_question, f"{run.where}: its question {run.open_question} is still open")
        _listed(run, data)
        _permitted(run, data, self._mode)
        run.answered = event.position


def forbidding(run: Run, mode: str) -> Iterator[str]:
    """Why the run's program may not answer, when the kernel's mode is ``mode``."""
    if run.program in DIAGNOSTIC_PROGRAMS:
        return
    state = run.asked.envelope.kernel_state_ref
    if mode == "BLOCKED":
        yield "the kernel is BLOCKED"
    if state.mode == "BLOCKED":
        yield "the envelope says BLOCKED"
    if state.reality_summary.get("reality_green") is not True:
        yield "the envelope's reality is not green"
    for status in run.results("oa.kernel_status"):
        if status.get("mode", "NORMAL") not in ("NORMAL", "DEGRADED") or status.get("reality_green", True) is not True:
            yield "a tool says that the kernel is BLOCKED or reality is not green"


def _keeps_contract(asked: ReasoningRequested) -> bool:
    try:
        check_envelope(asked.envelope)
    except ShapeError:
        return False
    return True


def _listed(run: Run, data: ReasoningConcluded) -> None:
    """The result lists the tool calls as they were, and none of them goes on."""
    listed = [(call.tool_id, call.args, call.at) for call in data.result.tool_calls]
    made = [(call.data.tool_id, call.data.args, call.time) for call in run.calls]
    require(listed == made, f"{run.where} lists calls that were not made, or not all")
    for call, entry in zip(run.calls, data.result.tool_calls, strict=True):
        end = run.ends.get(call.position)
        require(end is not None or call.position in run.taken_back, f"{run.where}: call {call.position} goes on")
        result = end.data.result if end is not None and isinstance(end.data, OaToolReturned) else None
        require(entry.ok == (result is not None), f"{run.where}: whether call {call.position} answered")
        require(result is None or entry.digest == _digest(result), f"{run.where}: digest of call {call.position}")


def _permitted(run: Run, data: ReasoningConcluded, mode: str) -> None:
    """Nothing is permitted that envelope, kernel or tools forbid, and no more than the rules permit themselves."""
    payload = payload_of(run.program, data.result.decision)
    if is_safe(payload) and not isinstance(payload, SafeOPSDecisionResult):
        return
    for why in forbidding(run, mode):
        require(is_safe(payload), f"{run.where} is permitted though {why}")
    if data.result.status in ("OK", "DEGRADED"):
        rules = answer(run.asked.envelope, run.evidence())
        require(_no_looser(payload, rules.payload, permitted=rules.permitted), f"{run.where} is looser than the rules")


def _no_looser(payload: Payloads, rules: Payloads, *, permitted: bool) -> bool:
    match payload, rules:
        case SafeOPSDecisionResult(), SafeOPSDecisionResult():
            return STRICTER.index(payload.allowed_action) >= STRICTER.index(rules.allowed_action)
        case PhaseTransitionValidatorResult(), PhaseTransitionValidatorResult():
            return payload.transition_status == "NOT_READY" or rules.transition_status == "READY"
        case OPSBlockGeneratorResult(), OPSBlockGeneratorResult():
            return permitted or not payload.ops_block
    return True


def _digest(value: object) -> str:
    return sha256(msgspec.json.encode(value, order="sorted")).hexdigest()
