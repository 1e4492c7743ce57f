"""A run's view after each of its events; pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pmagent.actors.orchestra.running.artifact_paths import without_clashes
from pmagent.actors.orchestra.running.form import permit_subject, steps
from pmagent.contracts.effect import EffectInterrupted, RequestRefused
from pmagent.contracts.oa import OaPermitGranted, OaPermitRefused, OaPermitRequested, OaPermitRevoked
from pmagent.contracts.orchestra import UNENFORCED, NetContact
from pmagent.contracts.orchestra_events import (
    PlanFailed,
    PlanFinished,
    PlanMade,
    PlannedTask,
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
    TasksPlanned,
    TaskUnstarted,
)
from pmagent.contracts.payload import Payload
from pmagent.events.event import Event
from pmagent.projections.runs.chunks import Chunks, chunked
from pmagent.projections.views import jobs
from pmagent.projections.views.jobs import End
from pmagent.projections.views.runs import (
    LINE_CHARS_MAX,
    NOTES_MAX,
    SAID_MAX,
    TRIES_MAX,
    Asking,
    Contacts,
    Left,
    Plan,
    Replaced,
    Revision,
    Run,
    Task,
    Try,
)


def requested(event: Event, sum: str) -> Run:
    """The view of a run that has just been asked for."""
    asked: RunRequested = event.data
    bare = replace(asked, plan=None)
    return Run(id=asked.run_id, asked=bare, given=asked.plan is not None, **jobs.begun(event, sum))


def evolved(run: Run, event: Event, sum: str) -> Run:
    """The view after an event of the run, which is not over; ``run`` itself where no document hears of it."""
    if type(event.data) not in HEARD:
        return run
    after = run
    for step in steps_of(run, event):
        if (handler := _HANDLERS.get(type(step))) is not None:
            after = handler(after, event, step)
    return replace(after, position=event.position, sum=sum, updated=event.time)


def steps_of(run: Run, event: Event) -> tuple[Payload, ...]:
    """The payloads of all steps that ``event`` stands for in ``run``, as it was before."""
    return steps(event, run.asked, run.revision, awaited=run.requested if run.doing == "permit" else 0)


def end_of(data: Any) -> End:
    """How a run ended with this payload."""
    if isinstance(data, RunEnded):
        return End(data.state, "", data.reasons, data.mend, data.security, data.done, data.failed)
    if isinstance(data, RunRefused):
        return End("refused", data.code, data.reasons, data.mend, data.security)
    return End("refused", "halted", [f"{data.name} is {data.reason}"])  # by the engine: the orchestrator is halted


# --- plans ---------------------------------------------------------------------------------------------------------


def _plan_requested(run: Run, _: Event, asked: PlanRequested) -> Run:
    return replace(run, doing="planning", revision=asked.revision, call=0, coming=[])


def _planner_asked(run: Run, _: Event, asked: PlannerCallRequested) -> Run:
    return replace(run, call=asked.attempt)


def _planner_replied(run: Run, _: Event, replied: PlannerReplied) -> Run:
    asking = run.asking
    return replace(
        run,
        asking=Asking(
            asking.calls + 1, asking.duration_ms + replied.duration_ms, _sum(asking.tokens, replied.tokens),
            _sum(asking.cost_usd, replied.cost_usd),
        ),
    )


def _planner_failed(run: Run, _: Event, failed: PlannerFailed) -> Run:
    asking = run.asking
    cost = replace(asking, calls=asking.calls + 1, duration_ms=asking.duration_ms + failed.duration_ms)
    return replace(run, call=0, asking=cost)


def _sum(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other


def _tasks_planned(run: Run, event: Event, planned: TasksPlanned) -> Run:
    return replace(run, coming=[*run.coming, *planned.tasks], coming_at=event.time)


def _plan_made(run: Run, event: Event, made: PlanMade) -> Run:
    """Tasks that are done are kept; the others go, and their attempts are reported no more."""
    kept = [(task, planned) for task, planned in run.pairs if task.state == "done"]
    gone = [
        Replaced(made.revision - 1, planned.name, task.reason, task.state)
        for task, planned in run.pairs
        if task.state != "done"
    ]
    tasks = [*(planned for _, planned in kept), *run.coming]
    coming = [_coming(run, planned) for planned in run.coming]
    room = max(NOTES_MAX - len(run.replaced), 0)
    return replace(
        run, call=0, coming=[], plan=Plan(made.plan_id, tasks),
        places={task.task_id: place for place, task in enumerate(tasks)},
        tasks=chunked([*(task for task, _ in kept), *coming]),
        revisions=[*run.revisions, Revision(made.revision, made.plan_id, event.time, made.tasks, made.kept)],
        replaced=[*run.replaced, *gone[:room]], replaced_more=run.replaced_more + len(gone[room:]), last_lines={},
    )


def _coming(run: Run, planned: PlannedTask) -> Task:
    """A task of a new plan; done, where its result is that of an earlier run."""
    earlier = run.asked.earlier
    if earlier is None or run.revision or planned.name not in earlier.done:
        return Task(run.coming_at)
    return Task(run.coming_at, "done", f"taken from run {earlier.run_id[:8]}", ended=run.coming_at)


# --- the run -------------------------------------------------------------------------------------------------------


def _permit_requested(run: Run, _: Event, asked: OaPermitRequested) -> Run:
    return replace(run, doing="permit") if asked.subject == permit_subject(run.id) else run


def _begun(run: Run, event: Event, begun: RunBegun) -> Run:
    return replace(run, doing="running", permit=begun.permit, begun=run.begun or event.time)


def _stopping(run: Run, event: Event, stopping: RunStopping) -> Run:
    return replace(run, doing="stopping", reasons=stopping.reasons, mend=stopping.mend, stopped_by=event.causation)


def _ended(run: Run, event: Event, data: RunEnded | RunRefused | RequestRefused) -> Run:
    """An end that is another request's, which asked for the same id, is none of this run's."""
    if data.request != run.requested:
        return run
    return replace(jobs.ended(run, event, end_of(data)), running={}, coming=[])


# --- tasks ---------------------------------------------------------------------------------------------------------


def _changed(run: Run, event: Event, changed: TasksChanged) -> Run:
    tasks = run.tasks
    for change in changed.changes:
        place = run.places.get(change.task_id)
        if place is None:
            continue
        task = tasks[place]
        ended = event.time if change.state in ("done", "failed") else ""
        tasks = tasks.changed(
            place,
            replace(
                task, state=change.state, reason=change.reason or ("" if change.state != "failed" else task.reason),
                started=task.started or (event.time if change.state == "running" else ""), ended=ended,
            ),
        )
    return replace(run, tasks=tasks)


def _with(run: Run, task_id: str, change: Callable[[Task], Task]) -> Chunks[Task]:
    place = run.places.get(task_id)
    return run.tasks if place is None else run.tasks.changed(place, change(run.tasks[place]))


def _attempt_requested(run: Run, event: Event, asked: TaskAttemptRequested) -> Run:
    def change(task: Task) -> Task:
        tries = [*task.tries, Try(asked.attempt, event.time)][-TRIES_MAX:]
        return replace(task, attempts=asked.attempt, tries=tries)

    return replace(run, tasks=_with(run, asked.task_id, change), running={**run.running, event.position: asked.task_id})


def _in_last(task: Task, **changes: Any) -> Task:
    if not task.tries:
        return task
    return replace(task, tries=[*task.tries[:-1], replace(task.tries[-1], **changes)])


def _exited(run: Run, event: Event, exited: TaskExited) -> Run:
    def change(task: Task) -> Task:
        changed = _in_last(
            task, ended=event.time, exit_code=exited.exit_code, signal=exited.signal, duration_ms=exited.duration_ms
        )
        return replace(changed, exit_code=exited.exit_code, duration_ms=task.duration_ms + exited.duration_ms)

    notes, violations = run.notes, run.violations
    name = _name(run, exited.task_id)
    for note in exited.notes:
        notes = notes.noted(note if note.startswith(UNENFORCED) else f"{name}: {note}")
    for violation in exited.violations:
        violations = violations.noted(f"{name}: {violation}")
    contacts, more = _contacted(run, exited.contacts)
    return replace(
        run, tasks=_with(run, exited.task_id, change), running=_without(run, exited.request), notes=notes,
        violations=violations, contacts=contacts, contacts_more=more, last_lines=_last_lines(run, exited),
    )


def _name(run: Run, task_id: str) -> str:
    place = run.places.get(task_id)
    return task_id if place is None else run.planned_tasks[place].name


def _without(run: Run, request: int) -> dict[int, str]:
    return {position: task for position, task in run.running.items() if position != request}


def _last_lines(run: Run, exited: TaskExited) -> dict[str, list[str]]:
    if exited.task_id not in run.last_lines and len(run.last_lines) >= SAID_MAX:
        return run.last_lines
    return {**run.last_lines, exited.task_id: [line[:LINE_CHARS_MAX] for line in exited.last_lines]}


def _contacted(run: Run, contacts: list[NetContact]) -> tuple[list[Contacts], int]:
    if not contacts:
        return run.contacts, run.contacts_more
    found = {(one.host, one.port, one.verdict, one.reason): one for one in run.contacts}
    more = run.contacts_more
    for contact in contacts:
        key = (contact.host, contact.port, contact.verdict, contact.reason)
        known = found.get(key) or Contacts(*key, 0, 0, 0)
        if key not in found and len(found) >= NOTES_MAX:
            more += 1
            continue
        found[key] = replace(
            known, count=known.count + 1, bytes_out=known.bytes_out + contact.bytes_out,
            bytes_in=known.bytes_in + contact.bytes_in,
        )
    return list(found.values()), more


def _unstarted(run: Run, event: Event, unstarted: TaskUnstarted) -> Run:
    tasks = _with(run, unstarted.task_id, lambda task: _in_last(task, ended=event.time))
    return replace(run, tasks=tasks, running=_without(run, unstarted.request))


def _interrupted(run: Run, event: Event, interrupted: EffectInterrupted) -> Run:
    """An attempt that an orderly stop cuts off uses up no retry."""
    task_id = run.running.get(interrupted.request)
    if task_id is None:
        return run
    counted = interrupted.reason != "stop"

    def change(task: Task) -> Task:
        return replace(_in_last(task, ended=event.time), uncounted=task.uncounted + (not counted))

    return replace(run, tasks=_with(run, task_id, change), running=_without(run, interrupted.request))


def _attempt_failed(run: Run, event: Event, failed: TaskAttemptFailed) -> Run:
    def change(task: Task) -> Task:
        ended = task.tries[-1].ended if task.tries else ""
        changed = _in_last(task, ended=ended or event.time, reason=failed.reason, retry_at=failed.retry_at)
        return replace(changed, reason=failed.reason)

    return replace(run, tasks=_with(run, failed.task_id, change), running=_without(run, failed.request))


def _finished(run: Run, event: Event, finished: TaskFinished) -> Run:
    result = finished.result
    kept, lost = without_clashes(result.task_id, result.artifacts)
    name = _name(run, result.task_id)
    notes = run.notes
    for path in lost:
        notes = notes.noted(f"{name}: the artifact {path} is in another one's way, or its path is too long: left out")

    def change(task: Task) -> Task:
        return replace(
            task, reason=finished.reason, ended=event.time, attempts=finished.attempts,
            exit_code=result.metrics.exit_code, duration_ms=result.metrics.duration_ms, left=len(run.left),
        )

    last_lines = run.last_lines
    if result.state == "done" and result.task_id in last_lines:
        last_lines = {task: lines for task, lines in last_lines.items() if task != result.task_id}
    left = run.left.added(Left(result.task_id, name, kept, event.position))
    return replace(
        run, tasks=_with(run, result.task_id, change), left=left, notes=notes, last_lines=last_lines,
        security=run.security or finished.security,
    )


_HANDLERS: Final[dict[type, Callable[[Run, Event, Any], Run]]] = {
    PlanRequested: _plan_requested,
    PlannerCallRequested: _planner_asked,
    PlannerReplied: _planner_replied,
    PlannerFailed: _planner_failed,
    TasksPlanned: _tasks_planned,
    PlanMade: _plan_made,
    OaPermitRequested: _permit_requested,
    RunBegun: _begun,
    RunStopping: _stopping,
    RunEnded: _ended,
    RunRefused: _ended,
    RequestRefused: _ended,
    TasksChanged: _changed,
    TaskAttemptRequested: _attempt_requested,
    TaskExited: _exited,
    TaskUnstarted: _unstarted,
    EffectInterrupted: _interrupted,
    TaskAttemptFailed: _attempt_failed,
    TaskFinished: _finished,
}
HEARD: Final[frozenset[type[msgspec.Struct]]] = frozenset((
    RunRequested, RunCancelRequested, PlanFailed, PlanFinished, TaskAssigned, OaPermitGranted, OaPermitRefused,
    OaPermitRevoked, *_HANDLERS,
))  # fmt: skip
"""The events that change a run's documents."""
