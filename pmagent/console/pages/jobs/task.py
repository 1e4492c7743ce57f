"""A task as its page shows it: exactly what is started, within which wall, and what each attempt wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from pmagent.console.pages.drawing import waterfall
from pmagent.console.pages.drawing.waterfall import Lane
from pmagent.console.pages.jobs.run import (
    FileRow,
    attempts_of,
    exit_of,
    file_address,
    parts_of,
    shown_state,
    task_address,
    took_of,
)
from pmagent.console.pages.reading.outputs import Shown, shown
from pmagent.contracts.effect import EffectCancelled, EffectFailed, EffectInterrupted, EffectRefused, EffectTimedOut
from pmagent.contracts.orchestra import Artifact, NetContact
from pmagent.contracts.orchestra_events import PlannedTask, TaskAttemptRequested, TaskExited, TaskUnstarted
from pmagent.contracts.payload import typed
from pmagent.events.errors import NotFound
from pmagent.events.event import Event
from pmagent.events.log import now
from pmagent.events.reader import event_at
from pmagent.jobs.history import Jobs
from pmagent.jobs.story import STREAMS, Attempt, RunStory
from pmagent.projections.views.runs import Run, Task
from pmagent.when import took

ATTEMPTS_MAX: Final = 50
"""So many attempts are listed, the newest."""
CONTACTS_MAX: Final = 100
GIVEN_CHARS_MAX: Final = 65_536
"""So much is shown of what the task is given: of its arguments, and of its variables and files together."""
NEIGHBOURS_MAX: Final = 100


class AttemptLine(msgspec.Struct, frozen=True):
    """An attempt in the list of them. ``end``: what became of it; ``took`` from its beginning to its end."""

    number: int
    address: str
    requested: int
    ended: int
    began: str
    took: str
    exit: str
    end: str
    current: bool


class Stream(msgspec.Struct, frozen=True):
    """An attempt's output on ``name``: the kept part of ``total`` bytes; ``cut``: that is not all."""

    name: str
    sha256: str
    total: int
    cut: bool
    address: str
    content: Shown


class AttemptPart(msgspec.Struct, frozen=True, kw_only=True):
    """The attempt that is looked at. ``mend``: what would help where it could not begin."""

    number: int
    streams: list[Stream]
    files: list[FileRow]
    notes: list[str]
    violations: list[str]
    contacts: list[NetContact]
    contacts_left_out: int
    mend: str = ""
    simulated: bool = False


class Given(msgspec.Struct, frozen=True):
    """An argument, a variable or a file: exactly as it is, as far as there is room; ``left_out`` characters of it."""

    name: str
    text: str
    left_out: int


class Neighbour(msgspec.Struct, frozen=True):
    """Another task of the plan."""

    name: str
    state: str
    address: str


class TaskPage(msgspec.Struct, frozen=True, kw_only=True):
    """All that a task's page shows. ``looked`` None: it has had no attempt."""

    run: Run
    task: Task
    planned: PlannedTask
    state: str
    attempts_said: str
    took: str
    exit: str
    waits: list[Neighbour]
    waits_more: int
    behind: list[Neighbour]
    behind_more: int
    parent: Neighbour | None
    arguments: list[Given]
    variables: list[Given]
    files: list[Given]
    times: Markup
    attempts: list[AttemptLine]
    attempts_left_out: int
    looked: AttemptPart | None


def task_page(story: RunStory, jobs: Jobs, task_id: str, attempt: int = 0) -> TaskPage:
    """The page; the output of that ``attempt`` (0: of the last). Raises NotFound, CorruptLog, OSError."""
    run = story.view
    place = run.places.get(task_id)
    if place is None:
        raise NotFound(f"run {run.id} has no task {task_id!r} in its newest plan", "its page lists its tasks")
    task, planned = run.tasks[place], run.planned_tasks[place]
    had = story.attempts.get(task_id, [])
    looked = next((one for one in had if one.number == attempt), None) if attempt else had[-1] if had else None
    if attempt and looked is None:
        raise NotFound(f"task {planned.name} has had no attempt {attempt}", f"it has had {len(had)}")
    until = run.until(now())
    lane = Lane(planned.name, shown_state(task), parts_of(task, until), "")
    begun = task.tries[0].at if task.tries else run.at
    behind = [one.task_id for one in run.planned_tasks if task_id in one.depends_on]
    given = _given([*planned.inputs.env.items(), *((one.path, one.content) for one in planned.inputs.files)])
    return TaskPage(
        run=run, task=task, planned=planned, state=shown_state(task), attempts_said=attempts_of(task, planned),
        took=took_of(run, task), exit=exit_of(task.exit_code),
        waits=[_neighbour(run, one) for one in planned.depends_on[:NEIGHBOURS_MAX]],
        waits_more=max(len(planned.depends_on) - NEIGHBOURS_MAX, 0),
        behind=[_neighbour(run, one) for one in behind[:NEIGHBOURS_MAX]],
        behind_more=max(len(behind) - NEIGHBOURS_MAX, 0),
        parent=_neighbour(run, planned.parent_id) if planned.parent_id is not None else None,
        arguments=_given([(f"Argument {n}", one) for n, one in enumerate(planned.inputs.args, 1)]),
        variables=given[: len(planned.inputs.env)],
        files=given[len(planned.inputs.env) :],
        times=waterfall.drawn([lane], begun, task.ended or until),
        attempts=[_line(story, jobs, task_id, one, one is looked) for one in had[-ATTEMPTS_MAX:]],
        attempts_left_out=max(len(had) - ATTEMPTS_MAX, 0),
        looked=_attempt(story, jobs, looked) if looked is not None else None,
    )  # fmt: skip


def _given(texts: Sequence[tuple[str, str]]) -> list[Given]:
    """All of them by name; what finds no room is only counted."""
    room, found = GIVEN_CHARS_MAX, []
    for name, text in texts:
        found.append(Given(name, text[:room], len(text[room:])))
        room -= len(text[:room])
    return found


def _neighbour(run: Run, task_id: str) -> Neighbour:
    place = run.places.get(task_id)
    if place is None:  # a plan that came later has it no more
        return Neighbour(task_id, "replaced", "")
    return Neighbour(run.planned_tasks[place].name, shown_state(run.tasks[place]), task_address(run.id, task_id))


def _event(jobs: Jobs, position: int) -> Event:
    return typed(event_at(jobs.storage, position), jobs.blobs)


def _line(story: RunStory, jobs: Jobs, task_id: str, attempt: Attempt, current: bool) -> AttemptLine:
    asked = _event(jobs, attempt.requested)
    ended = _event(jobs, attempt.ended) if attempt.ended else None
    text, code = _outcome_text(ended)
    place = story.view.places[task_id]
    why = next((one.reason for one in story.view.tasks[place].tries if one.attempt == attempt.number), "")
    until = ended.time if ended is not None else story.view.until(now())
    address = f"{task_address(story.view.id, task_id)}?attempt={attempt.number}"
    return AttemptLine(
        attempt.number, address, attempt.requested, attempt.ended, asked.time, took(asked.time, until), code,
        why or text, current,
    )


def _outcome_text(ended: Event | None) -> tuple[str, str]:
    """An attempt's outcome, and how its program ended."""
    data = ended.data if ended is not None else None
    match data:
        case TaskExited():
            code = exit_of(data.exit_code, data.signal)
            if data.timed_out:
                return "out of time", code
            return (f"killed: {data.exceeded}" if data.exceeded else "exited"), code
        case TaskUnstarted():
            return f"could not begin: {data.reason}", ""
        case EffectInterrupted() | EffectCancelled():
            return f"cut off: {data.reason.replace('_', ' ')}", ""
        case EffectFailed():
            return f"a fault of pmagent: {data.error} in {data.place}", ""
        case EffectTimedOut():
            return "out of time", ""
        case EffectRefused():
            return f"refused: {'; '.join(data.reasons)}", ""
    return ("running" if ended is None else f"ended: {ended.type}"), ""


def _attempt(story: RunStory, jobs: Jobs, attempt: Attempt) -> AttemptPart:
    asked = _event(jobs, attempt.requested).data
    assert isinstance(asked, TaskAttemptRequested), "the story notes the positions of requests"
    data = _event(jobs, attempt.ended).data if attempt.ended else None
    if not isinstance(data, TaskExited):
        mend = data.mend if isinstance(data, TaskUnstarted) else ""
        return AttemptPart(
            number=attempt.number, streams=[], files=[], notes=[], violations=[], contacts=[], contacts_left_out=0,
            mend=mend, simulated=asked.simulated,
        )  # fmt: skip
    return AttemptPart(
        number=attempt.number,
        streams=[_stream(story, jobs, name, data) for name in STREAMS],
        files=[_file(story.view.id, one) for one in data.artifacts],
        notes=data.notes,
        violations=data.violations,
        contacts=data.contacts[:CONTACTS_MAX],
        contacts_left_out=max(len(data.contacts) - CONTACTS_MAX, 0),
        simulated=asked.simulated,
    )


def _stream(story: RunStory, jobs: Jobs, name: str, exited: TaskExited) -> Stream:
    captured = exited.stdout if name == "stdout" else exited.stderr
    nothing = Shown(Markup(""), Markup(""), 0, 0)
    content = shown(jobs.blobs, captured.sha256) if captured.size_bytes else nothing
    if content.trouble and story.pruned:
        content = msgspec.structs.replace(content, trouble=f"The run was pruned on {story.pruned[:10]}")
    address = file_address(story.view.id, captured.sha256, name)
    return Stream(name, captured.sha256, captured.total_bytes, captured.cut, address, content)


def _file(run_id: str, one: Artifact) -> FileRow:
    path = one.path.partition("/")[2] or one.path
    return FileRow("", path, one.size_bytes, one.checksum, file_address(run_id, one.checksum, one.path))
