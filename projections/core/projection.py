"""Projections: documents that are a pure function of a prefix of the log (docs/design.md §7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from pmagent.contracts.content import Content
from pmagent.events.errors import PmagentError
from pmagent.events.event import Event

S = TypeVar("S")
T = TypeVar("T")


class Halt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A halted projection: its code raised, so its documents show nothing from position ``since`` on. ``error`` is the
    exception's type, ``place`` module and function; its text is not kept."""

    projection: str
    since: int
    error: str
    place: str


class ProjectionHalted(PmagentError, exit_code=70):
    """The request reads documents of a halted projection, which are stale."""

    def __init__(self, halt: Halt) -> None:
        super().__init__(
            f"the projection {halt.projection} is halted ({halt.error} in {halt.place}), so its documents are stale "
            f"since position {halt.since}",
            "the log is unharmed; start a version that does not fail, which writes them anew; report it",
        )
        self.halt = halt


class Guard(Protocol):
    """Keeps what one projection raises from everything else."""

    name: str
    """The projection's."""

    @property
    def halted(self) -> bool:
        """Whether the projection is halted: none of its documents counts any more."""

    def halt(self, error: Exception) -> None:
        """Halt it. For any thread."""


class Part(NamedTuple):
    """A document that is not computed yet: ``render(*given)`` does that, in any thread, for what is given is
    immutable. ``owner``: the part of its path that holds this name, and all behind it, is nobody else's ("": none).
    ``gone``: it was pruned, so nothing may be at its path or below.
    ``guard`` is its projection's: what cannot be computed, or put on disk for a bug of ours, halts that one."""

    render: Callable[..., Content]
    given: tuple[Any, ...]
    owner: str = ""
    guard: Guard | None = None
    gone: bool = False

    def content(self) -> Content:
        """Compute it."""
        return self.render(*self.given)

    @property
    def halted(self) -> bool:
        """Whether the document's projection is halted."""
        return self.guard is not None and self.guard.halted

    def guarded(self, use: Callable[[], T], otherwise: T) -> T:
        """``use()``; ``otherwise`` when the document's projection is halted, before or by what ``use`` raises.
        A PmagentError is no bug of a projection, and is raised."""
        if self.guard is None:
            return use()
        if self.halted:
            return otherwise
        try:
            return use()
        except PmagentError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a projection's code raises halts that projection alone
            self.guard.halt(error)
            return otherwise


class Projection(Protocol[S]):
    """Folds events into what people read. Pure; times in documents are event times."""

    @property
    def name(self) -> str:
        """Its name in the snapshot cache."""

    @property
    def hears(self) -> frozenset[type[msgspec.Struct]]:
        """The payload types that it folds; others cannot change its documents."""

    def initial(self) -> S:
        """The state before the first event: an immutable ``msgspec.Struct`` with declared field types."""

    def evolve(self, state: S, event: Event, sum: str) -> S:
        """The state after ``event``, whose line has this sum."""

    def retire(self, state: S) -> S:
        """The state without what is final and old; ``state`` itself where that is nothing. Asked after each event, so
        that a state does not grow with the log; what it leaves out has been given out before."""

    def documents(self, state: S, since: S | None) -> dict[str, Part]:
        """The documents of ``state``: path relative to the workspace -> how it is computed. Those that are as in the
        earlier state ``since`` may be left out."""


AnyProjection = Projection[Any]
