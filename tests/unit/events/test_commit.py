"""Group commit: what goes into one batch, and what goes on waiting."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pmagent.events.commit import WORK_SECONDS, Committer
from pmagent.events.event import Event, Tail
from pmagent.events.memory import MemoryStorage
from pmagent.events.reader import events
from pmagent.events.sequencer import Sequencer
from tests.support.cases import each
from tests.support.logs import draft, moment


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
    """A storage on another machine, which takes ``seconds`` for a batch."""

    is_local = False

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds, self._now = seconds, 0.0

    def steady(self) -> float:
        """The clock."""
        return self._now

    def append_batch(self, expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
        """See Storage."""
        super().append_batch(expected, lines, tail)
        self._now += self._seconds


@each("seconds, waves, batches", [
    (WORK_SECONDS * 7, [8, 0, 4, 4], [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]),
    (WORK_SECONDS * 20, [8, 0, 8, 8], [[0, 1, 2, 3], [4, 5, 6, 7], [*range(8, 16)], [*range(16, 24)]]),
    (0.0, [1, 1, 2], [[0], [1], [2, 3]]),
])  # fmt: skip
def test_where_a_fast_storage_elsewhere_has_a_batch_half_of_the_submitters_go_on(
    seconds: float, waves: list[int], batches: list[list[int]]
) -> None:
    submitting = Submitting(storage := Elsewhere(seconds))
    submitting.committer = Committer(storage, storage.steady)
    found = []
    for count in waves:
        for _ in range(count):
            submitting.submit(1)
        if (durable := submitting.committer.commit()) is not None:
            found.append([submission.token for submission in durable.submissions])
    assert found + submitting.batches() == batches
