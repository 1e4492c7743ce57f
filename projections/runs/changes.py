"""The changes that each event of a run makes for people who watch it; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pmagent.contracts.effect import RequestRefused
from pmagent.contracts.orchestra_events import (
    PlanMade,
    PlannerCallRequested,
    PlannerFailed,
    PlanRequested,
    RunBegun,
    RunEnded,
    RunRefused,
    RunStopping,
    TaskAttemptFailed,
    TasksChanged,
)
from pmagent.events.event import Event
from pmagent.projections.runs.fold import steps_of
from pmagent.projections.views.jobs import Change
from pmagent.projections.views.runs import Run, Task


def changes(before: Run, run: Run, event: Event) -> Iterator[Change]:
    """The changes that ``event`` made from ``before`` to ``run``."""
    for step in steps_of(before, event):
        yield from _changes(before, run, event.time, step)


def _changes(before: Run, run: Run, time: str, data: Any) -> Iterator[Change]:
    match data:
        case PlanRequested(revision=revision) if revision:
            yield Change(time, "", "replanning", f"what failed is planned anew, revision {revision}")
        case PlannerCallRequested():
            yield Change(time, "", "planning", saying(run))
        case PlannerFailed(text=text):
            yield Change(time, "", "planning", text)
        case PlanMade():
            kept = f", {data.kept} kept" if data.kept else ""
            yield Change(time, "", "planned", f"{data.tasks} task{'s' if data.tasks != 1 else ''}{kept}")
        case RunBegun(permit=permit):
            yield Change(time, "", "running", f"under permit {permit}")
        case TasksChanged():
            yield from _of_tasks(run, data, time)
        case TaskAttemptFailed() if data.retry_at and (place := run.places.get(data.task_id)) is not None:
            text = f"attempt {data.attempt}: {data.reason}"
            yield Change(time, run.planned_tasks[place].name, "retry", text, run.tasks[place].started)
        case RunStopping():
            yield Change(time, "", "stopping", saying(run))
        case RunEnded() | RunRefused() | RequestRefused() if run.over and not before.over:
            yield Change(time, "", run.state, "; ".join(run.reasons), run.at)


def saying(run: Run) -> str:
    """The run's work just now, in words, where ``doing`` does not say it all."""
    if run.doing == "stopping":
        return "; ".join(run.reasons)
    if run.doing != "planning" or not run.call:
        return ""
    return "asking the planner" + (f", attempt {run.call}" if run.call > 1 else "")


def cut_words(run: Run, task: Task) -> str:
    """How much is missing in which files of a task; "" where nothing is."""
    return ", ".join(f"✂ {one.path}: {one.gap_bytes / 2**20:.1f} MiB missing" for one in run.cut(task))


def _of_tasks(run: Run, data: TasksChanged, time: str) -> Iterator[Change]:
    for change in data.changes:
        place = run.places.get(change.task_id)
        if place is None:
            continue
        name, task = run.planned_tasks[place].name, run.tasks[place]
        if change.step == "start":
            yield Change(time, name, "running")
        elif change.state in ("done", "failed"):
            text = "; ".join(filter(None, (task.reason, cut_words(run, task))))
            yield Change(time, name, task.word, text, task.started)
