"""Acknowledged alerts and hand-over notes, read from the log."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any, Final

import msgspec

from pmagent.events.errors import NotFound
from pmagent.events.reader import event_at
from pmagent.workspace.layout import Layout

PAGE: Final = 50
"""So many are read at once."""


def acknowledged(layout: Layout, position: int, count: int = PAGE) -> tuple[list[dict[str, Any]], int]:
    """The alerts acknowledged up to the acknowledgement at ``position`` (0: none), newest first; and the position to go
    on from, 0 at the end. Each names the one before it, so nothing else of the log is read. Blocking. Raises NotFound
    where ``position`` is no acknowledgement, CorruptLog."""
    found: list[dict[str, Any]] = []
    if not position:
        return found, 0
    with closing(layout.store.reader()) as storage:
        while position and len(found) < count:
            event = event_at(storage, position)
            if event.type != "alert.acknowledged":
                raise NotFound(f"no acknowledgement stands at position {position}", "pmagent alerts --acknowledged")
            data = msgspec.json.decode(event.data)
            found.append({**data, "position": position, "time": event.time})
            position = data["previous"]
    return found, position


def handed_over(layout: Layout, positions: Iterable[int]) -> list[dict[str, Any]]:
    """The hand-over notes at these positions, whole, in that order. Blocking. Raises NotFound where there is none,
    CorruptLog."""
    found: list[dict[str, Any]] = []
    with closing(layout.store.reader()) as storage:
        for position in positions:
            event = event_at(storage, position)
            if event.type != "alert.handed_over":
                raise NotFound(f"no hand-over note stands at position {position}", "pmagent handover lists them")
            found.append({**msgspec.json.decode(event.data), "position": position, "time": event.time})
    return found
