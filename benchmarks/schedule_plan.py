"""Planning and scheduling with a simulated runner: a graph of tasks from request to end, at three sizes.

The engine with all its actors, no disk and no process: what the coordinator and the worker cost. Memory is what the
process holds more at the end than before, for each task, its events included.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from hashlib import sha256
from typing import Any

import msgspec

from benchmarks.harness import ROOT, Bench, Row, Spread, child, peak_memory
from benchmarks.plans import exited, graph, request
from benchmarks.workload import draft
from pmagent.actors.core.engine import Engine, Output
from pmagent.actors.kernel.reader import read_surfaces
from pmagent.actors.registry import all_actors
from pmagent.contracts.orchestra_events import RunEnded, TaskAttemptRequested
from pmagent.contracts.payload import encode, type_of
from pmagent.events.event import DATA_BYTES_MAX, Draft, Event, Tail, time_after
from pmagent.events.sequencer import Sequencer

SECONDS_MAX = 5.0
WORKERS = 16
START = "2026-11-21T12:00:00.000000Z"


def run(bench: Bench) -> list[Row]:
    """Graphs of 100, 1,000 and 10,000 tasks."""
    rows = []
    for tasks in (20, 40, 60) if bench.quick else (100, 1_000, 10_000):
        taken, memory = [], []
        for _ in range(bench.runs):
            found = child("schedule_plan", tasks)
            taken.append(found["seconds"])
            memory.append(found["bytes"] / tasks)
        spent = Spread.of(taken)
        large = tasks == 10_000
        rows.append(Row(
            what=f"planning and scheduling a graph of {tasks:,} tasks", figure=spent, unit="s",
            target=f"< {SECONDS_MAX:g} s" if large else "", reached=spent.median < SECONDS_MAX if large else None,
            note=f"{tasks / spent.median:,.0f} tasks/s; {Spread.of(memory).median / 1024:.1f} KiB a task with events",
        ))
    return rows


class _Driver:
    """Facts in; what came of them stays in ``queue``."""

    def __init__(self) -> None:
        self.engine = Engine(all_actors(), Sequencer(Tail()))
        self.queue: deque[Event] = deque()
        self.kept: list[Event] = []
        self._facts = 0

    def tell(self, fact: Draft, causation: int = 0) -> None:
        self._facts += 1
        now = time_after(START, self._facts / 1000)
        out: Output | None = (
            self.engine.finish(causation, fact, now) if causation else self.engine.accept(fact, now)
        )
        assert out is not None, "nothing is sent twice here"
        self.kept += out.events
        self.queue.extend(out.events)


def _measure(tasks: int) -> dict[str, Any]:
    driver = _Driver()
    driver.tell(draft(read_surfaces(ROOT / "examples" / "workspace"), "kernel"))
    asked = request(graph(tasks), WORKERS)
    before = peak_memory()
    start = time.perf_counter()
    raw = encode(asked)
    if len(raw) > DATA_BYTES_MAX:  # as the intake does; nobody reads it back here
        blob = {"sha256": sha256(raw).hexdigest(), "size": len(raw), "media_type": "application/json"}
        raw = msgspec.json.encode({"blob": blob})
    driver.tell(Draft(type_of(asked), asked, raw, asked.run_id, "operator", asked.run_id, 0))
    while True:
        event = driver.queue.popleft()
        if type(event.data) is TaskAttemptRequested:
            end = exited(event)
            number = event.position
            outcome = Draft(type_of(end), end, encode(end), f"{number}.outcome", "task", asked.run_id, number)
            driver.tell(outcome, number)
        elif type(event.data) is RunEnded:
            took = time.perf_counter() - start
            assert (event.data.state, event.data.done) == ("done", tasks), event.data
            return {"seconds": took, "bytes": peak_memory() - before}


if __name__ == "__main__":
    print(json.dumps(_measure(int(sys.argv[1]))))
