"""Every area there is. A new one is listed here, and nowhere else."""

from __future__ import annotations

from typing import Final

from pmagent.actors.core.area import Area, in_order, load

_NAMES: Final = (
    "alerts",
    "audit",
    "checks",
    "clock",
    "guests",
    "kernel",
    "model",
    "oa",
    "orchestra",
    "pla",
)

AREAS: Final[tuple[Area, ...]] = in_order(load(f"pmagent.actors.{name}:AREA") for name in _NAMES)
"""In the order in which their actors take an event, wherever they are listed."""

AREA_OF: Final = {family: area for area in AREAS for family in area.families}
"""The area of an event type by the type's first word; the core's own have none."""
