"""What a projection is: a document that is a pure function of a prefix of the log (DESIGN §4)."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import msgspec

from events.event import Event

S = TypeVar("S")


class Projection(Protocol[S]):
    """Folds events into what people read. Pure; times in documents are event times."""

    @property
    def name(self) -> str:
        """Its name in the snapshot cache."""
        ...

    @property
    def hears(self) -> frozenset[type[msgspec.Struct]]:
        """The payload types that it folds; others cannot change its documents."""
        ...

    def initial(self) -> S:
        """The state before the first event: an immutable ``msgspec.Struct`` with declared field types."""
        ...

    def evolve(self, state: S, event: Event, sum: str) -> S:
        """The state after ``event``, whose line has this sum."""
        ...

    def render(self, state: S) -> dict[str, bytes]:
        """The documents: path relative to the workspace -> content."""
        ...


AnyProjection = Projection[Any]
