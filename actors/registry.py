"""The actors of all areas."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import pmagent.actors.known  # noqa: F401 - an actor hears types of other areas, too
from pmagent.actors.areas import AREAS
from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.area import Area, load


def all_actors(areas: Iterable[Area] = AREAS) -> list[AnyActor]:
    """One of each, in the order in which they take an event (docs/design.md §3.2). The gate comes before them."""
    return [load(actor)() for area in areas for actor in area.actors.values()]


def libraries() -> dict[str, str]:
    """The versions of the libraries that take part in decisions, by the names of their distributions; "": it is not
    installed."""
    needed = {requirement.partition(">=")[0] for area in AREAS for requirement in area.libraries.values()}
    return {name: _version(name) for name in sorted(needed)}


@cache  # those that this process has loaded, or would
def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
