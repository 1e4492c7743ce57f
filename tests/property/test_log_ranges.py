"""The first and the last events of a part of the log that are wanted: what going through all of it would find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.events.event import StoredEvent
from pmagent.events.storage import StorageReader
from pmagent.log import ranges
from pmagent.log.query import Query, compiled, needles
from pmagent.log.ranges import Range, first_of, last_of, start_of_last
from tests.support.logs import open_segments, write_log
from tests.support.memory_disk import MemoryDisk

EVENTS = 61


@pytest.fixture(autouse=True, scope="module")
def small_windows() -> Iterator[None]:
    """Windows of a few events, so that a small log has many of them."""
    patch = pytest.MonkeyPatch()
    patch.setattr(ranges, "_WINDOW", 4)
    patch.setattr(ranges, "_WINDOW_MAX", 16)
    yield
    patch.undo()


def _storage() -> StorageReader:
    disk = MemoryDisk()
    for kind, batches in (("note", [7, 1]), ("rare", [2]), ("note", [28]), ("other", [20, 2])):
        write_log(disk, batches, segment_bytes=2000, kind=kind)
    return open_segments(disk)


STORAGE = _storage()


def always() -> bool:
    """There is time."""
    return True


def picker(wanted: set[int]) -> Callable[[Sequence[StoredEvent]], list[StoredEvent]]:
    """Picks the events at these positions."""
    return lambda run: [event for event in run if event.position in wanted]


WANTED = st.sets(st.integers(1, EVENTS))
SPANS = st.builds(Range, st.integers(1, EVENTS + 3), st.none() | st.integers(0, EVENTS + 3), st.just(""))


def _within(span: Range, wanted: set[int]) -> list[int]:
    stop = EVENTS if span.stop is None else min(span.stop, EVENTS)
    return sorted(one for one in wanted if span.start <= one <= stop)


@given(WANTED, SPANS, st.integers(1, 20))
def test_they_are_what_going_through_all_would_find(wanted: set[int], span: Range, count: int) -> None:
    right = _within(span, wanted)
    last = last_of(STORAGE, span, picker(wanted), count, always)
    first = first_of(STORAGE, span, picker(wanted), count, always)
    assert [event.position for event in last.events] == right[-count:]
    assert [event.position for event in first.events] == right[:count]
    assert (last.cut, first.cut, last.trouble, first.trouble) == (False, False, None, None)
    start = start_of_last(STORAGE, span, picker(wanted), count)
    assert [one for one in right if one >= start] == right[-count:]
    assert not set(right) - {event.position for event in last.events} & set(range(last.first, last.last + 1))


@given(WANTED, SPANS, st.integers(1, 20), st.lists(st.booleans(), max_size=12))
def test_when_time_runs_out_nothing_is_skipped(wanted: set[int], span: Range, count: int, clock: list[bool]) -> None:
    right = _within(span, wanted)
    ticks = iter(clock)
    found = last_of(STORAGE, span, picker(wanted), count, lambda: next(ticks, False))
    shown = [event.position for event in found.events]
    assert shown == [one for one in right if one >= found.first][-count:]
    if not found.cut:
        assert shown == right[-count:]
    elif span.start <= min(EVENTS, span.stop or EVENTS):
        assert found.first <= found.last, "it came further"
    ticks = iter(clock)
    ahead = first_of(STORAGE, span, picker(wanted), count, lambda: next(ticks, False))
    seen = [event.position for event in ahead.events]
    assert seen == [one for one in right if one <= ahead.last][:count]
    assert ahead.cut or seen == right[:count]


PATTERNS = ["test.note", "test.rare", "test.*", "test.n*", "*e", "log.created", "x", "te[s]t.rare", "*"]
TYPES = st.lists(st.sampled_from(PATTERNS), max_size=2)


@given(TYPES, st.lists(st.sampled_from(["source", "log", "é"]), max_size=2), SPANS, st.integers(1, 70))
def test_what_is_sifted_out_was_not_wanted(types: list[str], actors: list[str], span: Range, count: int) -> None:
    query = Query(types=types, actors=actors)
    matches = compiled(query)

    def pick(run: Sequence[StoredEvent]) -> list[StoredEvent]:
        return [*filter(matches, run)]

    for look in (first_of, last_of):
        assert look(STORAGE, span, pick, count, always, needles(query)) == look(STORAGE, span, pick, count, always)
    start = start_of_last(STORAGE, span, pick, count, needles(query))
    assert start == start_of_last(STORAGE, span, pick, count)
