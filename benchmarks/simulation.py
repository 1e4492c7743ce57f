"""Simulated worlds: how many a processor gets through in a second, and how much time passes in them.

Each measurement is a process of its own, and counts that process's processor time. A world's hours pass
mostly in waiting, so the events that were appended and checked are told too.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from benchmarks.harness import Bench, Row, Spread, child
from pmagent.projections.core.documents import Documents
from pmagent.projections.registry import all_projections
from pmagent.replay.simulation.runner import Load, Rests, run_seeds

TWICE = "everything, twice"
"""As ``pmagent sim --twice`` runs it; events are counted once."""

LOADS = {
    "everything": None,
    TWICE: None,
    "typing only": Load(demands=0, thoughts=0, runs=0, checks=0, audits=0, changes=2, typings=6),
}
"""The work in them; None: all that ``pmagent sim`` draws, documents included."""


def run(bench: Bench) -> list[Row]:
    """Worlds with everything in them, and worlds in which somebody only types."""
    rows: list[Row] = []
    count = 2 if bench.quick else 60
    for name in LOADS:
        found = [child("simulation", name, 1 + n * count, count) for n in range(bench.runs)]
        seeds = Spread.of([one["count"] / one["cpu"] for one in found])
        events = Spread.of([one["events"] / one["cpu"] for one in found])
        hours = Spread.of([one["seconds"] / one["cpu"] for one in found])
        each = sum(one["events"] for one in found) / sum(one["count"] for one in found)
        rows += [
            Row(what=f"simulation, {name}", figure=seeds, unit="seeds/CPU-s", note=f"{each:.0f} events a seed"),
            Row(what=f"simulation, {name}", figure=events, unit="events/CPU-s"),
            Row(what=f"simulation, {name}", figure=hours, unit="simulated hours/CPU-h"),
        ]
    return rows


def _measure(name: str, first: int, count: int) -> dict[str, Any]:
    documents = None if LOADS[name] is not None else lambda: Documents(all_projections())
    rests: Rests = {}
    start = time.process_time()
    for _ in range(1 + (name == TWICE)):
        made = run_seeds(first, count, load=LOADS[name], documents=documents, rests=rests if name == TWICE else None)
    cpu = time.process_time() - start
    assert not made.failures, made.failures
    return {"count": made.count, "seconds": made.seconds, "events": made.events, "cpu": cpu}


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
