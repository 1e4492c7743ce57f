"""The second form in which a run is recorded (``RunRequested.form``): a step that follows from an event has no event of
its own. This module says which steps these are, so that all who fold a run see each step, in either form; pure
(docs/design.md §14.1).

==================================  ================================================================
in the second form                  stands for, in the first
==================================  ================================================================
``run.requested``                   ``timer.requested``, ``plan.requested`` (where a plan is given)
``tasks.planned`` with ``made``     ``plan.made``
``oa.permit_granted``, for the run  ``run.begun``
``task.assigned``                   ``tasks.changed``: the task starts
``task.finished``, done             ``tasks.changed``: the task succeeds
``run.ended``                       ``effect.cancel_requested``, ``effect.cancelled`` of the timer
``run.ended`` with ``permit``       ``oa.permit_revoked``
==================================  ================================================================
"""

from __future__ import annotations

from msgspec import UNSET

from pmagent.contracts.oa import OaPermitGranted
from pmagent.contracts.orchestra_events import (
    PlanMade,
    RunBegun,
    RunRequested,
    TaskAssigned,
    TaskChange,
    TaskFinished,
    TasksChanged,
    TasksPlanned,
)
from pmagent.contracts.payload import Payload
from pmagent.events.event import Event, time_after


def permit_subject(run_id: str) -> str:
    """The subject of a run's permits."""
    return f"run:{run_id}"


def ends_at(request: Event) -> str:
    """The log time at which the run is over whose request this is."""
    return time_after(request.time, float(request.data.config.policies.max_total_duration_sec))


def start(run_id: str, task_id: str) -> TasksChanged:
    """The step of a task that is assigned."""
    return TasksChanged(run_id=run_id, changes=[TaskChange(task_id=task_id, step="start", state="running")])


def success(run_id: str, task_id: str) -> TasksChanged:
    """The step of a task that is done."""
    return TasksChanged(run_id=run_id, changes=[TaskChange(task_id=task_id, step="succeed", state="done")])


def plan_made(data: object) -> PlanMade | None:
    """That a plan is complete, if the payload says so in either form."""
    made = data.made if isinstance(data, TasksPlanned) else data
    return made if isinstance(made, PlanMade) else None


def steps(event: Event, asked: RunRequested, revision: int, *, awaited: int) -> tuple[Payload, ...]:
    """The payloads of all steps that ``event`` stands for, its own among them, in order. ``asked`` is the request of
    the run, ``revision`` the plan in hand; ``awaited``: the position of that request while its permit is waited for,
    else 0. A run that bore the same id may have ended before the permit that it asked for was granted."""
    data: Payload = event.data
    if asked.form is UNSET:
        return (data,)
    match data:
        case TasksPlanned(made=PlanMade() as made):
            return data, made
        case OaPermitGranted(subject=subject, request=request) if (
            0 < awaited < request and subject == permit_subject(asked.run_id)
        ):
            return data, RunBegun(run_id=asked.run_id, revision=revision, permit=event.position)
        case TaskAssigned(assignment=assignment):
            return start(asked.run_id, assignment.task_id), data
        case TaskFinished(result=result) if result.state == "done":
            return data, success(asked.run_id, result.task_id)
    return (data,)
