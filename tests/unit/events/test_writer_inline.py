"""The loop's thread writes a batch itself where a single appender is at work, and only there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.events import writer
from pmagent.events.errors import OutcomeUnknown
from pmagent.events.event import Event, Tail
from pmagent.events.log import now
from pmagent.events.reader import events
from pmagent.events.sequencer import Sequencer
from pmagent.events.writer import (
    CALM_BATCHES,
    INLINE_BYTES_MAX,
    INLINE_EVENTS_MAX,
    SLOW_REST_SECONDS,
    SLOW_SECONDS,
    TURN_SECONDS,
    InlineRule,
)
from tests.support.logs import draft
from tests.support.memory_storage import MemoryStorage
from tests.support.one_writer import Log

QUICK = SLOW_SECONDS / 2
FAR = 1e9
"""Seconds that no test takes, however slow the machine."""


class Watched(MemoryStorage):
    """A storage that notes for each batch how many events it has, and whether the loop's thread wrote it."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = threading.get_ident()
        self.inline: list[bool] = []
        self.sizes: list[int] = []
        self.settled = threading.Event()
        self.raised: BaseException | None = None

    def append_batch(self, expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
        """See Storage."""
        self.settled.clear()
        self.inline.append(threading.get_ident() == self.loop)
        self.sizes.append(len(lines))
        if self.raised is not None and self.inline[-1]:
            raise self.raised
        super().append_batch(expected, lines, tail)

    def settle(self) -> None:
        """See Storage."""
        assert threading.get_ident() != self.loop, "the loop does not wait for HEAD"
        self.settled.set()


@asynccontextmanager
async def opened(storage: MemoryStorage) -> AsyncIterator[Log]:
    log = Log(storage, Sequencer(Tail()))
    try:
        yield log
    finally:
        await log.aclose()


async def calm(log: Log, number: int = 0) -> int:
    """Append alone until the loop's thread may write; the next number."""
    for n in range(number, number + CALM_BATCHES + 1):
        await log.append(draft(n))
    return number + CALM_BATCHES + 1


async def inline(log: Log, storage: Watched, number: int, count: int) -> int:
    """Append alone until the loop's thread has written so many more batches; now and then the other one settles."""
    due = sum(storage.inline) + count
    while sum(storage.inline) < due:
        await log.append(draft(number))
        number += 1
    return number


@pytest.fixture(autouse=True)
def _quick_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SLOW_SECONDS", FAR)


def on_loop(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await work()

    asyncio.run(main())


# --- the rule -------------------------------------------------------------------------------------------------------


def calm_rule() -> InlineRule:
    rule = InlineRule()
    for n in range(CALM_BATCHES):
        assert not rule.permits("a", n)
        rule.written(1, QUICK, n)
    assert rule.permits("a", CALM_BATCHES)
    return rule


def test_a_batch_of_two_begins_the_count_anew() -> None:
    rule = calm_rule()
    rule.written(2, QUICK, 10)
    for n in range(CALM_BATCHES):
        assert not rule.permits("a", 10)
        rule.written(1, QUICK, 10 + n)
    assert rule.permits("a", 20)


def test_another_appender_in_the_same_turn_ends_it_and_in_the_next_turn_does_not() -> None:
    rule = calm_rule()
    assert rule.begins("a", 10)
    assert rule.permits("a", 10)
    assert not rule.begins("a", 10), "one call of turned() is enough"
    rule.turned()
    assert rule.permits("b", 11)
    assert rule.begins("b", 11)
    assert not rule.permits("a", 11)
    rule.turned()
    assert not rule.permits("b", 12), "they share batches until one is alone again"


def test_an_appender_must_yield_when_it_has_kept_the_loop_for_long() -> None:
    rule = calm_rule()
    rule.begins("a", 10.0)
    assert not rule.written(1, QUICK, 10.0 + TURN_SECONDS / 2)
    assert rule.written(1, QUICK, 10.0 + TURN_SECONDS * 2)
    rule.turned()
    rule.begins("a", 11.0)
    assert not rule.written(1, QUICK, 11.0)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.floats(0, 0.02), st.floats(0, 30.0))),
    st.lists(st.floats(0, 30.0), max_size=3),
)
def test_nothing_is_permitted_for_a_minute_after_a_slow_batch_nor_before_enough_calm_ones(
    batches: Sequence[tuple[int, float, float]], rests: Sequence[float]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "SLOW_SECONDS", SLOW_SECONDS)
        rule, now, slow = InlineRule(), 1000.0, -FAR
        singles = 0
        for submissions, seconds, pause in batches:
            now += pause
            rule.written(submissions, seconds, now)
            singles = singles + 1 if submissions == 1 else 0
            if seconds > SLOW_SECONDS:
                slow, singles = now, 0
            permitted = singles >= CALM_BATCHES and now >= slow + SLOW_REST_SECONDS
            assert rule.permits("a", now) == permitted
        for pause in rests:
            now += pause
            rule.rest(now)
            assert not rule.permits("a", now + SLOW_REST_SECONDS - 0.001)


# --- the writer -----------------------------------------------------------------------------------------------------


async def test_a_single_appender_is_written_by_the_loops_thread_and_head_is_settled_by_the_other() -> None:
    storage = Watched()
    async with opened(storage) as log:
        number = await calm(log)
        storage.settled.clear()
        number = await inline(log, storage, number, 5)
        assert storage.tail().position == number, "durable when append returns"
        assert await asyncio.to_thread(storage.settled.wait, 60)
    assert [event.id for event in events(storage)] == [f"note-{n}" for n in range(number)]


async def test_appenders_at_the_same_time_share_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "TURN_SECONDS", -1.0)
    storage = Watched()

    async def appender(log: Log, first: int) -> None:
        for n in range(first, first + 50):
            await log.append(draft(n))

    async with opened(storage) as log:
        await calm(log)
        before = len(storage.sizes)
        await asyncio.gather(*(appender(log, 1000 * k) for k in range(1, 17)))
        assert max(storage.sizes[before:]) == 16
        assert sum(storage.inline[before:]) <= 1, "the first does not know that others are there"


async def test_an_appender_that_never_waits_lets_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "TURN_SECONDS", -1.0)
    storage, turns = Watched(), 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with opened(storage) as log:
        number = await calm(log)
        task = asyncio.create_task(other())
        await inline(log, storage, number, 20)
        assert turns >= 20
        task.cancel()


def test_large_submissions_go_to_the_thread() -> None:
    async def work() -> None:
        storage = Watched()
        async with opened(storage) as log:
            number = await calm(log)
            await log.append(draft(number, size=INLINE_BYTES_MAX))
            assert not storage.inline[-1]

    on_loop(work)
    assert INLINE_EVENTS_MAX < 100


async def test_a_failed_write_in_the_loops_thread_poisons_the_log() -> None:
    storage = Watched()
    with suppress(OutcomeUnknown):  # of closing it
        async with opened(storage) as log:
            number = await calm(log)
            storage.raised = OutcomeUnknown("the disk is full")
            with pytest.raises(OutcomeUnknown, match="disk is full"):
                await inline(log, storage, number, 2)
            written = len(storage.sizes)
            storage.raised = None
            for n in (number, number + 1_000_000):
                with pytest.raises(OutcomeUnknown):
                    await log.append(draft(n))
            assert len(storage.sizes) == written, "nothing is tried again"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
async def test_a_write_that_is_interrupted_has_an_unknown_outcome(kind: type[BaseException]) -> None:
    storage = Watched()
    with suppress(OutcomeUnknown):  # of closing it
        async with opened(storage) as log:
            number = await calm(log)
            storage.raised = kind()
            with pytest.raises(kind):
                await inline(log, storage, number, 2)
            written = len(storage.sizes)
            with pytest.raises(OutcomeUnknown, match=kind.__name__):
                await log.append(draft(number + 1_000_000))
            assert len(storage.sizes) == written


async def test_the_loops_thread_writes_nothing_after_the_writer_thread_failed() -> None:
    class Removed(Watched):
        gone = False

        def settle(self) -> None:
            """See Storage."""
            if self.gone:
                raise OutcomeUnknown("the log was removed")
    storage, failed, durable = Removed(), asyncio.Event(), asyncio.Queue[Any]()
    made = writer.Writer(storage, durable.put_nowait, lambda _: failed.set())
    sequencer = Sequencer(Tail())
    for n in range(CALM_BATCHES):
        made.submit([sequencer.admit(draft(n), now())])
        await durable.get()
    storage.gone = True
    await failed.wait()
    with pytest.raises(OutcomeUnknown):
        made.write([sequencer.admit(draft(CALM_BATCHES), now())])
    assert len(storage.sizes) == CALM_BATCHES
    await made.stop()


@given(st.lists(st.lists(st.integers(0, 2), max_size=30), min_size=1, max_size=4))
def test_whatever_the_turns_each_event_stands_once_and_is_handed_out_in_order(plans: Sequence[Sequence[int]]) -> None:
    """Each appender waits for so many turns of the loop before each append."""

    async def work() -> None:
        storage = Watched()
        handed: list[int] = []

        async def appender(log: Log, k: int, plan: Sequence[int]) -> None:
            last = 0
            for n, turns in enumerate(plan):
                for _ in range(turns):
                    await asyncio.sleep(0)
                event = await log.append(draft(1000 * k + n))
                assert last < event.position <= storage.tail().position
                last = event.position

        async with opened(storage) as log:
            log._writer._on_durable = partial(_noted, log._durable, handed)
            await calm(log, 100_000)
            await asyncio.gather(*(appender(log, k, plan) for k, plan in enumerate(plans)))
        stored = [event.position for event in events(storage)]
        assert stored == handed == list(range(1, len(stored) + 1))
        assert len(stored) == CALM_BATCHES + 1 + sum(map(len, plans))

    on_loop(work)


def _noted(hand_out: Callable[[Any], None], handed: list[int], durable: Any) -> None:
    found: list[Event] = [event for submission in durable.submissions for event in submission.events]
    handed.extend(event.position for event in found)
    hand_out(durable)
