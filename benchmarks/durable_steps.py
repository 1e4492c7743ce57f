"""Durable steps: each step's result stands in the log, synced, before the next step begins; DBOS on SQLite beside it.

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
from collections.abc import Iterable
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
from pmagent.events.log import now, opening_events
from pmagent.events.redact import Redactor
from pmagent.events.segment_log import SegmentLog
from pmagent.events.sequencer import Sequencer
from pmagent.service.daemon import spare_collector
from pmagent.service.io import RealIo

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
    """One task, and a hundred at once; turn and turn about with DBOS."""
    peer = find_spec("dbos") is not None
    rows = []
    for tasks, steps in ((1, bench.count(5_000, 20)), (TASKS, bench.count(500, 2))):
        ours, theirs = [], []
        for turn in range(bench.runs):
            found = child("durable_steps", "ours", bench.folder / f"steps-{tasks}-{turn}", tasks, steps)
            ours.append(found["steps"] / found["seconds"])
            if peer:
                few = max(1, steps // 10)  # its steps take ten times as long and more
                found = child("durable_steps", "dbos", bench.folder / f"dbos-{tasks}-{turn}", tasks, few)
                theirs.append(found["steps"] / found["seconds"])
        rate = Spread.of(ours)
        limit = Spread.of(theirs) if theirs else None
        rows.append(Row(
            what="durable steps, one after the other" if tasks == 1 else f"durable steps, {tasks} tasks at once",
            figure=rate, unit="steps/s", beside="DBOS on SQLite" if peer else "(dbos is not installed)", limit=limit,
            ratio=rate.median / limit.median if limit else None, target=f">= {TARGETS[tasks]:,}/s",
            reached=rate.median >= TARGETS[tasks],
        ))
    return rows


async def _perform(event: Event, _: Io) -> msgspec.Struct:
    asked: RowStepRequested = event.data
    return RowStepDone(task=asked.task, left=asked.left, result="done")


def _unread(position: int) -> Event:
    raise AssertionError(f"nothing here reads event {position}")


async def _ours(folder: Path, tasks: int, steps: int) -> dict[str, Any]:
    store = SegmentLog(str(folder / "log"))
    storage = store.open()
    engine = Engine([Rows()], Sequencer(storage.tail()))
    intake = Intake(Redactor(["a secret that nobody writes"]), store.blobs())
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


def _dbos(folder: Path, tasks: int, steps: int) -> dict[str, Any]:
    """The same with DBOS: workflows whose steps answer at once, its own SQLite settings."""
    dbos: Any = importlib.import_module("dbos")
    folder.mkdir(parents=True)
    settings = {
        "name": "bench", "system_database_url": f"sqlite:///{folder}/dbos.sqlite", "run_admin_server": False,
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
    _who, _folder, _tasks, _steps = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    print(json.dumps(asyncio.run(_ours(_folder, _tasks, _steps)) if _who == "ours" else _dbos(_folder, _tasks, _steps)))
