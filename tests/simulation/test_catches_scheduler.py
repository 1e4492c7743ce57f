"""A rule that is planted wrong in the scheduler is found by the seeds, and by the daemon's own runtime."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import anyio
import pytest

from pmagent.actors.core.actor import Io
from pmagent.actors.core.scheduler import Scheduler
from pmagent.contracts.control import PauseRequested, ResumeRequested
from pmagent.contracts.effect import EffectInterrupted, EffectTimedOut
from pmagent.contracts.payload import Payload
from pmagent.events.event import Event
from pmagent.replay.simulation.runner import Load
from tests.support.live import Deaf, Rig, live, performing
from tests.support.memory_storage import MemoryStorage
from tests.support.planted import plant
from tests.support.simulated import DEMANDS, PAUSES, failure
from tests.support.toys import Done, Poked, permit_for


class Begun:
    """Notes what begins; answers when told to."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.go_on = anyio.Event()

    async def __call__(self, event: Event, _io: Io) -> Payload:
        """See the class."""
        self.begun.append(event.position)
        await self.go_on.wait()
        return Done(n=1)


async def behind(rig: Rig, name: str) -> None:
    """Return when all that an earlier fact leads to has begun."""
    await rig.runtime.append(Poked(n=1), name, "tests")
    await anyio.wait_all_tasks_blocked()


async def pauses(_patience: float) -> None:
    performer = Begun()
    performer.go_on.set()
    async with live(performing(performer)) as rig:
        await rig.runtime.append(permit_for("boss", uses=9), "permit", "tests")
        await rig.runtime.append(PauseRequested(operator_id="ada", channel="cli"), "pause", "tests")
        requests = [*await rig.tell("fetch"), *await rig.tell("fetch")]
        await behind(rig, "paused")
        assert performer.begun == []
        await rig.runtime.append(ResumeRequested(operator_id="ada", channel="cli"), "resume", "tests")
        await behind(rig, "resumed")
        assert performer.begun == [request.position for request in requests]


async def places(_patience: float) -> None:
    performer = Begun()
    async with live(performing(performer)) as rig:
        requests = await rig.tell("once", "once", "once")
        await behind(rig, "asked")
        assert performer.begun == [request.position for request in requests[:2]]
        performer.go_on.set()
        await behind(rig, "ended")
        assert performer.begun == [request.position for request in requests]


async def limits(patience: float) -> None:
    deaf = Deaf()
    async with live(performing(deaf)) as rig:
        (request,) = await rig.tell("short")
        with anyio.move_on_after(patience):
            await rig.until(lambda: bool(rig.ends(request)))
        deaf.release.set()
        assert rig.ends(request) == [EffectTimedOut(request=request.position, limit_s=0.02)]


async def crashes(_patience: float) -> None:
    storage, performer = MemoryStorage(), Begun()
    async with live(performing(performer), storage) as rig:
        (request,) = await rig.tell("once")
        await behind(rig, "asked")
        rest = MemoryStorage()
        rest._lines, rest._tail = [*storage._lines], storage.tail()
    async with live(performing(performer), rest) as rig:
        await behind(rig, "again")
        assert performer.begun == [request.position]
        assert rig.ends(request) == [EffectInterrupted(request=request.position, reason="crash")]


RULES: dict[str, tuple[str, str, str, str, Load, Callable[[float], Awaitable[None]]]] = {
    # where what is exchanged for what, what the seeds say, in which world, and the daemon's scenario
    "a pause holds nothing": (
        "_start", "(self._unread or self._shut)", "self._unread", "though effects are paused", PAUSES, pauses,
    ),
    "the held start in another order": (
        "_let_go", 'key=attrgetter("event.position"))', 'key=attrgetter("event.position"), reverse=True)',
        "started after", PAUSES, pauses,
    ),
    "any number runs at once": (
        "_start", ">= life.effect.concurrency", "< 0", "run at once", DEMANDS, places,
    ),
    "nothing follows when a place is free": (
        "recorded", "while waiting and", "while False and", "has no end|still open|answers", DEMANDS, places,
    ),
    "no limit": (
        "_perform", "if life.effect.limit_s is not None", "if False", "has no end|still open|answers", DEMANDS, limits,
    ),
    "everything is performed again after a crash": (
        "recovered", "or is_repeatable(event.data)", "or True", "performed twice", DEMANDS, crashes,
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_seeds_find_it(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, old, new, says, load, _ = RULES[rule]
    plant(monkeypatch, Scheduler, where, old, new)
    assert re.search(says, failure(rule, load))


@pytest.mark.parametrize("rule", RULES)
def test_the_daemon_shows_it(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, old, new, _, _, scenario = RULES[rule]
    anyio.run(scenario, 120.0)
    plant(monkeypatch, Scheduler, where, old, new)
    with pytest.raises(BaseExceptionGroup) as raised:
        anyio.run(scenario, 1.0)
    assert raised.value.subgroup(AssertionError) is not None
