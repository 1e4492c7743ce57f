"""Durable steps: each step's result stands in the log, synced, before the next step begins; DBOS on SQLite, or on the
same PostgreSQL, beside it.

A task is a row of steps, one after the other; a simulated runner answers at once. With the engine a step is an effect:
its request is durable before it is performed, its outcome stands in the log with the next request. With DBOS it is a
``@DBOS.step`` in a workflow. Measured with one task, and with a hundred at once.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import msgspec

from benchmarks.harness import Bench, Row, Spread, child
from pmagent.actors.core.actor import Io
from pmagent.actors.core.engine import Engine, Output
from pmagent.actors.core.intake import Intake
from pmagent.actors.core.runtime import Runtime
from pmagent.contracts.payload import Effect, Payload, event_type
from pmagent.events.event import Event
from pmagent.events.evidence import log_at
from pmagent.events.log import now, opening_events
from pmagent.events.redact import Redactor
from pmagent.events.segment_log import SegmentLog
from pmagent.events.sequencer import Sequencer
from pmagent.events.storage import Blobs, Storage
from pmagent.service.daemon import spare_collector
from pmagent.service.io import RealIo
from tests.support.postgres import Server, lacking, servers

TASKS = 100
TARGETS = {1: 2_500, TASKS: 30_000}


@event_type("bench.row_asked")
class RowAsked(Payload, frozen=True, kw_only=True):
    """Task ``task`` is to do so many steps."""

    task: int
    steps: int


@event_type(
    "bench.row_step_requested",
    effect=Effect(repeatable=True, concurrency=100_000, outcomes=("bench.row_step_done",)),
)
class RowStepRequested(Payload, frozen=True, kw_only=True):
    """Do the next step of the task; so many are left, this one included."""

    task: int
    left: int


@event_type("bench.row_step_done")
class RowStepDone(Payload, frozen=True, kw_only=True):
    """The result of the step."""

    task: int
    left: int
    result: str


class RowsState(msgspec.Struct, frozen=True):
    """How many tasks are done."""

    done: int = 0


class Rows:
    """Requests the next step when one is done."""

    name = "rows"
    hears: frozenset[type[msgspec.Struct]] = frozenset((RowAsked, RowStepDone))

    def initial(self) -> RowsState:
        """None."""
        return RowsState()

    def evolve(self, state: RowsState, event: Event) -> RowsState:
        """Count tasks."""
        data = event.data
        return RowsState(state.done + 1) if isinstance(data, RowStepDone) and data.left == 1 else state

    def decide(self, state: RowsState, event: Event) -> Iterable[Payload]:
        """The next step."""
        del state
        data = event.data
        if isinstance(data, RowAsked):
            return (RowStepRequested(task=data.task, left=data.steps),)
        if isinstance(data, RowStepDone) and data.left > 1:
            return (RowStepRequested(task=data.task, left=data.left - 1),)
        return ()


def run(bench: Bench) -> list[Row]:
    """One task, and a hundred at once; turn and turn about with DBOS. Then the same in PostgreSQL, where each commit
    of both waits for a standby."""
    rows = [_compared(bench, 1, bench.count(5_000, 20)), _compared(bench, TASKS, bench.count(500, 2))]
    if why := lacking():
        return [*rows, Row(what="durable steps in PostgreSQL", figure=Spread(0, 0, 0), unit="", note=why)]
    with _pair() as server:
        return [
            *rows, _compared(bench, 1, bench.count(1_000, 20), server),
            _compared(bench, TASKS, bench.count(100, 2), server),
        ]  # fmt: skip


@contextmanager
def _pair() -> Iterator[Server]:
    """A server, and a standby for which each commit waits."""
    with servers() as folder, ExitStack() as stack:
        primary = Server.made(folder / "a")
        stack.callback(primary.stop)
        primary.prepare()
        stack.callback(primary.standby(folder / "b", "b").stop)
        primary.configure(synchronous_standby_names="ANY 1 (b)")
        primary.reload()
        yield primary


def _compared(bench: Bench, tasks: int, steps: int, server: Server | None = None) -> Row:
    peer = find_spec("dbos") is not None
    ours, theirs = [], []
    place = "" if server is None else " in PostgreSQL"
    few = max(1, steps // 10)  # the peer's steps take ten times as long and more
    for turn in range(bench.runs):
        name = f"{tasks}-{turn}{place.replace(' ', '-')}"
        own = () if server is None else (server.new_log(),)
        found = child("durable_steps", "ours", bench.folder / f"steps-{name}", tasks, steps, *own)
        ours.append(found["steps"] / found["seconds"])
        if peer:
            other = () if server is None else (_database(server, f"dbos_{tasks}_{turn}"),)
            found = child("durable_steps", "dbos", bench.folder / f"dbos-{name}", tasks, few, *other)
            theirs.append(found["steps"] / found["seconds"])
    rate = Spread.of(ours)
    limit = Spread.of(theirs) if theirs else None
    ratio = rate.median / limit.median if limit else None
    wanted = f">= {TARGETS[tasks]:,}/s" if server is None else ">= 15 times the peer" if tasks == TASKS else ""
    enough = rate.median >= TARGETS[tasks] if server is None else tasks == 1 or ratio is None or ratio >= 15
    return Row(
        what=f"durable steps{place}, " + ("one after the other" if tasks == 1 else f"{tasks} tasks at once"),
        figure=rate, unit="steps/s", limit=limit, ratio=ratio, target=wanted, reached=enough,
        beside=f"DBOS on {'SQLite' if server is None else 'the same server'}" if peer else "(dbos is not installed)",
    )  # fmt: skip


def _database(server: Server, name: str) -> str:
    """The address of a new database of the server."""
    server.sql(f"CREATE DATABASE {name}")
    return f"postgresql+psycopg://postgres@/{name}?host={server.folder}"


async def _perform(event: Event, _: Io) -> msgspec.Struct:
    asked: RowStepRequested = event.data
    return RowStepDone(task=asked.task, left=asked.left, result="done")


def _unread(position: int) -> Event:
    raise AssertionError(f"nothing here reads event {position}")


async def _ours(folder: Path, tasks: int, steps: int, address: str) -> dict[str, Any]:
    if not address:
        store = SegmentLog(str(folder / "log"))
        return await _stepped(folder, tasks, steps, store.open(), store.blobs())
    log = log_at(address, folder / "blobs")
    with log.lease("bench") as lease:
        return await _stepped(folder, tasks, steps, lease.open(), log.blobs())


async def _stepped(folder: Path, tasks: int, steps: int, storage: Storage, blobs: Blobs) -> dict[str, Any]:
    engine = Engine([Rows()], Sequencer(storage.tail()))
    intake = Intake(Redactor(["a secret that nobody writes"]), blobs)
    runtime = Runtime(engine, storage, {RowStepRequested: _perform}, intake, RealIo(folder, intake, _unread))
    first = opening_events(storage, storage.log_id(), storage.recovered, engine.sequencer, now())
    runtime.submit(Output(first, [], []))
    ended = anyio.Event()

    def hear(_events: object, _sums: object) -> None:
        if engine.states["rows"].done == tasks:
            ended.set()

    runtime.listen(hear)
    spare_collector()
    async with runtime.run():
        start = time.perf_counter()
        await asyncio.gather(
            *(runtime.append(RowAsked(task=task, steps=steps), f"task-{task}", "bench") for task in range(tasks))
        )
        await ended.wait()
        took = time.perf_counter() - start
        events = storage.tail().position
    storage.close()
    assert events >= 1 + tasks * (1 + 2 * steps), "each step is a request and its outcome"
    return {"steps": tasks * steps, "seconds": took}


def _dbos(folder: Path, tasks: int, steps: int, address: str) -> dict[str, Any]:
    """The same with DBOS: workflows whose steps answer at once, its own settings."""
    dbos: Any = importlib.import_module("dbos")
    folder.mkdir(parents=True)
    settings = {
        "name": "bench", "system_database_url": address or f"sqlite:///{folder}/dbos.sqlite", "run_admin_server": False,
        "log_level": "CRITICAL",
    }
    instance = dbos.DBOS(config=settings)

    @dbos.DBOS.step()
    async def step(left: int) -> str:
        return f"done {left}"

    @dbos.DBOS.workflow()
    async def row(count: int) -> int:
        for left in range(count, 0, -1):
            await step(left)
        return count

    async def measure() -> float:
        start = time.perf_counter()
        handles = [await dbos.DBOS.start_workflow_async(row, steps) for _ in range(tasks)]
        done = [await handle.get_result() for handle in handles]
        took = time.perf_counter() - start
        assert done == [steps] * tasks, done
        return took

    dbos.DBOS.launch()
    try:
        return {"steps": tasks * steps, "seconds": asyncio.run(measure())}
    finally:
        instance.destroy()


if __name__ == "__main__":
    _who, _given = sys.argv[1], (Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), "".join(sys.argv[5:]))
    print(json.dumps(asyncio.run(_ours(*_given)) if _who == "ours" else _dbos(*_given)))
