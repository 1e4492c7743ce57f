"""Every area there is. A new one is listed here, and nowhere else."""

from __future__ import annotations

from typing import Final

from pmagent.actors import audit, checks, clock, kernel, model, oa, orchestra, pla
from pmagent.actors.core.area import in_order

AREAS: Final = in_order(area.AREA for area in (audit, checks, clock, kernel, model, oa, orchestra, pla))
"""In the order in which their actors take an event, wherever they are listed."""

AREA_OF: Final = {family: area for area in AREAS for family in area.families}
"""The area of an event type by the type's first word; the core's own have none."""
