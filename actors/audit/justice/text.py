"""The report's own words: executive summary and remediation plan; pure, and no model is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

from pmagent.actors.audit.detectors.evidence.items import key_of
from pmagent.actors.audit.detectors.evidence.text import clean, one_line
from pmagent.actors.audit.goals import GOALS, goal_id
from pmagent.actors.audit.justice.dissent import disagreement
from pmagent.actors.audit.justice.remedy import NOTHING
from pmagent.actors.audit.justice.scores import exact, shown
from pmagent.actors.audit.rubric import Rubric
from pmagent.contracts.audit import CriterionResult, Evidence, UnjudgedCriterion
from pmagent.contracts.audit_events import PLAN_CHARS_MAX, SUMMARY_CHARS_MAX

VERDICTS: Final = (
    (Fraction(9, 2), "meets the rubric"),
    (Fraction(7, 2), "meets most of the rubric"),
    (Fraction(5, 2), "meets the rubric in part"),
    (Fraction(3, 2), "falls short of most of the rubric"),
    (Fraction(0), "fails the rubric"),
)
"""The verdict in words, from this overall score on."""
EXTREMES: Final = ("Strongest, ", "Every criterion ")
"""So the paragraph on the best and the worst criteria begins."""
_NAME_CHARS: Final = 120
_NAMED: Final = 5
_DISAGREEMENTS: Final = 3
_RULES: Final = "rules"


def executive_summary(
    rubric: Rubric,
    overall: Fraction,
    capped: bool,
    criteria: Sequence[CriterionResult],
    not_judged: Sequence[UnjudgedCriterion],
    evidences: Mapping[str, Sequence[Evidence]],
    engine: str,
) -> str:
    """Paragraphs: the verdict, strongest and weakest criteria, what capped scores, where Prosecutor and Defense
    disagreed, what was not judged, and who judged."""
    paragraphs = [
        _verdict(rubric, overall, capped=capped, count=len(criteria)),
        *_report(evidences),
        _extremes(criteria),
        *_security(criteria),
        *_disagreements(rubric, criteria, evidences),
        *_left(not_judged),
        _judged_by(engine),
    ]
    return clean("\n\n".join(paragraphs), SUMMARY_CHARS_MAX)


def _verdict(rubric: Rubric, overall: Fraction, *, capped: bool, count: int) -> str:
    words = next(words for least, words in VERDICTS if overall >= least)
    cap = (
        f", capped at {shown(exact(rubric.parameters.security_cap))} by a confirmed flaw of security" if capped else ""
    )
    return f"The project {words}: {shown(overall)} of 5, the mean of {count} {_criteria(count)}{cap}."


def _criteria(count: int) -> str:
    return "criterion" if count == 1 else "criteria"


def _extremes(criteria: Sequence[CriterionResult]) -> str:
    best, worst = max(one.final_score for one in criteria), min(one.final_score for one in criteria)
    if best == worst:
        return f"Every criterion was given {best} of 5."
    return f"Strongest, with {best}: {_names(criteria, best)}. Weakest, with {worst}: {_names(criteria, worst)}."


def _names(criteria: Sequence[CriterionResult], score: int) -> str:
    names = [one_line(one.dimension_name, _NAME_CHARS) for one in criteria if one.final_score == score]
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _report(evidences: Mapping[str, Sequence[Evidence]]) -> Iterator[str]:
    """A report that is about another project, or that nobody can read."""
    for goal in ("report.foreign", "report.scanty"):
        found = [one for several in evidences.values() for one in several if one.found and goal_id(one.goal) == goal]
        if found:
            yield f"The report handed in is {GOALS[goal].title}: {one_line(found[0].content or '', 300)}."


def _security(criteria: Sequence[CriterionResult]) -> Iterator[str]:
    for one in criteria:
        for rule in one.rules:
            if rule.rule == "security_override" and rule.before != rule.after:
                told = f"from {shown(rule.before or 0)} to {shown(rule.after or 0)}"
                yield f"Security lowers {one_line(one.dimension_name, _NAME_CHARS)} {told}: {one_line(rule.text, 400)}."


def _disagreements(
    rubric: Rubric, criteria: Sequence[CriterionResult], evidences: Mapping[str, Sequence[Evidence]]
) -> Iterator[str]:
    """Why Prosecutor and Defense disagreed: the widest first."""
    known = {
        key_of(one.id, number): item for one in rubric.dimensions for number, item in enumerate(evidences[one.id], 1)
    }
    told = []
    for one in criteria:
        first = {opinion.judge: opinion for opinion in one.first_round or one.judge_opinions}
        why = disagreement(first, known)
        if why:
            apart = abs(first["Prosecutor"].score - first["Defense"].score)
            told.append((-apart, f"{one_line(one.dimension_name, _NAME_CHARS)}: {why}"))
    if not told:
        yield "Prosecutor and Defense agreed on every score."
        return
    told.sort(key=lambda pair: pair[0])
    yield f"Prosecutor and Defense gave different scores on {len(told)} {_criteria(len(told))}; most of all:"
    for _, text in told[:_DISAGREEMENTS]:
        yield f"- {one_line(text, 700)}"


def _left(not_judged: Sequence[UnjudgedCriterion]) -> Iterator[str]:
    if not_judged:
        count = len(not_judged)
        told = "was not judged, and counts" if count == 1 else "were not judged, and count"
        yield f"{count} {_criteria(count)} {told} nowhere:"
    for one in not_judged:
        yield f"- {one_line(one.dimension_name, _NAME_CHARS)}: {one_line(one.reason, 300)}"


def _judged_by(engine: str) -> str:
    if engine == _RULES:
        return "Judged offline by the engine rules, from evidence and the rubric's patterns: no model was asked."
    return f"Judged by {one_line(engine, 200) or 'judges that were not named'}; combined by rules, without a model."


def remediation_plan(criteria: Sequence[CriterionResult]) -> str:
    """The steps to take, grouped by criterion, the lowest score first: a line with its name, then lines that begin with
    ``- ``."""
    parts = []
    for one in sorted(criteria, key=lambda one: one.final_score):
        if one.remediation != NOTHING:
            name = one_line(one.dimension_name, _NAME_CHARS)
            lines = [f"- {line}" for line in one.remediation.split("\n")]
            parts.append("\n".join([f"{name} ({one.final_score}/5)", *lines]))
    return ("\n\n".join(parts) or NOTHING)[:PLAN_CHARS_MAX]
