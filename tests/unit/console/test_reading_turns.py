"""Turns at reading the log: nobody's reads, however many, keep another operator's waiting."""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import pytest
import uvicorn

from pmagent.console import serving
from pmagent.console.pages import context as contexts
from pmagent.console.pages.context import PageContext, reading_for
from pmagent.console.serving import _Server
from pmagent.service.answer import Answer
from pmagent.service.client import DaemonUnreachable
from tests.conftest import fresh_example
from tests.support.cases import on_loop
from tests.support.consoles import console, live_host

SECONDS = 120.0


class Reading:
    """Reads that are let go by hand, and who had theirs."""

    def __init__(self, context: PageContext) -> None:
        self.context = context
        self.begun: list[str] = []
        self.begins = threading.Event()
        self.may_end = threading.Event()

    async def read(self, operator: str) -> None:
        """A read for ``operator``."""
        reading_for.set(operator)
        await self.context.read(self._look, operator)

    def _look(self, operator: str) -> None:
        self.begun.append(operator)
        self.begins.set()
        if operator == "vera":
            assert self.may_end.wait(SECONDS)


@on_loop
async def test_one_read_of_an_operator_at_a_time_and_others_go_by() -> None:
    made = Reading(PageContext(Path("/nowhere")))
    assert contexts.READERS > 1
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for _ in range(10 * contexts.READERS):
                tasks.start_soon(made.read, "vera")
            await anyio.to_thread.run_sync(made.begins.wait)
            await made.read("bert")
            await made.read("ada")
            assert made.begun == ["vera", "bert", "ada"], "one of hers goes on, and the others wait behind it"
            made.may_end.set()
    assert made.begun == ["vera", "bert", "ada"] + ["vera"] * (10 * contexts.READERS - 1)


@on_loop
async def test_a_read_that_fails_or_is_left_keeps_nobody_waiting() -> None:
    context = PageContext(Path("/nowhere"))

    def broken() -> None:
        raise OSError("broken")

    with anyio.fail_after(SECONDS):
        for _ in range(2):
            with pytest.raises(OSError, match="broken"):
                await context.read(broken)
        with anyio.CancelScope() as left:
            left.cancel()
            await context.read(broken)
        assert await context.read(lambda: "read") == "read"


def test_the_log_is_read_for_who_is_signed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    read = PageContext.read

    async def noted(self: PageContext, *arguments: object) -> object:
        seen.append(reading_for.get())
        return await read(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(PageContext, "read", noted)
    with live_host(fresh_example(tmp_path / "workspace")) as live, console(live.workspace, "bert") as browser:
        browser.page("/log")
    assert set(seen) == {"bert"}


@on_loop
async def test_who_waits_for_the_daemon_hears_when_it_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uvicorn answers a request that it has lost patience with by itself: unstyled, and without the guard's headers."""

    async def never(*_: object) -> Answer:
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(contexts, "call_daemon", never)
    monkeypatch.setattr(serving, "ANSWER_SECONDS", 0.0)
    context, ended, server = PageContext(Path("/nowhere")), anyio.Event(), _Server(uvicorn.Config(lambda: None))
    told: list[DaemonUnreachable] = []

    async def ask() -> None:
        try:
            await context.ask("control.pause")
        except DaemonUnreachable as error:
            told.append(error)

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(serving._stop_at_end, server, context, ended)
            await anyio.wait_all_tasks_blocked()
            ended.set()
        await ask()  # and who asks now does not wait
    assert ["was not asked" in error.message for error in told] == [False, True]
    assert server.should_exit
