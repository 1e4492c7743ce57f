"""Evidence from what detectives brought home: facts, each with its place, and no opinion (docs/design.md §15.6); pure.

The n-th evidence of a dimension has the key ``<dimension_id>#<n>``, from 1. The first is always its scope: what was
examined, found true; who argues from an absence has something to rest on. Content, location and rationale come from
what was examined; not a word of them comes from a rubric's patterns, for these are opinions on what is good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pmagent.actors.audit.goals import GOALS, goal_id
from pmagent.actors.audit.rubric import Dimension
from pmagent.contracts.audit import Evidence

CARE: Final = "repo.care"
SCOPES: Final = frozenset(("repo.scope", "report.scope", "images.scope"))


def key_of(dimension_id: str, number: int) -> str:
    """The key of a dimension's ``number``-th evidence (from 1)."""
    return f"{dimension_id}#{number}"


def judgeable(evidence: Sequence[Evidence], dimension: Dimension | None = None) -> bool:
    """Whether there is anything to judge: something that was looked for, and could be looked at (confidence above 0),
    or, of a ``dimension`` that asks for flaws alone, that none was found; or how the program at large is kept. Images
    that nobody looked at cannot be judged by being there.
    """
    seen = [one for one in evidence if one.confidence > 0]
    looked_at = {name for one in seen if GOALS[name := goal_id(one.goal)].kind != "context"}
    unseen = {goal_id(one.goal) for one in evidence if not one.confidence}
    if "images.inspected" in unseen:
        looked_at.discard("images.present")
    goals = dimension.goals if dimension is not None else ()
    flaws_alone = bool(goals) and all(GOALS[goal].kind == "flaw" for goal in goals)
    looked_for = "repo.flaws" not in unseen and any(goal_id(one.goal) in SCOPES for one in seen)
    at_large = any(goal_id(one.goal) == CARE and one.found and not one.goal.endswith(" of 0") for one in seen)
    return bool(looked_at) or (flaws_alone and looked_for) or at_large
