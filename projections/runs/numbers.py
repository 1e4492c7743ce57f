"""A run for programs: its metrics, its job, and each task as the specification's document; pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from pmagent.contracts.jobs import JobState
from pmagent.contracts.orchestra import LOG_CHARS_MAX, LogEntry, Metrics, TaskDocument, Timestamps
from pmagent.contracts.orchestra_documents import RunMetrics, TaskMetrics
from pmagent.contracts.orchestra_events import PlannedTask
from pmagent.events.event import parse_time
from pmagent.projections.runs import json
from pmagent.projections.runs.paths import run_paths
from pmagent.projections.views.jobs import DETAIL_CHARS_MAX, job_document
from pmagent.projections.views.runs import Run, Task

SERVICE: Final = "pmagent-orchestra"


def metrics(run: Run) -> bytes:
    """``metrics.json``."""
    return json.document(run_metrics(run))


@lru_cache(maxsize=1024)
def milliseconds(start: str, end: str) -> int:
    """The whole milliseconds between two log times; 0 where time went back."""
    return max(int((parse_time(end) - parse_time(start)).total_seconds() * 1000), 0)


def duration(milliseconds: int) -> str:
    """A time for people."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds // 60_000} min {milliseconds % 60_000 // 1000:02} s"


def retries(task: Task, planned: PlannedTask) -> int:
    """How many of its retries a task has used."""
    return min(max(task.attempts - 1 - task.uncounted, 0), planned.constraints.max_retries)


def run_metrics(run: Run) -> RunMetrics:
    """The numbers of a run as it stands."""
    pairs = run.pairs
    ran = [task.duration_ms for task, _ in pairs if task.attempts and task.ended]
    return RunMetrics(
        run_id=run.id, started_at=run.at, completed_at=run.ended or None,
        total_duration_ms=milliseconds(run.at, run.ended) if run.ended else None, tasks_total=len(pairs),
        tasks_succeeded=sum(task.state == "done" for task, _ in pairs),
        tasks_failed=sum(task.state == "failed" for task, _ in pairs),
        tasks_retried=sum(retries(task, planned) > 0 for task, planned in pairs),
        avg_task_duration_ms=round(sum(ran) / len(ran), 3) if ran else None, total_tokens_used=run.asking.tokens,
        artifacts_total_bytes=sum(artifact.size_bytes for left in run.left for artifact in left.artifacts),
        tasks=[
            TaskMetrics(
                task_id=planned.task_id, name=planned.name, duration_ms=task.duration_ms, exit_code=task.exit_code,
                retry_count=retries(task, planned), state=task.state,
            )
            for task, planned in pairs
        ],
    )


def job(run: Run) -> bytes:
    """``jobs/<run_id>.json``."""
    total, counts = len(run.tasks), run.counts
    ended = counts["done"] + counts["failed"]
    result = None
    if run.over:
        at = run_paths(run.asked.config.paths, run.id)
        result = {"state": run.end, "done": counts["done"], "failed": counts["failed"]}
        result |= {"folder": at.folder, "report": at.report}
    state = _job_state(run)
    # A run may be cancelled before it began: its tasks have ended then, and its job is still queued.
    progress = round(ended / total, 4) if total and state != "queued" else 0.0
    return job_document(run, SERVICE, state, progress, _message(run, ended, total), "; ".join(run.reasons), result)


def _job_state(run: Run) -> JobState:
    if run.over:
        return "complete" if run.end in ("done", "planned") else "failed"
    return "running" if run.begun else "queued"


def _message(run: Run, ended: int, total: int) -> str:
    match run.doing:
        case "planning":
            return "a plan is being made" if not run.begun else "another plan is being made for what failed"
        case "permit":
            return "waiting for the OA's permit"
        case "running":
            return f"{ended} of {total} tasks have ended"
        case "stopping":
            return f"stopping: {'; '.join(run.reasons)}"[:DETAIL_CHARS_MAX]
    return f"the run has ended: {run.end}"


def task_documents(run: Run) -> list[TaskDocument]:
    """Each task of the newest plan, whole, as it stands."""
    return [_task(run, task, planned) for task, planned in run.pairs]


def _task(run: Run, task: Task, planned: PlannedTask) -> TaskDocument:
    return TaskDocument(
        task_id=planned.task_id, parent_id=planned.parent_id, level=3, intent=planned.intent, inputs=planned.inputs,
        tools=planned.tools, constraints=planned.constraints, state=task.state, retries=retries(task, planned),
        logs=_logs(task), artifacts=run.left[task.left].artifacts if task.left >= 0 else [],
        metrics=Metrics(duration_ms=task.duration_ms, exit_code=task.exit_code),
        timestamps=Timestamps(
            created_at=task.created, started_at=task.started or None, completed_at=task.ended or None
        ),
    )


def _logs(task: Task) -> list[LogEntry]:
    found: list[LogEntry] = []
    for one in task.tries:
        begins = {"attempt": one.attempt}
        found.append(_entry(one.at, "info", f"attempt {one.attempt} begins", begins))
        if one.reason:
            found.append(_entry(one.ended or one.at, "error", f"attempt {one.attempt}: {one.reason}", begins))
    if task.state == "done":
        found.append(_entry(task.ended, "info", "done", {}))
    elif task.state == "failed":
        found.append(_entry(task.ended, "error", f"failed: {task.reason}", {}))
    return found


def _entry(time: str, level: str, message: str, payload: dict[str, Any]) -> LogEntry:
    entry = {"timestamp": time, "level": level, "message": message[:LOG_CHARS_MAX], "payload": payload}
    return msgspec.convert(entry, LogEntry)
