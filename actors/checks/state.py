"""The checker's state: requests that are not answered yet, and the progress of each of their checks; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec
from msgspec.structs import replace

from pmagent.contracts.checks import CheckKind, CheckRequested, CheckResult, ConfiguredCheck, scope_of


class Item(msgspec.Struct, frozen=True):
    """One check of a request. ``at`` is the position of the permit's or the run's request that it waits for the end of;
    ``attempts`` is how often a permit was asked for it; ``result`` is there when it is done."""

    check: ConfiguredCheck
    doing: Literal["queued", "permit", "run", "done"] = "queued"
    at: int = 0
    attempts: int = 0
    result: CheckResult | None = None


class Open(msgspec.Struct, frozen=True):
    """A request that is not answered yet."""

    request: int
    correlation: str
    kind: CheckKind
    seconds: float
    reads: list[str]
    items: list[Item]

    @property
    def results(self) -> list[CheckResult]:
        """Of the checks that are done, in the order of the request."""
        return [item.result for item in self.items if item.result is not None]

    @property
    def done(self) -> bool:
        """Whether every check is."""
        return all(item.doing == "done" for item in self.items)

    def subject(self, item: Item) -> str:
        """The subject of a check's permit."""
        return scope_of(self.kind, item.check.name).subject


class CheckerState(msgspec.Struct, frozen=True):
    """Open requests by position, the oldest first."""

    open: dict[int, Open] = {}

    def each(self) -> Iterator[tuple[Open, Item]]:
        """Every check of every open request, the oldest request first."""
        return ((one, item) for one in self.open.values() for item in one.items)

    @property
    def active(self) -> int:
        """How many checks hold one of the places: they run, or a permit has been asked for them."""
        return sum(item.doing in ("permit", "run") for _, item in self.each())

    def waiting(self, position: int) -> tuple[Open, Item] | None:
        """The check that waits for the end of what was requested at ``position``."""
        found = ((one, item) for one, item in self.each() if item.at == position and item.doing in ("permit", "run"))
        return next(found, None)


def begun(state: CheckerState, request: int, correlation: str, asked: CheckRequested) -> CheckerState:
    """With a request taken."""
    items = [Item(check) for check in asked.checks]
    one = Open(request, correlation, asked.kind, asked.seconds, asked.reads, items)
    return CheckerState({**state.open, request: one})


def closed(state: CheckerState, request: int) -> CheckerState:
    """Without the request at this position, if it is open."""
    if request not in state.open:
        return state
    return CheckerState({at: one for at, one in state.open.items() if at != request})


def permit_asked(state: CheckerState, position: int, correlation: str, subject: str) -> CheckerState:
    """A permit has been asked for, for the first check in the queue that it fits."""
    for one, item in state.each():
        if item.doing == "queued" and one.correlation == correlation and one.subject(item) == subject:
            asked = replace(item, doing="permit", at=position, attempts=item.attempts + 1)
            return _changed(state, one, item, asked)
    return state


def run_asked(state: CheckerState, position: int, request: int, name: str) -> CheckerState:
    """The check called ``name`` of a request has its permit, and is to be run."""
    return _where(
        state,
        lambda one, item: one.request == request and item.doing == "permit" and item.check.name == name,
        lambda item: replace(item, doing="run", at=position),
    )


def ended(state: CheckerState, position: int, result: CheckResult) -> CheckerState:
    """The check that waited for ``position`` is done."""
    return _where(
        state,
        lambda _, item: item.at == position and item.doing in ("permit", "run"),
        lambda item: replace(item, doing="done", at=0, result=result),
    )


def queued_again(state: CheckerState, position: int) -> CheckerState:
    """The check that waited for ``position`` is queued again."""
    return _where(
        state,
        lambda _, item: item.at == position and item.doing in ("permit", "run"),
        lambda item: replace(item, doing="queued", at=0),
    )


def _where(state: CheckerState, which: Callable[[Open, Item], bool], change: Callable[[Item], Item]) -> CheckerState:
    for one, item in state.each():
        if which(one, item):
            return _changed(state, one, item, change(item))
    return state


def _changed(state: CheckerState, one: Open, old: Item, new: Item) -> CheckerState:
    items = [new if item is old else item for item in one.items]
    return CheckerState({**state.open, one.request: replace(one, items=items)})
