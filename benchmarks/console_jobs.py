"""How long the console takes for the pages of runs: at three lengths of log, and of a run of ten thousand tasks.

Runs stand at the beginning and at the end of each log, with events of others between them. A first look is that of a
console that has read nothing yet; looking again is what browsers do that follow a run. Answered in process, without
network and guard; each length is a process of its own.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec

from benchmarks.console_pages import _seconds
from benchmarks.harness import ROOT, Bench, Row, Spread, child, peak_memory
from benchmarks.plans import exited, graph, request, run_id
from benchmarks.workload import StepAsked, Steps, _finish, draft, note, open_new
from pmagent.actors.core.engine import Engine
from pmagent.actors.kernel.reader import read_surfaces
from pmagent.actors.registry import all_actors
from pmagent.contracts.orchestra_events import RunEnded, TaskAttemptRequested
from pmagent.contracts.payload import encode, type_of
from pmagent.events.commit import Committer
from pmagent.events.event import DATA_BYTES_MAX, Draft, Event
from pmagent.events.evidence import evidence, log_of
from pmagent.events.log import now
from pmagent.events.sequencer import Sequencer
from pmagent.events.storage import Blobs

FIRST_SECONDS = 4.0
AGAIN_SECONDS = 0.25
LARGE_SECONDS = 8.0
"""A first look at ten thousand tasks: some sixty thousand events are read and folded."""
RUNS = 10
TASKS = 20
LARGE = 99
WORKERS = 16
_BATCH = 600


def run(bench: Bench) -> list[Row]:
    """Three lengths of log, and one large run."""
    found = {}
    for size in bench.sizes:
        workspace = bench.folder / f"w-{size}"
        _write(workspace, size, bench.count(TASKS, 3))
        found[size] = child("console_jobs", workspace, bench.runs, run_id(0), run_id(2 * RUNS - 1))
    rows = []
    largest = bench.sizes[-1]
    for name in found[largest]["pages"]:
        figures = {size: Spread.of([1000 * seconds for seconds in found[size]["pages"][name]]) for size in bench.sizes}
        shorter = ", ".join(f"of {size:,}: {figures[size].median:.0f} ms" for size in bench.sizes[:-1])
        rows.append(_row(f"console: {name}, log of {largest:,} events", name, figures[largest], FIRST_SECONDS, shorter))
    tasks = bench.count(10_000, 30)
    workspace = bench.folder / "large"
    _write(workspace, 0, tasks, [LARGE])
    large = child("console_jobs", workspace, bench.runs, run_id(LARGE))
    for name, seconds in large["pages"].items():
        if name.startswith("a run"):
            figure = Spread.of([1000 * one for one in seconds])
            memory = f"peak memory {large['memory'] / 2**20:.0f} MiB"
            rows.append(_row(f"console: {name}, {tasks:,} tasks", name, figure, LARGE_SECONDS, memory))
    return rows


def _row(what: str, name: str, figure: Spread, first: float, note: str) -> Row:
    limit = 1000 * (first if name.endswith("first look") else AGAIN_SECONDS)
    return Row(
        what=what, figure=figure, unit="ms", target=f"<= {limit:.0f} ms", reached=figure.median <= limit, note=note
    )


# --- logs with runs ------------------------------------------------------------------------------------------------


class _Writer:
    """The engine with all its actors, over a log on the disk; a simulated tool answers at once."""

    def __init__(self, sequencer: Sequencer, committer: Committer, blobs: Blobs) -> None:
        self._engine = Engine(all_actors(), sequencer)
        self._committer = committer
        self._blobs = blobs
        self._queue: deque[Event] = deque()
        self._told = 0
        self._tell(draft(read_surfaces(ROOT / "examples" / "workspace"), "kernel"))

    def _tell(self, fact: Draft, causation: int = 0) -> None:
        engine = self._engine
        out = engine.finish(causation, fact, now()) if causation else engine.accept(fact, now())
        assert out is not None, "nothing is sent twice here"
        self._committer.submit(out.events)
        self._queue.extend(out.events)
        self._told += len(out.events)
        if self._told > _BATCH:
            self._told = 0
            _commit(self._committer)

    def run(self, number: int, tasks: int) -> None:
        """A run from its request to its end."""
        asked = request(graph(tasks), WORKERS, number=number)
        raw = encode(asked)
        if len(raw) > DATA_BYTES_MAX:  # as the intake does
            blob = {"sha256": self._blobs.put(raw), "size": len(raw), "media_type": "application/json"}
            raw = msgspec.json.encode({"blob": blob})
        self._tell(Draft(type_of(asked), asked, raw, asked.run_id, "operator", asked.run_id, 0))
        while True:
            event = self._queue.popleft()
            if type(event.data) is TaskAttemptRequested:
                end = exited(event)
                made = Draft(
                    type_of(end), end, encode(end), f"{event.position}.outcome", "task", asked.run_id, event.position
                )
                self._tell(made, event.position)
            elif type(event.data) is RunEnded:
                _commit(self._committer)
                return


def _commit(committer: Committer) -> None:
    while committer.commit() is not None:
        pass


def _write(workspace: Path, events: int, tasks: int, numbers: Sequence[int] = range(2 * RUNS)) -> None:
    """A log of about ``events`` events of others; half of the runs stand before them."""
    kept = evidence(workspace)
    blobs = log_of(workspace).blobs()
    blobs.put(b"")
    storage, committer, sequencer = open_new(kept.log)
    writer = _Writer(sequencer, committer, blobs)
    half = len(numbers) // 2
    for number in numbers[:half]:
        writer.run(number, tasks)
    engine = Engine([Steps()], sequencer)
    for n in range(events // 6):
        _finish(engine, committer, engine.accept(draft(StepAsked(n=n, note=note(n)), f"step-{n}"), now()))
        if n % (_BATCH // 6) == 0:
            _commit(committer)
    _commit(committer)
    for number in numbers[half:]:
        writer.run(number, tasks)
    storage.close()


# --- pages ---------------------------------------------------------------------------------------------------------


async def _measure(workspace: Path, runs: int, names: Sequence[str]) -> dict[str, Any]:
    from pmagent.console.app import Positioned, application
    from pmagent.console.pages.context import PageContext

    def fresh() -> Any:
        context = PageContext(workspace)
        return Positioned(application(context), context)

    addresses = {"the list of runs": "/runs", "runs in a state in which none is": "/runs?state=stopped"}
    addresses |= {"a run at the end": f"/runs/{names[-1]}"}
    if len(names) > 1:
        addresses |= {"a run at the beginning": f"/runs/{names[0]}"}
    await _seconds(fresh(), f"/runs/{names[-1]}")  # modules are loaded once
    pages: dict[str, list[float]] = {}
    for name, address in addresses.items():
        for _ in range(runs):
            app = fresh()
            await _seconds(app, "/help")
            pages.setdefault(f"{name}, first look", []).append(await _seconds(app, address))
            pages.setdefault(f"{name}, again", []).append(await _seconds(app, address))
    return {"pages": pages, "memory": peak_memory()}


if __name__ == "__main__":
    print(json.dumps(anyio.run(_measure, Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])))
