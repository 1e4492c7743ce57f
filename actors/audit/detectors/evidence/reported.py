"""Evidence from the findings of other tools, which came as SARIF with the request; pure.

They are a tool's word and not looked into: less sure than what was seen in the code, and never a confirmed flaw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pmagent.actors.audit.detectors.evidence.text import counted, evidence, joined
from pmagent.actors.audit.rubric import Dimension
from pmagent.contracts.audit import Evidence
from pmagent.contracts.audit_events import Reported
from pmagent.contracts.audit_facts import RepoSurvey

GOAL: Final = "tools.reported"
CONFIDENCE: Final = {"error": 0.7, "warning": 0.5, "note": 0.2}
_ORDER: Final = tuple(CONFIDENCE)
_FAMILIES: Final = ("security.", "tools.", "project.lint", "project.swallowed")


def reported_evidence(dimension: Dimension, given: Sequence[Reported], survey: RepoSurvey) -> Iterator[Evidence]:
    """An item for each tool, of a dimension that looks for unsafe calls, or for the work of linters; its place is the
    worst finding's. Findings about files that the repository does not have are only counted."""
    if not any(goal.startswith(_FAMILIES) for goal in dimension.goals):
        return
    files = set(survey.files)
    for tool in dict.fromkeys(one.tool for one in given):
        every = [one for one in given if one.tool == tool]
        ours = sorted((one for one in every if one.path in files), key=lambda one: _ORDER.index(one.level))
        foreign = len(every) - len(ours)
        rationale = f"read from a SARIF file of {tool}, and not looked into: {counted(len(ours), 'finding')}"
        if foreign:
            rationale += f"; {foreign:,} more, about files that the repository does not have"
        if not ours:
            yield evidence(GOAL, None, ".", rationale, 0.0, found=False, about=tool)
            continue
        told = [f"{_place(one)}: {one.level} {one.rule}: {one.text}" for one in ours]
        yield evidence(
            GOAL, joined(told), _place(ours[0]), rationale, CONFIDENCE[ours[0].level], found=True, about=tool
        )


def _place(one: Reported) -> str:
    return f"{one.path}:{one.line}" if one.line else one.path
