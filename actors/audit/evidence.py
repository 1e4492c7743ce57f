"""Evidence from what detectives brought home: facts, each with its place, and no opinion (spec, 3.1; ruling B); pure.

The n-th evidence of a dimension has the key ``<dimension_id>#<n>``, from 1. The first is always its scope: what was
examined, found true; who argues from an absence has something to rest on. Content, location and rationale come from
what was examined; not a word of them comes from a rubric's patterns, for these are opinions on what is good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from actors.audit.evidence_claims import cross_referenced
from actors.audit.evidence_pictures import picture_evidence
from actors.audit.evidence_repo import repo_evidence
from actors.audit.evidence_report import report_evidence
from actors.audit.goals import goal_id
from contracts.audit import Evidence

__all__ = ["cross_referenced", "judgeable", "key_of", "picture_evidence", "repo_evidence", "report_evidence"]

SCOPES: Final = frozenset(("repo.scope", "report.scope", "images.scope"))


def key_of(dimension_id: str, number: int) -> str:
    """The key of a dimension's ``number``-th evidence (from 1)."""
    return f"{dimension_id}#{number}"


def judgeable(evidence: Sequence[Evidence]) -> bool:
    """Whether there is anything to judge: an item besides the scope that was looked at (confidence above 0). Images
    that nobody looked at cannot be judged by being there."""
    looked_at = [one for one in evidence if goal_id(one.goal) not in SCOPES and one.confidence > 0]
    unseen = any(goal_id(one.goal) == "images.inspected" and not one.confidence for one in evidence)
    if unseen:
        looked_at = [one for one in looked_at if goal_id(one.goal) != "images.present"]
    return bool(looked_at)
