"""Comparing two logs: the first difference is found, and one event more does not make everything behind it differ."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.contracts.effect import EffectFailed
from pmagent.contracts.payload import encode, type_of
from pmagent.events.commit import Committer
from pmagent.events.disk import RealDisk
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.event import Draft, Event, LogCreated, Tail
from pmagent.events.segment_store import SegmentStorage
from pmagent.events.sequencer import Sequencer
from pmagent.replay.diff import LogDiff, diff_logs
from pmagent.replay.divergence import LISTED_MAX
from tests.support.cases import each
from tests.support.effort import examples
from tests.support.memory_storage import MemoryStorage
from tests.support.recorded import stored_log
from tests.support.toys import START, Poked


def facts(*payloads: msgspec.Struct, log_id: str = "a" * 32, second: int = 0) -> list[Event]:
    """A history of facts behind ``log.created``."""
    sequencer = Sequencer(Tail())
    at = START.replace("12:00:00", f"12:00:{second:02d}")
    return [
        sequencer.admit(Draft(type_of(payload), payload, encode(payload), f"{log_id[0]}{n}", "tests"), at)
        for n, payload in enumerate([LogCreated(log_id=log_id), *payloads])
    ]


def pokes(*numbers: int) -> list[msgspec.Struct]:
    """Different pokes."""
    return [Poked(n=n) for n in numbers]


def compared(a: list[msgspec.Struct], b: list[msgspec.Struct], *, exact: bool = False) -> LogDiff:
    """Two logs of their own ids and times, compared."""
    return diff_logs(stored_log(facts(*a)), stored_log(facts(*b, log_id="b" * 32, second=7)), exact=exact)


def places(found: LogDiff) -> list[tuple[str, int, int]]:
    """Kind and positions of each difference; 0 for a side that has none."""
    return [(one.kind, one.a.position if one.a else 0, one.b.position if one.b else 0) for one in found.differences]


def test_times_and_ids_are_each_logs_own_unless_everything_counts() -> None:
    assert compared(pokes(1, 2, 3), pokes(1, 2, 3)).equal
    exact = compared(pokes(1, 2, 3), pokes(1, 2, 3), exact=True)
    assert places(exact) == [("changed", n, n) for n in (1, 2, 3, 4)]
    log = stored_log(facts(*pokes(1, 2)))
    assert diff_logs(log, log, exact=True).equal


def test_a_changed_event_is_shown_and_what_follows_agrees() -> None:
    found = compared(pokes(1, 2, 3, 4, 5), pokes(1, 2, 30, 4, 5))
    assert places(found) == [("changed", 4, 4)]
    assert (found.prefix, found.agreeing, found.a_events, found.b_events) == (3, 5, 6, 6)
    assert found.first is found.differences[0]
    lines = found.first.lines()
    assert lines[0] == "fact toy.poked by tests differs (a: position 4, b: position 4)"
    assert '-    "n": 3' in lines
    assert '+    "n": 30' in lines


@each("at", [0, 1, 4, 8])
@each("count", [1, 2, 40, 300])
def test_what_only_one_log_has_is_told_from_what_follows(at: int, count: int) -> None:
    common = list(range(8))
    more = [*common[:at], *range(1000, 1000 + count), *common[at:]]
    found = compared(pokes(*common), pokes(*more))
    assert places(found) == [("only in b", 0, 2 + at + n) for n in range(count)]
    assert found.agreeing == 9
    mirrored = compared(pokes(*more), pokes(*common))
    assert places(mirrored) == [("only in a", 2 + at + n, 0) for n in range(count)]


def test_positions_in_data_are_translated_once_the_logs_are_shifted() -> None:
    def ended(request: int) -> msgspec.Struct:
        return EffectFailed(request=request, error="ValueError", place="here")

    a = [*pokes(1, 2, 3, 4), ended(4), *pokes(5, 6)]
    b = [*pokes(1, 9, 2, 3, 4), ended(5), *pokes(5, 6)]
    assert places(compared(a, b)) == [("only in b", 0, 3)]
    wrong = [*pokes(1, 9, 2, 3, 4), ended(4), *pokes(5, 6)]
    assert places(compared(a, wrong)) == [("only in b", 0, 3), ("changed", 6, 7)]


def test_logs_of_nothing_in_common_end_and_the_list_is_bounded() -> None:
    count = 2 * LISTED_MAX
    found = compared(pokes(*range(count)), pokes(*range(count, 2 * count)))
    assert len(found.differences) == LISTED_MAX
    assert [(one.type, one.kind, one.count) for one in found.counts] == [("toy.poked", "changed", count)]
    assert found.agreeing == 1


def test_an_empty_log_differs_in_everything_the_other_has() -> None:
    found = diff_logs(MemoryStorage(), stored_log(facts(*pokes(1))))
    assert places(found) == [("only in b", 0, 1), ("only in b", 0, 2)]
    assert diff_logs(MemoryStorage(), MemoryStorage()).equal


lists = st.lists(st.integers(0, 4), max_size=12)


@settings(max_examples=examples(300))
@given(lists, lists)
def test_each_event_of_both_logs_is_accounted_for_once(a: list[int], b: list[int]) -> None:
    found = compared(pokes(*a), pokes(*b))
    of_a = [one.a.position for one in found.differences if one.a]
    of_b = [one.b.position for one in found.differences if one.b]
    assert of_a == sorted(set(of_a))
    assert of_b == sorted(set(of_b))
    assert found.agreeing + len(of_a) == found.a_events == len(a) + 1
    assert found.agreeing + len(of_b) == found.b_events == len(b) + 1
    assert found.equal == (a == b)
    prefix = next((n for n, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), min(len(a), len(b)))
    assert found.prefix == prefix + 1


@settings(max_examples=examples(100))
@given(lists, st.integers(0, 12), st.integers(100, 200))
def test_one_event_more_is_one_difference(common: list[int], at: int, number: int) -> None:
    found = compared(pokes(*common), pokes(*common[:at], number, *common[at:]))
    assert len(found.differences) == 1
    assert found.differences[0].kind == "only in b"


def write(folder: Path, history: list[Event]) -> None:
    """``history`` as a log on the disk."""
    storage = SegmentStorage(RealDisk(), str(folder), "a" * 32)
    committer = Committer(storage)
    committer.submit(history)
    committer.commit()
    storage.close()


def test_folders_are_read_and_checked(tmp_path: Path) -> None:
    write(tmp_path / "a", facts(*pokes(1, 2, 3)))
    write(tmp_path / "b", facts(*pokes(1, 2, 4)))
    assert places(diff_logs(tmp_path / "a", str(tmp_path / "b"))) == [("changed", 4, 4)]
    with pytest.raises(NotFound):
        diff_logs(tmp_path / "a", tmp_path / "c")
    segment = tmp_path / "b" / "00000000000000000001.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b'"n":1', b'"n":7'))
    with pytest.raises(CorruptLog):
        diff_logs(tmp_path / "a", tmp_path / "b")


def test_one_early_difference_does_not_make_a_long_comparison_slow() -> None:
    """48,000 events in a few seconds at most, though every one behind the difference is shifted."""
    numbers = list(range(48_000))
    a, b = stored_log(facts(*pokes(*numbers))), stored_log(facts(*pokes(5_000_000, *numbers)))
    begun = time.perf_counter()
    assert len(diff_logs(a, b).differences) == 1
    assert time.perf_counter() - begun < 10
