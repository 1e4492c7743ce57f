"""Reads pages that are images only, by the program tesseract where the machine has it; runs in the reading process."""

from __future__ import annotations

import subprocess
import time
from typing import Any, Final

from pmagent.actors.audit.sources.pdf.layout import Line
from pmagent.actors.audit.sources.pdf.lines import plain
from pmagent.actors.audit.sources.pdf.opening import attempted, heavy, mupdf
from pmagent.actors.audit.sources.pdf.shapes import unturned

DOTS: Final = 200
"""Resolution at which a page is shown to it, per inch; less where the page would have more than ``SIDE`` pixels."""
SIDE: Final = 2_600
PAGE_SECONDS: Final = 60.0
SHARE: Final = 0.5
"""So much of the reading's time goes to recognition at most."""
TEXT_BYTES: Final = 200_000

_FEW: Final = 20
"""A page with fewer characters and a large image was scanned."""
_LARGE: Final = 0.5
_SHAPES: Final = 300


def image_only(page: Any, characters: int) -> bool:
    """Whether the page shows an image, or letters that are drawn, and no text to speak of."""
    if characters >= _FEW:
        return False
    images = attempted(page.get_image_info) or ()
    if not characters:
        return bool(images) or _drawn(page)
    bounds = unturned(page)
    area = abs(bounds.get_area()) or 1.0
    return any(abs((mupdf.Rect(each["bbox"]) & bounds).get_area()) > _LARGE * area for each in images)


def _drawn(page: Any) -> bool:
    """Whether a page has so many shapes that they are likely to be letters."""
    return not heavy(page) and len(attempted(page.get_cdrawings) or ()) > _SHAPES


class Recognition:
    """Reads page after page; ``pages`` counts those that it read, ``notes`` says what was not read."""

    def __init__(self, program: str, seconds: float) -> None:
        self.pages = 0
        self._program = program
        self._left = seconds * SHARE
        self._unread = 0
        self._late = 0
        self._failed = 0

    def read(self, page: Any, number: int) -> list[Line]:
        """The lines of a page that is an image; none where they cannot be had."""
        if not self._program:
            self._unread += 1
            return []
        if self._left <= 0:
            self._late += 1
            return []
        start = time.monotonic()
        text = self._asked(page, min(self._left, PAGE_SECONDS))
        self._left -= time.monotonic() - start
        if text is None:
            self._failed += 1
            return []
        self.pages += 1
        return plain(text, number)

    @property
    def notes(self) -> list[str]:
        """How many pages could not be read, and why."""
        found = []
        if self._unread:
            found.append(
                f"pages that are images only, not read: {self._unread} (there is no tesseract on this machine)"
            )
        if self._late:
            found.append(f"pages that are images only, not read for want of time: {self._late}")
        if self._failed:
            found.append(f"pages that are images only, on which tesseract failed: {self._failed}")
        return found

    def _asked(self, page: Any, seconds: float) -> str | None:
        zoom = min(DOTS / 72, SIDE / max(page.rect.width, page.rect.height, 1.0))
        image = attempted(lambda: page.get_pixmap(matrix=mupdf.Matrix(zoom, zoom), alpha=False).tobytes("png"))
        if image is None:
            return None
        try:
            ended = subprocess.run(
                (self._program, "stdin", "stdout"), input=image, capture_output=True, check=False, timeout=seconds
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return ended.stdout[:TEXT_BYTES].decode(errors="replace") if ended.returncode == 0 else None
