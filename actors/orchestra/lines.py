"""The Orchestra's events, each in one line, and its alerts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pmagent.actors.core.alerts import Alert, Judged, Judges, reasons
from pmagent.actors.core.lines import Line, at_path, exited, shown
from pmagent.events.event import Event


def _task_finished(data: dict[str, Any]) -> str:
    why = f": {shown(data['reason'])}" if data.get("reason") else ""
    task = at_path(data, "result.task_id")
    return f"{shown(task)} {shown(at_path(data, 'result.state'))}, {shown(data.get('attempts'))} attempt(s){why}"


def _tasks_changed(data: dict[str, Any]) -> str:
    listed = data.get("changes")
    changes = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return shown([f"{shown(one.get('task_id'))} {shown(one.get('state'))}" for one in changes])


def _apply_approved(data: dict[str, Any]) -> str:
    listed = data.get("files")
    paths = [at_path(one, "artifact.path") for one in listed] if isinstance(listed, list) else []
    return f"{shown(data.get('operator_id'))} approves for a commit: {shown(paths)}, digest {shown(data.get('digest'))}"


def _run_ended(data: dict[str, Any]) -> str:
    parts = [f"{shown(data.get('state'))}: {shown(data.get('done'))} done, {shown(data.get('failed'))} failed"]
    parts += [shown(data["reasons"])] if data.get("reasons") else []
    parts += [f"permit {shown(data['permit'])} ends with it"] if "permit" in data else []
    return "; ".join(parts)


def _tasks_planned(data: dict[str, Any]) -> str:
    listed = data.get("tasks")
    names = [at_path(task, "name") for task in listed] if isinstance(listed, list) else []
    return f"{len(names)} task{'s' if len(names) != 1 else ''}: {shown(names)}"


LINES: Final[dict[str, Line]] = {
    "plan.failed": "no plan ({code}): {reasons}",
    "plan.finished": "all tasks have ended: {done} done, {failed} failed",
    "plan.made": "{tasks} tasks planned, {kept} kept, at most {attempts} attempts",
    "plan.requested": "plan wanted, revision {revision}",
    "planner.call_requested": "ask {model} for a plan, attempt {attempt}, at most {seconds} s",
    "planner.failed": "no plan ({code}) after {duration_ms} ms: {text}",
    "planner.replied": "{model} answered after {duration_ms} ms, {tokens} tokens: {text}",
    "run.apply_approved": _apply_approved,
    "run.apply_ended": "committed as {commit} {reason}",
    "run.begun": "the plan runs under permit {permit}",
    "run.cancel_answered": "accepted {accepted} {text}",
    "run.cancel_requested": "cancel {run_id}: {reason}",
    "run.ended": _run_ended,
    "run.refused": "{code}: {reasons}",
    "run.requested": "{action}: {intent}",
    "run.stopping": "{cause}: {reasons}",
    "task.assigned": "{name} to worker {worker}: {assignment.tools.0} {assignment.inputs.args}",
    "task.attempt_failed": "attempt {attempt} of {task_id}: {reason}; next: {retry_at}",
    "task.attempt_requested": "attempt {attempt} of {task_id}, at most {seconds} s",
    "task.exited": exited,
    "task.finished": _task_finished,
    "task.unstarted": "attempt {attempt} of {task_id} was not started: {reason}",
    "tasks.changed": _tasks_changed,
    "tasks.planned": _tasks_planned,
}


_ENDS: Final = {"failed": "A run failed", "timed_out": "A run took too long", "stopped": "A run was stopped by the OA"}


def _ended(event: Event) -> Iterator[Judged]:
    """A run that somebody cancelled is no alert."""
    data = event.data
    if data.state in _ENDS:
        run = event.correlation
        yield Alert(
            kind="run_failed", severity="bad", title=_ENDS[data.state], subject=run, page=f"/runs/{run}",
            detail=reasons(data.reasons) or f"{data.failed} task(s) failed",
        )  # fmt: skip


ALERTS: Final[Judges] = {"run.ended": _ended}
