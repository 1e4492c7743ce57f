"""An exception in the midst of a reaction, or between it and the writer, leaves no gap: nothing is written any more,
and the log opens again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pmagent.actors.core.actor import Io
from pmagent.actors.core.engine import Engine
from pmagent.actors.core.integrity import EngineBroken, Inconsistent
from pmagent.actors.core.ledger import EffectLedger
from pmagent.actors.core.runtime import Runtime
from pmagent.contracts.effect import EffectInterrupted
from pmagent.contracts.payload import Payload
from pmagent.events.event import Event
from pmagent.events.reader import events
from tests.support.cases import on_loop
from tests.support.effort import examples
from tests.support.live import Rig, live, performing
from tests.support.memory_storage import MemoryStorage
from tests.support.toys import Done, Poked
from tests.unit.test_engine_broken import Interrupted, counted

PLACES: dict[str, tuple[Any, str]] = {
    "in the reaction": (EffectLedger, "book"),
    "before it": (Engine, "accept"),
    "between it and the writer": (Runtime, "_submit"),
}


def cut_off_at(place: str, nth: int, error: BaseException) -> Callable[[], None]:
    """Each function called there raises ``error`` at the ``nth`` time; what is returned undoes that."""
    patch = pytest.MonkeyPatch()
    owner, name = PLACES[place]
    patch.setattr(owner, name, counted(getattr(owner, name), nth, error))
    return patch.undo


async def answers(event: Event, _io: Io) -> Payload:
    return Done(n=event.data.n)


@given(st.sampled_from(sorted(PLACES)), st.integers(1, 4), st.sampled_from([Interrupted, KeyError]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(15), deadline=None)
def test_the_log_has_no_gap_and_opens_again(place: str, nth: int, kind: type[BaseException]) -> None:
    storage = MemoryStorage()

    @on_loop
    async def session() -> None:
        async with live(performing(answers), storage) as rig:
            for request in await rig.tell("once", "again"):
                await rig.end_of(request)
            undo = cut_off_at(place, nth, kind())
            try:
                await rig.tell("once", "again", "once")
                await rig.tell("once")
            finally:
                undo()

    with suppress(BaseException):  # whatever a process ends with
        session()
    positions = [stored.position for stored in events(storage)]
    assert positions == list(range(1, len(positions) + 1))

    @on_loop
    async def again() -> None:
        async with live(performing(answers), storage) as rig:
            await rig.until(lambda: not rig.runtime.engine.effects.open)
            assert await rig.runtime.append(Poked(n=1), "after", "tests") is not None

    again()


async def test_a_broken_engine_refuses_everything_and_its_orderly_stop_writes_nothing() -> None:
    storage = MemoryStorage()
    with pytest.raises(EngineBroken) as ended:  # noqa: PT012 - the orderly stop raises it
        async with live({}, storage) as rig:
            await rig.runtime.append(Poked(n=1), "first", "tests")
            undo = cut_off_at("in the reaction", 1, Interrupted())
            with pytest.raises(Interrupted):
                await rig.runtime.append(Poked(n=1), "cut off", "tests")
            undo()
            tail = storage.tail()
            for id in ("cut off", "another"):
                with pytest.raises(EngineBroken):
                    await rig.runtime.append(Poked(n=1), id, "tests")
            assert rig.runtime.failed.is_set()
            await rig.runtime.final(Poked(n=2), "daemon.stopped", "tests")
    assert ended.value.exit_code == 70
    assert storage.tail() == tail


async def test_what_stands_apart_from_what_was_handed_over_is_never_written() -> None:
    storage = MemoryStorage()
    with pytest.raises(EngineBroken):  # noqa: PT012 - the orderly stop raises it
        async with live({}, storage) as rig:
            await rig.runtime.append(Poked(n=1), "first", "tests")
            rig.runtime.engine.sequencer.position += 1  # somebody lost an event
            with pytest.raises(EngineBroken):
                await rig.runtime.append(Poked(n=1), "second", "tests")
    assert [stored.position for stored in events(storage)] == list(range(1, storage.tail().position + 1))


async def test_an_effect_that_runs_is_not_started_again() -> None:
    async def rest(rig: Rig) -> None:
        (request,) = await rig.tell("again")
        await rig.until(lambda: request.position in rig.runtime._running)
        with pytest.raises(Inconsistent):
            rig.runtime._scheduler.durable([], [request], [])

    async def forever(event: Event, _io: Io) -> Payload:
        await anyio.sleep_forever()
        return Done(n=event.data.n)

    async with live(performing(forever)) as rig:
        await rest(rig)


def test_what_ends_with_the_process_is_told_apart() -> None:
    assert EffectInterrupted(request=1, reason="crash").with_process
    assert EffectInterrupted(request=1, reason="stop").with_process
    assert not EffectInterrupted(request=1, reason="unrecorded ENOSPC").with_process
