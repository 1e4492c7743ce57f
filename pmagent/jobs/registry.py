"""The kinds of jobs of all areas, and which of them holds a log."""

from __future__ import annotations

from typing import Final, NamedTuple

from pmagent.actors.areas import AREAS
from pmagent.actors.core.area import load
from pmagent.jobs.kinds import Kind
from pmagent.workspace.layout import Layout

KINDS: Final[tuple[Kind, ...]] = tuple(load(area.job) for area in AREAS if area.job)
"""In the order of their areas."""


class Holder(NamedTuple):
    """The holder of a log that carries a job of its own: of which kind, and in which process."""

    kind: Kind
    process: str


def held_by_job(layout: Layout) -> Holder | None:
    """The process that holds the log to carry a job of its own; None if there is none."""
    holder = layout.store.holder()
    kind = next((kind for kind in KINDS if kind.ask == holder.role), None)
    return Holder(kind, holder.note) if kind is not None and holder.live else None
