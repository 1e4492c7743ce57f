"""The offline judges: scores from the evidence and the patterns of the rubric (docs/design.md §15.8); pure.

Each has a measure of its own, of evidence of its own:

- the **Prosecutor** begins at 5 and takes away: for each flaw that was found, a quarter more than it costs others, and
  for what is missing. It cites flaws, and what is surely missing.
- the **Defense** begins at 1 and adds what was found; what may be there in a way that cannot be seen would be unfair to
  miss and counts half, and what is there by its existence alone is borne out by tests that import its file. Of the
  flaws only the gravest costs, and half. It cites what was found, and ``repo.tested``.
- the **Tech Lead** asks what can be pointed at in the program, and what it costs to change: the length of functions,
  copies, names and tests of the files in which it stands move the score, by a quarter of a point up and three down at
  most. It cites places and ``repo.structure``, and names the next change with the file that it touches.

No score is higher than a limit that a flaw sets for a judge. In the second round a judge looks at what it and the
others cited, comes halfway towards the plain measure, and moves only where the others cited something for it that the
judge had not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from pmagent.actors.audit.clerk import Brief, NodeFailed
from pmagent.actors.audit.detectors.evidence.items import CARE, key_of
from pmagent.actors.audit.goals import GOALS, goal_id
from pmagent.actors.audit.judges.rules.arguing import Said, against, argument, cited, favour
from pmagent.actors.audit.judges.rules.weighing import (
    SOUND,
    STRUCTURE,
    TESTED,
    Item,
    Measure,
    has_ground,
    items,
    measure,
    surroundings,
)
from pmagent.actors.audit.justice.scores import half_up
from pmagent.actors.audit.rubric import dimension_of
from pmagent.contracts.audit import SCORE_MAX, SCORE_MIN, Judge, JudicialOpinion
from pmagent.contracts.audit_events import CITATIONS_MAX

_OWN: Final[dict[Judge, str]] = {"Defense": TESTED, "TechLead": STRUCTURE}
EXAMINED: Final = ("repo.scope", "report.scope", "images.scope", "repo.flaws")
"""Goals of what was looked at and looked for: who speaks of an absence rests on them."""


LEANS: Final = Fraction(1, 2)
"""So far a judge leans from what was found for the criterion to how the program at large is kept: what detectors find
and miss is a sample, and a small one. The cost of a flaw that was found is no matter of leaning. Where there was no
occasion for anything that was looked for, the program at large is all that a judge knows."""
ABOVE: Final = 1
"""No criterion scores more than this above how the program at large is kept."""


def _there(judge: Judge, seen: Measure) -> Fraction:
    if judge == "Prosecutor":
        return SCORE_MAX - 4 * (1 - seen.kept)
    if judge == "Defense":
        return SCORE_MIN + 4 * seen.shown
    return 1 + 4 * seen.placed + (seen.shape - SOUND if seen.shape is not None else 0)


def _charged(judge: Judge, seen: Measure) -> Fraction:
    return {"Prosecutor": seen.damage * Fraction(5, 4), "Defense": seen.worst / 2, "TechLead": seen.damage}[judge]


def opinion(brief: Brief) -> JudicialOpinion:
    """The judge's opinion. Raises NodeFailed where the evidence holds nothing to judge by: none is invented."""
    dimension = dimension_of(brief.dimension)
    keyed = {key_of(dimension.id, number): one for number, one in enumerate(brief.evidence, 1)}
    around = surroundings(keyed.items())
    counted = items(dimension, keyed.items(), tested=TESTED in around and around[TESTED][1] > 0)
    if CARE not in around and not has_ground(dimension, counted, brief.evidence):
        raise NodeFailed("evidence", f"the evidence for {dimension.id} holds nothing that the rules can weigh")
    own = _OWN.get(brief.judge, "")
    scopes = [
        *(around[known][0] for known in (own, CARE) if known in around),
        *(key for key, one in keyed.items() if goal_id(one.goal) in EXAMINED and one.found),
    ]
    sampled = bool(counted) or all(GOALS[goal].kind == "flaw" for goal in dimension.goals)
    bench = _Bench(counted, scopes, {goal: share for goal, (_, share) in around.items()}, LEANS if sampled else 1)
    said = _first(brief.judge, bench) if brief.round == 1 or brief.own is None else _second(brief, brief.own, bench)
    return JudicialOpinion(
        judge=brief.judge,
        criterion_id=dimension.id,
        score=said.score,
        argument=argument(brief.judge, said),
        cited_evidence=list(said.cited),
    )


class _Bench(NamedTuple):
    """Input of all judges: the items, the keys of what was examined, what is known of the files around, and how far
    they lean to it."""

    counted: Sequence[Item]
    scopes: Sequence[str]
    around: Mapping[str, Fraction]
    leans: Fraction | int


def score(judge: Judge, seen: Measure, *, halfway: bool = False, leans: Fraction | int = LEANS) -> int:
    """The score of a measure, rounded half up; ``halfway``: as a judge looks who has heard the others."""
    there, charged = _there(judge, seen), _charged(judge, seen)
    if halfway:
        there, charged = (there + SCORE_MIN + 4 * seen.kept) / 2, (charged + seen.damage) / 2
    highest = seen.limits.get(judge, SCORE_MAX)
    if seen.care is not None:
        at_large = SCORE_MIN + 4 * seen.care
        there += leans * (at_large - there)
        highest = min(highest, half_up(at_large + ABOVE))
    return max(SCORE_MIN, min(SCORE_MAX, half_up(there - charged), highest))


def _first(judge: Judge, bench: _Bench) -> Said:
    seen = measure(bench.counted, bench.around)
    told = cited(judge, bench.counted, bench.scopes)
    return Said(score(judge, seen, leans=bench.leans), told, tuple(bench.counted), seen)


def _second(brief: Brief, own: JudicialOpinion, bench: _Bench) -> Said:
    """All evidence that anybody cited, looked at from halfway: up only where the others cited something for it, down
    only where they cited something against it, that the judge had not cited."""
    theirs = {key for keys in brief.others.values() for key in keys}
    counted, scopes = bench.counted, bench.scopes
    fresh = [one for one in counted if one.key in theirs.difference(own.cited_evidence)]
    shared = [one for one in counted if one.key in theirs.union(own.cited_evidence)]
    seen = measure(shared, bench.around)
    new = score(brief.judge, seen, halfway=True, leans=bench.leans)
    news = favour(fresh) if new > own.score else against(fresh) if new < own.score else fresh
    final = new if news else own.score
    keys = [key for key in own.cited_evidence if key in {one.key for one in counted} or key in scopes]
    told = tuple(dict.fromkeys((*keys, *(one.key for one in news), *scopes)))[:CITATIONS_MAX]
    return Said(final, told, tuple(shared), seen, own.score, tuple(news))
