"""How the program at large is kept, by what was found in it whatever a rubric asks for; pure.

Programs are of a piece: an author who drops exceptions in one file did so in others, where no detector saw it, and so
it is with code that nothing reaches. A criterion's own evidence is a sample; this tells of all that it was drawn from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from pmagent.actors.audit.detectors.evidence.items import CARE
from pmagent.actors.audit.detectors.evidence.text import NOWHERE, counted, evidence, joined
from pmagent.actors.audit.goals import GOALS
from pmagent.actors.audit.justice.scores import half_up
from pmagent.contracts.audit import Evidence
from pmagent.contracts.audit_facts import RepoSurvey

WHOLE: Final = 100
_KEPT: Final = 90
"""Where nothing is known against the program: there is always something that no detector sees."""
_SWALLOWED: Final = 25
_EACH_FLAW: Final = 10
_UNREACHED: Final = 60
"""Cost of a program of which a fifth or more is reached by nothing; of less, its share of it."""
_FIFTH: Final = 5
_BARE: Final = 12
"""Cost of code without any annotation; of code that is annotated in part, its share of it."""
_LINES: Final = 2_000
"""A flaw costs in full that is found once in so many lines of code; in large code a rarer one costs its share."""
SURE: Final = 0.8
_UNUSED, _UNUSED_RULES = "outcome.unused", "justice.without_effect"
"""One flaw, told twice for two criteria."""
_PART: Final = re.compile(r"\((\d+)%\)$")


def care(survey: RepoSurvey) -> Iterator[Evidence]:
    """How much speaks for the program at large, in percent; nothing where no code was read."""
    if not survey.examined.get("parsed"):
        return
    reached = {one.goal for one in survey.findings if one.reached}
    there = {one.goal for one in survey.findings if GOALS[one.goal].kind == "asset"}
    unreached = there - reached
    flaws = {one for one in reached if GOALS[one].kind == "flaw" and not one.startswith(("history.", "project."))}
    if _UNUSED in flaws:
        flaws.discard(_UNUSED_RULES)
    every = max(survey.examined.get("lines", 0), _LINES)
    dense = {goal: min(Fraction(max(survey.counts.get(goal, 0), 1) * _LINES, every), Fraction(1)) for goal in reached}
    shares = [int(part[1]) for one in survey.findings if one.goal == "project.types"
              and (part := _PART.search(one.text))]  # fmt: skip
    bare = WHOLE - shares[0] if shares else WHOLE
    idle = Fraction(len(unreached), max(len(there), 1))
    against = [
        (_EACH_FLAW * sum((dense[one] for one in flaws), Fraction(0)),
         f"flaws of {counted(len(flaws), 'kind')}: {', '.join(sorted(flaws))}"),
        (_SWALLOWED * dense.get("project.swallowed", Fraction(0)), "exceptions are caught and dropped"),
        (_UNREACHED * min(idle * _FIFTH, Fraction(1)),
         f"{len(unreached)} of {counted(len(there), 'thing')} found in it are reached by nothing"),
        (Fraction(_BARE * bare, WHOLE), f"{bare} % of the functions are without annotations"),
    ]  # fmt: skip
    met = max(_KEPT - half_up(sum((cost for cost, _ in against), Fraction(0))), 0)
    told = [text for cost, text in against if cost]
    content = joined(told) if told else "nothing was found against the program at large"
    rationale = "all flaws and assets that are known of the code, whatever this criterion asks for"
    yield evidence(CARE, content, survey.commit or NOWHERE, rationale, SURE, found=True, about=f"{met} of {WHOLE}")
