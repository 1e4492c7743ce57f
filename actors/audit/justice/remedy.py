"""The steps that would mend a criterion: from evidence alone, each with its place; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pmagent.actors.audit.detectors.evidence.text import NOWHERE, one_line
from pmagent.actors.audit.goals import GOALS, goal_id
from pmagent.actors.audit.justice.dissent import NAMES
from pmagent.actors.audit.justice.scores import Opinions
from pmagent.contracts.audit import SCORE_MAX, Evidence

REMEDIES: Final = 12
"""So many steps are told of one criterion: with their length, and a line about the rest, they fit into a ruling."""
_STEP_CHARS: Final = 300
_LOCATION_CHARS: Final = 120
_ABOUT_CHARS: Final = 120
_LISTED: Final = ("report.hallucinated", "report.contradicted")
NOTHING: Final = "Nothing that was looked for is missing, and no flaw was found."


def remediation(dimension_id: str, evidence: Sequence[Evidence], score: int, counting: Opinions) -> str:
    """Lines, each a step: flaws first, those of security before others, then what is missing. A thing that nobody could
    look at asks for nothing. Where evidence asks for nothing and the score is not the best, what the Tech Lead says."""
    numbered = list(enumerate(evidence, 1))
    wanting = sorted((one for one in numbered if _urgency(one[1]) is not None), key=lambda one: _urgency(one[1]) or 0)
    steps = [_step(f"{dimension_id}#{number}", one, evidence) for number, one in wanting]
    if len(steps) > REMEDIES:
        steps = [*steps[:REMEDIES], f"{len(steps) - REMEDIES} more: see the evidence that was not found."]
    return "\n".join(steps or _said(score, counting))


def _urgency(item: Evidence) -> int | None:
    """The place of an item among what is to be mended; None: there is nothing to mend."""
    goal = GOALS.get(goal_id(item.goal))
    if goal is None or not item.confidence:
        return None
    if goal.kind == "flaw" and item.found:
        return 0 if goal.security else 1
    return 2 if goal.kind == "asset" and not item.found else None


def _step(key: str, item: Evidence, evidence: Sequence[Evidence]) -> str:
    goal = GOALS[goal_id(item.goal)]
    about = _about(item)
    advice = goal.advice + (f": {one_line(about, _ABOUT_CHARS)}" if about else "")
    return one_line(f"{_where(item, evidence)}{advice} ({key})", _STEP_CHARS)


def _about(item: Evidence) -> str:
    """Which of many: the term behind a goal's second colon; the passages of a report, which have no line."""
    if item.found and goal_id(item.goal) in _LISTED:
        return "; ".join((item.content or "").split("\n"))
    return item.goal.removeprefix(GOALS[goal_id(item.goal)].text).removeprefix(": ")


def _where(item: Evidence, evidence: Sequence[Evidence]) -> str:
    """The place of a flaw; for what is missing, the place of something of its kind that is there."""
    if item.found:
        return f"{item.location[:_LOCATION_CHARS]}: "
    near = next(_neighbours(item, evidence), "")
    return f"near {near[:_LOCATION_CHARS]}: " if near else ""


def _neighbours(item: Evidence, evidence: Sequence[Evidence]) -> Iterator[str]:
    family = goal_id(item.goal).partition(".")[0]
    if family in ("history", "project", "report", "repo", "images"):
        return  # there is no line to begin at
    for one in evidence:
        kind = goal_id(one.goal)
        if one.found and kind.partition(".")[0] == family and ":" in one.location and one.location != NOWHERE:
            yield one.location


def _said(score: int, counting: Opinions) -> list[str]:
    if score == SCORE_MAX or not counting:
        return [NOTHING]
    judge = "TechLead" if "TechLead" in counting else min(counting, key=lambda one: counting[one].score)
    return [NOTHING, f"{NAMES[judge]}: {one_line(counting[judge].argument, 1_000)}"]
