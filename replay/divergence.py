"""Findings of a replay: where today's code decides otherwise than the log says, readable for people
(docs/design.md §8)."""

from __future__ import annotations

from difflib import unified_diff
from typing import Final, Literal

import msgspec

from pmagent.contracts.otherwise import Listed
from pmagent.events.event import Event

LISTED_MAX: Final = 1000
"""So many divergences are kept one by one; all are counted."""

LINES_MAX: Final = 200
"""A diff shows at most so many lines."""

DivergenceKind = Literal["changed", "missing", "extra"]


class Divergence(msgspec.Struct, frozen=True):
    """One difference between what the log records and what is decided now.

    ``changed``: another type, data or correlation; ``missing``: decided now, not in the log; ``extra``: in the log, not
    decided now. ``position`` is the recorded event's, or where the missing one would stand. ``about`` is the actor
    concerned (for the engine's own decisions the one they are about). ``expected`` is decided now.
    """

    kind: DivergenceKind
    position: int
    about: str
    expected: Event | None
    recorded: Event | None

    @property
    def shown(self) -> Event:
        """The event that stands for the difference: the recorded one, or else the missing one."""
        event = self.recorded or self.expected
        assert event is not None, "a divergence has one side at least"
        return event

    def lines(self) -> list[str]:
        """The divergence in one line, then the difference: ``-`` is decided now, ``+`` stands in the log."""
        event = self.shown
        found = unified(pretty(self.expected), pretty(self.recorded), "decided now", "recorded")
        return [f"position {self.position}, actor {event.actor}: {_SAYS[self.kind].format(event.type)}", *found]


_SAYS: Final[dict[DivergenceKind, str]] = {
    "changed": "{} was recorded otherwise than it is decided now",
    "missing": "{} is decided now and was not recorded",
    "extra": "{} was recorded and is not decided now",
}


def unified(before: list[str], after: list[str], before_name: str, after_name: str) -> list[str]:
    """The unified diff of two texts in lines, ``LINES_MAX`` at most."""
    found = list(unified_diff(before, after, before_name, after_name, n=3, lineterm=""))
    if len(found) > LINES_MAX:
        found[LINES_MAX:] = [f"… {len(found) - LINES_MAX} more lines"]
    return found


def pretty(event: Event | None) -> list[str]:
    """The parts of a decision that replay compares, as indented JSON lines; [] for None."""
    if event is None:
        return []
    parts = {
        "id": event.id, "actor": event.actor, "type": event.type, "correlation": event.correlation,
        "data": msgspec.Raw(event.raw),
    }
    return msgspec.json.format(msgspec.json.encode(parts), indent=2).decode().splitlines()


class DivergenceCount(msgspec.Struct, frozen=True):
    """How often decisions of ``type`` by ``actor`` differed in the way of ``kind``."""

    actor: str
    type: str
    kind: DivergenceKind
    count: int


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    """The extent of a replay and its result. ``equal`` means: no difference but those that are listed.

    ``events`` were read, ``decisions`` of them compared; ``position`` is the last one read. ``unfinished``: decisions
    that the log does not hold yet because it ends inside a reaction; recovery adds them, so they are no divergence.
    ``divergences`` are the first ``LISTED_MAX`` (only one unless what-if), ``counts`` counts all. ``stopped`` says why
    the history could not be followed to its end ("": it was). ``undecided``: actors that decided something in the log
    and were not to be asked now; nothing is known of their decisions. ``otherwise``: differences that a later release
    lists as made on purpose; they are no divergences.
    """

    events: int
    decisions: int
    position: int
    unfinished: int
    divergences: list[Divergence]
    counts: list[DivergenceCount]
    stopped: str = ""
    undecided: list[str] = []
    otherwise: list[Listed] = []

    @property
    def equal(self) -> bool:
        """Whether every decision is made again as it was recorded, or otherwise as listed."""
        return not self.divergences and not self.stopped and not self.undecided
