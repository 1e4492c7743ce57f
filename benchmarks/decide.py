"""Decided events through the daemon's engine: fact → decision → durable → effect start, with the real runtime.

Counted are the events that stand durable in the log (facts, decisions, outcomes) from the first fact until every step
has ended: its two effects were started, performed (by a performer that answers at once), and their outcomes taken,
decided on and made durable. So a third of the events are effects that started, as the note says.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import msgspec

from benchmarks.harness import Bench, Row, Spread, child
from benchmarks.workload import RecordRequested, StepAsked, StepRequested, Steps, note, outcome
from pmagent.actors.core.actor import Io, Performers
from pmagent.actors.core.engine import Engine, Output
from pmagent.actors.core.intake import Intake
from pmagent.actors.core.runtime import Runtime
from pmagent.events.event import Event
from pmagent.events.log import now, opening_events
from pmagent.events.redact import Redactor
from pmagent.events.segment_log import SegmentLog
from pmagent.events.sequencer import Sequencer
from pmagent.service.daemon import spare_collector
from pmagent.service.io import RealIo
from tests.support.logs import require_intact

WRITERS = 256


def run(bench: Bench) -> list[Row]:
    """256 sources of facts, each waiting until its fact and what was decided on it are durable."""
    rates, started, p99 = [], [], []
    for turn in range(bench.runs):
        found = child("decide", bench.folder / f"decide-{turn}", bench.count(200, 2))
        rates.append(found["events"] / found["seconds"])
        started.append(found["started"] / found["seconds"])
        p99.append(found["p99"] * 1e3)
    rate, effects, wait = Spread.of(rates), Spread.of(started).median, Spread.of(p99).median
    return [
        Row(
            what=f"decided events through the engine, {WRITERS} sources", figure=rate, unit="events/s",
            target=">= 50,000/s", reached=rate.median >= 50_000,
            note=f"of them effects started {effects:,.0f}/s; from fact to durable decisions p99 {wait:.1f} ms",
        )
    ]


class _Performed:
    """A performer that answers at once, and counts."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, event: Event, _: Io) -> msgspec.Struct:
        self.count += 1
        answer: msgspec.Struct = outcome(event).data
        return answer


def _unread(position: int) -> Event:
    raise AssertionError(f"nothing here reads event {position}")


async def _measure(folder: Path, each: int) -> dict[str, Any]:
    store = SegmentLog(str(folder / "log"))
    storage = store.open()
    engine = Engine([Steps()], Sequencer(storage.tail()))
    intake = Intake(Redactor(["a secret that nobody writes"]), store.blobs())
    performed = _Performed()
    performers: Performers = {StepRequested: performed, RecordRequested: performed}
    runtime = Runtime(engine, storage, performers, intake, RealIo(folder, intake, _unread))
    first = opening_events(storage, storage.log_id(), storage.recovered, engine.sequencer, now())
    runtime.submit(Output(first, [], []))
    ended = anyio.Event()
    steps = WRITERS * each
    times: list[float] = []

    def hear(_events: object, _sums: object) -> None:
        if engine.states["steps"].recorded == steps:
            ended.set()

    async def source(k: int) -> None:
        for n in range(k * each, (k + 1) * each):
            start = time.perf_counter()
            await runtime.append(StepAsked(n=n, note=note(n)), f"step-{n}", "bench")
            times.append(time.perf_counter() - start)

    runtime.listen(hear)
    spare_collector()
    async with runtime.run():
        start = time.perf_counter()
        await asyncio.gather(*(source(k) for k in range(WRITERS)))
        await ended.wait()
        events = storage.tail().position
        took = time.perf_counter() - start
    storage.close()
    assert performed.count == 2 * steps, f"{performed.count} effects for {steps} steps"
    assert require_intact(str(folder / "log")).events == 1 + 6 * steps, "each step is six events"
    times.sort()
    return {"events": events, "seconds": took, "started": performed.count, "p99": times[int(len(times) * 0.99)]}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure(Path(sys.argv[1]), int(sys.argv[2])))))
