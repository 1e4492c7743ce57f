"""The runtime and its log, on a real event loop: durable first, one end for all when it fails, stops, crashes."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
import pytest

from pmagent.actors.core.actor import Io
from pmagent.actors.core.runtime import TimedOut
from pmagent.contracts.effect import EffectCancelled, EffectInterrupted
from pmagent.contracts.payload import Payload
from pmagent.events.commit import Committer
from pmagent.events.errors import OutcomeUnknown
from pmagent.events.event import Event, Tail
from pmagent.events.writer import CALM_BATCHES
from pmagent.flat import flat_errors
from tests.support.live import Deaf, Rig, forever, live, performing
from tests.support.memory_storage import MemoryStorage
from tests.support.toys import Asked, Done, Poked, permit_for


class Gated(MemoryStorage):
    """A storage whose batches become durable when ``open_`` is set; ``fails``: or never."""

    def __init__(self) -> None:
        super().__init__()
        self.open_ = threading.Event()
        self.open_.set()
        self.writing = threading.Event()
        self.fails = False

    def append_batch(self, expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
        """See Storage."""
        self.writing.set()
        assert self.open_.wait(120)
        if self.fails:
            raise OutcomeUnknown("the disk is full")
        super().append_batch(expected, lines, tail)


async def test_nothing_starts_and_nobody_goes_on_before_the_request_is_durable() -> None:
    storage = Gated()
    begun = anyio.Event()

    async def perform(_event: Event, _io: Io) -> Payload:
        begun.set()
        return Done(n=0)

    async with live(performing(perform), storage) as rig, anyio.create_task_group() as others:
        await rig.runtime.append(Poked(n=0), "first", "tests")
        storage.open_.clear()
        storage.writing.clear()
        others.start_soon(rig.tell, "once")
        await anyio.to_thread.run_sync(storage.writing.wait)
        assert rig.runtime.engine.effects.open
        with anyio.move_on_after(0.05):
            await begun.wait()
        assert not begun.is_set()
        assert [event.type for event in rig.history][-1] == "toy.poked"
        storage.open_.set()
        await begun.wait()


async def test_when_the_log_fails_waiters_hear_that_the_outcome_is_unknown_and_effects_stop() -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
    storage = Gated()
    ends: list[str] = []
    stopped = anyio.Event()

    async def perform(_event: Event, _io: Io) -> Payload:
        try:
            return await forever(_event, _io)
        finally:
            ends.append("stopped")
            stopped.set()

    async def append(rig: Rig) -> None:
        with pytest.raises(OutcomeUnknown):
            await rig.runtime.append(Poked(n=1), "lost", "tests")
        ends.append("append")

    async def nothing(_position: int) -> Event | None:
        raise AssertionError("the request is new")

    async def ask(rig: Rig) -> None:
        with pytest.raises(OutcomeUnknown):
            await rig.ask(Asked(n=1), "asked", lambda _: False, nothing)
        ends.append("ask")

    async def live_until_the_log_fails() -> None:
        with flat_errors():
            async with live(performing(perform), storage) as rig:
                (request,) = await rig.tell("once")
                requests.append(request.position)
                storage.fails = True
                async with anyio.create_task_group() as others:
                    others.start_soon(append, rig)
                    others.start_soon(ask, rig)
                await rig.runtime.failed.wait()
                await stopped.wait()  # at once, not only when the daemon ends
                with pytest.raises(OutcomeUnknown):
                    await rig.runtime.append(Poked(n=2), "late", "tests")
                await rig.runtime.final(Poked(n=3), "final", "tests")
                assert rig.history[-1] == request

    requests: list[int] = []
    with pytest.raises(OutcomeUnknown):
        await live_until_the_log_fails()
    gc.collect()  # an exception that nobody took is told about when its future goes
    assert sorted(ends) == ["append", "ask", "stopped"]
    assert requests == [storage.tail().position]
    assert complaints == []


async def test_a_fact_sent_twice_stands_once() -> None:
    async with live({}) as rig:
        assert await rig.runtime.append(Poked(n=1), "same", "tests") is not None
        assert await rig.runtime.append(Poked(n=1), "same", "tests") is None
        assert [event.id for event in rig.history].count("same") == 1


async def test_who_sends_a_fact_again_goes_on_only_when_it_is_durable() -> None:
    storage = Gated()
    async with live({}, storage) as rig, anyio.create_task_group() as others:
        storage.open_.clear()
        storage.writing.clear()
        others.start_soon(rig.runtime.append, Poked(n=1), "same", "tests")
        await anyio.to_thread.run_sync(storage.writing.wait)
        again = anyio.Event()

        async def send_again() -> None:
            assert await rig.runtime.append(Poked(n=1), "same", "tests") is None
            again.set()

        others.start_soon(send_again)
        with anyio.move_on_after(0.05):
            await again.wait()
        assert not again.is_set()
        storage.open_.set()
        await again.wait()
        assert [event.id for event in rig.history].count("same") == 1


async def test_a_waiter_that_goes_away_takes_nothing_with_it() -> None:
    storage = Gated()
    async with live({}, storage) as rig, anyio.create_task_group() as others:
        await rig.runtime.append(Poked(n=0), "first", "tests")
        storage.open_.clear()
        storage.writing.clear()
        others.start_soon(rig.runtime.append, Poked(n=1), "left", "tests")
        await anyio.to_thread.run_sync(storage.writing.wait)
        others.cancel_scope.cancel()
        storage.open_.set()
    assert [event.id for event in rig.history][-1] == "left"


async def test_who_asks_gets_the_answer_or_an_end_of_waiting_and_the_request_stays() -> None:
    looked: list[int] = []

    async def find(position: int) -> Event | None:
        looked.append(position)
        return rig.history[0]

    async with live({}) as rig:
        granted = await rig.ask(permit_for("toy"), "p", lambda event: event.type == "oa.permit_granted", find)
        assert granted.data.request == granted.causation
        with pytest.raises(TimedOut):
            await rig.ask(Poked(n=1), "q", lambda event: event.kind == "decision", find, 0.01)
        asked = next(event for event in rig.history if event.id == "q")
        assert looked == []
        again = await rig.ask(Poked(n=1), "q", lambda _: False, find, 0.01)
        assert again is rig.history[0]
        assert looked == [asked.position]


async def test_an_orderly_stop_ends_what_runs_and_starts_nothing() -> None:
    storage = MemoryStorage()
    begun: Counter[int] = Counter()

    async def perform(event: Event, io: Io) -> Payload:
        begun[event.position] += 1
        return await forever(event, io)

    async with live(performing(perform), storage) as rig:
        once = await rig.tell("once", "once", "once")
        again = await rig.tell("again", "again", "again")
        await rig.until(lambda: True)
        while len(begun) < 4:
            await anyio.lowlevel.checkpoint()
        await rig.runtime.final(Poked(n=0), "final", "tests")
    assert [rig.ends(request) for request in once] == [
        [EffectInterrupted(request=request.position, reason="stop")] for request in once
    ]
    assert [rig.ends(request) for request in again] == [[], [], []]
    assert rig.history[-1].id == "final"
    assert storage.tail().position == rig.history[-1].position
    assert begun == Counter({request.position: 1 for request in (*once[:2], *again[:2])})

    async with live(performing(perform), storage) as rig:  # the repeatable ones are performed again
        while len(begun) < 4 or begun[again[1].position] < 2:
            await anyio.lowlevel.checkpoint()
        assert begun == Counter({request.position: 1 for request in once[:2]} | {r.position: 2 for r in again[:2]})


async def test_an_orderly_stop_does_not_wait_for_ever_for_a_deaf_performer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.actors.core.scheduler.STOP_SECONDS", 0.02)
    deaf = Deaf()
    async with live(performing(deaf)) as rig:
        (request,) = await rig.tell("once")
        await deaf.started.wait()
        await rig.runtime.final(Poked(n=0), "final", "tests")
        assert rig.ends(request) == [EffectInterrupted(request=request.position, reason="stop")]
        deaf.release.set()
    assert len(rig.ends(request)) == 1


async def test_an_error_beside_it_still_stops_in_order() -> None:
    storage = MemoryStorage()
    rig: Rig | None = None
    with suppress(ZeroDivisionError), flat_errors():
        async with live(performing(forever), storage) as rig:
            (request,) = await rig.tell("once")
            raise ZeroDivisionError
    assert rig is not None
    assert rig.ends(request) == [EffectInterrupted(request=request.position, reason="stop")]


def cut(history: Sequence[Event], until: int) -> MemoryStorage:
    """The storage that a crash leaves when only so many events have become durable."""
    storage = MemoryStorage()
    committer = Committer(storage)
    committer.submit(history[:until])
    committer.commit()
    return storage


async def test_after_a_crash_each_open_effect_is_performed_again_or_ends_as_interrupted_or_cancelled() -> None:
    async with live(performing(forever)) as rig:
        (once,) = await rig.tell("once")
        (again,) = await rig.tell("again")
        (taken_back,) = await rig.tell("again")
        await rig.tell("cancel")
        durable = rig.history[-1].position
        await rig.end_of(taken_back)
    crashed = cut(rig.history, durable)
    begun: list[int] = []

    async def perform(event: Event, _io: Io) -> Payload:
        begun.append(event.position)
        return Done(n=event.data.n)

    async with live(performing(perform), crashed) as rig:
        assert await rig.end_of(again) == Done(n=again.data.n)
        assert await rig.end_of(once) == EffectInterrupted(request=once.position, reason="crash")
        assert await rig.end_of(taken_back) == EffectCancelled(request=taken_back.position, reason="cancel_requested")
    assert begun == [again.position]
    assert [len(rig.ends(request)) for request in (once, again, taken_back)] == [1, 1, 1]


class Threads(MemoryStorage):
    """A storage that notes which thread wrote each batch."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[int] = []

    def append_batch(self, expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
        """See Storage."""
        self.threads.append(threading.get_ident())
        super().append_batch(expected, lines, tail)


async def test_the_loops_thread_writes_for_a_single_source_but_never_while_an_outward_effect_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pmagent.events.writer.SLOW_SECONDS", 1e9)
    storage, begun, ended, own = Threads(), anyio.Event(), anyio.Event(), threading.get_ident()

    async def perform(_event: Event, _io: Io) -> Payload:
        begun.set()
        await ended.wait()
        return Done(n=0)

    async def until_inline(rig: Rig) -> None:
        while storage.threads[-1] != own:  # now and then the other one settles
            await rig.tell()

    async with live(performing(perform), storage) as rig:
        await rig.runtime.append(permit_for("boss"), "permit", "tests")
        await until_inline(rig)
        (request,) = await rig.tell("fetch")
        await begun.wait()
        since = len(storage.threads)
        for _ in range(2 * CALM_BATCHES):
            await rig.tell()
        assert own not in storage.threads[since:]
        ended.set()
        await rig.end_of(request)
        await until_inline(rig)
    assert [event.position for event in rig.history] == list(range(1, len(rig.history) + 1))


async def test_several_facts_are_one_batch_and_those_behind_a_bad_one_are_left_alone() -> None:
    async with live({}, storage := Gated()) as rig:
        await rig.runtime.caught_up()
        before = storage.tail().batch
        drafts = [rig.runtime.intake.fact(Poked(n=n), f"fact-{n}", "tests") for n in range(4)]
        drafts[2] = msgspec.structs.replace(drafts[2], correlation="x" * 4096)
        told, durable = rig.runtime.react_all(drafts)
        assert [events[0].data for events in told] == [Poked(n=0), Poked(n=1)]
        assert [event.id for event in await durable] == ["fact-0", "fact-1"]
        assert storage.tail().batch == before + 1
        told, durable = rig.runtime.react_all(drafts[:2])
        await durable
        assert told == [[], []], "they stand there already"
        assert [event.id for event in rig.history if event.actor == "tests"] == ["fact-0", "fact-1"]


async def test_of_several_facts_none_is_durable_where_the_log_fails() -> None:
    rigs = list[Rig]()

    async def fail() -> None:
        async with live({}, storage := Gated()) as rig:
            rigs.append(rig)
            await rig.runtime.caught_up()
            storage.fails = True
            drafts = [rig.runtime.intake.fact(Poked(n=n), f"fact-{n}", "tests") for n in range(4)]
            _, durable = rig.runtime.react_all(drafts)
            with pytest.raises(OutcomeUnknown):
                await durable
            with pytest.raises(OutcomeUnknown):
                rig.runtime.react_all(drafts)

    with pytest.raises(OutcomeUnknown), flat_errors():
        await fail()
    assert not [event for event in rigs[0].history if event.actor == "tests"]
