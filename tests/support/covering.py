"""Few seeds that together meet every fault of their worlds, for ``make full``; ``make night`` runs each world's first
so many seeds.

Where they do not meet one any more, after a change of what happens in the simulation, the search goes on among those of
the night: the file says where to look first, and no test depends on what it says.

    python -m tests.support.covering    finds them anew
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from time import process_time
from typing import NamedTuple

from pmagent.replay.areas.pla.faults import ENDING_CHANCES, PLA_CHANCES, PLA_CONSEQUENCES
from pmagent.replay.simulation.faults import CHANCES, CONSEQUENCES, FOREIGN_CHANCES, FOREIGN_CONSEQUENCES
from pmagent.replay.simulation.pausing import PAUSE_CHANCES, PAUSE_CONSEQUENCES
from pmagent.replay.simulation.runner import Load, run_seeds
from tests.support.effort import NIGHT
from tests.support.simulated import (
    AUDITS,
    CHECKS,
    DEMANDS,
    PAUSES,
    RUNS,
    THOUGHTS,
    TYPINGS,
    TYPINGS_PAUSED,
    documents,
)

FILE = Path(__file__).resolve().parents[1] / "simulation" / "covering.txt"
TYPED = ("pause: between approval and order", "pause: while it types", "pause: what must not wait is refused")
"""Faults of a pause that are met only where something is typed."""


class Suite(NamedTuple):
    """The faults to meet, and the worlds to meet them in: name -> load and number of seeds."""

    names: Collection[str]
    worlds: dict[str, tuple[Load | None, int]]


SUITES = {
    "all": Suite((*CHANCES, *CONSEQUENCES), {
        "mixed": (None, 60), "audits": (AUDITS, 16), "thoughts": (THOUGHTS, 32), "runs": (RUNS, 60),
        "checks": (CHECKS, 16), "pauses": (PAUSES, 40),
    }),
    "foreign": Suite((*FOREIGN_CHANCES, *FOREIGN_CONSEQUENCES), {"demands": (DEMANDS, 40)}),
    "pla": Suite((*PLA_CHANCES, *ENDING_CHANCES, *PLA_CONSEQUENCES), {"typings": (TYPINGS, 240)}),
    "pauses": Suite(
        {*PAUSE_CHANCES, *PAUSE_CONSEQUENCES, "effect: paused over a start", "effect: paused before it started"}
        - set(TYPED), {"pauses": (PAUSES, 40)},
    ),
    "pauses of typing": Suite(TYPED, {"typings": (TYPINGS_PAUSED, 40)}),
}


def played(suite: str) -> tuple[list[str], Counter[str]]:
    """Run the suite's seeds, by day until every fault has struck: what failed, and how often each struck."""
    failures: list[str] = []
    struck: Counter[str] = Counter()
    chosen = [] if NIGHT else list(_day(suite))
    for at, (_, load, seed) in enumerate(chain(chosen, (one for one in _night(suite) if one not in chosen))):
        if at >= len(chosen) and not NIGHT and not not_met(suite, struck):
            break
        summary = run_seeds(seed, 1, load=load, documents=documents if load is None else None)
        failures += summary.failures
        struck.update(summary.struck)
    return failures, struck


def not_met(suite: str, struck: Counter[str]) -> list[str]:
    """The suite's faults that struck nowhere."""
    return sorted(name for name in SUITES[suite].names if not struck[name])


def _night(suite: str) -> Iterator[tuple[str, Load | None, int]]:
    """Of each world in turn."""
    worlds = SUITES[suite].worlds.items()
    for seed in range(1, max(count for _, (_, count) in worlds) + 1):
        yield from ((world, load, seed) for world, (load, count) in worlds if seed <= count)


def _day(suite: str) -> Iterator[tuple[str, Load | None, int]]:
    for line in FILE.read_text().splitlines():
        name, _, seeds = line.partition(": ")
        for world, (load, _) in SUITES[suite].worlds.items():
            if name == f"{suite}, {world}":
                for seed in seeds.split():
                    yield world, load, int(seed)


def _search(suite: str) -> dict[str, list[int]]:
    """World -> seeds, chosen greedily: the one that meets most of what is not met yet, by the second."""
    met: dict[tuple[str, int], set[str]] = {}
    cost: dict[tuple[str, int], float] = {}
    for world, load, seed in _night(suite):
        begun = process_time()
        struck = run_seeds(seed, 1, load=load, documents=documents if load is None else None).struck
        cost[world, seed] = process_time() - begun
        met[world, seed] = {name for name in SUITES[suite].names if struck.get(name)}
    left = set().union(*met.values())
    chosen: dict[str, list[int]] = {world: [] for world in SUITES[suite].worlds}
    while left:
        world, seed = max(met, key=lambda one: len(met[one] & left) / cost[one])
        chosen[world].append(seed)
        left -= met[world, seed]
    return chosen


def main() -> None:
    """Write the file."""
    lines = [
        f"{suite}, {world}: {' '.join(map(str, sorted(seeds)))}"
        for suite in SUITES for world, seeds in _search(suite).items()
    ]
    FILE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
