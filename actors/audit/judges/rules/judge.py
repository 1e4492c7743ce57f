"""The offline judges: scores from the evidence and the patterns of the rubric (docs/design.md §15.8); pure.

All three see the same measure of the evidence (``weighing``): the share of what was looked for that is there, and the
points that flaws cost. They differ in how they look at it:

===========  =========================================  ===================  ==========================
judge        share that counts, of a share x            flaws cost           rounds up from
===========  =========================================  ===================  ==========================
Prosecutor   between x and x * x: a gap puts the rest   once and a half      three quarters
             in doubt
Tech Lead    x, in which a thing that nobody can point  what they cost       a half
             at weighs two thirds
Defense      between x and 1 - (1 - x) * (1 - x): a     half                 a quarter
             thing found stands for more
===========  =========================================  ===================  ==========================

The score is 1 + 4 * share - flaws, between 1 and 5, and no higher than a limit that a flaw sets for a judge. In the
second round a judge looks at what it and the others cited, comes halfway towards the plain measure, and moves
only where the others cited something for it that the judge had not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import floor
from typing import Final, NamedTuple

from pmagent.actors.audit.clerk import Brief, NodeFailed
from pmagent.actors.audit.detectors.evidence.items import key_of
from pmagent.actors.audit.goals import goal_id
from pmagent.actors.audit.judges.rules.arguing import Said, against, argument, cited, favour
from pmagent.actors.audit.judges.rules.weighing import Item, Measure, has_ground, items, measure
from pmagent.actors.audit.rubric import dimension_of
from pmagent.contracts.audit import SCORE_MAX, SCORE_MIN, Judge, JudicialOpinion
from pmagent.contracts.audit_events import CITATIONS_MAX

HALF: Final = Fraction(1, 2)
EXAMINED: Final = ("repo.scope", "report.scope", "images.scope", "repo.flaws")
"""Goals of what was looked at and looked for: who speaks of an absence rests on them."""


class Stance(NamedTuple):
    """How a judge looks at a measure; see the table above. ``up_from``: what is left of a point, and rounded up."""

    share: Callable[[Measure], Fraction]
    flaws: Fraction
    up_from: Fraction


STANCES: Final[dict[Judge, Stance]] = {
    "Prosecutor": Stance(lambda seen: (seen.share + seen.share**2) / 2, Fraction(3, 2), Fraction(3, 4)),
    "Defense": Stance(lambda seen: (seen.share + 1 - (1 - seen.share) ** 2) / 2, HALF, Fraction(1, 4)),
    "TechLead": Stance(lambda seen: seen.placed, Fraction(1), HALF),
}


def opinion(brief: Brief) -> JudicialOpinion:
    """The judge's opinion. Raises NodeFailed where the evidence holds nothing to judge by: none is invented."""
    dimension = dimension_of(brief.dimension)
    keyed = {key_of(dimension.id, number): one for number, one in enumerate(brief.evidence, 1)}
    counted = items(dimension, keyed.items())
    if not has_ground(dimension, counted, brief.evidence):
        raise NodeFailed("evidence", f"the evidence for {dimension.id} holds nothing that the rules can weigh")
    scopes = [key for key, one in keyed.items() if goal_id(one.goal) in EXAMINED and one.found]
    if brief.round == 1 or brief.own is None:
        said = _first(brief.judge, counted, scopes)
    else:
        said = _second(brief, brief.own, counted, scopes)
    return JudicialOpinion(
        judge=brief.judge,
        criterion_id=dimension.id,
        score=said.score,
        argument=argument(brief.judge, said),
        cited_evidence=list(said.cited),
    )


def score(judge: Judge, seen: Measure, *, halfway: bool = False) -> int:
    """The score of a measure; ``halfway``: as a judge looks who has heard the others."""
    stance = STANCES[judge]
    share, flaws = stance.share(seen), stance.flaws
    if halfway:
        share, flaws = (share + seen.share) / 2, (flaws + 1) / 2
    rounded = floor(1 + 4 * share - flaws * seen.damage + 1 - stance.up_from)
    return max(SCORE_MIN, min(SCORE_MAX, rounded, seen.limits.get(judge, SCORE_MAX)))


def _first(judge: Judge, counted: Sequence[Item], scopes: Sequence[str]) -> Said:
    seen = measure(counted)
    return Said(score(judge, seen), cited(judge, counted, scopes), tuple(counted), seen)


def _second(brief: Brief, own: JudicialOpinion, counted: Sequence[Item], scopes: Sequence[str]) -> Said:
    """What was cited by anybody, looked at from halfway: up only where the others cited something for it, down only
    where they cited something against it, that the judge had not cited."""
    theirs = {key for keys in brief.others.values() for key in keys}
    fresh = [one for one in counted if one.key in theirs.difference(own.cited_evidence)]
    shared = [one for one in counted if one.key in theirs.union(own.cited_evidence)]
    seen = measure(shared)
    new = score(brief.judge, seen, halfway=True)
    news = favour(fresh) if new > own.score else against(fresh) if new < own.score else fresh
    final = new if news else own.score
    keys = [key for key in own.cited_evidence if key in {one.key for one in counted} or key in scopes]
    told = tuple(dict.fromkeys((*keys, *(one.key for one in news), *scopes)))[:CITATIONS_MAX]
    return Said(final, told, tuple(shared), seen, own.score, tuple(news))
