"""A bench for the reasoner: all real actors over one log, with tools and models that answer what a test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pmagent.actors.core.engine import Output
from pmagent.actors.oa.reasoning.runs import sha256_of
from pmagent.actors.registry import all_actors
from pmagent.contracts.kernel import KernelObserved
from pmagent.contracts.model import ModelCallRequested, ModelReplied, ModelToolCall, ModelUsage
from pmagent.contracts.payload import decode, encode, type_of
from pmagent.contracts.reasoning import PROGRAM_TOOLS, KernelStateRef, ReasoningEnvelope, ReasoningResult
from pmagent.contracts.reasoning_events import OaToolFailed, OaToolRequested, OaToolReturned, ReasoningConcluded
from pmagent.contracts.reasoning_events import ReasoningRequested as Asked
from pmagent.events.event import DATA_BYTES_MAX, Draft, Event, time_after
from tests.support.toys import START, Bench

GREEN: dict[str, Any] = {
    "reality_green": True,
    "timestamp": "2026-11-21T11:55:00Z",
    "checks": [{"name": "Backup System", "passed": True, "message": "ok", "details": {}}],
}
STATUS: dict[str, Any] = {
    "mode": "NORMAL", "phase": "27", "branch": "main", "reality_green": True, "health": {},
    "interpretation": {"allowed_actions": ["feature_work"], "forbidden_actions": [], "recommended_commands": []},
    "reasons": [],
}
RESULTS: dict[str, dict[str, Any]] = {
    "oa.kernel_status": STATUS,
    "oa.reality_summary": GREEN,
    "oa.reality_check": {
        "reality_green": True, "provisional": False, "passed_checks": ["Backup System"], "failed_checks": [],
        "timestamp": "2026-11-21T11:55:00Z",
    },
    "oa.ssot_surface": {"current_phase": "27", "phases": {"27": {"status": "done", "evidence": []}}},
    "oa.bootstrap_state": {"branch": "main", "meta": {"current_phase": "27"}},
    "oa.guard.run": {"ok": True, "mode": "HINT", "mismatches": [], "missing_surfaces": []},
    "oa.handoff_kernel": {},
}
"""The tools' answers about a kernel in order."""

GOALS = {
    "SafeOPSDecision": "Add a page to the manual",
    "OPSBlockGenerator": "Run `pmagent status` once more",
    "GuardFailureInterpreter": "Why did the guard fail?",
    "PhaseTransitionValidator": "phase 27 to phase 28",
}


def envelope(program: str = "SafeOPSDecision", n: int = 1, **more: Any) -> ReasoningEnvelope:
    """A good envelope over a kernel in order; ``more`` replaces fields of it or of its kernel state."""
    state: dict[str, Any] = {
        "mode": "NORMAL", "bootstrap": RESULTS["oa.bootstrap_state"], "ssot_index": RESULTS["oa.ssot_surface"],
        "reality_summary": GREEN, "oa_state": {},
    }
    fields: dict[str, Any] = {
        "envelope_id": f"00000000-0000-4000-8000-{n:012d}", "timestamp": "2026-11-21T12:00:00Z", "program_id": program,
        "goal": GOALS[program], "oa_context": {}, "tools_allowed": list(PROGRAM_TOOLS[program]),
    }
    state |= {name: value for name, value in more.items() if name in state}
    fields |= {name: value for name, value in more.items() if name not in state}
    return msgspec.convert({**fields, "kernel_state_ref": KernelStateRef(**state)}, ReasoningEnvelope)


def replied(request: int, ask: int, content: str = "", *calls: tuple[str, dict[str, Any]]) -> ModelReplied:
    """A model's reply: text, and tool calls (name, arguments)."""
    return ModelReplied(
        request=request, ask=ask, content=content,
        tool_calls=[ModelToolCall(id=f"id-{n}", name=name, args=args) for n, (name, args) in enumerate(calls)],
        usage=ModelUsage(input_tokens=10, output_tokens=5, counted=True), latency_ms=7,
    )


def proceeding(**more: Any) -> str:
    """A SafeOPSDecision answer as a model writes it."""
    answer = {"allowed_action": "PROCEED", "safety_check_summary": "fine", "rationale": "all is green",
              "conditions": [], "warnings": []}
    return msgspec.json.encode(answer | more).decode()


LANGCHAIN: dict[str, Any] = {"engine": "langchain", "model": "object:test"}
"""The fields of a request that a model is to answer."""

Reply = Callable[[Event], msgspec.Struct]


class RunBench(Bench):
    """An engine with every actor. ``tools``: tool id -> result, or an error text; ``model``: makes the outcome of a
    model call. ``step`` performs the oldest open effect that is a tool's or a model's."""

    def __init__(self, model: Reply | None = None) -> None:
        super().__init__(all_actors())
        self.seconds = 0.0
        self.tools: dict[str, dict[str, Any] | str] = dict(RESULTS)
        self.model = model

    def tell(self, payload: msgspec.Struct, id: str = "", correlation: str = "", causation: int = 0) -> Output | None:
        """Append a fact, as it comes back from its bytes."""
        self.seconds += 0.25
        name, raw = type_of(payload), encode(payload)
        id = id or f"fact-{len(self.history) + 1}"
        seen = decode(name, raw)
        if len(raw) > DATA_BYTES_MAX:  # as the intake does; nobody reads it back here
            blob = {"sha256": sha256_of(raw.hex()), "size": len(raw), "media_type": "application/json"}
            raw = msgspec.json.encode({"blob": blob})
        draft = Draft(name, seen, raw, id, "tests", correlation or id, causation)
        now = time_after(START, self.seconds)
        out = self.engine.finish(causation, draft, now) if causation else self.engine.accept(draft, now)
        self.history += out.events if out else []
        return out

    def observe(self, observed: KernelObserved) -> None:
        """The kernel is read."""
        self.tell(observed)

    def ask(self, given: ReasoningEnvelope, **more: Any) -> int:
        """Request a run; its position."""
        request = f"reasoning-{given.envelope_id}" + (f"-{len(self.history)}" if more.pop("anew", False) else "")
        out = self.tell(Asked(envelope=given, **more), request, request)
        assert out is not None, "a new request"
        return out.events[0].position

    def step(self) -> bool:
        """Perform one effect; whether there was one."""
        for event in list(self.engine.effects.open.values()):
            if isinstance(event.data, OaToolRequested):
                self.end(event, self._tool(event))
                return True
            if isinstance(event.data, ModelCallRequested) and self.model is not None:
                self.end(event, self.model(event))
                return True
        return False

    def end(self, request: Event, outcome: msgspec.Struct) -> None:
        """Give an effect its outcome."""
        self.tell(outcome, f"{request.position}.outcome", request.correlation, request.position)

    def _tool(self, event: Event) -> msgspec.Struct:
        said = self.tools[event.data.tool_id]
        if isinstance(said, str):
            return OaToolFailed(request=event.position, tool_id=event.data.tool_id, error=said)
        return OaToolReturned(request=event.position, tool_id=event.data.tool_id, result=said)

    def run(self, given: ReasoningEnvelope, **more: Any) -> ReasoningResult:
        """Request a run and perform effects until it has its result."""
        request = self.ask(given, **more)
        while not self.results(request):
            assert self.step(), f"nothing goes on, and no result: {[event.type for event in self.history]}"
        return self.results(request)[0].result

    def results(self, request: int) -> list[ReasoningConcluded]:
        """The conclusions of the run requested at ``request``."""
        return [event.data for event in self.of(ReasoningConcluded) if event.data.request == request]


def scripted(bench: RunBench, *contents: str | tuple[str, dict[str, Any]]) -> list[Event]:
    """Have the bench's model give these replies in turn, the last one for ever: text, or the call of a tool. The calls
    that it gets."""
    calls: list[Event] = []

    def reply(event: Event) -> msgspec.Struct:
        content = contents[min(len(calls), len(contents) - 1)]
        calls.append(event)
        ask = event.data.ask
        return replied(event.position, ask, content) if isinstance(content, str) else replied(
            event.position, ask, "", content
        )

    bench.model = reply
    return calls


def messages(result: ReasoningResult, category: str) -> list[str]:
    """The messages of the result's diagnostics of one category."""
    return [one.message for one in result.diagnostics if one.category == category]
