"""Arithmetic of scores, exact: fractions, and rounding half up; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import floor

from pmagent.contracts.audit import Judge, JudicialOpinion

Opinions = Mapping[Judge, JudicialOpinion]
"""One opinion of each of some judges, in the order of ``JUDGES``."""


def median(scores: Iterable[int]) -> Fraction:
    """The middle of the scores; of an even number the mean of the two in the middle. There is at least one."""
    ordered = sorted(scores)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return Fraction(low + high, 2)


def weighted_mean(opinions: Opinions, weight: Fraction) -> Fraction:
    """The mean of the scores in which the Tech Lead's counts ``weight`` times. There is at least one."""
    weights = {judge: weight if judge == "TechLead" else Fraction(1) for judge in opinions}
    return Fraction(sum(weights[judge] * one.score for judge, one in opinions.items()) / sum(weights.values()))


def half_up(value: Fraction) -> int:
    """The nearest integer; the upper one of two: 2.5 is 3, 3.5 is 4."""
    return floor(value + Fraction(1, 2))


def tenths(value: Fraction) -> Fraction:
    """The nearest tenth; the upper one of two: 3.25 is 3.3."""
    return Fraction(half_up(value * 10), 10)


def exact(number: float) -> Fraction:
    """The number as it is written: 0.1 is a tenth."""
    return Fraction(str(number))


def spread(opinions: Opinions) -> int:
    """Highest minus lowest score ("variance"); 0 where there is none."""
    scores = [one.score for one in opinions.values()]
    return max(scores) - min(scores) if scores else 0


def shown(value: Fraction | float) -> str:
    """A score as people read it: at most two decimals, none that say nothing."""
    hundredths = half_up(Fraction(value) * 100)
    whole, rest = divmod(hundredths, 100)
    return f"{whole}.{rest:02}".rstrip("0").rstrip(".") if rest else str(whole)
