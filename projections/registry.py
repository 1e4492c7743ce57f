"""The projections of all areas."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from pmagent.actors.areas import AREAS
from pmagent.actors.core.area import load
from pmagent.projections.core.projection import AnyProjection


def all_projections() -> list[AnyProjection]:
    """One of each, in the order in which their documents are written."""
    return [projection() for projection in _classes()]


@cache
def _classes() -> list[Callable[[], AnyProjection]]:
    return [load(projection) for area in AREAS for projection in area.projections]
