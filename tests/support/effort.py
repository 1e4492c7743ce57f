"""How much is tried. ``make test`` tries a share of the examples, seeds and kills, and leaves out the tests that
tests/night.txt names; ``make night`` tries all of them. The share by day is the same in each run: a run that fails can
be repeated.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

T = TypeVar("T")

NIGHT = os.environ.get("PMAGENT_TESTS") == "night"

by_night = pytest.mark.skipif(not NIGHT, reason="by night")
"""Marks a test of real processes that wait for long, and whose statement others, or the simulation, check by day."""


NAMED_BY_NIGHT = Path(__file__).resolve().parents[1] / "night.txt"


def named_by_night() -> list[str]:
    """The tests that night.txt names: ``file::test``, or ``file::test[case]``."""
    return [line for line in NAMED_BY_NIGHT.read_text().splitlines() if not line.startswith("#")]


def rounds(night: int, day: int) -> int:
    """How often to try something."""
    return night if NIGHT else day


def examples(night: int) -> int:
    """How many examples hypothesis makes: a twentieth by day, six at least."""
    return night if NIGHT else min(night, max(6, night // 20))


def some(items: Sequence[T], day: int) -> list[T]:
    """All of the items by night; by day so many, the same in each run, in their order."""
    if NIGHT or day >= len(items):
        return list(items)
    return [items[n] for n in sorted(Random(day).sample(range(len(items)), day))]
