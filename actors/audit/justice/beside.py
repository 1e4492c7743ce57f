"""Results of others on the same evidence, which stand beside the report's and change nothing in it; pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pmagent.actors.audit.clerk import NodeFailed, brief_of
from pmagent.actors.audit.detectors.evidence.items import judgeable
from pmagent.actors.audit.judges.rules.judge import opinion
from pmagent.actors.audit.justice.synthesis import Evidences, disputed, synthesize
from pmagent.actors.audit.rubric import Dimension, Rubric
from pmagent.contracts.audit import JUDGES, SCORE_MAX, SCORE_MIN, Beside, JudicialOpinion, Unanswered


def by_rules(rubric: Rubric, evidences: Evidences) -> Beside:
    """The scores of an offline audit of the same evidence."""
    first = [one for dimension in _judged(rubric, evidences) for one in _by_rules(dimension, evidences, [])]
    again = disputed(rubric, evidences, first, _missing(rubric, evidences, first))
    second = [
        one
        for dimension in _judged(rubric, evidences)
        if dimension.id in again
        for one in _by_rules(dimension, evidences, [said for said in first if said.criterion_id == dimension.id])
    ]
    return _beside("rules", rubric, evidences, [*first, *second])


def by_panel(rubric: Rubric, evidences: Evidences, given: Iterable[JudicialOpinion], model: str) -> Beside:
    """The scores of the panel, as far as it answered; nobody is asked a second time, however far apart they are."""
    one_round = msgspec.structs.replace(rubric.parameters, spread=SCORE_MAX - SCORE_MIN)
    alone = msgspec.structs.replace(rubric, parameters=one_round)
    return _beside(f"panel ({model})", alone, evidences, list(given))


def _judged(rubric: Rubric, evidences: Evidences) -> list[Dimension]:
    return [one for one in rubric.dimensions if judgeable(evidences[one.id], one)]


def _by_rules(dimension: Dimension, evidences: Evidences, given: list[JudicialOpinion]) -> list[JudicialOpinion]:
    """A round; [] where the rules have nothing to weigh."""
    evidence = evidences[dimension.id]
    own = {judge: [one for one in given if one.judge == judge] for judge in JUDGES}
    try:
        return [opinion(brief_of(judge, dimension, evidence, given, own[judge])) for judge in JUDGES]
    except NodeFailed:
        return []


def _missing(rubric: Rubric, evidences: Evidences, given: Iterable[JudicialOpinion]) -> list[Unanswered]:
    said = {(one.judge, one.criterion_id) for one in given}
    wanted = [(judge, one.id) for one in _judged(rubric, evidences) for judge in JUDGES]
    missing = [pair for pair in wanted if pair not in said]
    return [Unanswered(judge=judge, criterion_id=name, reason="") for judge, name in missing]


def _beside(engine: str, rubric: Rubric, evidences: Evidences, given: list[JudicialOpinion]) -> Beside:
    missing = _missing(rubric, evidences, given)
    try:
        report = synthesize("", rubric, evidences, given, audit_id="", engine=engine, unanswered=missing)
    except NodeFailed:  # nothing can be judged by what there is
        return Beside(engine=engine, overall_score=None, scores={})
    scores = {one.dimension_id: one.final_score for one in report.criteria}
    return Beside(engine=engine, overall_score=None if missing else report.overall_score, scores=scores)
