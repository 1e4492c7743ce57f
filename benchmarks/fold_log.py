"""Rebuilding state from the log: verified, decoded, folded by the engine, beside msgspec alone. Each measurement is a
process of its own; where a second processor is free, a fork of it checks the chain."""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

from benchmarks.harness import Bench, Row, Spread, alternate, child, peak_memory
from benchmarks.read_back import chunks
from benchmarks.workload import Steps, write_steps
from pmagent.actors.core.engine import Engine
from pmagent.events.event import Tail
from pmagent.events.evidence import log_in
from pmagent.events.line import decode_chunk
from pmagent.events.sequencer import Sequencer
from pmagent.replay.replayer import fold_log


def run(bench: Bench) -> list[Row]:
    """Three lengths of log: speed and peak memory must not depend on it."""
    memory: dict[int, list[float]] = {size: [] for size in bench.sizes}
    decoding: dict[int, list[float]] = {size: [] for size in bench.sizes}
    shares: dict[int, list[float]] = {size: [] for size in bench.sizes}
    for size in bench.sizes:
        write_steps(bench.folder / f"steps-{size}", size)

    def fold(size: int) -> float:
        found = child("fold_log", bench.folder / f"steps-{size}")
        memory[size].append(found["memory"])
        decoding[size].append(found["decoded"])
        shares[size].append(found["events"] / found["processor"] / found["decoded"])
        return float(found["events"] / found["seconds"])

    figures = alternate(bench.runs, *(lambda size=size: fold(size) for size in bench.sizes))
    rates = [Spread.of(values) for values in figures]
    slowest, fastest = min(rate.median for rate in rates), max(rate.median for rate in rates)
    peaks = [Spread.of(memory[size]).median for size in bench.sizes]
    rows = []
    for size, rate, peak in zip(bench.sizes, rates, peaks, strict=True):
        limit, share = Spread.of(decoding[size]), Spread.of(shares[size]).median
        rows.append(
            Row(
                what=f"replay: verified, decoded, folded, {size:,} events", figure=rate, unit="events/s",
                beside="msgspec alone, in memory", limit=limit, ratio=rate.median / limit.median,
                target=">= 0.2 of msgspec alone", reached=rate.median >= 0.2 * limit.median,
                note=f"peak memory {peak / 2**20:.0f} MiB; ratio by the processor time of the process: {share:.2f}",
            )
        )
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


def _decoded(folder: Path) -> float:
    """Events that msgspec decodes in a second of processor time, of lines in memory."""
    lines = chunks(folder, 100_000)
    count = sum(chunk.count(b"\n") for chunk in lines)
    rates: list[float] = []
    for _ in range(3):
        start = time.process_time()
        for chunk in lines:
            decode_chunk(chunk)
        rates.append(count / (time.process_time() - start))
    return statistics.median(rates)


if __name__ == "__main__":
    start, began = time.perf_counter(), time.process_time()
    events = _fold(Path(sys.argv[1]))
    took, worked = time.perf_counter() - start, time.process_time() - began
    peak = peak_memory()
    decoded = _decoded(Path(sys.argv[1]))
    print(json.dumps({"events": events, "seconds": took, "processor": worked, "memory": peak, "decoded": decoded}))
