"""The kinds of jobs of all areas."""

from __future__ import annotations

from typing import Final

from pmagent.actors.areas import AREAS
from pmagent.actors.core.area import load
from pmagent.jobs.kinds import Kind

KINDS: Final[tuple[Kind, ...]] = tuple(load(area.job) for area in AREAS if area.job)
"""In the order of their areas."""
