"""Durable append, one writer: the chain and all bookkeeping included, beside write + fdatasync of the same bytes."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import msgspec

from benchmarks.harness import Bench, Row, Spread
from benchmarks.workload import Noted, draft, note, open_new
from pmagent.events.commit import Committer
from pmagent.events.evidence import log_in
from pmagent.events.log import now, open_log
from pmagent.events.sequencer import Sequencer

_BLOCK = 100
"""So many appends of ours, then as many raw ones, in turn: the disk's drift is the same for both."""


class _Appender(msgspec.Struct):
    """Appends to our log, one event a batch, as the writer thread does it."""

    committer: Committer
    sequencer: Sequencer
    count: int = 0

    def block(self, size: int) -> float:
        start = time.perf_counter()
        for n in range(self.count, self.count + size):
            event = self.sequencer.admit(draft(Noted(n=n, note=note(n)), f"one-{n}"), now())
            self.committer.submit((event,))
            self.committer.commit()
        self.count += size
        return time.perf_counter() - start


def run(bench: Bench) -> list[Row]:
    """One writer in the writer thread's way, and one through ``Log.append``."""
    blocks = bench.count(100, 2)
    size = bench.count(_BLOCK, 10)
    ratios, ours, raw = [], [], []
    for turn in range(bench.runs):
        folder = bench.folder / f"one-{turn}"
        our_seconds, raw_seconds = _interleaved(folder, blocks, size)
        ours.append(blocks * size / our_seconds)
        raw.append(blocks * size / raw_seconds)
        ratios.append(raw_seconds / our_seconds)
    ratio = Spread.of(ratios)
    count = bench.count(2_000, 20)
    through = [asyncio.run(_through_log(bench.folder / f"log-{turn}", count)) for turn in range(bench.runs)]
    return [
        Row(
            what="durable append, one writer, in the writer's thread", figure=Spread.of(ours), unit="events/s",
            beside="write + fdatasync of the same bytes", limit=Spread.of(raw), ratio=ratio.median,
            target=">= 0.8 of raw", reached=ratio.median >= 0.8,
            note=f"ratio {ratio.low:.2f} to {ratio.high:.2f}; blocks of {size} in turn",
        ),
        Row(
            what="durable append, one writer, await Log.append", figure=Spread.of(through), unit="events/s",
            beside="write + fdatasync of the same bytes", limit=Spread.of(raw),
            ratio=Spread.of(through).median / Spread.of(raw).median,
            note="each append goes from the event loop to the writer's thread and back",
        ),
    ]


def _interleaved(folder: Path, blocks: int, size: int) -> tuple[float, float]:
    """Seconds for all blocks of ours, and of the raw writes of the same lines."""
    storage, committer, sequencer = open_new(folder)
    reader = log_in(folder).reader()
    descriptor = os.open(folder / "raw", os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
    appender = _Appender(committer, sequencer)
    ours = raw = 0.0
    try:
        appender.block(size)
        for _ in range(blocks):
            first = storage.tail().position + 1
            ours += appender.block(size)
            lines = reader.read(first).splitlines(keepends=True)
            start = time.perf_counter()
            for line in lines:
                os.write(descriptor, line)
                os.fdatasync(descriptor)
            raw += time.perf_counter() - start
    finally:
        os.close(descriptor)
        reader.close()
        storage.close()
    return ours, raw


async def _through_log(folder: Path, count: int) -> float:
    async with open_log(folder / "log") as log:
        start = time.perf_counter()
        for n in range(count):
            await log.append(draft(Noted(n=n, note=note(n)), f"through-{n}"))
        return count / (time.perf_counter() - start)
