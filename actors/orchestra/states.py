"""The states of a run's tasks. They change by steps only, and the table of steps is all that there is (rulings D).

A run's ``Board`` is immutable. Beginning a run, starting a task and its end are the only ways to another board; what
becomes of the tasks that wait for it is computed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from actors.orchestra.graph import dependents, in_order
from contracts.orchestra import PlanAnswer, TaskState
from events.errors import PmagentError

Step = Literal["start", "succeed", "fail", "block", "unblock", "give_up"]

STEPS: Final[Mapping[Step, tuple[TaskState, TaskState]]] = MappingProxyType(
    {
        "start": ("planned", "running"),
        "succeed": ("running", "done"),
        "fail": ("running", "failed"),
        "block": ("planned", "blocked"),
        "unblock": ("blocked", "planned"),
        "give_up": ("blocked", "failed"),
    }
)
"""Step -> the state it leaves and the state it reaches. ``done`` and ``failed`` are left by none."""

ENDED: Final[frozenset[TaskState]] = frozenset(("done", "failed"))

DEPENDENCY_FAILED: Final = "dependency failed"
"""Why a task failed that never ran."""


class IllegalStep(PmagentError):
    """A step that the task's state does not have: our bug."""

    exit_code = 70


class Change(msgspec.Struct, frozen=True):
    """A task's change of state; ``reason`` is empty where the step says it all."""

    task_id: str
    step: Step
    state: TaskState
    reason: str = ""


class Board(msgspec.Struct, frozen=True):
    """Where a run's tasks stand. Keys of both mappings are the plan's tasks in its order; ``waits``: what each waits
    for. Neither is changed."""

    states: dict[str, TaskState]
    waits: dict[str, list[str]]

    def ready(self) -> list[str]:
        """The tasks that may start, in the plan's order."""
        return [name for name, state in self.states.items() if state == "planned"]

    def running(self) -> list[str]:
        """The tasks that run, in the plan's order."""
        return [name for name, state in self.states.items() if state == "running"]

    def is_over(self) -> bool:
        """Whether every task is done or has failed."""
        return all(state in ENDED for state in self.states.values())


def begun(plan: PlanAnswer) -> tuple[Board, list[Change]]:
    """The board a run begins with: every task planned, then those blocked that wait for others. Raises ValueError when
    the plan has no order; ``make_plan`` gives only plans that have one."""
    waits = {task.task_id: list(task.depends_on) for task in plan.tasks}
    if len(in_order(waits)) < len(plan.tasks):
        raise ValueError("the plan's tasks have no order")
    board = Board(dict.fromkeys(waits, "planned"), waits)
    return _stepped(board, [_change(board, name, "block") for name, needed in waits.items() if needed])


def started(board: Board, task_id: str) -> tuple[Board, list[Change]]:
    """The board when the task runs. Raises IllegalStep unless it was planned."""
    return _stepped(board, [_change(board, task_id, "start")])


def ended(board: Board, task_id: str, state: Literal["done", "failed"], reason: str = "") -> tuple[Board, list[Change]]:
    """The board when the task has ended so: the changes are its own and then its dependents', in the plan's order.
    Raises IllegalStep unless it ran."""
    board, changes = _stepped(board, [_change(board, task_id, "succeed" if state == "done" else "fail", reason)])
    board, more = _stepped(board, _freed(board, task_id) if state == "done" else _given_up(board, task_id))
    return board, changes + more


def _freed(board: Board, task_id: str) -> list[Change]:
    """Those that waited for nothing else."""
    return [
        _change(board, name, "unblock")
        for name, needed in board.waits.items()
        if task_id in needed and all(board.states[one] == "done" for one in needed)
    ]


def _given_up(board: Board, task_id: str) -> list[Change]:
    """All that waited for the task, and all that waited for those; who had failed before for another reason stays."""
    behind = dependents(board.waits)
    lost: set[str] = set()
    level = [task_id]
    while level:
        level = list(dict.fromkeys(name for one in level for name in behind[one] if name not in lost))
        lost.update(level)
    return [
        _change(board, name, "give_up", DEPENDENCY_FAILED)
        for name, state in board.states.items()
        if name in lost and state != "failed"
    ]


def _change(board: Board, task_id: str, step: Step, reason: str = "") -> Change:
    leaves, reaches = STEPS[step]
    state = board.states.get(task_id)
    if state != leaves:
        raise IllegalStep(f"the task {task_id} is {state or 'not of this run'}; only one that is {leaves} can {step}")
    return Change(task_id, step, reaches, reason)


def _stepped(board: Board, changes: Iterable[Change]) -> tuple[Board, list[Change]]:
    made = list(changes)
    return Board(board.states | {change.task_id: change.state for change in made}, board.waits), made
