"""Reading only what holds something: nothing that is looked for is missed, and nothing unchecked is handed out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.events.errors import CorruptLog
from pmagent.events.event import Event
from pmagent.events.reader import events, matching_runs
from pmagent.jobs.history import opened
from pmagent.workspace.layout import Layout
from tests.support.effort import examples
from tests.support.logged import flip, segments
from tests.support.memory_storage import MemoryStorage
from tests.support.pages import written
from tests.support.recorded import stored_log

BULK = "x" * 2_000
RARE = ([b'"type":"rare"'],)


@given(st.lists(st.booleans(), min_size=1, max_size=600), st.integers(1, 700), st.integers(1, 700))
@settings(max_examples=examples(30), deadline=None)
def test_all_that_is_wanted_is_found_and_no_position_skipped(kinds: Sequence[bool], position: int, until: int) -> None:
    storage = log_of(kinds)
    until = min(until, len(kinds))
    found, done = [], position - 1
    for some, last in matching_runs(storage, position, until, RARE):
        found += [event.position for event in some if event.type == "rare"]
        assert last > done
        done = last
    assert found == [n for n, rare in enumerate(kinds, 1) if rare and position <= n <= until]
    assert done == max(until, position - 1)


def log_of(kinds: Sequence[bool]) -> MemoryStorage:
    """A log of events that are rare or common."""
    return stored_log(history(kinds))


def history(kinds: Sequence[bool]) -> list[Event]:
    """Events that are rare or common."""
    raw = b'"%b"' % BULK.encode()
    return [
        Event(n, "2026-11-22T12:00:00.000000Z", f"e{n}", "fact", "toy", "rare" if rare else "common", "", 0, None, raw)
        for n, rare in enumerate(kinds, 1)
    ]


@pytest.mark.parametrize("rare", [True, False], ids=["in_it", "beside_it"])
def test_what_is_handed_out_was_checked_and_what_is_passed_by_was_not(tmp_path: Path, rare: bool) -> None:
    written(tmp_path, history([n == 600 for n in range(701)]))
    (segment,) = segments(tmp_path)
    raw = segment.read_bytes()
    flip(segment, (raw.index(b'"type":"rare"') if rare else 0) + 100)
    with opened(Layout(tmp_path)) as jobs:
        with pytest.raises(CorruptLog):
            list(events(jobs.storage))
        if rare:
            with pytest.raises(CorruptLog):
                list(matching_runs(jobs.storage, 1, 701, RARE))
        else:
            found = [event for some, _ in matching_runs(jobs.storage, 1, 701, RARE) for event in some]
            assert [event.type for event in found if event.type == "rare"] == ["rare"]
