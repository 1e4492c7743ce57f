"""Documents that are computed from equal values are computed once: live ones, those of the next process, and those that
they are held against. That what is computed depends on nothing else is looked at in the end, where all are computed
afresh (``Watch.check_documents``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from pmagent.contracts.content import Content


class Part(Protocol):
    """A document that is not computed yet (``pmagent.projections.core.projection``)."""

    @property
    def given(self) -> tuple[Any, ...]:
        """Immutable values that it follows from."""

    @property
    def render(self) -> Callable[..., Content]:
        """How it does."""

    @property
    def halted(self) -> bool:
        """Whether its projection is."""
        ...

    def guarded(self, use: Callable[[], Content | None], otherwise: Content | None) -> Content | None:
        """``use()``; ``otherwise`` when its projection is halted, before or by what ``use`` raises."""


class Rendering:
    """The content of each path when it was computed last, and the values that it followed from."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Callable[..., Content], tuple[Any, ...], Content]] = {}

    def computed(self, documents: Mapping[str, Part]) -> dict[str, Content]:
        """Path -> content; without those of halted projections."""
        found: dict[str, Content] = {}
        for path, part in documents.items():
            if (known := self._known.get(path)) is not None and known[0] is part.render and known[1] == part.given:
                self._known[path] = part.render, part.given, known[2]  # mostly the very same values the next time
                content = None if part.halted else known[2]
            else:
                content = part.guarded(partial(self._content, path, part), None)
            if content is not None:
                found[path] = content
        return found

    def _content(self, path: str, part: Part) -> Content:
        content = part.render(*part.given)
        self._known[path] = part.render, part.given, content
        return content
