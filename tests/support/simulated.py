"""The simulation with the real projections, and what its first failure says."""

from __future__ import annotations

from projections.documents import Documents
from projections.registry import all_projections
from replay.simulation.runner import Load, run_seeds

COUNT = 300
"""So many seeds have to be enough to find a fault of our own."""


def documents() -> Documents:
    """The real projections."""
    return Documents(all_projections())


def failure(count: int = COUNT) -> str:
    """What the first seed that fails says; "" when none does."""
    return next(iter(run_seeds(1, count, documents=documents, failures_max=1).failures), "")


def failure_of_runs(count: int = COUNT) -> str:
    """The same where the operator wants nothing but runs of Orchestra: a run's seed then tells more of them."""
    return next(iter(run_seeds(1, count, failures_max=1, load=Load(0, 0, runs=12, checks=0, changes=4)).failures), "")
