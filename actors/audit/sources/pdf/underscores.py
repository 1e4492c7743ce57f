"""Underscores that are drawn as short rules, as TeX does with its oldest fonts; runs in the reading process.

Without them a report that names ``src/tools/ast_parser.py`` would name ``parser.py``, which does not exist.
"""

from __future__ import annotations

from typing import Any, Final

from pmagent.actors.audit.sources.pdf.opening import attempted, heavy

_WIDTH: Final = (1.5, 9.0)
_THICK: Final = 1.5
_BELOW: Final = 1.5


class Underscores:
    """The short rules of a page, looked for when they are first asked for."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._rules: list[tuple[float, float]] | None = None

    def put_into(self, spans: list[Any]) -> list[Any]:
        """The spans of a line, with an underscore for each blank between two of them that has a rule under it."""
        for place in range(1, len(spans) - 1):
            span = spans[place]
            if span["text"] == " " and spans[place - 1]["text"][-1:].strip() and spans[place + 1]["text"][:1].strip():
                x0, y0, x1, y1 = span["bbox"]
                if any(x0 <= x <= x1 and (y0 + y1) / 2 <= y <= y1 + _BELOW for x, y in self._centres()):
                    spans[place] = {**span, "text": "_"}
        return spans

    def _centres(self) -> list[tuple[float, float]]:
        if self._rules is None:
            paths = () if heavy(self._page) else attempted(self._page.get_cdrawings) or ()
            areas = [path["rect"] for path in paths if path.get("type") in {"s", "f", "fs"}]
            self._rules = [
                ((x0 + x1) / 2, (y0 + y1) / 2)
                for x0, y0, x1, y1 in areas
                if _WIDTH[0] <= x1 - x0 <= _WIDTH[1] and y1 - y0 <= _THICK
            ]
        return self._rules
