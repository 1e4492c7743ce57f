"""Durable append, one writer: the chain and all bookkeeping included, beside write + fdatasync of the same bytes, and
beside SQLite (see append_many)."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from importlib.util import find_spec
from pathlib import Path

import msgspec

from benchmarks.append_many import peer
from benchmarks.harness import Bench, Row, Spread, raw_syncs
from benchmarks.workload import Noted, draft, note, open_new
from pmagent.events.commit import Committer
from pmagent.events.evidence import log_in
from pmagent.events.log import now
from pmagent.events.sequencer import Sequencer
from tests.support.one_writer import open_log

LINE_BYTES = 500
"""About the length of a line with ``DATA_BYTES`` of data."""

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
    through = [asyncio.run(_through_log(bench.folder / f"log-{turn}", blocks, size)) for turn in range(bench.runs)]
    rates, to_raw, to_peer = (Spread.of([found[n] for found in through]) for n in range(3))
    return [
        Row(
            what="durable append, one writer, in the writer's thread", figure=Spread.of(ours), unit="events/s",
            beside="write + fdatasync of the same bytes", limit=Spread.of(raw), ratio=ratio.median,
            target=">= 0.8 of raw", reached=ratio.median >= 0.8,
            note=f"ratio {ratio.low:.2f} to {ratio.high:.2f}; blocks of {size} in turn",
        ),
        Row(
            what="durable append, one writer, await Log.append", figure=rates, unit="events/s",
            beside="write + fdatasync of a line's length", ratio=to_raw.median,
            target=">= 0.85 of raw", reached=to_raw.median >= 0.85,
            note=f"ratio {to_raw.low:.2f} to {to_raw.high:.2f}; the loop's thread writes where the rule permits it",
        ),
        Row(
            what="the same beside SQLite", figure=rates, unit="events/s",
            beside="eventsourcing 9.5, SQLite, one insert a commit", ratio=to_peer.median if to_peer.low else None,
            target=">= 0.95 of SQLite" if to_peer.low else "",
            reached=to_peer.median >= 0.95 if to_peer.low else None,
            note=f"ratio {to_peer.low:.2f} to {to_peer.high:.2f}" if to_peer.low else "eventsourcing is not installed",
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


async def _through_log(folder: Path, blocks: int, size: int) -> tuple[float, float, float]:
    """Events a second, and the ratios of medians of blocks: to raw writes, and to SQLite (0: it is not installed)."""
    ours, raw, theirs = list[float](), list[float](), list[float]()
    async with open_log(folder / "log") as log:
        for block in range(blocks + 1):
            start = time.perf_counter()
            for n in range(block * size, (block + 1) * size):
                await log.append(draft(Noted(n=n, note=note(n)), f"through-{n}"))
            ours.append((time.perf_counter() - start) / size)
            raw.append(sum(raw_syncs(folder, size, LINE_BYTES)) / size)
            if find_spec("eventsourcing") is not None:
                theirs.append(1 / peer(folder / f"peer-{block}.sqlite", size))
    own = statistics.median(ours[1:])
    return 1 / own, statistics.median(raw) / own, statistics.median(theirs) / own if theirs else 0.0
