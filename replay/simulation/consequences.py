"""Which consequences of faults (``faults.CONSEQUENCES``) a history shows, so that it is known that they were met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pmagent.actors.orchestra.running.states import DEPENDENCY_FAILED
from pmagent.contracts.audit_events import (
    AuditCancelAnswered,
    AuditConcluded,
    AuditCriterionRuled,
    AuditFailed,
    AuditOpinionGiven,
    AuditOpinionRejected,
    AuditSurveyed,
)
from pmagent.contracts.checks import CheckAnswered, CheckRunRequested
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.effect import EffectInterrupted, RequestRefused
from pmagent.contracts.kernel import KernelModeDecided
from pmagent.contracts.model import ModelCallFailed, ModelFailed
from pmagent.contracts.orchestra_events import (
    PlanMade,
    PlannerCallRequested,
    RunCancelAnswered,
    RunEnded,
    RunRefused,
    TaskAttemptFailed,
    TaskAttemptRequested,
    TaskChange,
    TasksChanged,
)
from pmagent.contracts.reasoning import check_payload, is_safe
from pmagent.contracts.reasoning_events import (
    OaContextAnswered,
    OaToolRefused,
    OaToolRequested,
    ReasoningConcluded,
    ReasoningRefused,
    ReasoningRequested,
)
from pmagent.events.event import Event
from pmagent.replay.simulation.faults import CONSEQUENCES


def consequences(history: Sequence[Event], verdicts: Mapping[int, Sequence[str]]) -> list[str]:
    """See the module; ``verdicts``: see invariants.verdicts."""
    refused = [f"refused: {objections[0]}" for objections in verdicts.values() if len(objections) == 1]
    consequence = [one for one in refused if one in CONSEQUENCES]
    consequence += ["actor: halted one asked" for event in history if isinstance(event.data, RequestRefused)]
    tells = (_reasoning, _runs, _tasks, _checks, _audits)
    return [*consequence, *(one for event in history for tell in tells for one in tell(history, event))]


def _runs(_: Sequence[Event], event: Event) -> Iterator[str]:
    data = event.data
    match data:
        case RunRefused(code=code):
            yield f"run refused: {code}"
        case RunEnded(state=state):
            yield f"run ended: {state}"
        case RunCancelAnswered(accepted=accepted):
            yield "run: taken back" if accepted else "run: cannot be taken back"
        case PlanMade(revision=revision, kept=kept):
            if revision:
                yield "run: a plan in another's place"
            if kept:
                yield "run: tasks kept"
        case PlannerCallRequested() if "could not be used" in data.prompt:
            yield "planner: told what was wrong"


def _tasks(history: Sequence[Event], event: Event) -> Iterator[str]:
    data = event.data
    match data:
        case TasksChanged(changes=changes):
            yield from _changes(changes)
        case TaskAttemptRequested(attempt=attempt):
            if attempt > 1:
                yield "task: a further attempt"
            if isinstance(history[event.causation - 1].data, DaemonStarted):
                yield "run: goes on after a start"
        case TaskAttemptFailed(retry_at=""):
            yield "task: no further attempt"
        case EffectInterrupted(request=request, reason="crash" | "stop" as reason):
            if isinstance(history[request - 1].data, TaskAttemptRequested):
                yield f"task: cut off by a {reason}"


def _audits(history: Sequence[Event], event: Event) -> Iterator[str]:
    data = event.data
    match data:
        case AuditConcluded():
            yield "audit: concluded"
        case AuditFailed(code=code):
            name = f"audit failed: {code}"
            yield name if name in CONSEQUENCES else "audit failed: a source"
        case AuditCancelAnswered(accepted=accepted):
            yield "audit: taken back" if accepted else "audit: cannot be taken back"
        case AuditOpinionRejected():
            yield "audit: opinion rejected"
        case AuditOpinionGiven(round=2):
            yield "audit: judged once more"
        case AuditCriterionRuled() as ruled:
            yield from _ruled(ruled)
        case AuditSurveyed() if any(isinstance(one.data, DaemonStarted) for one in _between(history, event)):
            yield "audit: goes on after a start"


def _between(history: Sequence[Event], event: Event) -> Sequence[Event]:
    return history[event.causation : event.position]


def _ruled(ruled: AuditCriterionRuled) -> Iterator[str]:
    if ruled.set_aside:
        yield "audit: opinion set aside"
    if ruled.final_score is None:
        yield "audit: criterion not judged"
    if ruled.dissent_summary is not None:
        yield "audit: dissent told"
    if any(one.rule == "security_override" and one.before != one.after for one in ruled.rules):
        yield "audit: capped by a flaw"


def _checks(_: Sequence[Event], event: Event) -> Iterator[str]:
    match event.data:
        case CheckRunRequested(attempt=attempt) if attempt > 1:
            yield "check: run again"
        case CheckAnswered(results=results, error=error):
            if error:
                yield "checks: not taken"
            for result in results:
                yield f"check: {'passed' if result.passed else 'failed' if result.ran else 'could not be run'}"


def _changes(changes: Sequence[TaskChange]) -> Iterator[str]:
    for change in changes:
        if change.step == "give_up":
            yield "task: dependency failed" if change.reason == DEPENDENCY_FAILED else "task: ended by its run"


def _reasoning(history: Sequence[Event], event: Event) -> Iterator[str]:
    data = event.data
    match data:
        case ReasoningConcluded():
            yield from _concluded(history, event, data)
        case ReasoningRefused(earlier=earlier):
            yield "reasoning: envelope known already" if earlier else "reasoning: envelope not taken"
        case OaToolRequested(asked_as=key) if key:
            yield "reasoning: tool called for a model"
        case OaToolRefused():
            yield "reasoning: tool refused to a model"
        case OaContextAnswered(success=success):
            yield "context: written" if success else "context: not written"
        case ModelCallFailed(code=code):
            yield f"call failed: {code}"
        case ModelFailed(code=code) if code in _LIMITS:
            yield f"question failed: {code}"


_LIMITS = frozenset(("calls", "time", "tokens", "cost", "no_price", "withdrawn"))
"""Codes of questions that end though no call has failed."""


def _concluded(history: Sequence[Event], event: Event, data: ReasoningConcluded) -> Iterator[str]:
    asked: ReasoningRequested = history[data.request - 1].data
    result = data.result
    model = asked.engine != "rules"
    safe = is_safe(check_payload(result.program_id, result.decision))
    if not safe:
        yield f"reasoning: permitted by {data.engine}"
    if result.status in ("BLOCKED", "FAILED"):
        yield f"reasoning: {result.status}"
    if model and data.engine == "rules":
        yield "reasoning: rules in a model's stead"
    if data.tries > 1 and data.engine == asked.engine:
        yield "reasoning: a model's second try"
    if safe and model and data.engine == asked.engine and any(one.category == "policy" for one in result.diagnostics):
        yield "reasoning: a model restrained"
    if event.causation and isinstance(history[event.causation - 1].data, KernelModeDecided):
        yield "reasoning: ended by the kernel"
