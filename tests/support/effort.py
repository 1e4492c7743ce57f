"""How much is tried. ``make test`` tries a share of the examples, seeds and kills; ``make night`` tries all of them.

Every statement is checked in both. The share by day is the same in each run: a run that fails can be repeated.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random
from typing import TypeVar

import pytest

T = TypeVar("T")

NIGHT = os.environ.get("PMAGENT_TESTS") == "night"

by_night = pytest.mark.skipif(not NIGHT, reason="by night")
"""Marks a test of real processes that wait for long, and whose statement others, or the simulation, check by day."""


def rounds(night: int, day: int) -> int:
    """How often to try something."""
    return night if NIGHT else day


def examples(night: int) -> int:
    """How many examples hypothesis makes: an eighth by day, ten at least."""
    return night if NIGHT else min(night, max(10, night // 8))


def some(items: Sequence[T], day: int) -> list[T]:
    """All of the items by night; by day so many, the same in each run, in their order."""
    if NIGHT or day >= len(items):
        return list(items)
    return [items[n] for n in sorted(Random(day).sample(range(len(items)), day))]
