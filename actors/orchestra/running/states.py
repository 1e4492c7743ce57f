"""The states of a plan's tasks. They change by steps only, and the table of steps is all that there is
(docs/design.md §14.2).

A ``Board`` is immutable and knows tasks by their index in the plan. The consequences of a step (tasks that may start
now, tasks that never will) are computed here; a step on a board of ten thousand tasks copies ten thousand characters,
no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from pmagent.contracts.orchestra import Step, TaskState
from pmagent.contracts.orchestra_events import TaskChange
from pmagent.events.errors import PmagentError

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

LETTERS: Final[Mapping[TaskState, str]] = MappingProxyType(
    {"planned": "p", "running": "r", "blocked": "b", "done": "d", "failed": "f"}
)
_FEW: Final = 64
"""For so many changes, copying the letters for each is the faster way."""
_STATES: Final[Mapping[str, TaskState]] = MappingProxyType({letter: state for state, letter in LETTERS.items()})


class IllegalStep(PmagentError):
    """A step that the task's state does not have: our bug."""

    exit_code = 70


class Order(msgspec.Struct, frozen=True):
    """The part that does not change: ids in the plan's order; for each task the indexes of those it waits for
    (``waits``) and of those that wait for it (``behind``); and the index of each id."""

    ids: list[str]
    waits: list[list[int]]
    behind: list[list[int]]
    by_id: dict[str, int]


class Board(msgspec.Struct, frozen=True):
    """Where a plan's tasks stand: ``letters`` has one for each, in the plan's order."""

    order: Order
    letters: str

    def state(self, index: int) -> TaskState:
        """The state of the task at this index."""
        return _STATES[self.letters[index]]

    def indexes(self, state: TaskState) -> list[int]:
        """The indexes of the tasks in this state, ascending."""
        return [index for index, letter in enumerate(self.letters) if letter == LETTERS[state]]

    def first(self, state: TaskState, start: int = 0) -> int:
        """The first index, from ``start`` on, of a task in this state; -1: there is none."""
        return self.letters.find(LETTERS[state], start)

    def count(self, state: TaskState) -> int:
        """How many tasks are in this state."""
        return self.letters.count(LETTERS[state])

    def is_over(self) -> bool:
        """Whether every task is done or has failed."""
        return self.count("done") + self.count("failed") == len(self.letters)

    def change(self, index: int, step: Step, reason: str = "") -> TaskChange:
        """The step as the log tells it. Raises IllegalStep when the task's state does not have it."""
        leaves, reaches = STEPS[step]
        name = self.order.ids[index]
        if self.state(index) != leaves:
            raise IllegalStep(f"the task {name} is {self.state(index)}; only one that is {leaves} can {step}")
        return TaskChange(task_id=name, step=step, state=reaches, reason=reason)

    def stepped(self, changes: Sequence[TaskChange]) -> Board:
        """The board after these changes, which are made one after another. Raises IllegalStep."""
        if len(changes) > _FEW:
            return self._stepped_many(changes)
        letters = self.letters
        for change in changes:
            index = self._checked_index(change, letters)
            letters = letters[:index] + LETTERS[change.state] + letters[index + 1 :]
        return Board(self.order, letters)

    def _stepped_many(self, changes: Iterable[TaskChange]) -> Board:
        letters = list(self.letters)
        for change in changes:
            letters[self._checked_index(change, letters)] = LETTERS[change.state]
        return Board(self.order, "".join(letters))

    def _checked_index(self, change: TaskChange, letters: Sequence[str]) -> int:
        """The index of the task that a legal change is about. Raises IllegalStep."""
        index = self.order.by_id.get(change.task_id, -1)
        if index < 0:
            raise IllegalStep(f"the task {change.task_id} is not of this plan; it cannot {change.step}")
        leaves, reaches = STEPS[change.step]
        state = _STATES[letters[index]]
        if state != leaves or change.state != reaches:
            raise IllegalStep(
                f"the task {change.task_id} is {state}; only one that is {leaves} can {change.step}, to {reaches}"
            )
        return index


def board(ids: Sequence[str], waits: Sequence[Sequence[str]], done: int = 0) -> Board:
    """The board of tasks, each waiting for those of ``waits`` at its index; the first ``done`` of them are done since
    an earlier plan, the others planned. Raises ValueError where a task waits for one that does not come before it."""
    by_id = {name: index for index, name in enumerate(ids)}
    needed = [[by_id[one] for one in names] for names in waits]
    if len(by_id) < len(ids) or any(one >= index for index, wanted in enumerate(needed) for one in wanted):
        raise ValueError("the plan's tasks do not stand in an order in which they may run")
    behind: list[list[int]] = [[] for _ in ids]
    for index, wanted in enumerate(needed):
        for one in wanted:
            behind[one].append(index)
    return Board(Order(list(ids), needed, behind, by_id), "d" * done + "p" * (len(ids) - done))


def begun(board: Board) -> list[TaskChange]:
    """The first changes: a task that waits for another that is not done is blocked."""
    return [
        board.change(index, "block")
        for index in board.indexes("planned")
        if any(board.letters[one] != "d" for one in board.order.waits[index])
    ]


def ended(board: Board, index: int, state: Literal["done", "failed"], reason: str = "") -> list[TaskChange]:
    """The changes when the running task at ``index`` has ended so: its own, and then its dependents', in the plan's
    order. Raises IllegalStep unless it ran."""
    if state == "done":
        own = board.change(index, "succeed")
        return [own, *_freed(board.stepped([own]), index)]
    own = board.change(index, "fail", reason)
    return [own, *_given_up(board, index)]


def abandoned(board: Board, reason: str) -> list[TaskChange]:
    """The changes that end every task which has not begun, because nothing begins any more."""
    changes: list[TaskChange] = []
    for index in range(len(board.letters)):
        state = board.state(index)
        if state == "planned":
            changes.append(board.change(index, "block", reason))
        if state in ("planned", "blocked"):
            name = board.order.ids[index]
            changes.append(TaskChange(task_id=name, step="give_up", state="failed", reason=reason))
    return changes


def _freed(board: Board, index: int) -> list[TaskChange]:
    """Those that waited for nothing else."""
    waits, letters = board.order.waits, board.letters
    return [
        board.change(one, "unblock")
        for one in board.order.behind[index]
        if letters[one] == "b" and all(letters[other] == "d" for other in waits[one])
    ]


def _given_up(board: Board, index: int) -> list[TaskChange]:
    """Give up all dependents of the task, direct and indirect. One that has failed already is left alone, with its own
    dependents: they were given up when it failed."""
    lost: set[int] = set()
    level = [index]
    while level:
        behind = (one for each in level for one in board.order.behind[each])
        level = list(dict.fromkeys(one for one in behind if one not in lost and board.letters[one] != "f"))
        lost.update(level)
    return [board.change(one, "give_up", DEPENDENCY_FAILED) for one in sorted(lost)]
