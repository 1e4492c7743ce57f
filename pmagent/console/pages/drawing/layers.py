"""Where the boxes of a directed graph are drawn, in columns from left to right; pure (after Sugiyama, Tagawa and Toda).

A task's column follows from the longest way to it; the order within a column from where its neighbours stand, swept to
and fro; the height of a box too, as far as none comes too near to another. Edges that pass by a column get a place in
it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from pmagent.actors.orchestra.planning.graph import in_levels, in_order

SWEEPS: Final = 8
BOX_WIDTH: Final = 196
BOX_HEIGHT: Final = 44
COLUMN_GAP: Final = 56
ROW_GAP: Final = 14
PASSING_HEIGHT: Final = 10
"""An edge that passes by a column is kept so much room in it."""
MARGIN: Final = 8

Waits = Mapping[str, Sequence[str]]


class Point(NamedTuple):
    """A place in the picture, in pixels from its upper left corner."""

    x: int
    y: int


class Way(NamedTuple):
    """An edge: ``target`` waits for ``source``; from the one's right side to the other's left."""

    source: str
    target: str
    points: tuple[Point, ...]


class Layout(NamedTuple):
    """The upper left corners of the boxes by name, the edges, and how large the picture is."""

    corners: dict[str, Point]
    ways: list[Way]
    width: int
    height: int


class _Passing(NamedTuple):
    """The place of the edge from ``source`` to ``target`` in the column ``level``."""

    source: str
    target: str
    level: int


_Node = str | _Passing
_Columns = list[list[_Node]]


class _Links(NamedTuple):
    """Neighbours in the column before, and in the one behind."""

    before: dict[_Node, list[_Node]]
    behind: dict[_Node, list[_Node]]


def orderly(waits: Waits) -> dict[str, list[str]]:
    """The edges that can be drawn: between existing nodes, once, and without a cycle."""
    known = {name: [one for one in dict.fromkeys(needed) if one in waits] for name, needed in waits.items()}
    sound = set(in_order(known))
    return {name: needed if name in sound else [] for name, needed in known.items()}


def passings(waits: Waits) -> int:
    """How many places in columns the edges need that pass by."""
    level = {name: number for number, names in enumerate(in_levels(waits)) for name in names}
    return sum(level[name] - level[one] - 1 for name, needed in waits.items() for one in needed)


def laid_out(waits: Waits) -> Layout:
    """The picture of tasks that wait for each other; ``waits`` is ``orderly``. The same for the same."""
    columns, links, chains = _columns(waits)
    columns = _arranged(columns, links)
    heights = _heights(columns, links)
    corners = {
        name: Point(_x(level), heights[name] - BOX_HEIGHT // 2)
        for level, column in enumerate(columns)
        for name in column
        if isinstance(name, str)
    }
    ways = [
        Way(source, target, _points(corners[source], corners[target], chain, heights))
        for (source, target), chain in chains.items()
    ]
    height = max((point.y for point in corners.values()), default=0) + BOX_HEIGHT + MARGIN
    lowest = max((point.y for way in ways for point in way.points), default=0) + PASSING_HEIGHT + MARGIN
    return Layout(corners, ways, _x(len(columns)) - COLUMN_GAP + MARGIN, max(height, lowest))


def _x(level: int) -> int:
    return MARGIN + level * (BOX_WIDTH + COLUMN_GAP)


def _points(source: Point, target: Point, chain: list[_Passing], heights: dict[_Node, int]) -> tuple[Point, ...]:
    middle = BOX_HEIGHT // 2
    passed: list[Point] = []
    for one in chain:
        left = Point(_x(one.level), heights[one])
        passed += [left, Point(left.x + BOX_WIDTH, left.y)]
    return (Point(source.x + BOX_WIDTH, source.y + middle), *passed, Point(target.x, target.y + middle))


def _columns(waits: Waits) -> tuple[_Columns, _Links, dict[tuple[str, str], list[_Passing]]]:
    """Tasks and passing edges by column, their neighbours, and the places of each edge."""
    columns: _Columns = [list(names) for names in in_levels(waits)]
    level = {name: number for number, names in enumerate(columns) for name in names}
    links = _Links({}, {})
    chains: dict[tuple[str, str], list[_Passing]] = {}
    for target, needed in waits.items():
        for source in needed:
            chain = [_Passing(source, target, number) for number in range(level[source] + 1, level[target])]
            chains[source, target] = chain
            for one in chain:
                columns[one.level].append(one)
            stops: list[_Node] = [source, *chain, target]
            for one_stop, next_stop in pairwise(stops):
                links.behind.setdefault(one_stop, []).append(next_stop)
                links.before.setdefault(next_stop, []).append(one_stop)
    return columns, links, chains


# --- the order within the columns ----------------------------------------------------------------------------------


def _arranged(columns: _Columns, links: _Links) -> _Columns:
    """The order with the fewest crossings of those that sweeping to and fro comes by."""
    best, fewest = columns, _crossings(columns, links)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        forward = sweep % 2 == 0
        columns = _swept(columns, links.before if forward else links.behind, forward=forward)
        crossings = _crossings(columns, links)
        if crossings < fewest:
            best, fewest = columns, crossings
    return best


def _swept(columns: _Columns, neighbours: dict[_Node, list[_Node]], *, forward: bool) -> _Columns:
    """Each column sorted by where its nodes' neighbours stand in the one beside it."""
    made = list(columns)
    order = range(1, len(made)) if forward else range(len(made) - 2, -1, -1)
    for number in order:
        place = {node: at for at, node in enumerate(made[number - 1 if forward else number + 1])}
        here = {node: at for at, node in enumerate(made[number])}

        def wanted(node: _Node, place: dict[_Node, int] = place, here: dict[_Node, int] = here) -> tuple[float, int]:
            beside = neighbours.get(node)
            mean = sum(place[one] for one in beside) / len(beside) if beside else here[node]
            return mean, here[node]

        made[number] = sorted(made[number], key=wanted)
    return made


def _crossings(columns: _Columns, links: _Links) -> int:
    """How often edges between columns beside each other cross."""
    found = 0
    for left, right in pairwise(columns):
        place = {node: at for at, node in enumerate(right)}
        seen: list[int] = []
        for node in left:
            ends = sorted(place[one] for one in links.behind.get(node, ()))
            found += sum(len(seen) - bisect_left(seen, end + 1) for end in ends)
            for end in ends:
                insort(seen, end)
    return found


# --- the heights ---------------------------------------------------------------------------------------------------


def _heights(columns: _Columns, links: _Links) -> dict[_Node, int]:
    """The middle of each node, from the picture's upper edge; in each column from above to below, with room between."""
    heights: dict[_Node, int] = {}
    for column in columns:
        heights.update(zip(column, _apart(column, [0] * len(column)), strict=True))
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        neighbours = links.before if forward else links.behind
        for column in columns if forward else reversed(columns):
            wanted = [_mean([heights[one] for one in neighbours.get(node, ())], heights[node]) for node in column]
            heights.update(zip(column, _apart(column, wanted), strict=True))
    highest = min((height - _room(node) // 2 for node, height in heights.items()), default=0)
    return {node: height - highest + MARGIN for node, height in heights.items()}


def _mean(values: list[int], otherwise: int) -> int:
    return sum(values) // len(values) if values else otherwise


def _room(node: _Node) -> int:
    return BOX_HEIGHT if isinstance(node, str) else PASSING_HEIGHT


def _apart(column: list[_Node], wanted: list[int]) -> list[int]:
    """Heights near to the wanted ones that keep the order and the room between: the mean of what comes of pushing
    downward only, and of pushing upward only. Both keep their distances, so their mean does."""
    gaps = [(_room(one) + _room(other)) // 2 + ROW_GAP for one, other in pairwise(column)]
    down = list(wanted)
    for at, gap in enumerate(gaps):
        down[at + 1] = max(down[at + 1], down[at] + gap)
    up = list(wanted)
    for at in range(len(gaps) - 1, -1, -1):
        up[at] = min(up[at], up[at + 1] - gaps[at])
    return [(one + other) // 2 for one, other in zip(down, up, strict=True)]
