"""The pretend device in its process, and a line held to it; what they tell is waited for, never slept for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

import anyio
import anyio.lowlevel
from anyio.abc import ByteReceiveStream, Process

from pmagent.actors.pla.line.discovery import PortUnusable, Wanted
from pmagent.actors.pla.line.holding import Elsewhere, Line
from pmagent.actors.pla.wire.messages import Check
from pmagent.contracts.hid import HidLeaseRequested, HidLinked, HidLost
from pmagent.contracts.payload import Payload
from tests.support.pla_wired import TIME, arm, commit, event, prepare

T = TypeVar("T")
SECONDS = 120.0
"""An event that takes longer does not come any more."""


class Told(Generic[T]):
    """All that somebody tells, in order."""

    def __init__(self) -> None:
        self.all: list[T] = []
        self._news = anyio.Event()

    def add(self, one: T) -> None:
        """Somebody tells."""
        self.all.append(one)
        self._news.set()
        self._news = anyio.Event()

    async def until(self, wanted: Callable[[T], bool], after: int = 0, times: int = 1) -> T:
        """The first that is wanted, told after the first ``after``; or the ``times``th such."""
        with anyio.fail_after(SECONDS):
            while True:
                found = [one for one in self.all[after:] if wanted(one)]
                if len(found) >= times:
                    return found[times - 1]
                await self._news.wait()


class Pretend:
    """The device."""

    def __init__(self, process: Process, path: Path, typed: Path) -> None:
        self.process = process
        self.path = path
        self.told: Told[dict[str, Any]] = Told()
        self._typed = typed

    async def obey(self, word: str) -> None:
        """Give a command and wait until it is carried out."""
        assert self.process.stdin is not None
        after = len(self.told.all)
        await self.process.stdin.send(word.encode() + b"\n")
        await self.told.until(lambda one: one.get("did") == word, after)

    async def presses(self, count: int) -> None:
        """Wait until so many characters have been typed."""
        await self.told.until(lambda one: bool(one.get("text")), times=count)

    async def dark(self, after: int = 0) -> None:
        """Wait until the light goes off."""
        await self.told.until(lambda one: one.get("light") is False, after)

    @property
    def text(self) -> str:
        """The text that has been typed."""
        return self._typed.read_text() if self._typed.exists() else ""

    async def heard(self, op: str) -> int:
        """How often a request has come whole, until now."""
        await self.obey("mark")
        return sum(one.get("heard") == op for one in self.told.all)

    async def released(self, after: int) -> None:
        """Wait until everything is released."""
        await self.told.until(lambda one: one.get("report") == ["release"], after)


@asynccontextmanager
async def pretend(folder: Path, *options: str, name: str = "device") -> AsyncIterator[Pretend]:
    """A device behind ``folder``/``name``."""
    path, typed = folder / name, folder / f"{name}.typed"
    command = [sys.executable, "-I", "-m", "pmagent.pla.device", "--link", str(path), "--typed", str(typed), *options]
    async with await anyio.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None) as process:
        device = Pretend(process, path, typed)
        assert process.stdout is not None
        assert process.stdin is not None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process.stdout, device.told)
            await device.told.until(lambda one: "plugged" in one)
            try:
                yield device
            finally:
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await process.stdin.aclose()
                    with anyio.fail_after(SECONDS):
                        await process.wait()


async def _read(stream: ByteReceiveStream, told: Told[dict[str, Any]]) -> None:
    begun = b""
    try:
        async for data in stream:
            *lines, begun = (begun + data).split(b"\n")
            for line in lines:
                told.add(json.loads(line))
    except anyio.BrokenResourceError:
        return  # it was killed


class Held:
    """A line that is held, and what it tells."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.facts: Told[Payload] = Told()
        self.troubles: Told[PortUnusable] = Told()
        self.executions = 0
        self.renew: Callable[[str], None] = lambda _: None
        """Has the lease of the device with this boot renewed from now on."""

    async def append(self, fact: Payload) -> None:
        """In place of the log."""
        self.facts.add(fact)

    async def linked(self, after: int = 0) -> HidLinked:
        """The device, when it is linked."""
        fact = await self.facts.until(lambda one: isinstance(one, HidLinked), after)
        assert isinstance(fact, HidLinked)
        return fact

    async def ask(self, payload: Payload) -> Any:
        """A request's outcome."""
        with anyio.fail_after(SECONDS):
            return await self.line.perform(event(payload), None, TIME)

    async def ready(self, action: Any) -> Callable[[], Any]:
        """Arm, have the lease renewed, and prepare; what commits it."""
        boot_id = (await self.linked()).boot_id
        self.executions += 1
        name = f"exec-{self.executions:04}"
        assert (await self.ask(arm(boot_id))).lease_ms
        self.renew(boot_id)
        assert (await self.ask(prepare(action, boot_id=boot_id, execution_id=name))).of
        return lambda: self.ask(commit(action, boot_id=boot_id, execution_id=name))


@asynccontextmanager
async def held(
    path: Path, serial: str = "", check: Check | None = None, elsewhere: Elsewhere | None = None, **contract: str
) -> AsyncIterator[Held]:
    """A line to what is at ``path``, or to what ``elsewhere`` opens, let go of in the end."""
    line = Line(check=check, **contract) if check is not None else Line(**contract)  # type: ignore[arg-type]
    holder = Held(line)
    async with anyio.create_task_group() as tasks:
        given = Wanted(str(path), serial), holder.append, holder.troubles.add, anyio.lowlevel.checkpoint, elsewhere
        tasks.start_soon(line.run, *given)

        def renew(boot_id: str) -> None:
            tasks.start_soon(line.perform, event(HidLeaseRequested(boot_id=boot_id)), None, TIME)

        holder.renew = renew
        try:
            yield holder
        finally:
            tasks.cancel_scope.cancel()


def opened(path: Path) -> int:
    """How many descriptors of this process lead to ``path``."""
    real = os.path.realpath(path)
    return sum(os.path.realpath(f"/proc/self/fd/{name}") == real for name in os.listdir("/proc/self/fd"))


Scene = Callable[[Pretend, Held], Awaitable[None]]


def play(folder: Path, scene: Scene, *options: str) -> None:
    """Run a scene with a device and a line to it."""

    async def main() -> None:
        async with pretend(folder, *options) as device, held(device.path) as line:
            await scene(device, line)

    anyio.run(main)


def lost(code: str) -> Callable[[object], bool]:
    """Whether a fact says that the device was lost so."""
    return lambda fact: isinstance(fact, HidLost) and fact.code == code
