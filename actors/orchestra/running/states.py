"""The states of a plan's tasks. They change by steps only, and the table of steps is all that there is
(docs/design.md §14.2).

A ``Board`` is immutable and knows tasks by their place in the plan. What a step leads to (who may start now, who never
will) is computed here; a board of ten thousand tasks costs a copy of ten thousand characters a step, no more.
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
    """What does not change: the tasks' ids in the plan's order, the places of those that each waits for, of those that
    wait for each, and the place of each id."""

    ids: list[str]
    waits: list[list[int]]
    behind: list[list[int]]
    places: dict[str, int]


class Board(msgspec.Struct, frozen=True):
    """Where a plan's tasks stand: ``letters`` has one for each, in the plan's order."""

    order: Order
    letters: str

    def state(self, place: int) -> TaskState:
        """The state of the task at this place."""
        return _STATES[self.letters[place]]

    def places(self, state: TaskState) -> list[int]:
        """The places of the tasks in this state, in order."""
        return [place for place, letter in enumerate(self.letters) if letter == LETTERS[state]]

    def first(self, state: TaskState, start: int = 0) -> int:
        """The first place, from ``start`` on, of a task in this state; -1: there is none."""
        return self.letters.find(LETTERS[state], start)

    def count(self, state: TaskState) -> int:
        """How many tasks are in this state."""
        return self.letters.count(LETTERS[state])

    def is_over(self) -> bool:
        """Whether every task is done or has failed."""
        return self.count("done") + self.count("failed") == len(self.letters)

    def change(self, place: int, step: Step, reason: str = "") -> TaskChange:
        """The step as the log tells it. Raises IllegalStep when the task's state does not have it."""
        leaves, reaches = STEPS[step]
        name = self.order.ids[place]
        if self.state(place) != leaves:
            raise IllegalStep(f"the task {name} is {self.state(place)}; only one that is {leaves} can {step}")
        return TaskChange(task_id=name, step=step, state=reaches, reason=reason)

    def stepped(self, changes: Sequence[TaskChange]) -> Board:
        """The board after these changes, which are made one after another. Raises IllegalStep."""
        if len(changes) > _FEW:
            return self._stepped_many(changes)
        letters = self.letters
        for change in changes:
            place = self._held(change, letters)
            letters = letters[:place] + LETTERS[change.state] + letters[place + 1 :]
        return Board(self.order, letters)

    def _stepped_many(self, changes: Iterable[TaskChange]) -> Board:
        letters = list(self.letters)
        for change in changes:
            letters[self._held(change, letters)] = LETTERS[change.state]
        return Board(self.order, "".join(letters))

    def _held(self, change: TaskChange, letters: Sequence[str]) -> int:
        """The place of a change, held against the table."""
        place = self.order.places.get(change.task_id, -1)
        if place < 0:
            raise IllegalStep(f"the task {change.task_id} is not of this plan; it cannot {change.step}")
        leaves, reaches = STEPS[change.step]
        state = _STATES[letters[place]]
        if state != leaves or change.state != reaches:
            raise IllegalStep(
                f"the task {change.task_id} is {state}; only one that is {leaves} can {change.step}, to {reaches}"
            )
        return place


def board(ids: Sequence[str], waits: Sequence[Sequence[str]], done: int = 0) -> Board:
    """The board of tasks, each waiting for those of ``waits`` at its place; the first ``done`` of them are done since
    an earlier plan, the others planned. Raises ValueError where a task waits for one that does not come before it."""
    places = {name: place for place, name in enumerate(ids)}
    needed = [[places[one] for one in names] for names in waits]
    if len(places) < len(ids) or any(one >= place for place, wanted in enumerate(needed) for one in wanted):
        raise ValueError("the plan's tasks do not stand in an order in which they may run")
    behind: list[list[int]] = [[] for _ in ids]
    for place, wanted in enumerate(needed):
        for one in wanted:
            behind[one].append(place)
    return Board(Order(list(ids), needed, behind, places), "d" * done + "p" * (len(ids) - done))


def begun(board: Board) -> list[TaskChange]:
    """The first changes: who waits for another that is not done is blocked."""
    return [
        board.change(place, "block")
        for place in board.places("planned")
        if any(board.letters[one] != "d" for one in board.order.waits[place])
    ]


def ended(board: Board, place: int, state: Literal["done", "failed"], reason: str = "") -> list[TaskChange]:
    """The changes when the running task at ``place`` has ended so: its own, and then its dependents', in the plan's
    order. Raises IllegalStep unless it ran."""
    if state == "done":
        own = board.change(place, "succeed")
        return [own, *_freed(board.stepped([own]), place)]
    own = board.change(place, "fail", reason)
    return [own, *_given_up(board, place)]


def abandoned(board: Board, reason: str) -> list[TaskChange]:
    """The changes that end every task which has not begun, because nothing begins any more."""
    changes: list[TaskChange] = []
    for place in range(len(board.letters)):
        state = board.state(place)
        if state == "planned":
            changes.append(board.change(place, "block", reason))
        if state in ("planned", "blocked"):
            name = board.order.ids[place]
            changes.append(TaskChange(task_id=name, step="give_up", state="failed", reason=reason))
    return changes


def _freed(board: Board, place: int) -> list[TaskChange]:
    """Those that waited for nothing else."""
    waits, letters = board.order.waits, board.letters
    return [
        board.change(one, "unblock")
        for one in board.order.behind[place]
        if letters[one] == "b" and all(letters[other] == "d" for other in waits[one])
    ]


def _given_up(board: Board, place: int) -> list[TaskChange]:
    """All that waited for the task, and all that waited for those; who had failed before stays, and so does who waited
    for him: that was given up then."""
    lost: set[int] = set()
    level = [place]
    while level:
        behind = (one for each in level for one in board.order.behind[each])
        level = list(dict.fromkeys(one for one in behind if one not in lost and board.letters[one] != "f"))
        lost.update(level)
    return [board.change(one, "give_up", DEPENDENCY_FAILED) for one in sorted(lost)]
