"""When the tasks of a run ran, drawn: a row a task, a bar an attempt, a line where it waited for another; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from pmagent.clean import shorten
from pmagent.console.pages.drawing.svg import SIGNS, Piece, drawing, element, link, title, words
from pmagent.when import seconds_between, spoken

ROWS_MAX: Final = 200
TICKS_MAX: Final = 8
WIDTH: Final = 640
"""How wide the whole time is drawn (pixels)."""

_LEFT: Final = 210
_RIGHT: Final = 190
_TOP: Final = 26
_ROW: Final = 22
_BAR: Final = 12
_NAME_COLUMNS: Final = 24
_STEPS: Final = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600,
    7_200, 14_400, 21_600, 43_200, 86_400,
)
"""Distances between two marks of the time, in seconds."""


class Part(msgspec.Struct, frozen=True):
    """A piece of a task's time, from one log time to another. ``kind``: done, failed, retry (it failed, and there was
    another), running, or waiting (for the next attempt). ``about``: in words."""

    kind: str
    start: str
    end: str
    about: str


class Lane(msgspec.Struct, frozen=True):
    """A task: its parts in their order, its ``state``, and what is said at the end of its row."""

    name: str
    state: str
    parts: Sequence[Part]
    note: str = ""
    address: str = ""


class Bar(msgspec.Struct, frozen=True):
    """A part as it is drawn: from ``left``, so wide (pixels from the beginning of the time)."""

    part: Part
    left: int
    width: int


def bars(parts: Sequence[Part], start: str, end: str) -> list[Bar]:
    """The parts within the time from ``start`` to ``end``: none begins before it, or ends behind it, or is unseen."""
    whole = max(seconds_between(start, end), 0.001)
    made: list[Bar] = []
    for part in parts:
        first, last = (min(max(seconds_between(start, at) / whole, 0.0), 1.0) for at in (part.start, part.end))
        left = min(int(first * WIDTH), WIDTH - 2)
        made.append(Bar(part, left, max(int(last * WIDTH) - left, 2)))
    return made


def ticks(seconds: float) -> list[float]:
    """The marks of so long a time, in seconds from its beginning; at most ``TICKS_MAX`` behind the first."""
    step = next((step for step in _STEPS if seconds / step <= TICKS_MAX), 0.0)
    if not step:
        days = -(-seconds // (86_400 * TICKS_MAX))
        step = 86_400 * days
    return [number * step for number in range(int(seconds / step) + 1)]


def drawn(lanes: Sequence[Lane], start: str, end: str) -> Markup:
    """The picture of the time from ``start`` to ``end``; nothing where no task has begun. At most ``ROWS_MAX`` rows."""
    lanes = [lane for lane in lanes if lane.parts][:ROWS_MAX]
    if not lanes:
        return Markup("")
    height = _TOP + len(lanes) * _ROW + 6
    parts = _scale(seconds_between(start, end), height)
    parts += [_lane(number, lane, start, end) for number, lane in enumerate(lanes)]
    count = f"{len(lanes)} task{'' if len(lanes) == 1 else 's'}"
    label = f"When {count} ran, over {spoken(max(seconds_between(start, end), 0.0))}"
    return drawing(_LEFT + WIDTH + _RIGHT, height, label, parts)


def _scale(seconds: float, height: int) -> list[Piece]:
    parts: list[Piece] = []
    for mark in ticks(max(seconds, 0.001)):
        x = _LEFT + int(mark / max(seconds, 0.001) * WIDTH)
        parts.append(element("line", {"x1": x, "y1": _TOP - 6, "x2": x, "y2": height, "class_": "grid"}))
        parts.append(words(x + 3, _TOP - 10, "tick", _short(mark)))
    return parts


def _short(seconds: float) -> str:
    """A mark of the scale: ``0``, ``200 ms``, ``2.5 s``, ``3 m``, ``1.5 h``, ``2 d``."""
    if seconds == 0:
        return "0"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds * 1000:.4g} ms"


def _lane(number: int, lane: Lane, start: str, end: str) -> Piece:
    top = _TOP + number * _ROW
    name = [
        title(f"{lane.name}: {lane.state}"),
        words(8, top + 15, "sign", SIGNS.get(lane.state, "•"), aria_hidden="true"),
        words(24, top + 15, "name", shorten(lane.name, _NAME_COLUMNS)),
    ]
    whole = {"x": 0, "y": top, "width": _LEFT + WIDTH + _RIGHT, "height": _ROW}
    parts = [
        element("rect", {**whole, "class_": "lane odd" if number % 2 else "lane"}),
        link(lane.address, f"{lane.name}: {lane.state}", name),
    ]
    drawn_bars = bars(lane.parts, start, end)
    parts += [_bar(bar, top) for bar in drawn_bars]
    right = max(bar.left + bar.width for bar in drawn_bars)
    parts.append(words(_LEFT + right + 6, top + 15, "note", lane.note))
    return element("g", {"class_": lane.state}, parts)


def _bar(bar: Bar, top: int) -> Piece:
    place: dict[str, object] = {"x": _LEFT + bar.left, "width": bar.width}
    if bar.part.kind == "waiting":
        place |= {"y": top + _ROW // 2 - 1, "height": 2}
    else:
        place |= {"y": top + (_ROW - _BAR) // 2, "height": _BAR, "rx": 1}
    return element("rect", {**place, "class_": f"bar {bar.part.kind}"}, [title(bar.part.about)])
