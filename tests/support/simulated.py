"""The simulation with the real projections, and what its first failure says."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

from pmagent.projections.core.documents import Documents
from pmagent.projections.registry import all_projections
from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.runner import Load, SimResult, run_seeds

FIRST_SEEDS = Path(__file__).resolve().parents[1] / "simulation" / "first_seeds.txt"
RECORD = os.environ.get("PMAGENT_RECORD") == "1"

COUNT = 600
"""So many seeds have to be enough to find a fault of our own."""


def documents() -> Documents:
    """The real projections."""
    return Documents(all_projections())


class Redrawn(Chance):
    """The chance of ``seed``; of what has a name that begins with one of these, that of ``other``."""

    def __init__(self, seed: int, *names: str, other: int = -1) -> None:
        super().__init__(seed)
        self._names = names
        self._other = Chance(other)

    def stream(self, name: str) -> Random:
        return self._other.stream(name) if name.startswith(self._names) else super().stream(name)

    def uniform(self, name: str) -> float:
        return self._other.uniform(name) if name.startswith(self._names) else super().uniform(name)


DEMANDS = Load(demands=30, thoughts=0, runs=0, checks=0, audits=0, changes=8)
RUNS = Load(demands=0, thoughts=0, runs=12, checks=0, audits=0, changes=4)
THOUGHTS = Load(demands=0, thoughts=25, runs=0, checks=0, audits=0, changes=8)
CHECKS = Load(demands=0, thoughts=0, runs=0, checks=10, audits=0, changes=6)
AUDITS = Load(demands=0, thoughts=0, runs=0, checks=0, audits=8, changes=4)
TYPINGS = Load(demands=0, thoughts=0, runs=0, checks=0, audits=0, changes=2, typings=6)
PAUSES = Load(demands=12, thoughts=0, runs=0, checks=0, audits=0, changes=4, pauses=6)
TYPINGS_PAUSED = Load(demands=0, thoughts=0, runs=0, checks=0, audits=0, changes=2, typings=6, pauses=3)
"""Worlds in which the operator wants nothing else: a seed then tells more of it, and takes less time."""


def failure(
    fault: str = "", load: Load | None = None, count: int = COUNT, one: Callable[[int], SimResult] | None = None
) -> str:
    """The message of the first seed that fails; "" when none does. With a ``load`` of its own: without documents.
    ``one``: what runs a seed of another world.

    The search for a planted ``fault`` begins at the seed that is recorded for it, since few seeds meet some of them.
    PMAGENT_RECORD=1 searches from 1 on and records what is found beyond the first seed.
    """
    known = {} if RECORD else dict(line.rsplit(": ", 1) for line in FIRST_SEEDS.read_text().splitlines())
    first = int(known.get(fault, 1))
    made = run_seeds(first, count, documents=documents if load is None else None, failures_max=1, load=load, one=one)
    if RECORD and fault and made.failures and made.count:
        with FIRST_SEEDS.open("a") as file:
            file.write(f"{fault}: {1 + made.count}\n")
    return next(iter(made.failures), "")
