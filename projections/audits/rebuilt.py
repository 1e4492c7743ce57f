"""The audit's report from its events: the same that the chief justice's synthesis returned; pure."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.actors.audit.detectors.evidence.items import key_of
from pmagent.actors.audit.goals import goal_id
from pmagent.contracts.audit import (
    JUDGES,
    Appealed,
    AppliedRule,
    AuditReport,
    Beside,
    CriterionResult,
    Evidence,
    JudicialOpinion,
    UnjudgedCriterion,
)
from pmagent.contracts.audit_events import Appeal, AuditCriterionRuled
from pmagent.projections.audits.report import Provenance
from pmagent.projections.views.audits import Audit


def report_of(audit: Audit) -> AuditReport:
    """The report of an audit that has concluded."""
    assert audit.concluded is not None
    ruled = [(one, audit.rulings[one.id]) for one in audit.criteria]
    return AuditReport(
        repo_url=audit.asked.repo_url,
        executive_summary=audit.concluded.executive_summary,
        overall_score=audit.concluded.overall_score,
        criteria=[_judged(audit, ruling, ruling.final_score) for _, ruling in ruled if ruling.final_score is not None],
        remediation_plan=audit.concluded.remediation_plan,
        not_judged=[
            UnjudgedCriterion(
                reason=ruling.reason, unanswered=list(ruling.unanswered or ()), **_opinion_fields(audit, ruling)
            )
            for _, ruling in ruled
            if ruling.final_score is None
        ],
        audit_id=audit.id,
        engine=audit.engine,
        rubric_name=audit.rubric_name,
        rubric_version=audit.rubric_version,
        commit=audit.commit,
        report_sha256=audit.report_sha256,
        evidence={
            one.id: [Evidence.model_validate(msgspec.structs.asdict(item)) for item in audit.evidence[one.id]]
            for one in audit.criteria
        },
        beside=[Beside.model_validate(msgspec.structs.asdict(one)) for one in audit.concluded.beside or ()],
        appeals=[_appealed(audit, one) for one in audit.asked.appeals],
        origin=audit.asked.origin,
    )


def _appealed(audit: Audit, appeal: Appeal) -> Appealed:
    """The appeal, and the evidence that it is about: by key, or by goal, at a file or a line."""
    keys = [
        key
        for name, items in audit.evidence.items()
        for key, item in ((key_of(name, number), item) for number, item in enumerate(items, 1))
        if appeal.evidence in (key, goal_id(item.goal))
        and appeal.at in ("", item.location, item.location.rpartition(":")[0])
    ]
    return Appealed(evidence=appeal.evidence, at=appeal.at, because=appeal.because, keys=keys)


def provenance_of(audit: Audit, log_id: str) -> Provenance:
    """The origin of the report, and its time."""
    return Provenance(
        pdf_path=audit.asked.pdf_path,
        rubric_source=audit.asked.rubric_source,
        vision_model=audit.asked.vision_model,
        requested_at=audit.at,
        concluded_at=audit.ended,
        log_id=log_id,
        position=audit.position,
        sum=audit.sum,
        used=audit.used_fields,
    )


def _judged(audit: Audit, ruling: AuditCriterionRuled, score: int) -> CriterionResult:
    rules = [AppliedRule.model_validate(msgspec.structs.asdict(one)) for one in ruling.rules]
    return CriterionResult(
        final_score=score, remediation=ruling.remediation, rules=rules, **_opinion_fields(audit, ruling)
    )


def _opinion_fields(audit: Audit, ruling: AuditCriterionRuled) -> dict[str, Any]:
    first, second = _opinions(audit, ruling.dimension_id, 1), _opinions(audit, ruling.dimension_id, 2)
    return {
        "dimension_id": ruling.dimension_id,
        "dimension_name": ruling.dimension_name,
        "judge_opinions": second or first,
        "dissent_summary": ruling.dissent_summary,
        "first_round": first if second else [],
        "set_aside": list(ruling.set_aside),
        "unsupported": ruling.unsupported,
    }


def _opinions(audit: Audit, dimension_id: str, number: int) -> list[JudicialOpinion]:
    opinions = {
        one.opinion.judge: JudicialOpinion.model_validate(msgspec.structs.asdict(one.opinion))
        for one in audit.opinions
        if one.round == number and one.opinion.criterion_id == dimension_id
    }
    return [opinions[judge] for judge in JUDGES if judge in opinions]
