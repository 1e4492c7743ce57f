"""Replaying a run with divergence detection: everything decided again and compared with what is recorded.

8,000 steps are 48,000 events, the run that Temporal's replayer (Python, 1.35.0) took 36 to 42 s for on a like machine.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from benchmarks.harness import Bench, Row, Spread, alternate, child
from benchmarks.workload import Steps, write_steps
from pmagent.replay.replayer import replay_log

_TEMPORAL = Spread(39.0, 36.0, 42.0)


def run(bench: Bench) -> list[Row]:
    """A shorter run, that run, and a longer one."""
    sizes = (120, 480, 960) if bench.quick else (6_001, 48_001, 480_001)
    for size in sizes:
        write_steps(bench.folder / f"run-{size}", size)
    figures = alternate(
        bench.runs, *(lambda size=size: float(child("replay_check", bench.folder / f"run-{size}")) for size in sizes)
    )
    rows = []
    for size, values in zip(sizes, figures, strict=True):
        took = Spread.of(values)
        target = size == sizes[1]
        rows.append(
            Row(
                what=f"replay with divergence detection, {size - 1:,} events", figure=took, unit="s",
                beside="Temporal's Python replayer (measured elsewhere)" if target else "",
                limit=_TEMPORAL if target else None, ratio=_TEMPORAL.median / took.median if target else None,
                target="< 1 s" if target else "", reached=took.median < 1 if target else None,
                note=f"{(size - 1) / took.median:,.0f} events/s",
            )
        )
    return rows


def _replay(folder: Path) -> float:
    start = time.perf_counter()
    found = replay_log(folder, [Steps()])
    took = time.perf_counter() - start
    assert found.equal, found
    return took


if __name__ == "__main__":
    print(json.dumps(_replay(Path(sys.argv[1]))))
