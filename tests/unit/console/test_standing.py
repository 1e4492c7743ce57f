"""How things stand is asked for once for all pages that wait for it, and never answered with what is older."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pmagent.console.pages import context as contexts
from pmagent.console.pages.context import PageContext
from pmagent.service.answer import Answer
from pmagent.service.client import DaemonUnreachable
from tests.support.cases import on_loop


class Asked(PageContext):
    """A context whose daemon answers when it is let, and counts questions; its log grows by ``growing`` a look."""

    def __init__(self) -> None:
        super().__init__(Path("/nowhere"))
        self.end = 1
        self.growing = 0
        self.asked = 0
        self.may_answer = anyio.Event()

    def position(self) -> int:
        """See Desk."""
        self.end += self.growing
        return self.end

    async def ask(self, *_: Any, **__: Any) -> Answer:
        """See Desk."""
        self.asked += 1
        mine = self.asked
        await self.may_answer.wait()
        return Answer(document={"asked": mine})


async def _standings(context: Asked, count: int, into: list[int]) -> None:
    async def one() -> None:
        into.append((await context.standing("status")).document["asked"])

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(one)


@on_loop
async def test_pages_that_come_while_it_is_asked_share_the_next_answer() -> None:
    context = Asked()
    first: list[int] = []
    rest: list[int] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_standings, context, 1, first)
        while not context.asked:
            await anyio.lowlevel.checkpoint()
        context.growing = 1  # what is being answered knows nothing of it
        tasks.start_soon(_standings, context, 50, rest)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        context.may_answer.set()
    assert (first, rest) == ([1], [2] * 50)


@on_loop
async def test_an_answer_is_kept_while_nothing_happens_and_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "FRESH_SECONDS", 1e9)  # however long the machine lets us wait between two looks
    context = Asked()
    context.may_answer.set()
    told: list[int] = []
    await _standings(context, 3, told)
    await _standings(context, 3, told)
    assert told == [1] * 6
    context.end = 2
    await _standings(context, 1, told)
    monkeypatch.setattr(contexts, "FRESH_SECONDS", 0.0)
    await _standings(context, 1, told)
    assert told[6:] == [2, 3]


class Silent(Asked):
    """A context whose daemon does not answer in time."""

    async def ask(self, *_: Any, seconds: float = 0.0, **__: Any) -> Answer:
        """See Desk."""
        assert 0.0 < seconds <= contexts.STANDING_SECONDS
        await super().ask()
        raise DaemonUnreachable("it does not answer in time", "look at it")


@on_loop
async def test_a_daemon_that_does_not_answer_is_waited_for_once_by_all_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    context = Silent()
    told: list[str] = []

    async def one() -> None:
        with pytest.raises(DaemonUnreachable) as raised:
            await context.standing("status")
        told.append(raised.value.message)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one)
        while not context.asked:
            await anyio.lowlevel.checkpoint()
        for _ in range(20):
            tasks.start_soon(one)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        context.may_answer.set()
    assert (context.asked, len(told)) == (1, 21)
    monkeypatch.setattr(contexts, "FRESH_SECONDS", 0.0)
    await one()
    assert context.asked == 2, "it is asked again"
