"""Counts the tables of a report that are ruled both ways; runs in the reading process.

PyMuPDF's own search for tables renders each page to see the colour behind its head. That is slow, and where a damaged
image brings MuPDF down, it is the whole report that is lost; the grid of a table is seen without it.
"""

from __future__ import annotations

from typing import Any

from pmagent.actors.audit.sources.pdf.opening import heavy
from pmagent.actors.audit.sources.pdf.shapes import clusters


class Tables:
    """Counts, page by page; ``notes`` says what was left out."""

    def __init__(self) -> None:
        self.count = 0
        self._left_out = 0

    def look(self, page: Any) -> None:
        """Count the page's tables."""
        found = 0 if heavy(page) else clusters(page)
        if isinstance(found, int):
            self._left_out += 1
        else:
            self.count += sum(each.grid for each in found)

    @property
    def notes(self) -> list[str]:
        """Notes on what was left out."""
        return [f"tables were not counted on pages with too many lines: {self._left_out}"] if self._left_out else []
