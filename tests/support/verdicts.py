"""Criteria, evidence and opinions for the chief justice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from pmagent.actors.audit.goals import GOALS
from pmagent.actors.audit.justice.synthesis import synthesize
from pmagent.actors.audit.rubric import Rubric, rubric_of
from pmagent.contracts.audit import JUDGES, AuditReport, CriterionResult, Evidence, Judge, JudicialOpinion
from tests.support.audits import dimension, rubric

SCOPE = "repo.scope"


def case(*ids: str, architecture: Sequence[str] = (), **parameters: Any) -> Rubric:
    """A rubric of these criteria (one, where there are none), with these parameters of synthesis."""
    found = _read(ids or ("one",), tuple(architecture))
    return msgspec.structs.replace(found, parameters=msgspec.structs.replace(found.parameters, **parameters))


@cache
def _read(ids: tuple[str, ...], architecture: tuple[str, ...]) -> Rubric:
    return rubric_of(rubric(*(dimension(one, architecture=one in architecture) for one in ids)))


def item(goal: str = "state.typed", *, found: bool = True, confidence: float = 0.9, **more: Any) -> Evidence:
    """A piece of evidence."""
    fields = {"content": "x", "location": "src/app.py:3" if found else ".", "rationale": "looked for", **more}
    return Evidence(goal=GOALS[goal].text, found=found, confidence=confidence, **fields)


def scoped(*items: Evidence) -> list[Evidence]:
    """The evidence of a criterion: its scope (#1), and these (from #2 on); without any, one that was found."""
    return [item(SCOPE, confidence=1.0), *(items or (item(),))]


def said(judge: Judge, score: int, criterion: str = "one", cited: Sequence[str] | None = None) -> JudicialOpinion:
    """An opinion; without ``cited`` it rests on the criterion's scope."""
    return JudicialOpinion(
        judge=judge, criterion_id=criterion, score=score, argument=f"{judge} says {score}",
        cited_evidence=[f"{criterion}#1"] if cited is None else list(cited),
    )  # fmt: skip


def bench(prosecutor: int, defense: int, tech_lead: int, criterion: str = "one") -> list[JudicialOpinion]:
    """An opinion of each judge that rests on facts."""
    return [
        said(judge, score, criterion) for judge, score in zip(JUDGES, (prosecutor, defense, tech_lead), strict=True)
    ]


def judged(
    rubric: Rubric, evidences: Mapping[str, Sequence[Evidence]], opinions: Sequence[JudicialOpinion]
) -> AuditReport:
    """The report."""
    return synthesize(
        "https://example.org/a.git", rubric, evidences, opinions, audit_id="a", engine="rules", commit="c" * 40,
        report_sha256="d" * 64,
    )  # fmt: skip


def ruling(opinions: Sequence[JudicialOpinion], *items: Evidence, rubric: Rubric | None = None) -> CriterionResult:
    """The result of the one criterion."""
    report = judged(rubric or case(), {"one": scoped(*items)}, opinions)
    return report.criteria[0]


def rules(result: CriterionResult) -> dict[str, tuple[float | None, float | None]]:
    """The effect of each rule: before, after."""
    return {one.rule: (one.before, one.after) for one in result.rules}
