"""A run as its documents show it: folded from its events, immutable, and small for the snapshot cache."""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal

import msgspec

from pmagent.contracts.content import Growing
from pmagent.contracts.orchestra import Artifact, TaskOptions, TaskState
from pmagent.contracts.orchestra_events import PlannedTask, RunRequested
from pmagent.projections.runs.chunks import Chunks
from pmagent.projections.views.jobs import JobView

TRIES_MAX: Final = 20
"""So many of a task's attempts are remembered, the newest."""
SAID_MAX: Final = 50
"""Of so many failed tasks are the last lines remembered."""
LINE_CHARS_MAX: Final = 400
NOTES_MAX: Final = 200
"""So many different notes, contacts, violations and replaced tasks of a run are remembered; of others, the number."""

class Try(msgspec.Struct, frozen=True, array_like=True):
    """An attempt of a task. ``ended`` and ``reason`` are empty while it runs, ``reason`` also when it succeeded;
    ``retry_at`` is when the next begins ("": there is none)."""

    attempt: int
    at: str
    ended: str = ""
    reason: str = ""
    retry_at: str = ""
    exit_code: int | None = None
    signal: int | None = None
    duration_ms: int = 0


class Task(msgspec.Struct, frozen=True, array_like=True):
    """A task of the newest plan; what was planned stands in the plan, at the same place.

    Times are log times, "" for not yet. ``attempts`` begun, ``uncounted`` of them cut off by an orderly stop;
    ``duration_ms`` of all. ``left``: place of its artifacts in the run's ``left``; -1: it has not ended.
    """

    created: str
    state: TaskState = "planned"
    reason: str = ""
    started: str = ""
    ended: str = ""
    attempts: int = 0
    uncounted: int = 0
    exit_code: int | None = None
    duration_ms: int = 0
    tries: list[Try] = []
    left: int = -1

    @property
    def word(self) -> str:
        """Its state for people: a task that is done without having run, because its condition did not hold, was
        skipped, and says why."""
        return "skipped" if self.state == "done" and self.reason.startswith("skipped") else self.state

    @property
    def retry_at(self) -> str:
        """When its next attempt begins; "" while it does not wait for one."""
        return self.tries[-1].retry_at if self.state == "running" and self.tries else ""


class Left(msgspec.Struct, frozen=True, array_like=True):
    """The output of a task: artifacts with paths in the task's own folder below the run's, none in another's way; it
    was told of at ``position``."""

    task_id: str
    name: str
    artifacts: list[Artifact] = []
    position: int = 0


class Plan(msgspec.Struct, frozen=True):
    """The newest plan, in an order in which its tasks may run; those kept from earlier ones come first."""

    plan_id: str
    tasks: list[PlannedTask]


class Revision(msgspec.Struct, frozen=True, array_like=True):
    """A plan that was made: how many tasks were planned for it, and how many kept from before."""

    revision: int
    plan_id: str
    at: str
    tasks: int
    kept: int


class Replaced(msgspec.Struct, frozen=True, array_like=True):
    """A task that a later plan has let go: failed, or never begun."""

    revision: int
    name: str
    reason: str
    state: TaskState = "failed"


class Asking(msgspec.Struct, frozen=True, array_like=True):
    """The cost of the planner: calls, milliseconds, tokens and US dollars as far as it told them."""

    calls: int = 0
    duration_ms: int = 0
    tokens: int | None = None
    cost_usd: float | None = None


class Contacts(msgspec.Struct, frozen=True, array_like=True):
    """Connections of all tasks that were asked for alike: how many, and bytes."""

    host: str
    port: int
    verdict: Literal["allowed", "refused"]
    reason: str
    count: int
    bytes_out: int
    bytes_in: int


class Counted(msgspec.Struct, frozen=True):
    """Texts, each once, in the order in which they were said first; ``more`` others are only counted."""

    texts: list[str] = []
    more: int = 0

    def noted(self, text: str) -> Counted:
        """The same with ``text``."""
        if text in self.texts:
            return self
        if len(self.texts) >= NOTES_MAX:
            return Counted(self.texts, self.more + 1)
        return Counted([*self.texts, text], self.more)


class Run(JobView, frozen=True, kw_only=True):
    """A run; ``asked`` is without its plan, ``given`` says whether it had one.

    ``revision`` is that of the plan that was asked for last; ``call``: the number of the planner's call that is open
    (0: none). ``coming``: tasks of a plan that is not complete yet. ``places``: task id -> place in the plan.
    ``running``: position of an attempt's request -> its task. ``last_lines``: the last lines of tasks that failed.
    """

    asked: RunRequested
    given: bool
    doing: Literal["planning", "permit", "running", "stopping", "over"] = "planning"
    permit: int = 0
    begun: str = ""
    revision: int = 0
    call: int = 0
    revisions: list[Revision] = []
    coming: list[PlannedTask] = []
    coming_at: str = ""
    plan: Plan | None = None
    places: dict[str, int] = {}
    tasks: Chunks[Task] = Chunks()
    left: Chunks[Left] = Chunks()
    running: dict[int, str] = {}
    replaced: list[Replaced] = []
    replaced_more: int = 0
    asking: Asking = Asking()
    last_lines: dict[str, list[str]] = {}
    notes: Counted = Counted()
    violations: Counted = Counted()
    contacts: list[Contacts] = []
    contacts_more: int = 0
    log: Growing = Growing()

    @property
    def so_far(self) -> str:
        """See JobView."""
        return f"{self.counts['done']} of {len(self.tasks)}" if len(self.tasks) else ""

    @property
    def weight(self) -> int:
        """Its tasks."""
        return len(self.tasks)

    @property
    def planned_tasks(self) -> list[PlannedTask]:
        """The newest plan's tasks; none before there is one."""
        return self.plan.tasks if self.plan is not None else []

    @property
    def pairs(self) -> list[tuple[Task, PlannedTask]]:
        """The newest plan's tasks as they stand, each with what was planned."""
        return list(zip(self.tasks, self.planned_tasks, strict=True))

    @property
    def counts(self) -> Counter[TaskState]:
        """How many of the newest plan's tasks stand how."""
        return Counter(task.state for task in self.tasks)

    @property
    def tolerated(self) -> int:
        """How many of its tasks have failed and may, so that they count neither as done nor as failed."""
        failed = [one.options for task, one in self.pairs if task.state == "failed" and task.attempts]
        return sum(isinstance(own, TaskOptions) and own.continue_on_error for own in failed)

    def cut(self, task: Task) -> list[Artifact]:
        """The files of a task in which bytes are missing, by their paths in its own folder."""
        left = self.left[task.left].artifacts if task.left >= 0 else []
        return [msgspec.structs.replace(one, path=one.path.partition("/")[2]) for one in left if one.gap_bytes]
