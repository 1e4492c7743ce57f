"""The offline judges: scores from the evidence and the patterns of the rubric (docs/design.md §15.8); pure.

They look at different things, and cite them:

- the **Prosecutor** charges: flaws that were found, which cost a quarter more, and what is surely missing.
- the **Defense** pleads: what was found, and what would be unfair to miss, because it may be there in a way that cannot
  be seen: that counts half. Of the flaws only the gravest costs, and half.
- the **Tech Lead** weighs what can be pointed at in the program against the flaws, and names the next change.

No score is higher than a limit that a flaw sets for a judge. In the second round a judge looks at what it and the
others cited, comes halfway towards the plain measure, and moves only where the others cited something for it that the
judge had not.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Final

from pmagent.actors.audit.clerk import Brief, NodeFailed
from pmagent.actors.audit.detectors.evidence.items import key_of
from pmagent.actors.audit.goals import goal_id
from pmagent.actors.audit.judges.rules.arguing import Said, against, argument, cited, favour
from pmagent.actors.audit.judges.rules.weighing import HALF, Item, Measure, has_ground, items, measure
from pmagent.actors.audit.rubric import dimension_of
from pmagent.contracts.audit import SCORE_MAX, SCORE_MIN, Judge, JudicialOpinion
from pmagent.contracts.audit_events import CITATIONS_MAX

EXAMINED: Final = ("repo.scope", "report.scope", "images.scope", "repo.flaws")
"""Goals of what was looked at and looked for: who speaks of an absence rests on them."""


def _points(judge: Judge, seen: Measure) -> Fraction:
    weighed = 1 + 4 * seen.placed - seen.damage
    if judge == "Prosecutor":
        return min(weighed, 1 + 4 * seen.share - seen.damage * Fraction(5, 4))
    if judge == "Defense":
        return 1 + 4 * seen.fair - seen.worst / 2
    return weighed


_UP_FROM: Final[dict[Judge, Fraction]] = {"Prosecutor": Fraction(3, 4), "TechLead": HALF, "Defense": Fraction(1, 4)}
"""The fraction of a point from which a judge rounds up."""


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
    points = _points(judge, seen)
    if halfway:
        points = (points + 1 + 4 * seen.share - seen.damage) / 2
    rounded = floor(points + 1 - _UP_FROM[judge])
    return max(SCORE_MIN, min(SCORE_MAX, rounded, seen.limits.get(judge, SCORE_MAX)))


def _first(judge: Judge, counted: Sequence[Item], scopes: Sequence[str]) -> Said:
    seen = measure(counted)
    return Said(score(judge, seen), cited(judge, counted, scopes), tuple(counted), seen)


def _second(brief: Brief, own: JudicialOpinion, counted: Sequence[Item], scopes: Sequence[str]) -> Said:
    """All evidence that anybody cited, looked at from halfway: up only where the others cited something for it, down
    only where they cited something against it, that the judge had not cited."""
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
