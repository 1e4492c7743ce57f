"""The weight of evidence on a criterion, whoever looks at it; pure.

Only what cannot be talked into something counts: which goal an item is about, whether it was found, how sure that is,
and whether it can be pointed at. Contents and rationales come from what is audited, and are not read.

All numbers are fractions: sums do not depend on their order, and are the same on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from pmagent.actors.audit.detectors.evidence.items import CARE
from pmagent.actors.audit.goals import GOALS, Goal, goal_id
from pmagent.actors.audit.rubric import Dimension
from pmagent.actors.audit.rubric_words import means
from pmagent.contracts.audit import Evidence, Judge

NAMED: Final = 4
"""Weight of what the success pattern names, or the rubric lists among its goals."""
MEANT: Final = 2
"""Weight of what only the instruction or the failure pattern names; half of it where it is missing: it was looked for,
and not asked for."""
WHOLE_MAX: Final = 40
"""Most that something weighs which is met in part, by how many parts were looked for."""
FAMILY_MAX: Final = 12
"""Goals of one family weigh no more than this together: many details of one thing are still one thing."""
HALF: Final = Fraction(1, 2)
SOUND: Final = Fraction(3, 4)
"""How well files are built of short functions with names and without copies, which no test imports."""
VAGUE: Final = Fraction(2, 3)
"""The weight of a thing that can be said to be there, but not where, for a judge who asks whether it works."""
SURE: Final = Fraction(6, 10)
"""A flaw that is less sure than this limits no score; what was found less surely is there by existence alone, and
counts half; a gap that is less sure is charged to nobody."""
UNREAD_MAX: Final = 3
"""Highest score where the evidence is a description that the rules do not read."""

_SECURITY: Final = Fraction(2)
_NAMED_FLAW: Final = Fraction(1)
_OTHER_FLAW: Final = Fraction(1, 2)
_GRADED: Final = ("report.explained", "report.verified", "report.supported", "project.types")
"""Assets that are met in part; by how much stands behind the goal."""
_OF_ALL: Final = ("report.scanty", "report.foreign", "report.hallucinated", "report.contradicted", "repo.unreadable")
"""Flaws of the whole report or repository, whatever a rubric says of them."""
TESTED: Final = "repo.tested"
STRUCTURE: Final = "repo.structure"
_PART: Final = re.compile(r"(\d+) of (\d+)")
_PLACE: Final = re.compile(r".+:[1-9][0-9]*|page [1-9][0-9]*|[0-9a-f]{7,64}", re.DOTALL)

SECURITY_LIMITS: Final[dict[Judge, int]] = {"Prosecutor": 2, "TechLead": 3}


class Item(NamedTuple):
    """An item of evidence that counts. ``weight``: of an asset its share of the whole, of a flaw the points that it
    costs; ``sure`` above 0; ``placed``: it can be pointed at, at ``where``. ``about``: which term. ``part``: how much
    of what was found is met."""

    key: str
    goal: Goal
    about: str
    found: bool
    sure: Fraction
    placed: bool
    weight: Fraction
    limits: tuple[tuple[Judge, int], ...] = ()
    unread: bool = False
    where: str = ""
    part: Fraction = Fraction(1)


class Measure(NamedTuple):
    """Measures of the judges, each its own. ``kept``, for the Prosecutor: how much of what was looked for is not
    missing; ``shown``, for the Defense: how much is there, where what is not surely missing counts half, and tests bear
    out what is there by its existence alone; ``placed``, for the Tech Lead: how much can be pointed at, and ``shape``:
    how well the files are built in which it stands; ``tested``: how many of these files tests import (None: nobody
    knows); ``care``: how much speaks for the program at large (None: nobody knows). All from 0 to 1. ``damage``: points
    that flaws cost, ``worst`` those of the gravest. ``limits``: highest score of each judge."""

    kept: Fraction
    shown: Fraction
    placed: Fraction
    shape: Fraction | None
    tested: Fraction | None
    worst: Fraction
    damage: Fraction
    limits: dict[Judge, int]
    care: Fraction | None


def items(dimension: Dimension, keyed: Iterable[tuple[str, Evidence]], *, tested: bool) -> list[Item]:
    """The items of the evidence that count, in its order: assets, found or not, and flaws that were found; not what
    nobody could look at, and not what only describes. ``tested``: tests import some of the files in which it stands."""
    found = [item for key, evidence in keyed if (item := _item(dimension, key, evidence)) is not None]
    if not tested:
        found = [one._replace(limits=tuple(one.goal.untested.items())) if one.goal.untested else one for one in found]
    if any(one.weight for one in found if one.goal.kind == "asset"):
        return [one for one in found if one.weight]
    # nothing but names that the rubric quotes: then these count
    return [one if one.weight else one._replace(weight=Fraction(MEANT)) for one in found]


def measure(counted: Sequence[Item], around: Mapping[str, Fraction]) -> Measure:
    """The evidence as numbers. Where no asset was looked for there are only flaws to find: nothing is missing."""
    assets = [one for one in counted if one.goal.kind == "asset"]
    flaws = [one for one in counted if one.goal.kind == "flaw"]
    doubted = [one._replace(sure=one.sure / 2) if _is_unsure(one) else one for one in assets]
    borne_out = HALF + around.get(TESTED, Fraction(0)) / 2
    return Measure(
        kept=_share(assets, Fraction(1), HALF),
        shown=_share(doubted, Fraction(1), borne_out),
        placed=_share(assets, VAGUE, HALF),
        shape=around.get(STRUCTURE),
        tested=around.get(TESTED),
        worst=max((one.sure * one.weight for one in flaws), default=Fraction(0)),
        damage=sum((_cost(flaws, goal) for goal in sorted({one.goal.id for one in flaws})), Fraction(0)),
        limits=_lowest(one.limits for one in counted),
        care=around.get(CARE),
    )


def surroundings(keyed: Iterable[tuple[str, Evidence]]) -> dict[str, tuple[str, Fraction]]:
    """Knowledge of the files around the findings, by goal: the key of the evidence, and the share."""
    told: dict[str, tuple[str, Fraction]] = {}
    for key, one in keyed:
        part = _PART.search(one.goal) if goal_id(one.goal) in (TESTED, STRUCTURE, CARE) and one.found else None
        if part and int(part[2]):
            share = Fraction(min(int(part[1]), int(part[2])), int(part[2]))
            known = told.setdefault(goal_id(one.goal), (key, share))
            told[goal_id(one.goal)] = min(known, (key, share), key=lambda pair: pair[1])
    return told


def has_ground(dimension: Dimension, counted: Sequence[Item], evidence: Sequence[Evidence]) -> bool:
    """Whether there is anything to judge by: something that counts, or flaws that would have been seen."""
    looked = any(GOALS[goal].kind == "flaw" for goal in dimension.goals) and any(
        goal_id(one.goal).endswith(".scope") and one.found and one.confidence > 0 for one in evidence
    )
    return bool(counted) or looked


# One item.


def _item(dimension: Dimension, key: str, evidence: Evidence) -> Item | None:
    goal = GOALS.get(goal_id(evidence.goal))
    sure = Fraction(round(evidence.confidence * 1000), 1000)
    if goal is None or goal.kind == "context" or not sure or (goal.kind == "flaw" and not evidence.found):
        return None
    about = evidence.goal[len(goal.text) :].removeprefix(": ")
    named = _is_named(dimension, goal)
    graded = _PART.fullmatch(about) if goal.id in _GRADED else None
    unread = goal.id == "images.inspected" or (goal.id == "report.term" and not dimension.terms)
    limits: dict[Judge, int] = {}
    if unread:
        limits = dict.fromkeys(("Prosecutor", "Defense", "TechLead"), UNREAD_MAX)
    elif goal.kind == "flaw" and sure >= SURE:
        limits = SECURITY_LIMITS if goal.security else goal.limits if named or goal.id in _OF_ALL else {}
    return Item(
        key=key,
        goal=goal,
        about=about,
        found=evidence.found,
        sure=sure,
        placed=_PLACE.fullmatch(evidence.location) is not None,
        where=evidence.location,
        weight=Fraction(min(int(graded[2]), WHOLE_MAX)) if graded and goal.id.startswith("report.")
        else _weight(dimension, goal, named=named) * (1 if named or evidence.found else HALF),
        limits=tuple(limits.items()),
        unread=unread,
        part=Fraction(int(graded[1]), int(graded[2])) if graded and int(graded[2]) else Fraction(1),
    )


def _is_named(dimension: Dimension, goal: Goal) -> bool:
    if dimension.explicit and goal.id in dimension.goals:
        return True
    return means(dimension.failure_pattern if goal.kind == "flaw" else dimension.success_pattern, goal)


def _weight(dimension: Dimension, goal: Goal, *, named: bool) -> Fraction:
    if goal.kind == "flaw":
        plain = Fraction(goal.cost, 4) if goal.cost else _NAMED_FLAW if named else _OTHER_FLAW
        return _SECURITY if goal.security else plain
    if goal.id == "repo.term" or (goal.id == "report.term" and not dimension.explicit):
        return Fraction(0)
    return Fraction(NAMED if named else MEANT)


# Many items.


def _is_unsure(one: Item) -> bool:
    """Whether something was not found, and may be there all the same."""
    return not one.found and one.sure < SURE


def _share(assets: Sequence[Item], vague: Fraction, existing: Fraction) -> Fraction:
    """The share of what is there: by family, each weighing as its goals do up to a limit. What cannot be pointed at
    counts ``vague``, what is there by existence alone ``existing``."""
    there = whole = Fraction(0)
    for family in sorted({one.goal.id.partition(".")[0] for one in assets}):
        inside = [one for one in assets if one.goal.id.partition(".")[0] == family]
        credit = gap = weight = Fraction(0)
        for name in sorted({(one.goal.id, one.about) for one in inside}):
            group = [one for one in inside if (one.goal.id, one.about) == name]
            most = max(one.sure for one in group)
            best = max((one.sure * one.part for one in group if one.found), default=Fraction(0))
            seen = max(
                (one.sure * one.part * (1 if one.placed else vague) for one in group if one.found), default=Fraction(0)
            )
            by_existence = existing if best and max(one.sure for one in group if one.found) < SURE else Fraction(1)
            weight += group[0].weight * most
            credit += group[0].weight * seen * by_existence
            gap += group[0].weight * (most - best * by_existence)
        limited = min(weight, Fraction(FAMILY_MAX))
        there += limited * (credit / (credit + gap) if credit else 0)
        whole += limited
    return there / whole if whole else Fraction(1)


def _cost(flaws: Sequence[Item], goal: str) -> Fraction:
    """The points that a flaw costs; found again and again, at most twice as many."""
    found = sorted((one.sure * one.weight for one in flaws if one.goal.id == goal), reverse=True)
    return sum((cost / 2**place for place, cost in enumerate(found)), Fraction(0))


def _lowest(limits: Iterable[tuple[tuple[Judge, int], ...]]) -> dict[Judge, int]:
    lowest: dict[Judge, int] = {}
    for judge, limit in (pair for pairs in limits for pair in pairs):
        lowest[judge] = min(limit, lowest.get(judge, limit))
    return lowest
