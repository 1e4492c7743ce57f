"""A course over time, drawn as bars; pure. It fills its place, so it has no text but its titles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from pmagent.console.pages.drawing.svg import Piece, drawing, element, link, title

STEP: Final = 10
HEIGHT: Final = 100
_LEAST: Final = 3
"""Anything that is more than nothing is seen."""


class Column(msgspec.Struct, frozen=True):
    """A piece of time: its ``value``, what its title says; ``kind``: a class of drawings.css; where it leads."""

    value: float
    about: str
    kind: str = ""
    address: str = ""


def drawn(columns: Sequence[Column], label: str) -> Markup:
    """The picture. ``label`` says what it shows, for who cannot see it."""
    most = max((column.value for column in columns), default=0.0) or 1.0
    parts: list[Piece] = []
    for number, column in enumerate(columns):
        height = max(int(column.value / most * HEIGHT), _LEAST) if column.value > 0 else 1
        place = {"x": number * STEP + 1, "y": HEIGHT - height, "width": STEP - 2, "height": height}
        bar = element("rect", {**place, "class_": f"column {column.kind if column.value > 0 else 'none'}"}, [])
        whole = {"x": number * STEP, "y": 0, "width": STEP, "height": HEIGHT, "class_": "reach"}
        parts.append(link(column.address, column.about, [title(column.about), element("rect", whole), bar]))
    return drawing(max(len(columns), 1) * STEP, HEIGHT, label, parts, stretched=True)
