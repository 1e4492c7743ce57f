"""A plan's dependencies, drawn: a box a task, coloured by its state; of large plans a bar a level; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from markupsafe import Markup

from pmagent.actors.orchestra.planning.graph import in_levels
from pmagent.clean import shorten
from pmagent.console.pages.drawing.layers import BOX_HEIGHT, BOX_WIDTH, Layout, Point, Way, laid_out, orderly, passings
from pmagent.console.pages.drawing.svg import SIGNS, Piece, drawing, element, link, title, words

BOXES_MAX: Final = 250
EDGES_MAX: Final = 1_000
PASSINGS_MAX: Final = 4_000
"""Of larger plans only their levels are drawn: nobody could read more."""
ROWS_MAX: Final = 60
"""So many rows has the picture of the levels; levels share one where there are more."""
STATES: Final = ("done", "failed", "running", "retry", "planned", "blocked")

_NAME_COLUMNS: Final = 20
_NOTE_COLUMNS: Final = 27
_BAR_WIDTH: Final = 460
_BAR_X: Final = 120
_ROW_HEIGHT: Final = 24


class Node(msgspec.Struct, frozen=True):
    """A task as a box: ``waits`` are the ids for which it waits, ``note`` a few words below its name, ``about`` more of
    them where there is room; ``address`` is its page."""

    id: str
    name: str
    state: str
    waits: Sequence[str]
    note: str = ""
    about: str = ""
    address: str = ""


class Drawn(NamedTuple):
    """The picture ("": there are no tasks); ``whole``: with a box for each task, else with a row a level."""

    picture: Markup
    whole: bool


def drawn(nodes: Sequence[Node]) -> Drawn:
    """The order of these tasks."""
    if not nodes:
        return Drawn(Markup(""), whole=True)
    waits = orderly({node.id: node.waits for node in nodes})
    edges = sum(map(len, waits.values()))
    if len(nodes) > BOXES_MAX or edges > EDGES_MAX or passings(waits) > PASSINGS_MAX:
        return Drawn(_levels(nodes, waits), whole=False)
    return Drawn(_boxes(nodes, laid_out(waits)), whole=True)


# --- boxes ---------------------------------------------------------------------------------------------------------


def _boxes(nodes: Sequence[Node], layout: Layout) -> Markup:
    state = {node.id: node.state for node in nodes}
    label = f"The plan: {_counted(len(nodes), 'task')}, each right of those that it waits for"
    head = element("path", {"d": "M0 0L8 4L0 8z", "class_": "arrow"})
    marker = element(
        "marker",
        {
            "id": "arrow", "viewBox": "0 0 8 8", "refX": 7, "refY": 4, "markerWidth": 8, "markerHeight": 8,
            "orient": "auto",
        },
        [head],
    )  # fmt: skip
    parts = [element("defs", {}, [marker])]
    parts += [_edge(way, state[way.source]) for way in layout.ways]
    parts += [_box(node, layout.corners[node.id]) for node in nodes]
    return drawing(layout.width, layout.height, label, parts)


def _edge(way: Way, source_state: str) -> Piece:
    start, *others = way.points
    path = f"M{start.x} {start.y}"
    before = start
    for number, point in enumerate(others):
        if number % 2 == 0:  # between two columns
            middle = (before.x + point.x) // 2
            path += f"C{middle} {before.y} {middle} {point.y} {point.x} {point.y}"
        else:  # past a column
            path += f"H{point.x}"
        before = point
    kind = "edge" if source_state == "done" else "edge waiting"
    return element("path", {"d": path, "class_": kind, "marker_end": "url(#arrow)"})


def _box(node: Node, corner: Point) -> Piece:
    parts = [
        title(f"{node.name}: {node.state}. {node.about}"),
        element("rect", {"x": corner.x, "y": corner.y, "width": BOX_WIDTH, "height": BOX_HEIGHT, "rx": 4}),
        words(corner.x + 9, corner.y + 18, "sign", SIGNS.get(node.state, "•"), aria_hidden="true"),
        words(corner.x + 24, corner.y + 18, "name", shorten(node.name, _NAME_COLUMNS)),
        words(corner.x + 24, corner.y + 34, "note", shorten(node.note or node.state, _NOTE_COLUMNS)),
    ]
    group = element("g", {"class_": f"node {node.state}"}, parts)
    return link(node.address, f"{node.name}: {node.state}", [group])


# --- levels --------------------------------------------------------------------------------------------------------


def _levels(nodes: Sequence[Node], waits: dict[str, list[str]]) -> Markup:
    """A bar a level, or some levels, in their order: as long as they have tasks, in parts by state."""
    state = {node.id: node.state for node in nodes}
    levels = [Counter(state[name] for name in names) for names in in_levels(waits)]
    together = -(-len(levels) // ROWS_MAX)
    rows = [levels[start : start + together] for start in range(0, len(levels), together)]
    counts = [sum(row, Counter[str]()) for row in rows]
    most = max(count.total() for count in counts)
    parts: list[Piece] = []
    for number, (row, count) in enumerate(zip(rows, counts, strict=True)):
        first = number * together + 1
        name = f"level {first}" if len(row) == 1 else f"levels {first} to {first + len(row) - 1}"
        parts.append(_level(number, name, count, most))
    label = (
        f"The plan: {_counted(len(nodes), 'task')} on {_counted(len(levels), 'level')}; "
        "those of a level wait only for earlier ones"
    )
    return drawing(_BAR_X + _BAR_WIDTH + 330, len(rows) * _ROW_HEIGHT + 8, label, parts)


def _level(number: int, name: str, count: Counter[str], most: int) -> Piece:
    top = number * _ROW_HEIGHT + 4
    parts = [words(8, top + 15, "name", name)]
    before = 0
    for state in STATES:
        if not count[state]:
            continue
        left, right = (_BAR_X + _BAR_WIDTH * edge // most for edge in (before, before + count[state]))
        before += count[state]
        bar = {"x": left, "y": top + 2, "width": max(right - left, 1), "height": _ROW_HEIGHT - 6}
        parts.append(element("rect", {**bar, "class_": f"bar {state}"}, [title(f"{name}: {count[state]} {state}")]))
    text = ", ".join(f"{SIGNS[state]} {count[state]} {state}" for state in STATES if count[state])
    parts.append(words(_BAR_X + _BAR_WIDTH * before // most + 8, top + 15, "note", text))
    return element("g", {}, parts)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
