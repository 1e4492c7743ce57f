"""Effects through the real runtime: timers across restarts, revoked permits, cancellations that a crash came after."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from pmagent.actors.clock.effects import PERFORMERS as CLOCK
from pmagent.actors.core.actor import AnyActor, Io, Performers
from pmagent.actors.core.engine import Engine
from pmagent.actors.core.intake import Intake
from pmagent.actors.core.runtime import Runtime
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.control import PauseRequested, ResumeRequested
from pmagent.contracts.effect import EffectCancelled, EffectCancelRequested, EffectInterrupted
from pmagent.contracts.kernel import KernelModeDecided
from pmagent.contracts.oa import OaPermitGranted
from pmagent.contracts.payload import Payload, typed
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.event import Event, Tail, time_after
from pmagent.events.log import now
from pmagent.events.reader import event_at, events
from pmagent.events.redact import Redactor
from pmagent.events.sequencer import Sequencer
from pmagent.service.io import RealIo
from tests.support.memory_storage import MemoryStorage
from tests.support.recorded import stored_log
from tests.support.toys import Bench, Done, FetchRequested, Grantor, Poked, SendRequested, WorkRequested, permit_for

pytestmark = pytest.mark.anyio
SECONDS = 120.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Nothing(msgspec.Struct, frozen=True):
    """No state."""


class Script:
    """Decides what a function of the event says."""

    name = "toy"
    hears: frozenset[type[msgspec.Struct]] = frozenset((Poked, OaPermitGranted, TimerFired, SendRequested))

    def __init__(self, script: Callable[[Event], Iterable[Payload]]) -> None:
        self._script = script

    def initial(self) -> Nothing:
        return Nothing()

    def evolve(self, state: Nothing, _: Event) -> Nothing:
        return state

    def decide(self, _: Nothing, event: Event) -> Iterable[Payload]:
        return self._script(event)


class Watcher(Script):
    """Says BLOCKED on a poke: the kernel watcher's word, without its surfaces."""

    name = "kernel"
    hears: frozenset[type[msgspec.Struct]] = frozenset((Poked,))

    def __init__(self) -> None:
        super().__init__(lambda _: [BLOCKED])


BLOCKED = KernelModeDecided(mode="BLOCKED", previous="NORMAL", reasons=[], phase="1", branch="main", digest="")


@asynccontextmanager
async def live(
    storage: MemoryStorage, folder: Path, actors: Sequence[AnyActor], performers: Performers
) -> AsyncIterator[Runtime]:
    """A runtime on what ``storage`` holds, as the host opens one."""
    engine = Engine(actors, Sequencer(Tail()))
    for stored in events(storage):
        engine.fold(typed(stored))
    recovered = engine.effects.unfinished()
    completed = engine.complete(now())
    intake = Intake(Redactor(), BlobStore(RealDisk(), str(folder)))
    io = RealIo(folder, intake, lambda position: typed(event_at(storage, position)))
    runtime = Runtime(engine, storage, performers, intake, io)
    if completed.events:
        runtime.submit(completed)
    async with runtime.run(recovered):
        with anyio.fail_after(SECONDS):
            yield runtime


async def until(storage: MemoryStorage, cls: type[msgspec.Struct]) -> Event:
    """The first event with such a payload, when it is durable."""
    while True:
        for stored in events(storage):
            event = typed(stored)
            if type(event.data) is cls:
                return event
        await anyio.lowlevel.checkpoint()


def kinds(storage: MemoryStorage) -> list[str]:
    return [stored.type for stored in events(storage)]


def timer(seconds: float) -> Script:
    """Sets a timer at each poke."""

    def script(event: Event) -> Iterable[Payload]:
        if isinstance(event.data, Poked):
            yield TimerRequested(at=time_after(event.time, seconds), name="tea")

    return Script(script)


async def test_a_timer_outlives_an_orderly_stop_and_fires_after_the_restart_not_before_its_time(tmp_path: Path) -> None:
    storage = MemoryStorage()
    async with live(storage, tmp_path, [timer(0.3)], CLOCK) as runtime:
        await runtime.append(Poked(n=1), "poke", "tests")
    assert "timer.fired" not in kinds(storage)
    async with live(storage, tmp_path, [timer(0.3)], CLOCK):
        fired = await until(storage, TimerFired)
    request = await until(storage, TimerRequested)
    assert fired.data == TimerFired(request=request.position, name="tea")
    assert fired.time >= request.data.at
    async with live(storage, tmp_path, [timer(0.3)], CLOCK) as runtime:
        assert runtime.engine.effects.open == {}
    assert kinds(storage).count("timer.fired") == 1


async def test_a_timer_that_became_due_while_nothing_ran_fires_at_once(tmp_path: Path) -> None:
    bench = Bench([timer(1.0)])  # its clock stands in the past
    bench.fact(Poked(n=1))
    storage = stored_log(bench.history)
    async with live(storage, tmp_path, [timer(1.0)], CLOCK):
        assert (await until(storage, TimerFired)).data.name == "tea"


def sender(event: Event) -> Iterable[Payload]:
    """Uses each permit at once."""
    if isinstance(event.data, OaPermitGranted):
        yield SendRequested(n=1, permit=event.position)


class Performer:
    """A performer that never ends by itself, and tells how often it began and was cut off."""

    def __init__(self) -> None:
        self.began = 0
        self.cut = 0
        self.running = anyio.Event()

    async def __call__(self, _event: Event, _io: Io) -> Done:
        self.began += 1
        self.running.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cut += 1
        return Done(n=0)


@pytest.mark.parametrize("grantor_revokes", [True, False], ids=["permit revoked", "mode forbids"])
async def test_what_runs_under_a_permit_that_is_taken_back_is_cut_off_and_ends_as_cancelled(
    tmp_path: Path, grantor_revokes: bool
) -> None:
    storage, performer = MemoryStorage(), Performer()
    actors: list[AnyActor] = [Grantor(), Script(sender)] if grantor_revokes else [Watcher(), Grantor(), Script(sender)]
    async with live(storage, tmp_path, actors, {SendRequested: performer}) as runtime:
        await runtime.append(permit_for("toy"), "permit", "tests")
        await performer.running.wait()
        await runtime.append(Poked(n=7 if grantor_revokes else 1), "poke", "tests")
        ended = await until(storage, EffectCancelled)
        assert ended.data == EffectCancelled(request=ended.causation, reason="permit_revoked")
    assert (performer.began, performer.cut) == (1, 1)
    assert [kind for kind in kinds(storage) if kind.startswith("effect.")] == ["effect.cancelled"]


async def test_an_effect_taken_back_before_it_began_never_begins(tmp_path: Path) -> None:
    """Request and cancellation are durable together."""

    def script(event: Event) -> Iterable[Payload]:
        if isinstance(event.data, OaPermitGranted):
            yield SendRequested(n=1, permit=event.position)
            yield EffectCancelRequested(request=event.position + 1)

    storage, performer = MemoryStorage(), Performer()
    async with live(storage, tmp_path, [Grantor(), Script(script)], {SendRequested: performer}) as runtime:
        await runtime.append(permit_for("toy"), "permit", "tests")
        assert (await until(storage, EffectCancelled)).data.reason == "cancel_requested"
    assert performer.began == 0


async def test_what_was_cancelled_before_a_crash_is_not_performed_after_it(tmp_path: Path) -> None:
    """The word was durable, the deed was not: the effect may be repeated, but nobody wants it any more."""

    def script(event: Event) -> Iterable[Payload]:
        if isinstance(event.data, OaPermitGranted):
            yield FetchRequested(n=1, permit=event.position)
            yield WorkRequested(n=2)

    bench = Bench([Grantor(), Script(script)])
    bench.fact(permit_for("toy"))
    bench.fact(Poked(n=7))
    assert bench.types()[-1] == "oa.permit_revoked"
    assert len(bench.engine.effects.open) == 2, "neither has ended"
    fetch, work = Performer(), Performer()
    storage = stored_log(bench.history)
    performers: Performers = {FetchRequested: fetch, WorkRequested: work}
    async with live(storage, tmp_path, [Grantor(), Script(script)], performers):
        assert (await until(storage, EffectCancelled)).data.reason == "permit_revoked"
        await work.running.wait()
    assert (fetch.began, work.began) == (0, 1)


async def test_what_a_crash_cut_off_and_must_not_be_repeated_ends_as_interrupted(tmp_path: Path) -> None:
    bench = Bench([Grantor(), Script(sender)])
    bench.fact(permit_for("toy"))
    storage, performer = stored_log(bench.history), Performer()
    for _ in range(2):
        async with live(storage, tmp_path, [Grantor(), Script(sender)], {SendRequested: performer}):
            interrupted = await until(storage, EffectInterrupted)
    assert interrupted.data.reason == "crash"
    assert performer.began == 0
    assert kinds(storage).count("effect.interrupted") == 1


async def test_a_resumption_that_a_crash_cut_off_starts_what_was_held_once(tmp_path: Path) -> None:
    """The operator's word is durable, the decision on it is not: recovery makes it, and with it the only start."""

    def script(event: Event) -> Iterable[Payload]:
        if isinstance(event.data, OaPermitGranted):
            yield SendRequested(n=1, permit=event.position)
            yield FetchRequested(n=2, permit=event.position)

    bench = Bench([Grantor(), Script(script)])
    bench.fact(PauseRequested(operator_id="ada", channel="cli"))
    bench.fact(permit_for("toy", uses=2, seconds=10**8))
    bench.fact(ResumeRequested(operator_id="ada", channel="cli"))
    assert bench.types()[-1] == "control.resumed"
    storage, send, fetch = stored_log(bench.history[:-1]), Performer(), Performer()
    performers: Performers = {SendRequested: send, FetchRequested: fetch}
    async with live(storage, tmp_path, [Grantor(), Script(script)], performers):
        await send.running.wait()
        await fetch.running.wait()
    assert (send.began, fetch.began) == (1, 1)


async def test_what_a_pause_caught_starts_in_the_order_of_its_requests(tmp_path: Path) -> None:
    """The third waits for a free place when effects are paused, and is held only when one becomes free: after the
    fourth, which was held at once."""
    began: list[int] = []
    go_on = {n: anyio.Event() for n in range(5)}

    async def send(event: Event, _: Io) -> Done:
        began.append(event.data.n)
        await go_on[event.data.n].wait()
        return Done(n=event.data.n)

    def script(event: Event) -> Iterable[Payload]:
        if isinstance(event.data, OaPermitGranted):
            yield from (SendRequested(n=n, permit=event.position) for n in range(3))
        elif isinstance(event.data, Poked):
            yield SendRequested(n=3, permit=event.data.n)

    storage = MemoryStorage()
    async with live(storage, tmp_path, [Grantor(), Script(script)], {SendRequested: send}) as runtime:
        granted = await runtime.append(permit_for("toy", uses=9), "permit", "tests")
        assert granted is not None
        # Decided while the fourth is on its way to the disk, so that it is the runtime that holds it.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runtime.append, Poked(n=granted.position + 1), "poke", "tests")
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(runtime.append, PauseRequested(operator_id="ada", channel="cli"), "pause", "tests")
        go_on[0].set()
        go_on[1].set()
        while kinds(storage).count("toy.done") < 2:
            await anyio.lowlevel.checkpoint()
        for event in go_on.values():
            event.set()
        await runtime.append(ResumeRequested(operator_id="ada", channel="cli"), "resume", "tests")
        while kinds(storage).count("toy.done") < 4:
            await anyio.lowlevel.checkpoint()
    assert began == [0, 1, 2, 3]
