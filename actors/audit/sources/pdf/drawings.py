"""Finds the vector drawings of a page that show something: diagrams and charts, not tables, rules and backgrounds; runs
in the reading process.

A cluster of paths (``shapes``) is a drawing when it is large enough, is no table's grid, and has

- at least ``BOXES`` boxes apart from each other, or two with a curve or a slanted line beside them; or
- at least ``STROKES`` curves and slanted lines, at least half as many as straight ones; or
- at least half of these, and the size of a ``PLOT``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pmagent.actors.audit.sources.pdf.opening import attempted, mupdf
from pmagent.actors.audit.sources.pdf.shapes import THIN, Cluster, clusters, unturned, widened

BOXES: Final = 3
STROKES: Final = 6
WIDTH_MIN: Final = 60.0
HEIGHT_MIN: Final = 14.0
PLOT: Final = (100.0, 80.0)
PER_PAGE: Final = 10
_BESIDE: Final = 14.0
_LABEL: Final = 40.0
"""A text that is no higher, in points, and stands so near to a drawing, belongs to it."""
_COMPARED: Final = 400
"""So many boxes of a cluster are compared with each other."""


class Drawing(NamedTuple):
    """A part of a page, ``area`` a rectangle of PyMuPDF's, with ``shapes`` paths."""

    area: Any
    shapes: int


def drawings(page: Any) -> list[Drawing]:
    """The drawings of a page, from top to bottom; at most ``PER_PAGE``. A page with more paths than are sorted is one
    drawing: a plot, or a map."""
    found = clusters(page)
    if isinstance(found, int):
        return [Drawing(unturned(page), found)]
    shown = sorted((each for each in found if _shows(each)), key=lambda each: (each.area.y0, each.area.x0))[:PER_PAGE]
    texts = [mupdf.Rect(block[:4]) for block in attempted(lambda: page.get_text("blocks")) or ()] if shown else []
    return [Drawing(_labelled(each.area, texts) & unturned(page), each.size) for each in shown]


def _shows(cluster: Cluster) -> bool:
    """Whether a cluster is a drawing."""
    if cluster.area.width < WIDTH_MIN or cluster.area.height < HEIGHT_MIN or cluster.grid:
        return False
    apart = _apart(cluster.boxes)
    if cluster.strokes >= STROKES and (cluster.strokes * 2 >= len(cluster.rules) or apart >= 2):
        return True
    if cluster.strokes * 2 >= STROKES and cluster.area.width >= PLOT[0] and cluster.area.height >= PLOT[1]:
        return True
    return apart >= BOXES or (apart >= 2 and cluster.strokes > 0)


def _labelled(area: Any, texts: Sequence[Any]) -> Any:
    """The area with the short texts beside it: the labels of axes, a caption."""
    near = widened(area, _BESIDE)
    for text in texts:
        if text.height <= _LABEL and text.width <= near.width and near.intersects(text):
            area = mupdf.Rect(
                min(area.x0, text.x0), min(area.y0, text.y0), max(area.x1, text.x1), max(area.y1, text.y1)
            )
    return area


def _apart(boxes: Sequence[Any]) -> int:
    """How many boxes stand apart: they touch no other, unless one lies within the other (a frame, a shadow)."""
    distinct: list[Any] = []
    for box in boxes[:_COMPARED]:
        if not any(_same(box, other) for other in distinct):
            distinct.append(box)
    count = 0
    for box in distinct:
        grown = widened(box, THIN / 2)
        count += not any(
            other is not box and grown.intersects(other) and not other.contains(box) and not box.contains(other)
            for other in distinct
        )
    frames = sum(sum(box.contains(other) for other in distinct if other is not box) > 1 for box in distinct)
    return int(count - frames)


def _same(one: Any, other: Any) -> bool:
    return all(abs(a - b) < THIN for a, b in zip(one, other, strict=True))
