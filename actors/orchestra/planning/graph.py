"""The order of tasks: who waits for whom, in which order they may run, and what makes that impossible."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from pmagent.events.errors import PmagentError

NAMES_SHOWN: Final = 8
CYCLE_SHOWN: Final = 20

Waits = Mapping[str, Sequence[str]]
"""Task id -> the ids that it waits for, in the plan's order."""


class BadPlan(PmagentError, exit_code=2):
    """A plan that cannot be run; the message names the tasks."""


class DuplicateTask(BadPlan):
    """Two tasks have one id."""


class UnknownDependency(BadPlan):
    """A task waits for one that the plan does not list."""


class SelfDependency(BadPlan):
    """A task waits for itself."""


class DependencyCycle(BadPlan):
    """Tasks wait for each other in a circle."""


def listed(names: Sequence[str]) -> str:
    """Names for a message; only the first when there are many."""
    rest = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def check_waits(ids: Sequence[str], waits: Sequence[Sequence[str]], where: str) -> None:
    """Raises what keeps the tasks ``ids``, each waiting for those of ``waits`` at its place, from having an order:
    DuplicateTask, SelfDependency, UnknownDependency or DependencyCycle, in this order."""
    known = set(ids)
    if len(known) < len(ids):
        twice = [name for name, count in Counter(ids).items() if count > 1]
        raise DuplicateTask(f"{where}: more than one task is called {listed(twice)}", "give each its own task_id")
    if own := [name for name, needed in zip(ids, waits, strict=True) if name in needed]:
        raise SelfDependency(f"{where}: waits for itself: {listed(own)}", "remove it from its own depends_on")
    lost = [f"{name} for {one}" for name, needed in zip(ids, waits, strict=True) for one in needed if one not in known]
    if lost:
        raise UnknownDependency(
            f"{where}: waits for a task that the plan does not list: {listed(lost)}",
            "correct depends_on, or add the task",
        )
    by_id = dict(zip(ids, waits, strict=True))
    if len(in_order(by_id)) < len(ids):
        circle = _cycle(by_id)
        path = circle if len(circle) <= CYCLE_SHOWN else [*circle[: CYCLE_SHOWN - 1], "…", circle[-1]]
        raise DependencyCycle(
            f"{where}: tasks wait for each other in a circle: {' -> '.join(path)} (each for the next)",
            "remove one of these dependencies",
        )


def dependents(waits: Waits) -> dict[str, list[str]]:
    """Task id -> those that wait for it, in the plan's order."""
    made: dict[str, list[str]] = {name: [] for name in waits}
    for name, needed in waits.items():
        for one in needed:
            made[one].append(name)
    return made


def in_order(waits: Waits) -> list[str]:
    """The tasks so that each comes after all that it waits for, and among those that may come next the plan's first.
    Tasks in a circle, and what waits for them, are left out."""
    place = {name: number for number, name in enumerate(waits)}
    names, behind = list(waits), dependents(waits)
    missing = {name: len(needed) for name, needed in waits.items()}
    ready = [place[name] for name, count in missing.items() if count == 0]
    order = []
    while ready:
        name = names[heapq.heappop(ready)]
        order.append(name)
        for one in behind[name]:
            missing[one] -= 1
            if missing[one] == 0:
                heapq.heappush(ready, place[one])
    return order


def in_levels(waits: Waits) -> list[list[str]]:
    """The tasks by the length of the longest way to them: those of a level wait only for earlier levels."""
    level: dict[str, int] = {}
    levels: list[list[str]] = []
    for name in in_order(waits):
        level[name] = max((level[one] + 1 for one in waits[name]), default=0)
        while len(levels) <= level[name]:
            levels.append([])
    for name in waits:
        levels[level[name]].append(name)
    return levels


def _cycle(waits: Waits) -> list[str]:
    """One circle, its first task again at the end. There is one."""
    sound = set(in_order(waits))
    place: dict[str, int] = {}
    way: list[str] = []
    name = next(one for one in waits if one not in sound)
    while name not in place:
        place[name] = len(way)
        way.append(name)
        name = next(one for one in waits[name] if one not in sound)
    return [*way[place[name] :], name]
