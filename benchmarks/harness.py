"""Parts that every benchmark uses: where its files lie, how runs alternate, and what a result is.

Figures are medians of runs that alternate with the raw limit or peer they stand beside, so that a disk or a
neighbour that slows down for a while slows both.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parent.parent
RUNS = 3
"""Each figure is the median of so many runs at least."""


class Spread(msgspec.Struct, frozen=True):
    """Several runs of one thing."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of at least one value."""
        return cls(statistics.median(values), min(values), max(values))


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table.

    ``beside`` names the raw limit or the peer, measured in the same run as ``limit``; ``ratio`` is ours to it.
    ``target`` is what is to be reached, in words; ``reached`` is None where there is no target.
    """

    what: str
    figure: Spread
    unit: str
    beside: str = ""
    limit: Spread | None = None
    ratio: float | None = None
    target: str = ""
    reached: bool | None = None
    note: str = ""


class Bench(msgspec.Struct, frozen=True):
    """The inputs of a benchmark. ``folder``: an empty folder on the disk that is measured. ``quick``: sizes so small
    that it takes about a second; the figures then mean nothing."""

    folder: Path
    quick: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """Log lengths (events) for whatever grows with the log."""
        return (200, 600, 1_200) if self.quick else (10_000, 100_000, 1_000_000)

    def count(self, full: int, quick: int) -> int:
        """How often to do something."""
        return quick if self.quick else full

    @property
    def runs(self) -> int:
        """How many runs a figure is the median of."""
        return 1 if self.quick else RUNS


def alternate(runs: int, *measures: Callable[[], float]) -> list[list[float]]:
    """Call each measure ``runs`` times, turn and turn about, every second time in reverse; each one's figures."""
    figures: list[list[float]] = [[] for _ in measures]
    order = list(enumerate(measures))
    for run in range(runs):
        for index, measure in order if run % 2 == 0 else reversed(order):
            figures[index].append(measure())
    return figures


def seconds(function: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def percentile(values: Sequence[float], share: float) -> float:
    """The value that ``share`` (0 to 1) of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def child(module: str, *arguments: object) -> Any:
    """Run ``benchmarks.<module>`` in a process of its own and return the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)],
        cwd=ROOT, stdout=subprocess.PIPE, check=True, timeout=600,
    )
    return json.loads(done.stdout)


def peak_memory() -> int:
    """Most bytes of memory that this process has held so far (not those of the one that started it)."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024


def raw_syncs(folder: Path, count: int, size: int = 256) -> list[float]:
    """Seconds of each of ``count`` appends of ``size`` bytes with fdatasync: what the disk can do."""
    path = folder / "raw"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
    data = b"x" * (size - 1) + b"\n"
    times: list[float] = []
    try:
        for _ in range(count):
            start = time.perf_counter()
            os.write(descriptor, data)
            os.fdatasync(descriptor)
            times.append(time.perf_counter() - start)
    finally:
        os.close(descriptor)
        path.unlink()
    return times
