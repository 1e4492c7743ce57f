"""Whether the text of a page can be seen by who reads it; runs in the reading process.

A report may say to a program what no person reads: in white on white, without ink, or too small. Such text is not taken
for the report's. Text without ink on a scanned page is what its recognition has laid over the image: that is taken.
"""

from __future__ import annotations

from typing import Any, Final

from pmagent.actors.audit.sources.pdf.opening import attempted, heavy, mupdf
from pmagent.actors.audit.sources.pdf.shapes import unturned

TINY: Final = 1.5
"""Type of a smaller size, in points, cannot be read."""
WHITE: Final = 0xF5
"""White has this much at least of red, green and blue."""
_SCAN: Final = 0.5


class Sight:
    """Tells of the spans of one page whether they are seen; looks at the rest of the page only when it has to."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._backs: list[Any] | None = None
        self._scanned: bool | None = None

    def sees(self, span: Any) -> bool:
        """Whether a span of PyMuPDF's can be seen."""
        if span["size"] < TINY:
            return False
        if span["alpha"] == 0:
            return self._is_scanned()
        if all(span["color"] >> shift & 0xFF >= WHITE for shift in (16, 8, 0)):
            x0, y0, x1, y1 = span["bbox"]
            return any(back.contains(mupdf.Point((x0 + x1) / 2, (y0 + y1) / 2)) for back in self._backgrounds())
        return True

    def _is_scanned(self) -> bool:
        if self._scanned is None:
            bounds = unturned(self._page)
            images = [mupdf.Rect(each["bbox"]) & bounds for each in attempted(self._page.get_image_info) or ()]
            self._scanned = any(abs(each.get_area()) > _SCAN * abs(bounds.get_area()) for each in images)
        return self._scanned

    def _backgrounds(self) -> list[Any]:
        """Where the page is not white: images, shadings, and areas filled with a colour."""
        if self._backs is None:
            laid = attempted(self._page.get_bboxlog) or ()
            self._backs = [mupdf.Rect(area) for kind, area, *_ in laid if kind in {"fill-image", "fill-shade"}]
            paths = () if heavy(self._page) else attempted(self._page.get_cdrawings) or ()
            self._backs += [mupdf.Rect(each["rect"]) for each in paths if _coloured(each.get("fill"))]
        return self._backs


def _coloured(fill: Any) -> bool:
    return fill is not None and any(share * 255 < WHITE for share in fill)
