"""The simulation with the real projections, and what its first failure says."""

from __future__ import annotations

from pmagent.projections.core.documents import Documents
from pmagent.projections.registry import all_projections
from pmagent.replay.simulation.runner import Load, run_seeds

COUNT = 300
"""So many seeds have to be enough to find a fault of our own."""


def documents() -> Documents:
    """The real projections."""
    return Documents(all_projections())


DEMANDS = Load(demands=30, thoughts=0, runs=0, checks=0, audits=0, changes=8)
RUNS = Load(demands=0, thoughts=0, runs=12, checks=0, audits=0, changes=4)
THOUGHTS = Load(demands=0, thoughts=25, runs=0, checks=0, audits=0, changes=8)
CHECKS = Load(demands=0, thoughts=0, runs=0, checks=10, audits=0, changes=6)
AUDITS = Load(demands=0, thoughts=0, runs=0, checks=0, audits=8, changes=4)
TYPINGS = Load(demands=0, thoughts=0, runs=0, checks=0, audits=0, changes=2, typings=6)
PAUSES = Load(demands=12, thoughts=0, runs=0, checks=0, audits=0, changes=4, pauses=6)
TYPINGS_PAUSED = Load(demands=0, thoughts=0, runs=0, checks=0, audits=0, changes=2, typings=6, pauses=3)
"""Worlds in which the operator wants nothing else: a seed then tells more of it, and takes less time."""


def failure(count: int = COUNT, load: Load | None = None, first: int = 1) -> str:
    """What the first seed that fails says; "" when none does. With a ``load`` of its own: without documents."""
    made = run_seeds(first, count, documents=documents if load is None else None, failures_max=1, load=load)
    return next(iter(made.failures), "")
