"""Rebuilding state from the log: verified, decoded, folded by the engine. Each measurement is a process of its own."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from benchmarks.harness import Bench, Row, Spread, alternate, child, peak_memory
from benchmarks.workload import Steps, write_steps
from pmagent.actors.core.engine import Engine
from pmagent.events.event import Tail
from pmagent.events.evidence import log_in
from pmagent.events.sequencer import Sequencer
from pmagent.replay.replayer import fold_log


def run(bench: Bench) -> list[Row]:
    """Three lengths of log: speed and peak memory must not depend on it."""
    memory: dict[int, list[float]] = {size: [] for size in bench.sizes}
    for size in bench.sizes:
        write_steps(bench.folder / f"steps-{size}", size)

    def fold(size: int) -> float:
        found = child("fold_log", bench.folder / f"steps-{size}")
        memory[size].append(found["memory"])
        return float(found["events"] / found["seconds"])

    figures = alternate(bench.runs, *(lambda size=size: fold(size) for size in bench.sizes))
    rates = [Spread.of(values) for values in figures]
    slowest, fastest = min(rate.median for rate in rates), max(rate.median for rate in rates)
    peaks = [Spread.of(memory[size]).median for size in bench.sizes]
    rows = [
        Row(
            what=f"replay: verified, decoded, folded, {size:,} events", figure=rate, unit="events/s",
            target=">= 300,000/s", reached=rate.median >= 300_000,
            note=f"peak memory {peak / 2**20:.0f} MiB",
        )
        for size, rate, peak in zip(bench.sizes, rates, peaks, strict=True)
    ]
    rows.append(
        Row(
            what="replay: slowest length beside fastest", figure=Spread.of([slowest / fastest]), unit="ratio",
            target=">= 0.9", reached=slowest / fastest >= 0.9,
        )
    )
    growth = peaks[-1] / peaks[-2]
    rows.append(
        Row(
            what=f"replay: peak memory at {bench.sizes[-1]:,} beside {bench.sizes[-2]:,} events",
            figure=Spread.of([growth]), unit="ratio", target="<= 1.1", reached=growth <= 1.1,
        )
    )
    return rows


def _fold(folder: Path) -> int:
    engine = Engine([Steps()], Sequencer(Tail()))
    reader = log_in(folder).reader()
    fold_log(reader, engine)
    reader.close()
    return engine.sequencer.position


if __name__ == "__main__":
    start = time.perf_counter()
    events = _fold(Path(sys.argv[1]))
    took = time.perf_counter() - start
    print(json.dumps({"events": events, "seconds": took, "memory": peak_memory()}))
