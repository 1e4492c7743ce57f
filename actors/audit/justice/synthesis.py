"""The chief justice: from opinions to a report, by rules alone (docs/design.md §15.9); pure.

For each criterion that can be judged, in this order:

==  ======================  ==============================================  ==========================================
#   rule                    when                                            what
==  ======================  ==============================================  ==========================================
1   fact_supremacy          every citation of an opinion (or it has none)   the opinion is set aside: it is printed,
                            is no evidence of the criterion, or evidence    and its score counts nowhere below
                            of something that was not found
2   variance_re_evaluation  highest minus lowest score of the rest >        each judge is asked once more; the second
                            ``spread``                                      round takes the place of the first, and
                                                                            rule 1 is applied to it
3a  functionality_weight    the criterion is about architecture             base = mean, in which the Tech Lead counts
                                                                            ``tech_lead_weight`` times
3b  median                  otherwise                                       base = median; of two scores their mean
    (both)                  always                                          rounded half up: 2.5 is 3
4   security_override       evidence of a confirmed flaw of security        score = min(score, ``security_cap``); with
                            (found, confidence >= 0.8) in this criterion    ``total_cap`` the overall score too
5   clamp                   always                                          1 <= score <= 5
6   dissent_requirement     highest minus lowest of the first round, of     a summary: who gave what, on which
                            all three > ``spread``                          evidence; the score stays
==  ======================  ==============================================  ==========================================

No opinion is left after rule 1: the criterion is not judged. Nor is one whose evidence nobody could look at. The
overall score is the mean of the judged criteria, rounded half up to a tenth. ``spread``, ``security_cap``,
``tech_lead_weight`` and ``total_cap`` are parameters of the rubric.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from pmagent.actors.audit.clerk import NodeFailed
from pmagent.actors.audit.detectors.evidence.items import judgeable, key_of
from pmagent.actors.audit.detectors.evidence.text import one_line
from pmagent.actors.audit.justice.dissent import NAMES
from pmagent.actors.audit.justice.ruling import Case, confirmed, on_facts, ruled
from pmagent.actors.audit.justice.scores import exact, spread, tenths
from pmagent.actors.audit.justice.text import executive_summary, remediation_plan
from pmagent.actors.audit.rubric import Dimension, Rubric
from pmagent.contracts.audit import (
    JUDGES,
    AuditReport,
    CriterionResult,
    Evidence,
    Judge,
    JudicialOpinion,
    Unanswered,
    UnjudgedCriterion,
)
from pmagent.contracts.audit_events import REASON_CHARS_MAX

Evidences = Mapping[str, Sequence[Evidence]]


def disputed(
    rubric: Rubric, evidences: Evidences, opinions: Iterable[JudicialOpinion], unanswered: Iterable[Unanswered] = ()
) -> list[str]:
    """The criteria of which each judge is asked once more, in the rubric's order: by the first round alone, whether
    there has been a second yet or not. Raises NodeFailed as ``synthesize`` does."""
    cases, _ = _cases(rubric, evidences, opinions, unanswered)
    return [case.dimension.id for case in cases if _is_disputed(case)]


def synthesize(
    repo_url: str,
    rubric: Rubric,
    evidences: Evidences,
    opinions: Iterable[JudicialOpinion],
    *,
    audit_id: str,
    engine: str,
    commit: str = "",
    report_sha256: str = "",
    unanswered: Iterable[Unanswered] = (),
) -> AuditReport:
    """The report. ``opinions`` come in any order of judges and criteria; of the same judge on the same criterion the
    first is of round 1, the next of round 2. ``engine`` is who judged, for people. ``unanswered``: a criterion of one
    of these is not judged.

    Raises NodeFailed ``judge`` where an opinion is missing, is one too many, or is on no criterion of the rubric, where
    no opinion at all rests on evidence that was found, and where no criterion has all its answers; ``evidence`` where a
    dimension has none, or nothing can be judged.
    """
    cases, unseen = _cases(rubric, evidences, opinions, unanswered)
    if not cases and any(one.unanswered for one in unseen.values()):
        reason = next(one.reason for one in unseen.values() if one.unanswered)
        raise NodeFailed("judge", reason, "try again with pmagent audit --resume; or another model, or none")
    if not cases:
        reasons = "; ".join(dict.fromkeys(one.reason for one in unseen.values()))
        raise NodeFailed("evidence", one_line(f"nothing can be judged: {reasons}", REASON_CHARS_MAX))
    results = {case.dimension.id: ruled(case, disputed=_is_disputed(case)) for case in cases}
    order = [one.id for one in rubric.dimensions]
    criteria = [one for name in order if isinstance(one := results.get(name), CriterionResult)]
    left = {**unseen, **{name: one for name, one in results.items() if isinstance(one, UnjudgedCriterion)}}
    not_judged = [left[name] for name in order if name in left]
    if not criteria:
        raise NodeFailed("judge", "no opinion on any criterion rests on evidence that was found", "see the opinions")
    overall, capped = _overall(rubric, evidences, criteria)
    return AuditReport(
        repo_url=repo_url,
        executive_summary=executive_summary(rubric, overall, capped, criteria, not_judged, evidences, engine),
        overall_score=float(overall),
        criteria=criteria,
        remediation_plan=remediation_plan(criteria),
        not_judged=not_judged,
        audit_id=audit_id,
        engine=engine,
        rubric_name=rubric.name,
        rubric_version=rubric.version,
        commit=commit,
        report_sha256=report_sha256,
        evidence={name: list(evidences[name]) for name in order},
    )


def _overall(rubric: Rubric, evidences: Evidences, criteria: Sequence[CriterionResult]) -> tuple[Fraction, bool]:
    """The overall score, and whether a confirmed flaw caps it."""
    mean = tenths(Fraction(sum(one.final_score for one in criteria), len(criteria)))
    cap = exact(rubric.parameters.security_cap)
    flawed = any(confirmed(evidences[one.id]) for one in rubric.dimensions)
    if rubric.parameters.total_cap and flawed and mean > cap:
        return max(cap, Fraction(1)), True
    return mean, False


def _is_disputed(case: Case) -> bool:
    return spread(on_facts(case, case.first)) > exact(case.parameters.spread)


# --- what there is to judge ----------------------------------------------------------------------------------------


def _cases(
    rubric: Rubric, evidences: Evidences, opinions: Iterable[JudicialOpinion], unanswered: Iterable[Unanswered]
) -> tuple[list[Case], dict[str, UnjudgedCriterion]]:
    """The criteria that can be judged; those whose evidence nobody could look at, and those without all answers."""
    rounds = _rounds(rubric, opinions)
    missing: dict[str, dict[Judge, str]] = {}
    for one in unanswered:
        missing.setdefault(one.criterion_id, {})[one.judge] = one.reason
    cases, unseen = [], {}
    for dimension in rubric.dimensions:
        evidence = evidences.get(dimension.id)
        if not evidence:
            raise NodeFailed("evidence", f"there is no evidence for {dimension.id}")
        first, second = rounds[dimension.id]
        if not judgeable(evidence, dimension):
            given = list(_in_order({**first, **second}).values())
            unseen[dimension.id] = UnjudgedCriterion(
                dimension_id=dimension.id, dimension_name=dimension.name, reason=_not_looked_at(evidence),
                judge_opinions=given,
            )  # fmt: skip
            continue
        if dimension.id in missing:
            unseen[dimension.id] = _without_answers(dimension, missing[dimension.id], first, second)
            continue
        known = {key_of(dimension.id, number): item for number, item in enumerate(evidence, 1)}
        case = Case(dimension, rubric.parameters, evidence, known, first, second)
        _check_complete(case)
        cases.append(case)
    return cases, unseen


def _rounds(
    rubric: Rubric, opinions: Iterable[JudicialOpinion]
) -> dict[str, tuple[dict[Judge, JudicialOpinion], dict[Judge, JudicialOpinion]]]:
    """The opinions of the first and of the second round, by criterion."""
    rounds: dict[str, tuple[dict[Judge, JudicialOpinion], dict[Judge, JudicialOpinion]]] = {
        one.id: ({}, {}) for one in rubric.dimensions
    }
    for opinion in opinions:
        if opinion.criterion_id not in rounds:
            told = one_line(opinion.criterion_id, 100)
            raise NodeFailed("judge", f"{opinion.judge} judged {told}, which the rubric does not have")
        first, second = rounds[opinion.criterion_id]
        place = first if opinion.judge not in first else second
        if opinion.judge in place:
            raise NodeFailed("judge", f"{opinion.judge} judged {opinion.criterion_id} more than twice")
        place[opinion.judge] = opinion
    return {name: (_in_order(first), _in_order(second)) for name, (first, second) in rounds.items()}


def _in_order(opinions: Mapping[Judge, JudicialOpinion]) -> dict[Judge, JudicialOpinion]:
    return {judge: opinions[judge] for judge in JUDGES if judge in opinions}


def _check_complete(case: Case) -> None:
    missing = [judge for judge in JUDGES if judge not in case.first]
    if missing:
        raise NodeFailed("judge", f"there is no opinion of {', '.join(missing)} on {case.dimension.id}")


def _without_answers(
    dimension: Dimension, missing: Mapping[Judge, str], first: Mapping[Judge, JudicialOpinion],
    second: Mapping[Judge, JudicialOpinion],
) -> UnjudgedCriterion:  # fmt: skip
    judges = [judge for judge in JUDGES if judge in missing]
    told = "; ".join(dict.fromkeys(missing[judge] for judge in judges))
    return UnjudgedCriterion(
        dimension_id=dimension.id, dimension_name=dimension.name,
        reason=one_line(f"{', '.join(NAMES[judge] for judge in judges)} gave no answer: {told}", REASON_CHARS_MAX),
        judge_opinions=list((second or first).values()), first_round=list(first.values()) if second else [],
        unanswered=judges,
    )  # fmt: skip


def _not_looked_at(evidence: Sequence[Evidence]) -> str:
    reasons = dict.fromkeys(one.rationale for one in evidence[1:] if not one.confidence)
    told = "; ".join(reasons) or "its texts name nothing that a detective could look for"
    return one_line(told, REASON_CHARS_MAX)
