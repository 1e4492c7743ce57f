"""Finds the vector drawings of a page that show something: diagrams and charts, not tables, rules and backgrounds; runs
in the reading process.

A page's paths fall into clusters. One is a drawing when it is large enough and, its paths being sorted into boxes,
curves, slanted and straight lines,

- it has at least ``BOXES`` boxes apart from each other, two of them with a slanted line or a curve beside them, or at
  least ``STROKES`` slanted lines and curves; and
- it is no table: a table's boxes touch, and its lines are straight and cross in a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from actors.audit.pdf.opening import attempted, mupdf

BOXES: Final = 3
STROKES: Final = 6
WIDTH_MIN: Final = 60.0
HEIGHT_MIN: Final = 24.0
PATHS_MAX: Final = 5_000
"""A page with more paths is taken as one drawing: a plot, or a map."""
PER_PAGE: Final = 10

_WHOLE: Final = 0.9
_THIN: Final = 3.0
_STRAIGHT: Final = 1.0
_NEAR: Final = 12.0
"""Paths that are so near, in points, belong together: an arrow to its box."""


class Drawing(NamedTuple):
    """A part of a page, ``area`` a rectangle of PyMuPDF's, with ``shapes`` paths."""

    area: Any
    shapes: int


class _Kinds(NamedTuple):
    boxes: list[Any]
    strokes: int
    straight: int


def drawings(page: Any) -> list[Drawing]:
    """The drawings of a page, from top to bottom; at most ``PER_PAGE``."""
    paths = attempted(page.get_cdrawings) or ()
    bounds = unturned(page)
    whole = abs(bounds.get_area()) or 1.0
    found: list[tuple[Any, Any]] = []
    for path in paths:
        area = mupdf.Rect(path["rect"])
        if path.get("type") == "clip" or path.get("type") == "group" or not (area & bounds).is_valid:
            continue
        if abs(area.get_area()) < _WHOLE * whole:
            found.append((area, path))
    if len(found) > PATHS_MAX:
        return [Drawing(bounds, len(found))]
    kept = [Drawing(area & bounds, len(inside)) for area, inside in _clusters(found) if _shows(area, inside)]
    kept.sort(key=lambda each: (each.area.y0, each.area.x0))
    return kept[:PER_PAGE]


def _clusters(paths: Sequence[tuple[Any, Any]]) -> list[tuple[Any, list[Any]]]:
    """Paths that are near each other, with the area that they fill."""
    boxes = [(area.x0 - _NEAR / 2, area.y0 - _NEAR / 2, area.x1 + _NEAR / 2, area.y1 + _NEAR / 2) for area, _ in paths]
    found = []
    for members in _joined(boxes):
        areas = [paths[member][0] for member in members]  # of no height or no width, where they are lines
        area = mupdf.Rect(
            min(each.x0 for each in areas),
            min(each.y0 for each in areas),
            max(each.x1 for each in areas),
            max(each.y1 for each in areas),
        )
        found.append((area, [paths[member][1] for member in members]))
    return found


def _joined(boxes: Sequence[tuple[float, float, float, float]]) -> list[list[int]]:
    """Indices of boxes that overlap, directly or through others: a sweep from left to right."""
    parent = list(range(len(boxes)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    open_: list[int] = []
    for index in sorted(range(len(boxes)), key=lambda each: (boxes[each][0], each)):
        x0, y0, _, y1 = boxes[index]
        open_ = [each for each in open_ if boxes[each][2] >= x0]
        roots = set()
        for each in open_:
            if boxes[each][1] <= y1 and boxes[each][3] >= y0:
                roots.add(root(each))
        for each in roots:
            parent[each] = root(index)
        open_.append(index)
    found: dict[int, list[int]] = {}
    for index in range(len(boxes)):
        found.setdefault(root(index), []).append(index)
    return list(found.values())


def _shows(area: Any, paths: Sequence[Any]) -> bool:
    """Whether a cluster is a drawing."""
    if area.width < WIDTH_MIN or area.height < HEIGHT_MIN:
        return False
    kinds = _sorted(paths)
    apart = _apart(kinds.boxes)
    if kinds.strokes >= STROKES and (kinds.strokes * 2 >= kinds.straight or apart >= 2):
        return True
    return apart >= BOXES or (apart >= 2 and kinds.strokes > 0)


def _sorted(paths: Sequence[Any]) -> _Kinds:
    """The boxes among the paths, and how many strokes and straight lines there are."""
    boxes: list[Any] = []
    strokes = straight = 0
    for path in paths:
        items = path.get("items", ())
        area = mupdf.Rect(path["rect"])
        if _closed(path, items) and _thick(area):  # a box with round corners, a circle, a rhombus
            boxes.append(area)
            continue
        for item in items:
            if item[0] in {"re", "qu"}:
                box = mupdf.Rect(item[1]) if item[0] == "re" else mupdf.Quad(item[1]).rect
                if _thick(box):
                    boxes.append(box)
                else:
                    straight += 1
            elif item[0] == "c" or _slanted(item[1], item[2]):
                strokes += 1
            else:
                straight += 1
    return _Kinds(boxes, strokes, straight)


def _closed(path: Any, items: Sequence[Any]) -> bool:
    """Whether a path is the outline of one shape that is no rectangle."""
    shaped = len(items) > 2 and all(item[0] in {"c", "l"} for item in items)
    return shaped and bool(path.get("closePath") or "f" in path.get("type", ""))


def _thick(area: Any) -> bool:
    return bool(area.width > 4 * _THIN and area.height > 4 * _THIN)


def _slanted(start: Sequence[float], end: Sequence[float]) -> bool:
    return abs(start[0] - end[0]) > _STRAIGHT and abs(start[1] - end[1]) > _STRAIGHT


def _apart(boxes: Sequence[Any]) -> int:
    """How many boxes stand apart: they touch no other, unless one lies within the other (a frame, a shadow)."""
    distinct: list[Any] = []
    for box in boxes[:400]:
        if not any(_same(box, other) for other in distinct):
            distinct.append(box)
    count = 0
    for box in distinct:
        grown = widened(box, _THIN / 2)
        count += not any(
            other is not box and grown.intersects(other) and not other.contains(box) and not box.contains(other)
            for other in distinct
        )
    frames = sum(sum(box.contains(other) for other in distinct if other is not box) > 1 for box in distinct)
    return int(count - frames)


def unturned(page: Any) -> Any:
    """The rectangle of a page, as if it was not turned: so are the places of all that is found on it."""
    return (page.rect * page.derotation_matrix).normalize()


def widened(area: Any, by: float) -> Any:
    """A rectangle, larger on every side."""
    return mupdf.Rect(area.x0 - by, area.y0 - by, area.x1 + by, area.y1 + by)


def _same(one: Any, other: Any) -> bool:
    return all(abs(a - b) < _THIN for a, b in zip(one, other, strict=True))
