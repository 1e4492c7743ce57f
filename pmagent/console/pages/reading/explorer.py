"""The Log page's overview: how many events there were when, and what stands in the newest of those that are wanted.

How many there were between two times follows from their positions, so a long log is not read for it; what stands in
them is counted among the newest only, for a bounded time.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from datetime import timedelta
from fnmatch import fnmatchcase
from itertools import filterfalse, pairwise
from typing import Final

import msgspec
from markupsafe import Markup

from pmagent.console.pages.drawing.bars import Column, drawn
from pmagent.console.pages.reading.log_address import LogPageQuery
from pmagent.console.pages.reading.searching import picking, until
from pmagent.events.event import format_time, parse_time
from pmagent.events.reader import matching_runs
from pmagent.events.storage import StorageReader
from pmagent.events.store import LogStore
from pmagent.ids import short_id
from pmagent.log.ranges import Range, TooSlow, end_of
from pmagent.log.source import position_at_time, time_at

COLUMNS: Final = 48
GLOB: Final = frozenset("*?[")
FACET_EVENTS: Final = 5_000
"""So many events before the page's last are counted, at most."""
FACET_SECONDS: Final = 0.4
FACET_VALUES: Final = 8
FACETS: Final = {"type": "types", "actor": "actors", "correlation": "correlations"}
"""Filters by whose values events are counted -> where they are in a Query."""


class Value(msgspec.Struct, frozen=True):
    """A value of a filter: in short, how many events have it, and the page with or (where it is on) without it."""

    name: str
    shown: str
    count: int
    on: bool
    address: str


class Overview(msgspec.Struct, frozen=True):
    """``picture``: events over time, each column a link ("": there is no time between them); ``begin`` and ``end`` of
    it. ``facets``: values by filter; counted among ``counted`` events, in positions ``first`` to ``last``."""

    picture: Markup
    begin: str
    end: str
    facets: dict[str, list[Value]]
    counted: int
    first: int
    last: int


def overview(store: LogStore, asked: LogPageQuery, span: Range, last: int) -> Overview:
    """The overview of what the page asks for, in a log that goes to ``last``. Blocking, for a bounded time. Raises
    NotFound, CorruptLog."""
    with closing(store.reader()) as storage:
        end = min(end_of(storage, span), last)
        picture, times = _histogram(storage, asked, span.start, end)
        first, last, counts = _counted(storage, asked, span.start, end)
    facets = {name: _values(asked, name, place, counts[name]) for name, place in FACETS.items()}
    counted = sum(counts["type"].values())
    return Overview(picture, times[0], times[1], facets, counted, first, last)


def _histogram(storage: StorageReader, asked: LogPageQuery, start: int, end: int) -> tuple[Markup, tuple[str, str]]:
    """All events of the range, whatever the filters: by bisection, column by column."""
    if end <= start:
        return Markup(""), ("", "")
    times = time_at(storage, start), time_at(storage, end)
    begin, whole = parse_time(times[0]), parse_time(times[1]) - parse_time(times[0])
    if whole <= timedelta(0):
        return Markup(""), times
    edges = [start]
    for number in range(1, COLUMNS):
        edges.append(position_at_time(storage, format_time(begin + whole * number / COLUMNS), edges[-1], end + 1))
    edges.append(end + 1)
    columns = []
    for low, high in pairwise(edges):
        count = high - low
        at = time_at(storage, low) if count else ""
        about = f"{count} event{'' if count == 1 else 's'} from {at[:19].replace('T', ' ')} UTC" if count else "none"
        narrowed = msgspec.structs.replace(asked.moved(), since=f"pos:{low}", until=f"pos:{high - 1}")
        columns.append(Column(count, about, "busy", narrowed.address() if count else ""))
    return drawn(columns, f"{end - start + 1} events over time"), times


def _counted(
    storage: StorageReader, asked: LogPageQuery, start: int, end: int
) -> tuple[int, int, dict[str, Counter[str]]]:
    """How often each value stands in the wanted ones of the newest events, and the positions that were counted."""
    counts = {name: Counter[str]() for name in FACETS}
    going, first = until(FACET_SECONDS), max(start, end - FACET_EVENTS + 1)
    last = first - 1
    try:
        with picking(asked.query) as pick:
            for run, covered in matching_runs(storage, first, end, ()):
                for event in pick(run):
                    counts["type"][event.type] += 1
                    counts["actor"][event.actor] += 1
                    if event.correlation:
                        counts["correlation"][event.correlation] += 1
                last = min(covered, end)
                if last < end and not going():
                    break
    except TooSlow:  # of the expression: what was counted until then stands, and says how far it goes
        pass
    return first, last, counts


def _values(asked: LogPageQuery, name: str, place: str, counts: Counter[str]) -> list[Value]:
    """The most frequent values, those that are on first. A pattern gives way to a value that it may have found."""
    on = [one for one in getattr(asked.query, place) if one]
    names = dict.fromkeys([*on, *(value for value, _ in counts.most_common(FACET_VALUES))])
    found = []
    for value in names:
        kept = [one for one in on if one != value] if value in on else [*filterfalse(_is_pattern, on), value]
        query = msgspec.structs.replace(asked.query, **{place: kept})
        address = msgspec.structs.replace(asked.moved(), query=query).address()
        shown = short_id(value) if name == "correlation" else value
        count = sum(counts[one] for one in counts if fnmatchcase(one, value)) if _is_pattern(value) else counts[value]
        found.append(Value(value, shown, count, value in on, address))
    return found


def _is_pattern(value: str) -> bool:
    return not GLOB.isdisjoint(value)
