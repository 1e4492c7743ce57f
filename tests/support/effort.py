"""How much is tried. ``make test`` tries a share of the examples, seeds and kills, and leaves out the tests that
tests/costly.txt and tests/night.txt name. ``PMAGENT_TESTS=1 make test`` runs those of costly.txt that need at most
one second, ``make full`` all of them, ``make night`` everything. The share is the same in each run: a run that fails
can be repeated.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

T = TypeVar("T")

_ASKED = os.environ.get("PMAGENT_TESTS", "")
NIGHT = _ASKED == "night"
FULL = NIGHT or _ASKED == "full"
SECONDS = float(_ASKED) if _ASKED and not FULL else 0.0
"""Tests of costly.txt that need at most so much processor time run."""

by_night = pytest.mark.skipif(not NIGHT, reason="by night")
"""Marks a test of real processes that wait for long, and whose statement others, or the simulation, check by day."""


_TESTS = Path(__file__).resolve().parents[1]
COSTLY = _TESTS / "costly.txt"


def named_by_night() -> list[str]:
    """The tests that night.txt names: ``file::test``, or ``file::test[case]``."""
    return _lines(_TESTS / "night.txt")


def costly() -> list[str]:
    """The tests that costly.txt names, as ``named_by_night``, and that need more than ``SECONDS``."""
    listed = (line.partition(" ") for line in _lines(COSTLY))
    return [test for seconds, _, test in listed if float(seconds) > SECONDS]


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]


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
