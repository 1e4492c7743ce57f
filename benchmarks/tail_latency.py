"""Tail latency to another process: from calling ``append`` here until a follower there has the event, decoded.

The writer offers 1,000 events a second, evenly; the follower is a process of its own that reads the segments.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, Bench, Row, Spread, percentile
from benchmarks.workload import Noted, draft
from pmagent.contracts.payload import typed
from pmagent.events.evidence import log_in
from pmagent.events.reader import Follower, Progress
from tests.support.one_writer import open_log

RATE = 1_000
_END = "end"


def run(bench: Bench) -> list[Row]:
    """One follower at a time."""
    p50: list[float] = []
    p99: list[float] = []
    for turn in range(bench.runs):
        times = asyncio.run(_offer(bench.folder / f"tail-{turn}", bench.count(5 * RATE, 50)))
        p50.append(percentile(times, 0.5) * 1e3)
        p99.append(percentile(times, 0.99) * 1e3)
    figure = Spread.of(p99)
    return [
        Row(
            what=f"tail latency to another process at {RATE:,} events/s, p99", figure=figure, unit="ms",
            target="< 20 ms", reached=figure.median < 20,
            note=f"p50 {Spread.of(p50).median:.2f} ms, from append called to event decoded",
        )
    ]


async def _offer(folder: Path, count: int) -> list[float]:
    async with open_log(folder / "log") as log:
        await log.append(draft(Noted(n=0, note="first"), "first"))
        follower = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.tail_latency", str(folder / "log"), cwd=ROOT, stdout=subprocess.PIPE
        )
        assert follower.stdout is not None, "it was asked for"
        await follower.stdout.readline()  # it has caught up
        begin = time.perf_counter() + 0.01
        appends = []
        for n in range(count):
            await asyncio.sleep(max(0.0, begin + n / RATE - time.perf_counter()))
            called = Noted(n=time.monotonic_ns(), note="")
            appends.append(asyncio.create_task(log.append(draft(called, f"offered-{n}"))))
        await asyncio.gather(*appends)
        await log.append(draft(Noted(n=0, note=_END), _END))
        found: list[float] = json.loads(await follower.stdout.readline())
        await follower.wait()
    assert len(found) == count, f"{len(found)} of {count} events were seen"
    return found


def _follow(folder: str) -> None:
    times: list[float] = []
    reader = log_in(Path(folder)).reader()
    for found in Follower(reader).follow():
        if isinstance(found, Progress):
            print(json.dumps("caught up"), flush=True)
            continue
        for stored in found:
            data: Any = typed(stored).data
            if not isinstance(data, Noted):
                continue
            if data.note == _END:
                print(json.dumps(times), flush=True)
                return
            if not data.note:
                times.append((time.monotonic_ns() - data.n) / 1e9)


if __name__ == "__main__":
    _follow(sys.argv[1])
