"""The lines of ``tasks.jsonl``: what each event of a run says to people; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pmagent.actors.orchestra.running.form import permit_subject
from pmagent.contracts.effect import RequestRefused
from pmagent.contracts.oa import OaPermitGranted, OaPermitRefused, OaPermitRevoked
from pmagent.contracts.orchestra_documents import Component, LogLevel, RunLogLine
from pmagent.contracts.orchestra_events import (
    PlanFailed,
    PlanFinished,
    PlanMade,
    PlannerCallRequested,
    PlannerFailed,
    PlannerReplied,
    PlanRequested,
    RunBegun,
    RunCancelRequested,
    RunEnded,
    RunRefused,
    RunRequested,
    RunStopping,
    TaskAssigned,
    TaskAttemptFailed,
    TaskAttemptRequested,
    TaskExited,
    TaskFinished,
    TasksChanged,
    TaskUnstarted,
)
from pmagent.events.event import Event
from pmagent.projections.runs import json
from pmagent.projections.runs.fold import steps_of
from pmagent.projections.views.runs import Run

_RANK: Final[dict[LogLevel, int]] = {"debug": 0, "info": 1, "warn": 2, "error": 3}
_CHARS_MAX: Final = 16_384

Line = tuple[LogLevel, Component, str | None, str, dict[str, Any]]
"""Level, component, task, message, payload."""


def lines(run: Run, event: Event) -> bytes:
    """The lines that ``event`` adds to the log of ``run`` (as it was before), newlines included; b"" for none."""
    least = _RANK[run.asked.config.telemetry.level]
    return b"".join(
        json.line(RunLogLine(
            timestamp=event.time, trace_id=run.id, task_id=task_id, level=level, component=component,
            message=message[:_CHARS_MAX], payload=payload,
        ))
        for level, component, task_id, message, payload in _entries(run, event)
        if _RANK[level] >= least
    )  # fmt: skip


def _entries(run: Run, event: Event) -> Iterator[Line]:
    for step in steps_of(run, event):
        yield from _of_planning(step)
        yield from _of_run(run, event, step)
        yield from _of_task(step)


def _of_planning(data: Any) -> Iterator[Line]:
    match data:
        case PlanRequested(revision=revision):
            what = "a plan is asked for" if not revision else "another plan is asked for, for what failed"
            yield "info", "L1", None, what, {"revision": revision}
        case PlannerCallRequested(attempt=attempt, model=model, seconds=seconds):
            yield "info", "L2", None, "the planner is asked", {"attempt": attempt, "model": model, "seconds": seconds}
        case PlannerReplied(model=model, duration_ms=duration, tokens=tokens, cost_usd=cost):
            call = {"model": model, "duration_ms": duration, "tokens": tokens, "cost_usd": cost}
            yield "info", "L2", None, "the planner has answered", call
        case PlannerFailed(code=code, text=text, mend=mend):
            yield "warn", "L2", None, f"the planner gave no answer: {text}", {"code": code, "mend": mend}
        case PlanMade(revision=revision, plan_id=plan_id, tasks=tasks, kept=kept):
            payload = {"revision": revision, "plan_id": plan_id, "tasks": tasks, "kept": kept}
            yield "info", "L2", None, f"the plan is made: {tasks} tasks", payload
        case PlanFailed(code=code, reasons=reasons, mend=mend):
            yield "error", "L2", None, f"there is no plan: {'; '.join(reasons)}", {"code": code, "mend": mend}
        case PlanFinished(done=done, failed=failed):
            yield "info", "L2", None, "every task has ended", {"done": done, "failed": failed}


def _of_run(run: Run, event: Event, data: Any) -> Iterator[Line]:
    match data:
        case RunRequested(intent=intent, action=action, dry_run=dry_run):
            payload = {"intent": intent, "action": action, "dry_run": dry_run}
            yield "info", "L1", None, "the run is asked for", payload
        case OaPermitGranted(subject=subject, action=action, expires_at=expires):
            payload = {"subject": subject, "action": action, "position": event.position, "expires_at": expires}
            yield "info", _asker(run, subject), None, "the OA has given a permit", payload
        case OaPermitRefused(subject=subject, reasons=reasons, mend=mend):
            yield "error", _asker(run, subject), None, f"no permit: {'; '.join(reasons)}", {"mend": mend}
        case OaPermitRevoked(permit=permit, reason=reason):
            yield "warn", "L1", None, f"the OA has taken a permit back: {reason}", {"position": permit}
        case RunBegun(permit=permit, revision=revision):
            yield "info", "L1", None, "the run begins", {"revision": revision, "permit": permit}
        case RunCancelRequested(reason=reason):
            yield "warn", "L1", None, f"the run is to be cancelled: {reason}", {}
        case RunStopping(cause=cause, reasons=reasons, mend=mend):
            yield "warn", "L1", None, f"the run is stopped: {'; '.join(reasons)}", {"cause": cause, "mend": mend}
        case RunRefused(request=request, code=code, reasons=reasons, mend=mend) if request == run.requested:
            yield "error", "L1", None, f"the run is refused: {'; '.join(reasons)}", {"code": code, "mend": mend}
        case RequestRefused(name=name, reason=reason):
            yield "error", "L1", None, f"a request got no answer: {name} is {reason}", {}
        case RunEnded(request=request) if request == run.requested:
            good = data.state in ("done", "planned")
            payload = {"done": data.done, "failed": data.failed, "reasons": data.reasons, "mend": data.mend}
            yield "info" if good else "error", "L1", None, f"the run has ended: {data.state}", payload


def _asker(run: Run, subject: str) -> Component:
    return "L1" if subject == permit_subject(run.id) else "L2"


def _of_task(data: Any) -> Iterator[Line]:
    payload: dict[str, Any]
    match data:
        case TasksChanged(changes=changes):
            for change in changes:
                payload = {"step": change.step, "state": change.state}
                text = f"{change.state}: {change.reason}" if change.reason else change.state
                yield "warn" if change.step == "give_up" else "debug", "L2", change.task_id, text, payload
        case TaskAssigned(assignment=assignment, worker=worker):
            own = assignment.constraints
            payload = {
                "tool": assignment.tools[0], "args": assignment.inputs.args, "worker": worker,
                "fs": own.sandbox.fs, "net": own.sandbox.net,
            }  # fmt: skip
            yield "info", "L2", assignment.task_id, "assigned", payload
        case TaskAttemptRequested(task_id=task_id, attempt=attempt, seconds=seconds, simulated=simulated):
            payload = {"attempt": attempt, "seconds": seconds, "simulated": simulated}
            yield "info", "L3", task_id, f"attempt {attempt} begins", payload
        case TaskExited():
            yield _exited(data)
        case TaskUnstarted(task_id=task_id, attempt=attempt, reason=reason, mend=mend, security=security):
            payload = {"attempt": attempt, "mend": mend, "security": security}
            yield "error", "L3", task_id, f"attempt {attempt} could not begin: {reason}", payload
        case TaskAttemptFailed(task_id=task_id, attempt=attempt, reason=reason, retry_at=retry_at):
            then = f"again at {retry_at}" if retry_at else "not tried again"
            payload = {"attempt": attempt, "retry_at": retry_at or None}
            yield "warn", "L3", task_id, f"attempt {attempt} failed ({then}): {reason}", payload
        case TaskFinished(attempts=attempts, reason=reason, result=result):
            payload = {
                "attempts": attempts, "duration_ms": result.metrics.duration_ms, "exit_code": result.metrics.exit_code,
                "artifacts": len(result.artifacts), "artifacts_bytes": sum(one.size_bytes for one in result.artifacts),
            }  # fmt: skip
            text = f"{result.state}: {reason}" if reason else result.state
            yield "info" if result.state == "done" else "error", "L3", result.task_id, text, payload


def _exited(exited: TaskExited) -> Line:
    payload: dict[str, Any] = {
        "attempt": exited.attempt, "exit_code": exited.exit_code, "signal": exited.signal,
        "timed_out": exited.timed_out, "exceeded": exited.exceeded, "duration_ms": exited.duration_ms,
        "stdout_bytes": exited.stdout.total_bytes, "stderr_bytes": exited.stderr.total_bytes,
        "artifacts": len(exited.artifacts),
    }  # fmt: skip
    payload |= {name: items for name in ("notes", "violations") if (items := getattr(exited, name))}
    level: LogLevel = "error" if exited.violations else "info"
    return level, "L3", exited.task_id, f"attempt {exited.attempt} exited", payload
