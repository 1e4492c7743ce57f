"""A run's view after each of its events; pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from actors.orchestra.apart import apart
from contracts.effect import EffectInterrupted, RequestRefused
from contracts.oa import OaPermitRequested
from contracts.orchestra import UNENFORCED
from contracts.orchestra_events import (
    NetContact,
    PlanMade,
    PlannerFailed,
    PlannerReplied,
    PlanRequested,
    RunBegun,
    RunEnded,
    RunRefused,
    RunRequested,
    RunStopping,
    TaskAttemptFailed,
    TaskAttemptRequested,
    TaskExited,
    TaskFinished,
    TasksChanged,
    TasksPlanned,
    TaskUnstarted,
)
from events.event import Event
from projections.runs.chunks import Chunks, chunked
from projections.runs.view import (
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

replace = msgspec.structs.replace


def requested(event: Event, asked: RunRequested, sum: str) -> Run:
    """The view of a run that has just been asked for."""
    return Run(
        run_id=asked.run_id, requested=event.position, at=event.time, asked=replace(asked, plan=None),
        given=asked.plan is not None, position=event.position, sum=sum, updated=event.time,
    )  # fmt: skip


def evolved(run: Run, event: Event, sum: str) -> Run:
    """The view after an event of the run that is not over."""
    handler = _HANDLERS.get(type(event.data))
    after = run if handler is None else handler(run, event, event.data)
    return replace(after, position=event.position, sum=sum, updated=event.time)


# --- plans ---------------------------------------------------------------------------------------------------------


def _plan_requested(run: Run, _: Event, __: PlanRequested) -> Run:
    return replace(run, doing="planning", coming=[])


def _planner_replied(run: Run, _: Event, replied: PlannerReplied) -> Run:
    asking = run.asking
    return replace(
        run,
        asking=Asking(
            asking.calls + 1,
            asking.duration_ms + replied.duration_ms,
            _sum(asking.tokens, replied.tokens),
            _sum(asking.cost_usd, replied.cost_usd),
        ),
    )


def _planner_failed(run: Run, _: Event, failed: PlannerFailed) -> Run:
    asking = run.asking
    return replace(
        run, asking=replace(asking, calls=asking.calls + 1, duration_ms=asking.duration_ms + failed.duration_ms)
    )


def _sum(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other


def _tasks_planned(run: Run, event: Event, planned: TasksPlanned) -> Run:
    return replace(run, coming=[*run.coming, *planned.tasks], coming_at=event.time)


def _plan_made(run: Run, event: Event, made: PlanMade) -> Run:
    """What is done is kept; what is not goes, and its attempts are told no more."""
    kept = [(task, planned) for task, planned in zip(run.tasks, run.planned_tasks, strict=True) if task.state == "done"]
    gone = [
        Replaced(made.revision - 1, planned.name, task.reason)
        for task, planned in zip(run.tasks, run.planned_tasks, strict=True)
        if task.state != "done"
    ]
    tasks = [*(planned for _, planned in kept), *run.coming]
    room = max(NOTES_MAX - len(run.replaced), 0)
    return replace(
        run,
        coming=[],
        plan=Plan(made.plan_id, tasks),
        places={task.task_id: place for place, task in enumerate(tasks)},
        tasks=chunked([*(task for task, _ in kept), *(Task(run.coming_at) for _ in run.coming)]),
        revisions=[*run.revisions, Revision(made.revision, made.plan_id, event.time, len(run.coming), len(kept))],
        replaced=[*run.replaced, *gone[:room]],
        replaced_more=run.replaced_more + len(gone[room:]),
        said={},
    )


# --- the run -------------------------------------------------------------------------------------------------------


def _permit_requested(run: Run, _: Event, asked: OaPermitRequested) -> Run:
    return replace(run, doing="permit") if asked.subject == f"run:{run.run_id}" else run


def _begun(run: Run, event: Event, begun: RunBegun) -> Run:
    return replace(run, doing="running", permit=begun.permit, begun=run.begun or event.time)


def _stopping(run: Run, _: Event, stopping: RunStopping) -> Run:
    return replace(run, doing="stopping", reasons=stopping.reasons, mend=stopping.mend)


def _ended(run: Run, event: Event, ended: RunEnded) -> Run:
    if ended.request != run.requested:
        return run
    return replace(
        _over(run, event), end=ended.state, reasons=ended.reasons, mend=ended.mend, security=ended.security
    )


def _refused(run: Run, event: Event, refused: RunRefused) -> Run:
    if refused.request != run.requested:
        return run
    return replace(
        _over(run, event), end="refused", code=refused.code, reasons=refused.reasons, mend=refused.mend,
        security=refused.security,
    )


def _unanswered(run: Run, event: Event, refused: RequestRefused) -> Run:
    """The engine refuses the request itself, where the orchestrator is halted."""
    if refused.request != run.requested:
        return run
    why = [f"{refused.name} is {refused.reason}"]
    return replace(_over(run, event), end="refused", code="halted", reasons=why)


def _over(run: Run, event: Event) -> Run:
    return replace(run, doing="over", ended=event.time, running={}, coming=[])


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
                task,
                state=change.state,
                reason=change.reason or ("" if change.state != "failed" else task.reason),
                started=task.started or (event.time if change.state == "running" else ""),
                ended=ended,
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

    return replace(
        run, tasks=_with(run, asked.task_id, change), running={**run.running, event.position: asked.task_id}
    )


def _in_last(task: Task, **changes: Any) -> Task:
    if not task.tries:
        return task
    return replace(task, tries=[*task.tries[:-1], replace(task.tries[-1], **changes)])


def _exited(run: Run, event: Event, exited: TaskExited) -> Run:
    def change(task: Task) -> Task:
        told = _in_last(
            task, ended=event.time, exit_code=exited.exit_code, signal=exited.signal, duration_ms=exited.duration_ms
        )
        return replace(told, exit_code=exited.exit_code, duration_ms=task.duration_ms + exited.duration_ms)

    notes, violations = run.notes, run.violations
    name = _name(run, exited.task_id)
    for note in exited.notes:
        notes = notes.noted(note if note.startswith(UNENFORCED) else f"{name}: {note}")
    for violation in exited.violations:
        violations = violations.noted(f"{name}: {violation}")
    contacts, more = _contacted(run, exited.contacts)
    return replace(
        run, tasks=_with(run, exited.task_id, change), running=_without(run, exited.request), notes=notes,
        violations=violations, contacts=contacts, contacts_more=more, said=_said(run, exited),
    )


def _name(run: Run, task_id: str) -> str:
    place = run.places.get(task_id)
    return task_id if place is None else run.planned_tasks[place].name


def _without(run: Run, request: int) -> dict[int, str]:
    return {position: task for position, task in run.running.items() if position != request}


def _said(run: Run, exited: TaskExited) -> dict[str, list[str]]:
    if exited.task_id not in run.said and len(run.said) >= SAID_MAX:
        return run.said
    return {**run.said, exited.task_id: [line[:LINE_CHARS_MAX] for line in exited.last_lines]}


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
            known,
            count=known.count + 1,
            bytes_out=known.bytes_out + contact.bytes_out,
            bytes_in=known.bytes_in + contact.bytes_in,
        )
    return list(found.values()), more


def _unstarted(run: Run, event: Event, unstarted: TaskUnstarted) -> Run:
    tasks = _with(run, unstarted.task_id, lambda task: _in_last(task, ended=event.time))
    return replace(run, tasks=tasks, running=_without(run, unstarted.request))


def _interrupted(run: Run, event: Event, interrupted: EffectInterrupted) -> Run:
    """What an orderly stop cuts off uses up no retry."""
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
        told = _in_last(task, ended=ended or event.time, reason=failed.reason, retry_at=failed.retry_at)
        return replace(told, reason=failed.reason)

    return replace(run, tasks=_with(run, failed.task_id, change), running=_without(run, failed.request))


def _finished(run: Run, event: Event, finished: TaskFinished) -> Run:
    result = finished.result
    kept, lost = apart(result.task_id, result.artifacts)
    name = _name(run, result.task_id)
    notes = run.notes
    for path in lost:
        notes = notes.noted(f"{name}: the artifact {path} is in another one's way, or its path is too long: left out")

    def change(task: Task) -> Task:
        return replace(
            task, reason=finished.reason, ended=event.time, attempts=finished.attempts,
            exit_code=result.metrics.exit_code, duration_ms=result.metrics.duration_ms, left=len(run.left),
        )

    said = run.said
    if result.state == "done" and result.task_id in said:
        said = {task: lines for task, lines in said.items() if task != result.task_id}
    return replace(
        run, tasks=_with(run, result.task_id, change), left=run.left.added(Left(result.task_id, name, kept)),
        notes=notes, said=said, security=run.security or finished.security,
    )


_HANDLERS: Final[dict[type, Callable[[Run, Event, Any], Run]]] = {
    PlanRequested: _plan_requested,
    PlannerReplied: _planner_replied,
    PlannerFailed: _planner_failed,
    TasksPlanned: _tasks_planned,
    PlanMade: _plan_made,
    OaPermitRequested: _permit_requested,
    RunBegun: _begun,
    RunStopping: _stopping,
    RunEnded: _ended,
    RunRefused: _refused,
    RequestRefused: _unanswered,
    TasksChanged: _changed,
    TaskAttemptRequested: _attempt_requested,
    TaskExited: _exited,
    TaskUnstarted: _unstarted,
    EffectInterrupted: _interrupted,
    TaskAttemptFailed: _attempt_failed,
    TaskFinished: _finished,
}
