"""Independent writers, each append acknowledged by itself after it is durable; eventsourcing with SQLite beside it.

The peer's settings are its own: WAL, ``synchronous=FULL``, one insert a commit, which is what an append that is
acknowledged by itself means there. SQLite has one writer, so more threads do not make it faster. How long one sync
of the disk takes is measured in the same turns: nobody's append can be acknowledged sooner.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

from benchmarks.harness import Bench, Row, Spread, alternate, percentile, raw_syncs
from benchmarks.workload import DATA_BYTES, Noted, draft, note
from tests.support.one_writer import Log, open_log

WRITERS = (1, 16, 64, 256)


def run(bench: Bench) -> list[Row]:
    """Each number of writers, then the peer; in turns."""
    times: dict[int, list[float]] = {writers: [] for writers in WRITERS}
    turn = iter(range(10_000))

    def ours(writers: int) -> float:
        folder = bench.folder / f"many-{next(turn)}"
        return asyncio.run(_append(folder, writers, _each(bench, writers), times[writers]))

    def sqlite() -> float:
        return peer(bench.folder / f"peer-{next(turn)}.sqlite", bench.count(2_000, 20))

    def sync() -> float:
        return statistics.median(raw_syncs(bench.folder, bench.count(1_000, 20)))

    measures = [lambda writers=writers: ours(writers) for writers in WRITERS]
    has_peer = find_spec("eventsourcing") is not None
    *figures, syncs = alternate(bench.runs, *measures, *([sqlite] if has_peer else []), sync)
    beside = Spread.of(figures[len(WRITERS)]) if has_peer else None
    peer_name = "eventsourcing 9.5, SQLite, one insert a commit" if has_peer else "(eventsourcing is not installed)"
    rows = []
    for writers, values in zip(WRITERS, figures, strict=False):
        rate = Spread.of(values)
        p50, p99 = (percentile(times[writers], share) * 1e3 for share in (0.5, 0.99))
        last = writers == WRITERS[-1]
        rows.append(
            Row(
                what=f"durable append, {writers} writer{'s' if writers > 1 else ''}, each acknowledged",
                figure=rate, unit="events/s",
                beside=peer_name, limit=beside,
                ratio=rate.median / beside.median if beside else None,
                target=">= 22 x SQLite, p99 < 5 ms" if last and beside else "",
                reached=rate.median >= 22 * beside.median and p99 < 5 if last and beside else None,
                note=f"p50 {p50:.2f} ms, p99 {p99:.2f} ms; one sync of the disk {Spread.of(syncs).median * 1e3:.3f} ms",
            )
        )
    return rows


def _each(bench: Bench, writers: int) -> int:
    """Appends a writer makes: enough for a second or two."""
    return bench.count(max(400, 4_000 // writers), 4)


async def _append(folder: Path, writers: int, each: int, times: list[float]) -> float:
    async with open_log(folder / "log") as log:
        await asyncio.gather(*(_writer(log, f"warm-{k}", max(1, each // 10), []) for k in range(writers)))
        start = time.perf_counter()
        await asyncio.gather(*(_writer(log, f"w{k}", each, times) for k in range(writers)))
        return writers * each / (time.perf_counter() - start)


async def _writer(log: Log, name: str, count: int, times: list[float]) -> None:
    for n in range(count):
        start = time.perf_counter()
        await log.append(draft(Noted(n=n, note=note(n)), f"{name}-{n}"))
        times.append(time.perf_counter() - start)


def peer(path: Path, count: int) -> float:
    """Inserts a second, each committed by itself, into a new database."""
    from eventsourcing.persistence import StoredEvent
    from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

    datastore = SQLiteDatastore(str(path))
    recorder = SQLiteApplicationRecorder(datastore)
    recorder.create_table()
    aggregate = uuid4()
    state = b"x" * DATA_BYTES
    try:
        start = time.perf_counter()
        for version in range(count):
            recorder.insert_events(
                [StoredEvent(originator_id=aggregate, originator_version=version, topic="bench.noted", state=state)]
            )
        return count / (time.perf_counter() - start)
    finally:
        datastore.close()
