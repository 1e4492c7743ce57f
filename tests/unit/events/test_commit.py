"""Group commit: what goes into one batch, and what goes on waiting."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.events.commit import TRIAL_BATCHES, TRIAL_FIRST, TRIAL_LAST, Committer, Halves
from pmagent.events.event import Event, Tail
from pmagent.events.reader import events
from pmagent.events.sequencer import Sequencer
from tests.support.cases import each
from tests.support.logs import draft, moment
from tests.support.memory_storage import MemoryStorage


class Submitting:
    """A committer over memory; each submission's token is its number."""

    def __init__(self, storage: MemoryStorage | None = None) -> None:
        self.storage = storage or MemoryStorage()
        self.committer = Committer(self.storage)
        self._sequencer = Sequencer(Tail())
        self._count = 0

    def submit(self, count: int, size: int = 20) -> None:
        """Submit ``count`` events of about ``size`` bytes of data together."""
        found: list[Event] = []
        for _ in range(count):
            number = self._sequencer.position + 1
            found.append(self._sequencer.admit(draft(number, size), moment(number)))
        self.committer.submit(found, self._count)
        self._count += 1

    def batches(self) -> list[list[int]]:
        """Commit until nothing waits; the submissions in each batch."""
        found = []
        while (durable := self.committer.commit()) is not None:
            found.append([submission.token for submission in durable.submissions])
            assert len(durable.sums) == sum(len(submission.events) for submission in durable.submissions)
        assert self.committer.idle
        return found


@pytest.fixture
def submitting() -> Submitting:
    return Submitting()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of at most 4 events and 10,000 bytes."""
    monkeypatch.setattr("pmagent.events.commit.BATCH_EVENTS_MAX", 4)
    monkeypatch.setattr("pmagent.events.commit.BATCH_BYTES_MAX", 10_000)


@pytest.mark.usefixtures("small")
@each("submissions, batches", [
    ([(1, 20)] * 9, [[0, 1, 2, 3], [4, 5, 6, 7], [8]]),
    ([(3, 20), (3, 20)], [[0], [1]]),
    ([(4, 20), (1, 20)], [[0], [1]]),
    ([(6, 20), (1, 20)], [[0], [1]]),
    ([(1, 20), (6, 20)], [[0], [1]]),
    ([(0, 0), (4, 20), (0, 0)], [[0, 1, 2]]),
    ([(1, 4000)] * 5, [[0, 1], [2, 3], [4]]),
    ([(1, 20), (2, 9000), (1, 20)], [[0], [1], [2]]),
])
def test_a_batch_is_bounded_in_events_and_in_bytes_and_splits_no_submission(
    submissions: Sequence[tuple[int, int]], batches: list[list[int]]
) -> None:
    submitting = Submitting()
    for count, size in submissions:
        submitting.submit(count, size)
    assert submitting.batches() == batches
    assert [event.position for event in events(submitting.storage)] == list(
        range(1, sum(count for count, _ in submissions) + 1)
    )


@pytest.mark.usefixtures("small")
def test_what_did_not_fit_comes_before_what_is_submitted_later(submitting: Submitting) -> None:
    submitting.submit(3)
    submitting.submit(3)
    assert submitting.committer.commit() is not None
    assert not submitting.committer.idle
    submitting.submit(1)
    assert submitting.batches() == [[1, 2]]


def test_nothing_is_written_when_nothing_waits(submitting: Submitting) -> None:
    assert submitting.committer.commit() is None
    submitting.submit(0)
    durable = submitting.committer.commit()
    assert durable is not None
    assert (list(durable.sums), durable.tail) == ([], Tail())
    assert submitting.storage.tail() == Tail()


class Elsewhere(MemoryStorage):
    """A storage on another machine."""

    is_local = False


class Always(Halves):
    """Halves are faster."""

    chosen = True

    def __init__(self) -> None:
        """Nothing is timed."""

    def committed(self, submissions: int, seconds: float, now: float) -> None:
        """Nothing changes."""


@each("waves, batches", [
    ([8, 0, 4, 4], [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]),
    ([1, 1, 2], [[0], [1], [2, 3]]),
])  # fmt: skip
def test_where_halves_are_faster_half_of_the_submitters_go_on_while_a_storage_elsewhere_has_a_batch(
    waves: list[int], batches: list[list[int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pmagent.events.commit.Halves", Always)
        submitting = Submitting(Elsewhere())
        found = _in_waves(submitting, waves)
    assert found + submitting.batches() == batches
    assert not Committer(MemoryStorage()).overlaps


def test_until_halves_are_known_to_be_faster_a_batch_holds_all_that_waits() -> None:
    assert _in_waves(Submitting(Elsewhere()), [8, 8]) == [[*range(8)], [*range(8, 16)]]


def _in_waves(submitting: Submitting, waves: list[int]) -> list[list[int]]:
    found = []
    for count in waves:
        for _ in range(count):
            submitting.submit(1)
        if (durable := submitting.committer.commit()) is not None:
            found.append([submission.token for submission in durable.submissions])
    return found


@each("whole, half, chosen", [(1.0, 0.5, True), (1.0, 0.96, True), (1.0, 0.98, False), (1.0, 2.0, False)])
def test_the_faster_way_is_found_and_kept_but_for_trials(whole: float, half: float, chosen: bool) -> None:
    halves, now, ways = Halves(), 0.0, []
    for number in range(3 * TRIAL_BATCHES):
        pause = 1e6 if number % 10 == 5 else 0.0  # nobody appends for a while
        now += (half if halves.chosen else whole) * 64 + pause
        ways.append(halves.chosen)
        halves.committed(64, 32.0, now)
    assert ways[: TRIAL_FIRST] == [False] * TRIAL_FIRST
    assert ways[TRIAL_LAST:].count(chosen) == len(ways) - TRIAL_LAST - 2 * (TRIAL_LAST - TRIAL_FIRST)


@given(st.lists(st.tuples(st.integers(0, 300), st.floats(0, 1), st.floats(0, 1))))
def test_single_submissions_and_clocks_that_stand_choose_nothing(batches: list[tuple[int, float, float]]) -> None:
    halves, now = Halves(), 0.0
    for count, seconds, passed in batches:
        now += passed
        halves.committed(min(count, 1), seconds, now)
        assert not halves.chosen
