"""The projections of all areas."""

from __future__ import annotations

from actors.area import load
from actors.areas import AREAS
from projections.projection import AnyProjection


def all_projections() -> list[AnyProjection]:
    """One of each, in the order in which their documents are written."""
    return [load(projection)() for area in AREAS for projection in area.projections]
