"""The reasoner's state: the runs that are not concluded, and the envelopes that it has seen; pure."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from pmagent.actors.oa.reasoning.rules.answer import Evidence
from pmagent.contracts.model import ModelMessage
from pmagent.contracts.reasoning import ProgramId, ToolCall, ToolId
from pmagent.contracts.reasoning_events import OaToolRequested, ReasoningRequested
from pmagent.events.event import Event

RUNS_MAX = 64
"""So many runs are open at once; a further request is refused."""

OPEN_BYTES_MAX = 64 * 1024 * 1024
"""So many bytes of envelopes are open at once; a further one is refused, unless it is the only one."""

SEEN_MAX = 10_000
"""So many envelopes are remembered, so that none gets a second result; the oldest are forgotten."""

PAGE = 250
"""So many of them are kept together: only the newest page is copied for one more."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call: requested at position ``request`` and log time ``at``. ``asked_as`` names turn and number of the
    model's wish ("": the program itself wanted it). ``result`` or ``error`` when it has ended."""

    request: int
    tool_id: ToolId
    args: dict[str, Any]
    at: str
    asked_as: str = ""
    ended: bool = False
    result: dict[str, Any] | None = None
    error: str = ""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the model asked for and did not get."""

    tool: str
    reason: str
    asked_as: str


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run: requested at position ``request``; ``size`` is its envelope's in bytes.

    ``messages`` is the conversation with a model so far, ``ask`` the position of the question that is open (0: none),
    ``heard`` that of the call whose reply came last; ``turns`` counts questions, ``tries`` the answers to them (a reply
    that asks for tools is none); ``objections`` say why an answer did not fit.
    """

    request: int
    correlation: str
    asked: ReasoningRequested
    sha256: str
    size: int
    calls: list[Call] = []
    refusals: list[Refusal] = []
    messages: list[ModelMessage] = []
    ask: int = 0
    heard: int = 0
    tries: int = 0
    turns: int = 0
    objections: list[str] = []

    @property
    def program(self) -> ProgramId:
        """The program that runs."""
        return self.asked.envelope.program_id

    @property
    def open_calls(self) -> list[Call]:
        """The tool calls that have not ended."""
        return [call for call in self.calls if not call.ended]

    @property
    def evidence(self) -> list[Evidence]:
        """The tools' answers, in the order of the calls."""
        return [
            Evidence(tool_id=call.tool_id, args=call.args, result=call.result, error=call.error)
            for call in self.calls
            if call.ended
        ]

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls as a result lists them."""
        return [
            ToolCall(
                tool_id=call.tool_id, args=call.args,
                digest=sha256_of(call.result if call.result is not None else call.error), at=call.at,
                ok=call.result is not None,
            )
            for call in self.calls
        ]


class ReasonerState(msgspec.Struct, frozen=True):
    """Open runs by the position of their request; pages of envelope id -> position of its first request, the newest
    last; the mode decided last ("": none yet); the request of the run that the input taken last concerned (0: none);
    ``unwatched``: the kernel watcher is halted, so nobody would notice a worse mode."""

    runs: dict[int, Run] = {}
    seen: list[dict[str, int]] = []
    mode: str = ""
    current: int = 0
    unwatched: bool = False

    @property
    def blocked(self) -> bool:
        """Whether the kernel is BLOCKED, or may be."""
        return self.unwatched or self.mode == "BLOCKED"

    def full(self, size: int) -> bool:
        """Whether a run with an envelope of ``size`` bytes would be too much."""
        held = sum(run.size for run in self.runs.values())
        return len(self.runs) >= RUNS_MAX or (held > 0 and held + size > OPEN_BYTES_MAX)

    def earlier(self, envelope_id: str) -> int:
        """Position of the envelope's first request; 0 when it is not known."""
        return next((page[envelope_id] for page in self.seen if envelope_id in page), 0)


def canonical(value: object) -> bytes:
    """``value`` as canonical JSON: sorted keys, compact, UTF-8."""
    return msgspec.json.encode(value, order="sorted")


def sha256_of(value: object) -> str:
    """SHA-256 of ``value`` as canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()


def begun(state: ReasonerState, event: Event) -> ReasonerState:
    """The state with a request taken: a run, unless its envelope was seen before or too many are open."""
    asked: ReasoningRequested = event.data
    envelope_id = asked.envelope.envelope_id
    raw = canonical(asked.envelope)
    if state.earlier(envelope_id) or state.full(len(raw)):
        return msgspec.structs.replace(state, current=0)
    run = Run(
        request=event.position, correlation=event.correlation, asked=asked, sha256=hashlib.sha256(raw).hexdigest(),
        size=len(raw),
    )
    full = not state.seen or len(state.seen[-1]) >= PAGE
    older, newest = (state.seen, {}) if full else (state.seen[:-1], state.seen[-1])
    seen = [*older, {**newest, envelope_id: event.position}][-SEEN_MAX // PAGE :]
    runs = {**state.runs, event.position: run}
    return msgspec.structs.replace(state, runs=runs, seen=seen, current=event.position)


def changed(state: ReasonerState, run: Run) -> ReasonerState:
    """The state with ``run`` as it is now; it is the one that is concerned."""
    return msgspec.structs.replace(state, runs={**state.runs, run.request: run}, current=run.request)


def ended(state: ReasonerState, request: int) -> ReasonerState:
    """The state without the run requested at ``request``."""
    if request not in state.runs:
        return state
    runs = {at: run for at, run in state.runs.items() if at != request}
    return msgspec.structs.replace(state, runs=runs)


def called(run: Run, event: Event) -> Run:
    """The run with a tool call of its own requested."""
    requested: OaToolRequested = event.data
    call = Call(
        request=event.position, tool_id=requested.tool_id, args=requested.args, at=event.time,
        asked_as=requested.asked_as,
    )
    return msgspec.structs.replace(run, calls=[*run.calls, call])


def answered(run: Run, request: int, result: dict[str, Any] | None, error: str = "") -> Run:
    """The run with the tool call requested at ``request`` ended."""
    calls = [
        msgspec.structs.replace(call, ended=True, result=result, error=error) if call.request == request else call
        for call in run.calls
    ]
    return msgspec.structs.replace(run, calls=calls)


def of_tool(state: ReasonerState, request: int) -> Run | None:
    """The run to which the tool call requested at ``request`` belongs."""
    for run in state.runs.values():
        if any(call.request == request for call in run.calls):
            return run
    return None


def of_ask(state: ReasonerState, ask: int) -> Run | None:
    """The run that waits for the answer to the question at ``ask``."""
    return next((run for run in state.runs.values() if run.ask == ask), None) if ask else None
