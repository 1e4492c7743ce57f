"""Counts the tables of a report, within a time; runs in the reading process."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from actors.audit.pdf.opening import attempted, heavy, mupdf

PAGES_MAX: Final = 300
"""Tables of longer reports are not looked for."""
PAGE_SECONDS: Final = 2.0
SHARE: Final = 0.25
"""So much of the reading's time goes to tables at most."""
_RULES_MIN: Final = 4
_RULES_MAX: Final = 4_000


class _PageTook(Exception):
    """The time for a page is over."""


class Tables:
    """Counts, page by page; ``notes`` says what was left out."""

    def __init__(self, pages: int, seconds: float) -> None:
        self.count = 0
        self._off = pages > PAGES_MAX
        self._left = seconds * SHARE
        self._skipped = 0
        self._late = 0

    def look(self, page: Any) -> None:
        """Count the page's tables, if they are drawn with lines."""
        if self._off:
            return
        start = time.monotonic()
        self._look(page)
        self._left -= time.monotonic() - start

    def _look(self, page: Any) -> None:
        if self._left <= 0:
            self._late += 1
            return
        if heavy(page):
            self._skipped += 1
            return
        drawings = attempted(page.get_cdrawings) or ()
        if len(drawings) < _RULES_MIN and sum(len(each.get("items", ())) for each in drawings) < _RULES_MIN:
            return
        if len(drawings) > _RULES_MAX:
            self._skipped += 1
            return
        glyph_heights = mupdf.TOOLS.set_small_glyph_heights()
        try:
            with _within(PAGE_SECONDS):
                self.count += attempted(lambda: len(page.find_tables().tables)) or 0
        except _PageTook:
            self._skipped += 1
        finally:
            mupdf.TOOLS.set_small_glyph_heights(glyph_heights)

    @property
    def notes(self) -> list[str]:
        """What was left out, and why."""
        if self._off:
            return [f"tables were not counted: the report has more than {PAGES_MAX} pages"]
        found = []
        if self._skipped:
            found.append(f"tables were not counted on pages with too many lines: {self._skipped}")
        if self._late:
            found.append(f"tables were not counted on the last pages, for want of time: {self._late}")
        return found


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Interrupt what takes longer, as soon as it is back in Python."""

    def late(_: int, __: object) -> None:
        raise _PageTook

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
