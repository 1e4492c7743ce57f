"""The stop switch on a real event loop: what waits in a pause, what starts after it, and what a restart makes of it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from pmagent.actors.core.actor import Io
from pmagent.contracts.control import EffectsResumed, PauseRequested, ResumeRequested
from pmagent.contracts.effect import EffectCancelled
from pmagent.contracts.payload import Payload, typed
from pmagent.events.errors import OutcomeUnknown
from pmagent.events.event import Event, Tail
from pmagent.events.reader import events
from tests.support.live import Rig, live, performing
from tests.support.memory_storage import MemoryStorage
from tests.support.toys import Done, FetchRequested, Poked, permit_for


class Performer:
    """Notes what it begins; ends a request when it is told to, or at once when ``free``."""

    def __init__(self, *, free: bool = True) -> None:
        self.begun: list[int] = []
        self.free = free
        self.released = anyio.Event()
        self._news = anyio.Event()

    async def __call__(self, event: Event, _io: Io) -> Payload:
        """See the class."""
        self.begun.append(event.position)
        self._news.set()
        if not self.free and isinstance(event.data, FetchRequested):
            await self.released.wait()
        return Done(n=event.data.n)

    async def reached(self, count: int) -> None:
        """Return when so many have begun."""
        with anyio.fail_after(120):
            while len(self.begun) < count:
                self._news = anyio.Event()
                await self._news.wait()


async def permitted(rig: Rig, *, uses: int = 9) -> None:
    await rig.runtime.append(permit_for("boss", uses=uses), f"permit-{len(rig.history)}", "tests")


async def pause(rig: Rig) -> None:
    asked = PauseRequested(operator_id="ada", channel="cli")
    await rig.runtime.append(asked, f"pause-{len(rig.history)}", "tests")


async def resume(rig: Rig) -> EffectsResumed:
    asked = ResumeRequested(operator_id="ada", channel="cli")
    await rig.runtime.append(asked, f"resume-{len(rig.history)}", "tests")
    data = next(event.data for event in reversed(rig.history) if isinstance(event.data, EffectsResumed))
    assert isinstance(data, EffectsResumed)
    return data


async def settled(rig: Rig) -> None:
    """All effects that were going to start have started: an inward one that is asked for now has come to its end."""
    (inward,) = await rig.tell("once")
    await rig.end_of(inward)


async def test_what_is_asked_for_in_a_pause_starts_in_its_order_when_it_is_over() -> None:
    performer = Performer()
    async with live(performing(performer)) as rig:
        await permitted(rig)
        await pause(rig)
        held = [event.position for _ in range(5) for event in await rig.tell("fetch")]
        await settled(rig)
        assert not [at for at in performer.begun if at in held]
        assert (await resume(rig)).held == 5
        await rig.until(lambda: not rig.runtime.engine.effects.open)
        assert [at for at in performer.begun if at in held] == held


async def test_what_runs_already_goes_on_and_what_waited_for_a_place_waits_for_the_end_of_the_pause() -> None:
    performer = Performer(free=False)
    async with live(performing(performer)) as rig:
        await permitted(rig)
        first, second, third = await rig.tell("fetch", "fetch", "fetch")  # two at once
        await performer.reached(2)
        await pause(rig)
        performer.released.set()
        assert await rig.end_of(first) == Done(n=0)
        assert await rig.end_of(second) == Done(n=1)
        await settled(rig)
        assert third.position not in performer.begun
        assert (await resume(rig)).held == 0, "it was requested before: the gate holds nothing"
        assert await rig.end_of(third) == Done(n=2)


async def test_what_is_held_ends_when_it_is_taken_back_or_its_permit_is() -> None:
    performer = Performer()
    async with live(performing(performer)) as rig:
        await permitted(rig)
        await pause(rig)
        (taken_back,) = await rig.tell("fetch")
        await rig.tell("cancel")
        assert await rig.end_of(taken_back) == EffectCancelled(request=taken_back.position, reason="cancel_requested")
        (revoked,) = await rig.tell("fetch")
        await rig.runtime.append(Poked(n=7), "seven", "tests")  # the grantor revokes
        assert await rig.end_of(revoked) == EffectCancelled(request=revoked.position, reason="permit_revoked")
        assert (await resume(rig)).held == 0
        await settled(rig)
        assert not {taken_back.position, revoked.position} & {*performer.begun}
        assert len(rig.ends(taken_back)) == len(rig.ends(revoked)) == 1


async def test_a_pause_and_what_it_holds_outlast_the_process() -> None:
    storage, performer = MemoryStorage(), Performer()
    async with live(performing(performer), storage) as rig:
        await permitted(rig)
        await pause(rig)
        (held,) = await rig.tell("fetch")
    async with live(performing(performer), storage) as rig:
        rig.history += [typed(stored) for stored in events(storage)]  # so that what is told has a name of its own
        await settled(rig)
        (later,) = await rig.tell("fetch")
        await settled(rig)
        assert not {held.position, later.position} & {*performer.begun}
        assert (await resume(rig)).held == 2
        assert await rig.end_of(held) == Done(n=0)
        assert await rig.end_of(later) == Done(n=0)


class Forgetful(MemoryStorage):
    """A storage whose process dies: ``alive`` False, and nothing more gets into it."""

    alive = True

    def append_batch(self, expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
        """See Storage. Raises OutcomeUnknown when the process is dead."""
        if not self.alive:
            raise OutcomeUnknown("the process is dead")
        super().append_batch(expected, lines, tail)


class Slow(MemoryStorage):
    """A storage that writes a batch when it may: ``batches`` are free."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = False
        self.waiting = threading.Event()
        self.batches = threading.Semaphore(0)

    def append_batch(self, expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
        """See Storage."""
        if self.slow:
            self.waiting.set()
            assert self.batches.acquire(timeout=120)
        super().append_batch(expected, lines, tail)

    async def reached(self) -> None:
        """A batch is about to be written."""
        assert await anyio.to_thread.run_sync(self.waiting.wait, 20)
        self.waiting.clear()


async def test_nothing_starts_before_the_end_of_the_pause_is_durable() -> None:
    storage, performer = Slow(), Performer(free=False)
    async with live(performing(performer), storage) as rig:
        await permitted(rig)
        _, _, third = await rig.tell("fetch", "fetch", "fetch")  # two at once
        await performer.reached(2)
        await pause(rig)
        performer.released.set()
        await rig.until(lambda: len(rig.runtime.engine.effects.open) == 1)  # the third is handed its place, and held
        await settled(rig)
        storage.slow = True
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rig.runtime.append, Poked(n=1), "before", "tests")
            await storage.reached()
            tasks.start_soon(resume, rig)
            while rig.runtime.engine.effects.paused:
                await anyio.lowlevel.checkpoint()
            storage.batches.release()  # the fact before the resumption, and not yet that
            await rig.until(lambda: rig.history[-1].type != "control.resume_requested" and _told(rig, "before"))
            await storage.reached()
            await anyio.wait_all_tasks_blocked()
            assert third.position not in performer.begun, "after a crash the log would say that effects are paused"
            storage.slow = False
            storage.batches.release()
        assert await rig.end_of(third) == Done(n=2)


def _told(rig: Rig, id: str) -> bool:
    return any(event.id == id for event in rig.history)


async def test_what_was_taken_back_in_a_pause_before_a_crash_ends_at_the_next_start() -> None:
    storage, performer = Forgetful(), Performer()
    found: list[Event] = []
    with pytest.raises(OutcomeUnknown):
        await _cut_off(storage, performer, found)
    (held,) = found
    storage.alive = True
    async with live(performing(performer), storage) as rig:
        rig.history += [typed(stored) for stored in events(storage)]
        assert await rig.end_of(held) == EffectCancelled(request=held.position, reason="cancel_requested")
        assert (await resume(rig)).held == 0
    assert held.position not in performer.begun


async def _cut_off(storage: Forgetful, performer: Performer, found: list[Event]) -> None:
    """A process that dies as soon as it is durable that what it holds in a pause is taken back."""
    async with live(performing(performer), storage) as rig:
        await permitted(rig)
        await pause(rig)
        found += await rig.tell("fetch")

        def dies(_events: Sequence[Event], _sums: Sequence[str]) -> None:
            storage.alive = not rig.runtime.engine.effects.cancelled

        rig.runtime.listen(dies)
        await rig.tell("cancel")
        await rig.runtime.failed.wait()
        assert rig.ends(found[0]) == []
