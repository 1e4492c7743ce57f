"""The states of a plan's tasks. They change by steps only, and the table of steps is all that there is
(docs/design.md §14.2).

A ``Board`` is immutable and knows tasks by their index in the plan. The consequences of a step (tasks that may start
now, tasks that never will) are computed here; a step on a board of ten thousand tasks copies ten thousand characters,
no more.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from pmagent.actors.orchestra.planning.conditions import holds
from pmagent.contracts.orchestra import Step, TaskOptions, TaskState
from pmagent.contracts.orchestra_events import TaskChange
from pmagent.events.errors import PmagentError

STEPS: Final[Mapping[Step, tuple[TaskState, TaskState]]] = MappingProxyType(
    {
        "start": ("planned", "running"), "succeed": ("running", "done"), "fail": ("running", "failed"),
        "block": ("planned", "blocked"), "unblock": ("blocked", "planned"), "give_up": ("blocked", "failed"),
        "skip": ("blocked", "done"),
    }
)
"""Step -> the state it leaves and the state it reaches. ``done`` and ``failed`` are left by none."""

ENDED: Final[frozenset[TaskState]] = frozenset(("done", "failed"))

MAY_FAIL: Final = "continue_on_error"
WHY_CHARS_MAX: Final = 200
NO_OPTIONS: Final[Mapping[int, TaskOptions]] = MappingProxyType({})
DEPENDENCY_FAILED: Final = "dependency failed"
"""Why a task failed that never ran."""

LETTERS: Final[Mapping[TaskState, str]] = MappingProxyType(
    {"planned": "p", "running": "r", "blocked": "b", "done": "d", "failed": "f"}
)
SKIPPED: Final = "s"
"""Done without having run, because its condition did not hold: a letter of its own, for who waits for it."""
TOLERATED: Final = "t"
"""Failed, and may: who waits for it goes on as if it were done."""
_FEW: Final = 64
"""For so many changes, copying the letters for each is the faster way."""
_STATES: Final[Mapping[str, TaskState]] = MappingProxyType(
    {**{letter: state for state, letter in LETTERS.items()}, SKIPPED: "done", TOLERATED: "failed"}
)


class IllegalStep(PmagentError, exit_code=70):
    """A step that the task's state does not have: our bug."""


class Order(msgspec.Struct, frozen=True):
    """The part that does not change: ids in the plan's order; for each task the indexes of those it waits for
    (``waits``) and of those that wait for it (``behind``); the index of each id; the conditions of tasks that have one;
    and the tasks that may fail."""

    ids: list[str]
    waits: list[list[int]]
    behind: list[list[int]]
    by_id: dict[str, int]
    conditions: dict[int, str] = {}
    tolerated: list[int] = []


class Board(msgspec.Struct, frozen=True):
    """Where a plan's tasks stand: ``letters`` has one for each, in the plan's order."""

    order: Order
    letters: str

    def state(self, index: int) -> TaskState:
        """The state of the task at this index."""
        return _STATES[self.letters[index]]

    def indexes(self, state: TaskState) -> list[int]:
        """The indexes of the tasks in this state, ascending."""
        return [index for index, letter in enumerate(self.letters) if _STATES[letter] == state]

    def finished(self) -> list[int]:
        """The indexes of the tasks that ran and are done, ascending."""
        return [index for index, letter in enumerate(self.letters) if letter == LETTERS["done"]]

    def first(self, state: TaskState, start: int = 0) -> int:
        """The first index, from ``start`` on, of a task in this state; -1: there is none."""
        return self.letters.find(LETTERS[state], start)

    def count(self, state: TaskState) -> int:
        """How many tasks are in this state."""
        return sum(self.letters.count(letter) for letter, shown in _STATES.items() if shown == state)

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
            letters = letters[:index] + self._letter(change, index) + letters[index + 1 :]
        return Board(self.order, letters)

    def _stepped_many(self, changes: Iterable[TaskChange]) -> Board:
        letters = list(self.letters)
        for change in changes:
            index = self._checked_index(change, letters)
            letters[index] = self._letter(change, index)
        return Board(self.order, "".join(letters))

    def _letter(self, change: TaskChange, index: int) -> str:
        if change.step == "skip":
            return SKIPPED
        return TOLERATED if change.step == "fail" and index in self.order.tolerated else LETTERS[change.state]

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


def board(
    ids: Sequence[str], waits: Sequence[Sequence[str]], done: int = 0, options: Mapping[int, TaskOptions] = NO_OPTIONS
) -> Board:
    """The board of tasks, each waiting for those of ``waits`` at its index; the first ``done`` of them are done since
    an earlier plan, the others planned. ``options`` of tasks that have some, by index. A task that is done may have
    followed one that failed, and that this plan has no more. Raises ValueError where a task waits for one that does not
    come before it."""
    by_id = {name: index for index, name in enumerate(ids)}
    needed = [[by_id[one] for one in names if index >= done or one in by_id] for index, names in enumerate(waits)]
    if len(by_id) < len(ids) or any(one >= index for index, wanted in enumerate(needed) for one in wanted):
        raise ValueError("the plan's tasks do not stand in an order in which they may run")
    behind: list[list[int]] = [[] for _ in ids]
    for index, wanted in enumerate(needed):
        for one in wanted:
            behind[one].append(index)
    conditions = {index: own.condition for index, own in options.items() if own.condition}
    tolerated = [index for index, own in options.items() if own.continue_on_error]
    order = Order(list(ids), needed, behind, by_id, conditions, tolerated)
    return Board(order, "d" * done + "p" * (len(ids) - done))


def begun(board: Board) -> list[TaskChange]:
    """The first changes: a task that waits for another that is not done is blocked; one whose condition does not hold
    is skipped."""
    if board.order.conditions:
        return _begun_by_conditions(board)
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
        return [own, *succeeded(board.stepped([own]), index)]
    if board.order.conditions or board.order.tolerated:
        text = f"{reason} ({MAY_FAIL})" if index in board.order.tolerated else reason
        own = board.change(index, "fail", text)
        return [own, *_settled(board.stepped([own]), index)]
    own = board.change(index, "fail", reason)
    return [own, *_given_up(board, index)]


def succeeded(board: Board, index: int) -> list[TaskChange]:
    """The changes of a task's dependents, in the plan's order, when it is done."""
    settle = _settled if board.order.conditions or board.order.tolerated else _freed
    return settle(board, index)


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


def _begun_by_conditions(board: Board) -> list[TaskChange]:
    changes: list[TaskChange] = []
    for index in board.indexes("planned"):
        step = _next_step(board, index)
        if step != "unblock":
            own = [board.change(index, "block")]
            board = board.stepped(own)
            if step is not None:
                own.append(board.change(index, step, _why(board, index, step)))
                board = board.stepped(own[1:])
            changes += own
    return changes


def _settled(board: Board, index: int) -> list[TaskChange]:
    """The changes of all that waits for the task at ``index``, which has ended: freed, skipped or given up, and what
    waits for those, in the plan's order."""
    changes: list[TaskChange] = []
    pending = list(board.order.behind[index])  # ascending, and so a heap
    while pending:
        one = heapq.heappop(pending)
        step = _next_step(board, one) if board.letters[one] == LETTERS["blocked"] else None
        if step is not None:
            own = board.change(one, step, _why(board, one, step))
            board = board.stepped([own])
            changes.append(own)
            if step != "unblock":
                for other in board.order.behind[one]:
                    heapq.heappush(pending, other)
    return changes


def _next_step(board: Board, index: int) -> Literal["unblock", "skip", "give_up"] | None:
    """The step of a blocked task, from how those that it waits for have ended; None: it waits on."""
    letters = [board.letters[one] for one in board.order.waits[index]]
    condition = board.order.conditions.get(index, "")
    failed = LETTERS["failed"] in letters
    if failed and not condition:
        return "give_up"
    if any(_STATES[letter] not in ENDED for letter in letters):
        return None
    success = all(letter in (LETTERS["done"], TOLERATED) for letter in letters)
    if condition:
        return "unblock" if holds(condition, success=success, failure=_follows_failure(board, index)) else "skip"
    return "unblock" if success else "skip"


def _follows_failure(board: Board, index: int) -> bool:
    """Whether a task that it waits for has failed, or one further up."""
    if LETTERS["failed"] not in board.letters:
        return False
    seen: set[int] = set()
    pending = [index]
    while pending:
        for one in board.order.waits[pending.pop()]:
            if board.letters[one] == LETTERS["failed"]:
                return True
            if one not in seen:
                seen.add(one)
                pending.append(one)
    return False


def _why(board: Board, index: int, step: Step) -> str:
    if step == "give_up":
        return DEPENDENCY_FAILED
    if step == "skip":
        condition = board.order.conditions.get(index, "")
        return f"skipped: if: {condition}"[:WHY_CHARS_MAX] if condition else "skipped: what it waits for was skipped"
    return ""


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
