"""What a projection is: documents that are a pure function of a prefix of the log (DESIGN §4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from contracts.content import Content
from events.event import Event

S = TypeVar("S")


class Part(NamedTuple):
    """A document that is not computed yet: ``render(*given)`` does that, in any thread, for what is given is
    immutable. ``owner``: the part of its path that holds this name, and all behind it, is nobody else's ("": none)."""

    render: Callable[..., Content]
    given: tuple[Any, ...]
    owner: str = ""

    def content(self) -> Content:
        """Compute it."""
        return self.render(*self.given)


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

    def retire(self, state: S) -> S:
        """The state without what is final and old; ``state`` itself where that is nothing. Asked after each event, so
        that a state does not grow with the log; what it leaves out has been given out before."""
        ...

    def documents(self, state: S, since: S | None) -> dict[str, Part]:
        """The documents of ``state``: path relative to the workspace -> how it is computed. Those that are as in the
        earlier state ``since`` may be left out."""
        ...


AnyProjection = Projection[Any]
