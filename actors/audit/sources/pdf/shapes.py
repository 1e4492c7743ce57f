"""Sorts the vector paths of a page: which are near each other, and which are boxes, strokes or rules; runs in the
reading process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from pmagent.actors.audit.sources.pdf.opening import attempted, mupdf

PATHS_MAX: Final = 5_000
"""The paths of a page that has more are not sorted."""
THIN: Final = 3.0
"""A path that is no thicker, in points, is a line."""

_WHOLE: Final = 0.9
_STRAIGHT: Final = 1.0
_NEAR: Final = 18.0
"""Paths that are so near, in points, belong together: an arrow to its box."""

Span = tuple[float, float, float, float]


class Cluster(NamedTuple):
    """``size`` paths that are near each other, in ``area``, a rectangle of PyMuPDF's. ``boxes`` are rectangles and
    other closed shapes, ``strokes`` counts curves and slanted lines, ``rules`` are the upright and level ones."""

    area: Any
    size: int
    boxes: list[Any]
    strokes: int
    rules: list[Span]

    @property
    def grid(self) -> bool:
        """Whether it is the grid of a table: at least two rows and two columns, by rules or boxes that go through."""
        sides = [*self.rules, *(side for box in self.boxes for side in _sides(box))]
        level = _lengths((y0, x1 - x0) for x0, y0, x1, y1 in sides if y1 - y0 <= THIN)
        upright = _lengths((x0, y1 - y0) for x0, y0, x1, y1 in sides if x1 - x0 <= THIN)
        rows = sum(length >= 0.7 * self.area.width for length in level)
        columns = sum(length >= 0.5 * self.area.height for length in upright)
        return rows > 2 and columns > 2 and self.strokes * 4 <= len(sides)


def clusters(page: Any) -> list[Cluster] | int:
    """The clusters of a page's paths, without what fills the page; or how many paths there are, if there are more than
    ``PATHS_MAX``."""
    bounds = unturned(page)
    whole = abs(bounds.get_area()) or 1.0
    paths: list[tuple[Any, Any]] = []
    for path in attempted(page.get_cdrawings) or ():
        area = mupdf.Rect(path["rect"])
        if path.get("type") in {"clip", "group"} or not (area & bounds).is_valid:
            continue
        if abs(area.get_area()) < _WHOLE * whole:
            paths.append((area, path))
    if len(paths) > PATHS_MAX:
        return len(paths)
    spans = [(area.x0 - _NEAR / 2, area.y0 - _NEAR / 2, area.x1 + _NEAR / 2, area.y1 + _NEAR / 2) for area, _ in paths]
    return [_cluster([paths[member] for member in members], bounds) for members in _touching(spans)]


def unturned(page: Any) -> Any:
    """The rectangle of a page, as if it was not turned: so are the places of all that is found on it."""
    return (page.rect * page.derotation_matrix).normalize()


def widened(area: Any, by: float) -> Any:
    """A rectangle, larger on every side."""
    return mupdf.Rect(area.x0 - by, area.y0 - by, area.x1 + by, area.y1 + by)


def _touching(spans: Sequence[Span]) -> list[list[int]]:
    """Indices of rectangles that overlap, directly or through others: a sweep from left to right."""
    parent = list(range(len(spans)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    reached: list[int] = []
    for index in sorted(range(len(spans)), key=lambda each: (spans[each][0], each)):
        x0, y0, _, y1 = spans[index]
        reached = [each for each in reached if spans[each][2] >= x0]
        for each in reached:
            if spans[each][1] <= y1 and spans[each][3] >= y0:
                parent[root(each)] = root(index)
        reached.append(index)
    found: dict[int, list[int]] = {}
    for index in range(len(spans)):
        found.setdefault(root(index), []).append(index)
    return list(found.values())


def _cluster(paths: Sequence[tuple[Any, Any]], bounds: Any) -> Cluster:
    areas = [area for area, _ in paths]  # of no height or no width, where they are lines
    area = mupdf.Rect(
        min(each.x0 for each in areas), min(each.y0 for each in areas), max(each.x1 for each in areas),
        max(each.y1 for each in areas),
    )
    boxes: list[Any] = []
    rules: list[Span] = []
    strokes = 0
    for within, path in paths:
        items = path.get("items", ())
        if _closed(path, items) and _thick(within):  # a box with round corners, a circle, a rhombus
            boxes.append(within)
            continue
        for item in items:
            if item[0] in {"re", "qu"}:
                box = mupdf.Rect(item[1]) if item[0] == "re" else mupdf.Quad(item[1]).rect
                (boxes if _thick(box) else rules).append(box if _thick(box) else tuple(box))
            elif item[0] == "c" or _slanted(item[1], item[2]):
                strokes += 1
            else:
                (x0, y0), (x1, y1) = item[1], item[2]
                rules.append((min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)))
    return Cluster(area & bounds, len(paths), boxes, strokes, rules)


def _closed(path: Any, items: Sequence[Any]) -> bool:
    """Whether a path is the outline of one shape that is no rectangle."""
    if len(items) < 3 or not all(item[0] in {"c", "l"} for item in items):
        return False
    return bool(path.get("closePath")) or "f" in path.get("type", "") or items[0][1] == items[-1][-1]


def _thick(area: Any) -> bool:
    return bool(area.width > 2 * THIN and area.height > 2 * THIN)


def _slanted(start: Sequence[float], end: Sequence[float]) -> bool:
    return abs(start[0] - end[0]) > _STRAIGHT and abs(start[1] - end[1]) > _STRAIGHT


def _sides(box: Any) -> Iterator[Span]:
    yield (box.x0, box.y0, box.x1, box.y0)
    yield (box.x0, box.y1, box.x1, box.y1)
    yield (box.x0, box.y0, box.x0, box.y1)
    yield (box.x1, box.y0, box.x1, box.y1)


def _lengths(lines: Iterator[tuple[float, float]]) -> list[float]:
    """How long the lines at one place are together, for each place; places as near as a line is thick are one."""
    found: list[tuple[float, float]] = []
    for place, length in sorted(lines):
        if found and place - found[-1][0] <= THIN:
            found[-1] = (found[-1][0], found[-1][1] + length)
        else:
            found.append((place, length))
    return [length for _, length in found]
