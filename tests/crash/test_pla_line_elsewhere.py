"""A device that is plugged into a worker's host: the firmware behind a pseudo terminal, a process that carries its
line, a database. Whatever stops, cuts or kills them, nothing is typed beyond the line's lease, and nothing twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
import pytest
from anyio.abc import Process, TaskGroup

from pmagent.actors.pla.wire import carried as carried_module
from pmagent.contracts.hid import HidArmed, HidEnded, HidLost, HidPrepared, HidRefused, HidSilent
from pmagent.contracts.pla import TypeText
from pmagent.events.evidence import worker_table
from pmagent.events.lease import SECOND
from pmagent.events.postgres.store import PostgresLog
from pmagent.pla.linking import open_elsewhere
from pmagent.workers.line import Begin
from tests.support.effort import by_night
from tests.support.forked import KILLED
from tests.support.logs import BatchWriter
from tests.support.pla_pty import SECONDS, Held, Pretend, held, pretend
from tests.support.pla_wired import TIME, arm, commit, event, prepare
from tests.support.postgres import Proxy, Server, one_server
from tests.support.workers import HANDS, joined

LEASE = 5 * SECOND
"""Longer than the product's: also a machine with much to do renews it."""

RENEWED = f"from pmagent.actors.pla.wire import carried; carried.LEASE = {LEASE}"

LONG = TypeText(text="none of this is typed to its end " * 8)

STOPS_AT_THE_ORDER = """
import os, signal
from pmagent.service.lease import Fence
from pmagent.workers.line import _Life
pass_on, ask, ordered = _Life._pass_on, Fence.live, []
def passing(self, port, came, fence):
    ordered[:] = [b'"op":"commit"' in came.content]
    pass_on(self, port, came, fence)
def asked(self):
    if any(ordered) and "WHERE" == "before":
        os.kill(os.getpid(), signal.SIGSTOP)
    found = ask(self)
    if any(ordered) and "WHERE" == "after":
        os.kill(os.getpid(), signal.SIGSTOP)
    return found
_Life._pass_on, Fence.live = passing, asked
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server, where workers may carry a line."""
    with one_server() as made:
        joined(made)
        yield made


@pytest.fixture(autouse=True)
def lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on the holder's side."""
    monkeypatch.setattr(carried_module, "LEASE", LEASE)


@pytest.fixture
def store(server: Server, tmp_path: Path) -> Iterator[PostgresLog]:
    """A log that this process holds."""
    store = PostgresLog(server.new_log(), tmp_path, replicated=False)
    with store.lease("tests") as lease, closing(lease.open()) as storage:
        BatchWriter(storage).create(storage.log_id())
        yield store


class Bench:
    """The device, the line to it as the holder has it, and the process that carries it."""

    def __init__(self, device: Pretend, line: Held, agent: Process, tasks: TaskGroup) -> None:
        self.device, self.line, self.agent, self._tasks = device, line, agent, tasks

    async def ready(self, action: TypeText) -> Callable[[], Awaitable[object]]:
        """Arm, have the lease renewed, and prepare; what commits it. Whatever may be repeated is, where a machine with
        much to do is late."""
        boot_id = (await self.line.linked()).boot_id
        with anyio.fail_after(SECONDS):
            while not isinstance(await self.line.ask(arm(boot_id)), HidArmed):
                pass
            self.line.renew(boot_id)
            while not isinstance(await self.line.ask(prepare(action, boot_id=boot_id)), HidPrepared):
                pass
        return partial(self.line.ask, commit(action, boot_id=boot_id))

    async def typing(self) -> Awaitable[object]:
        """Have a long text typed, and return when it has begun: what comes of it."""
        outcome: list[object] = []
        order = await self.ready(LONG)
        done = anyio.Event()

        async def ask() -> None:
            outcome.append(await order())
            done.set()

        async def ended() -> object:
            with anyio.fail_after(SECONDS):
                await done.wait()
            return outcome[0]

        self._tasks.start_soon(ask)
        await self.device.presses(3)
        return ended()

    async def let_go(self) -> None:
        """Wait until nobody holds the device any more, and everything is released: then nothing is typed."""
        closed = await self.device.told.until(lambda one: one.get("line") == "closed")
        await self.device.released(self.device.told.all.index(closed))
        await self.device.obey("mark")
        assert not any(one.get("text") for one in self.device.told.all[self.device.told.all.index(closed) :])
        assert LONG.text.startswith(self.device.text)
        assert self.device.text != LONG.text


def began(store: PostgresLog, address: str, device: Path) -> Begin:
    """The line, claimed."""
    name = store.place.partition("#")[2]
    with closing(worker_table(address, replicated=False)) as table:
        while table.claim_line(claim := os.urandom(8).hex(), "bench", [name]) is None:
            os.sched_yield()  # the database is asked again
    return Begin(claim, address, replicated=False, device=str(device), serial="")


@asynccontextmanager
async def carried(store: PostgresLog, address: str, device: Path, change: str = "") -> AsyncIterator[Process]:
    """The process that carries the line to ``device``, for the length of a block."""
    command = [sys.executable, "-I", "-c", f"{RENEWED}\n{change}\nfrom pmagent.workers import line\nline.main()"]
    async with await anyio.open_process(command, stdin=subprocess.PIPE, stdout=None, stderr=None) as process:
        try:
            begin = await anyio.to_thread.run_sync(began, store, address, device)
            assert process.stdin is not None
            await process.stdin.send(msgspec.json.encode(begin) + b"\n")
            yield process
        finally:
            if process.returncode is None:
                process.kill()


def play(
    store: PostgresLog, server: Server, folder: Path, scene: Callable[[Bench], Awaitable[None]], *, change: str = "",
    agents: Server | Proxy | None = None,
) -> None:  # fmt: skip
    """Run a scene with a device elsewhere. ``agents``: where its process reaches the database."""
    where = agents.folder if agents is not None else server.folder
    address = f"postgresql:///postgres?host={where}&user={HANDS}"

    async def main() -> None:
        elsewhere = partial(open_elsewhere, store, f"worker:{HANDS}/bench")
        async with (
            pretend(folder) as device, held(device.path, elsewhere=elsewhere) as line,
            carried(store, address, device.path, change) as agent, anyio.create_task_group() as tasks,
        ):  # fmt: skip
            await scene(Bench(device, line, agent, tasks))

    anyio.run(main)


def unknown(outcome: object) -> bool:
    """Whether an order was sent, and nobody knows what became of it; or it was ended, and the device said so."""
    return (isinstance(outcome, HidSilent) and outcome.sent) or (
        isinstance(outcome, HidEnded) and outcome.state == "ABORTED"
    )


def test_what_is_ordered_is_typed_once(store: PostgresLog, server: Server, tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        order = await bench.ready(TypeText(text="once"))
        ended = await order()
        assert isinstance(ended, HidEnded)
        assert (ended.state, bench.device.text) == ("DONE", "once")
        asked = prepare(TypeText(text="secret"), boot_id=ended.boot_id, masked=True)
        refused = await bench.line.line.perform(event(asked), TypeText(text="secret"), TIME)
        assert isinstance(refused, HidRefused), "its text would lie in the database"
        assert refused.code == "masked"

    play(store, server, tmp_path, scene)


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_process_stopped_beside_the_check_of_an_order_is_killed_before_it_gives_it_to_the_device(
    store: PostgresLog, server: Server, tmp_path: Path, where: str
) -> None:
    async def scene(bench: Bench) -> None:
        order = await bench.ready(TypeText(text="never"))
        assert unknown(await order())
        with anyio.fail_after(SECONDS):
            assert await bench.agent.wait() == KILLED
        await bench.let_go()
        assert bench.device.text == ""
        assert await bench.device.heard("commit") == 0

    play(store, server, tmp_path, scene, change=STOPS_AT_THE_ORDER.replace("WHERE", where))


STOPS_AT_THE_DEVICE = """
import os, signal
from pmagent.service.lease import Fence
ask = Fence.live
def asked(self):
    if "WHERE" == "before":
        os.kill(os.getpid(), signal.SIGSTOP)
    found = ask(self)
    if "WHERE" == "after":
        os.kill(os.getpid(), signal.SIGSTOP)
    return found
Fence.live = asked
"""


@pytest.mark.parametrize("where", [pytest.param("before", marks=by_night), "after"])
def test_a_process_stopped_beside_the_check_before_it_opens_the_device_opens_it_no_more(
    store: PostgresLog, server: Server, tmp_path: Path, where: str
) -> None:
    async def scene(bench: Bench) -> None:
        if where == "before":  # nothing runs yet: it goes on, and finds its lease over
            await bench.line.troubles.until(lambda one: one.code == "missing")
            bench.agent.send_signal(signal.SIGCONT)
        with anyio.fail_after(SECONDS):
            assert await bench.agent.wait() == (KILLED if where == "after" else 0)
        await bench.device.obey("mark")
        assert not any(one.get("line") == "open" for one in bench.device.told.all)

    play(store, server, tmp_path, scene, change=STOPS_AT_THE_DEVICE.replace("WHERE", where))


def stop(bench: Bench) -> None:
    """The process stands still."""
    bench.agent.send_signal(signal.SIGSTOP)


def kill(bench: Bench) -> None:
    """It is killed."""
    bench.agent.kill()


@pytest.mark.parametrize(("end", "code"), [(stop, KILLED), pytest.param(kill, KILLED, marks=by_night)])
def test_typing_ends_with_the_process_that_carries_the_line(
    store: PostgresLog, server: Server, tmp_path: Path, end: Callable[[Bench], None], code: int
) -> None:
    async def scene(bench: Bench) -> None:
        outcome = await bench.typing()
        end(bench)
        await bench.let_go()
        with anyio.fail_after(SECONDS):
            assert await bench.agent.wait() == code
        assert unknown(await outcome)
        before = bench.device.text
        address = f"postgresql:///postgres?host={server.folder}&user={HANDS}"
        lost = next(n for n, fact in enumerate(bench.line.facts.all) if isinstance(fact, HidLost))
        async with carried(store, address, bench.device.path):
            await bench.line.linked(lost)
            assert bench.device.text == before, "it is never typed again by itself"

    play(store, server, tmp_path, scene)


def test_typing_ends_when_the_worker_ends(store: PostgresLog, server: Server, tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        outcome = await bench.typing()
        assert bench.agent.stdin is not None
        await bench.agent.stdin.aclose()
        await bench.let_go()
        with anyio.fail_after(SECONDS):
            assert await bench.agent.wait() == 0
        assert unknown(await outcome)

    play(store, server, tmp_path, scene)


def test_typing_ends_when_the_process_is_cut_off_from_the_database(
    store: PostgresLog, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "proxy").mkdir()
    proxy = Proxy(server, tmp_path / "proxy")

    async def scene(bench: Bench) -> None:
        outcome = await bench.typing()
        proxy.silence()
        await bench.let_go()
        with anyio.fail_after(SECONDS):
            assert await bench.agent.wait() == 0, "it ends by itself"
        assert unknown(await outcome)

    try:
        play(store, server, tmp_path, scene, agents=proxy)
    finally:
        proxy.close()


def test_typing_ends_when_the_holder_is_cut_off_from_the_database(server: Server, tmp_path: Path) -> None:
    (tmp_path / "proxy").mkdir()
    proxy = Proxy(server, tmp_path / "proxy")
    here = server.new_log()
    there = here._replace(dsn=here.dsn.replace(str(server.folder), str(proxy.folder)))
    try:
        store = PostgresLog(there, tmp_path, replicated=False)
        with store.lease("tests") as lease, closing(lease.open()) as storage:
            BatchWriter(storage).create(storage.log_id())

            async def scene(bench: Bench) -> None:
                outcome = await bench.typing()
                proxy.silence()
                await bench.let_go()
                with anyio.fail_after(SECONDS):
                    assert await bench.agent.wait() == 0, "the holder's answers are missing"
                assert unknown(await outcome)
                proxy.speak()

            play(store, server, tmp_path, scene)
    finally:
        proxy.close()
