"""One invocation of the graph, and what follows from it; pure.

Decisions stand in a fixed order, whatever the order in which parallel nodes were run: opinions that did not fit,
evidence, opinions, then either the end or new requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextvars import Context, copy_context
from typing import Any, Final, cast

import msgspec
from langchain_core.runnables import RunnableConfig
from langsmith.run_helpers import tracing_context
from msgspec import UNSET

from pmagent.actors.audit.actor_clerk import ActorClerk
from pmagent.actors.audit.ends import ACTION, AUDITOR, abandoned, failure
from pmagent.actors.audit.graph import audit_graph
from pmagent.actors.audit.judges.functions import BUDGET_BYTES
from pmagent.actors.audit.state import QUESTIONS_MAX, Audit, question_key
from pmagent.contracts.audit import (
    JUDGES,
    AuditFailure,
    AuditReport,
    AuditState,
    CriterionResult,
    Evidence,
    JudicialOpinion,
    UnjudgedCriterion,
)
from pmagent.contracts.audit_events import (
    GRACE_SECONDS,
    AuditCloneRequested,
    AuditConcluded,
    AuditCriterionRuled,
    AuditEvidenceFound,
    AuditOpinionGiven,
    BesideItem,
    EvidenceItem,
    FailureCode,
    OpinionItem,
    RuleItem,
)
from pmagent.contracts.model import ModelReplied
from pmagent.contracts.oa import OaPermitGranted, OaPermitRequested
from pmagent.contracts.payload import Payload
from pmagent.events.event import Event


def progress(audit: Audit, event: Event) -> Iterator[Payload]:
    """The payloads that follow from ``event`` for its audit, which has it folded in."""
    reply = event.data if isinstance(event.data, ModelReplied) else None
    clerk = ActorClerk(audit, reply, event.position)
    after = _invoked(audit, clerk)
    yield from clerk.rejected
    given = after.get("evidences", {})
    for dimension in audit.dimensions:
        items = [as_item(one) for one in given.get(dimension, [])]
        if items and items != audit.evidences.get(dimension):
            yield AuditEvidenceFound(audit_id=audit.audit_id, dimension_id=dimension, evidences=items)
    yield from _opinions(audit, after.get("opinions", []), clerk, event.position)
    yield from _opinions(audit, after.get("panel", []), clerk, event.position, panel=True)
    failures = after.get("failures", [])
    report = after.get("final_report")
    if failures:
        yield from _failed(audit, clerk, failures)
    elif report is not None:
        yield from _concluded(audit, report)
    else:
        yield from _requests(audit, clerk, event)


def _invoked(audit: Audit, clerk: ActorClerk) -> AuditState:
    """The graph's state after an invocation with what is known."""
    known: AuditState = {
        "repo_url": audit.asked.repo_url,
        "pdf_path": audit.asked.pdf_path,
        "rubric": audit.asked.rubric,
        "evidences": {name: [as_evidence(one) for one in items] for name, items in audit.evidences.items()},
        "opinions": [as_opinion(one) for one in audit.opinions()],
        "panel": [as_opinion(one) for one in audit.opinions(panel=True)],
        "compared": audit.compared,
        "functions": audit.functions,
        "reported": audit.asked.reported,
    }
    provenance = {
        "audit_id": audit.audit_id,
        "engine": engine_of(audit),
        "commit": audit.commit,
        "report_sha256": audit.report_sha256,
        "panel": audit.asked.panel,
    }
    configurable = {"clerk": clerk, "provenance": provenance, _SUBMIT: lambda: _in_this_thread}
    config: RunnableConfig = {"configurable": configurable}
    return Context().run(_followed, known, config)  # a context of its own: it inherits nobody's listeners


def _followed(state: AuditState, config: RunnableConfig) -> AuditState:
    with tracing_context(enabled=False):  # whatever the environment says: nothing leaves
        for after in audit_graph().stream(state, config, stream_mode="values"):  # invoke computes updates, too
            state = cast("AuditState", after)
    return state


_SUBMIT: Final = "__pregel_runner_submit"
"""Where LangGraph looks for who runs the nodes of a step. A version that does not look there runs them in threads, with
the same result."""


def _in_this_thread(node: Callable[..., Any], *arguments: Any, **named: Any) -> Future[Any]:
    """Run a node at once: it computes, and waits for nothing, so that threads would only cost time."""
    own = {name: value for name, value in named.items() if not name.startswith("__")}  # the others are the executor's
    done: Future[Any] = Future()
    try:
        done.set_result(copy_context().run(node, *arguments, **own))
    except Exception as error:  # noqa: BLE001 - LangGraph raises it where it waits for the node
        done.set_exception(error)
    return done


def engine_of(audit: Audit) -> str:
    """The engine that judged, in words."""
    return "rules" if audit.asked.engine == "rules" else f"{audit.asked.engine} ({audit.asked.model})"


def _opinions(
    audit: Audit, opinions: Sequence[JudicialOpinion], clerk: ActorClerk, position: int, *, panel: bool = False
) -> Iterator[AuditOpinionGiven]:
    """Those that are new, in the rubric's order, then the judges'."""
    known = audit.opinions(panel=panel)
    said = Counter((one.judge, one.criterion_id) for one in known)
    new = []
    for opinion in opinions[len(known) :]:
        said[opinion.judge, opinion.criterion_id] += 1
        number = said[opinion.judge, opinion.criterion_id]
        new.append((number, audit.dimensions.index(opinion.criterion_id), JUDGES.index(opinion.judge), opinion))
    for number, _, _, opinion in sorted(new, key=lambda one: one[:3]):
        replied = clerk.replied_to(question_key(opinion.judge, number, opinion.criterion_id, panel=panel))
        yield AuditOpinionGiven(
            audit_id=audit.audit_id, round=number, opinion=as_opinion_item(opinion), reply=position if replied else 0,
            panel=panel or UNSET,
        )  # fmt: skip


def _requests(audit: Audit, clerk: ActorClerk, event: Event) -> Iterator[Payload]:
    """Requests for what the nodes wait for and has not been requested; only so many questions at once."""
    if clerk.clone is not None:
        if isinstance(event.data, OaPermitGranted) and event.data.request == audit.permit_asked:
            yield AuditCloneRequested(
                audit_id=audit.audit_id,
                repo_url=audit.asked.repo_url,
                questions=clerk.clone,
                limits=audit.asked.limits,
                permit=event.position,
                function_bytes=UNSET if audit.asked.engine == "rules" else BUDGET_BYTES,
            )
        elif not audit.permit_asked:
            yield OaPermitRequested(
                action=ACTION, subject=f"audit:{audit.audit_id}", holder=AUDITOR, uses=1, seconds=GRACE_SECONDS
            )
    open_asks = len(audit.open_asks) - any(clerk.replied_to(key) for key in audit.questions)
    silent = _silent(audit)
    if silent and any(one.key for one in clerk.wanted):
        yield from _failed(audit, clerk, [silent])
        return
    for wanted in clerk.wanted:
        if wanted.key:
            if open_asks >= QUESTIONS_MAX:
                return
            open_asks += 1
        yield wanted.payload


def _silent(audit: Audit) -> AuditFailure | None:
    """Why it is no use to ask further: of two criteria questions have failed while nothing else was answered. One alone
    may fail for what it asks."""
    failed = {key: one for key, one in audit.lost.items() if one.code in _OUTAGE and one.ask > audit.answered}
    if len({key.rpartition(" ")[2] for key in failed}) < _SILENT:
        return None
    last = max(failed.values(), key=lambda one: one.ask)
    told = f"{len(failed)} questions in a row have no answer: {last.reason}"
    return AuditFailure(node="judges", code="judge", reason=told, mend=_RESUME)


_SILENT: Final = 2
_OUTAGE: Final = frozenset(("rejected", "rate_limited", "overloaded", "network", "timed_out", "interrupted", "failed"))
_RESUME: Final = "pmagent audit --resume takes it up again, and keeps what was answered"


def _failed(audit: Audit, clerk: ActorClerk, failures: Sequence[AuditFailure]) -> Iterator[Payload]:
    done = [one.ask for key, one in audit.questions.items() if clerk.replied_to(key)]
    yield from abandoned(audit, *done)
    ordered = sorted(failures, key=lambda one: one.node)
    code = cast("FailureCode", ordered[0].code)
    mend = list(dict.fromkeys(one.mend for one in ordered if one.mend))
    yield failure(audit, code, [one.reason for one in ordered], mend)


def _concluded(audit: Audit, report: AuditReport) -> Iterator[Payload]:
    ruled: dict[str, CriterionResult | UnjudgedCriterion] = {one.dimension_id: one for one in report.criteria}
    ruled |= {one.dimension_id: one for one in report.not_judged}
    for dimension in audit.dimensions:
        yield _ruling(audit, ruled[dimension])
    yield AuditConcluded(
        request=audit.requested,
        audit_id=audit.audit_id,
        overall_score=report.overall_score,
        executive_summary=report.executive_summary,
        remediation_plan=report.remediation_plan,
        beside=[msgspec.convert(one.model_dump(), BesideItem) for one in report.beside] or UNSET,
    )


def _ruling(audit: Audit, ruled: CriterionResult | UnjudgedCriterion) -> AuditCriterionRuled:
    judged = ruled if isinstance(ruled, CriterionResult) else None
    rules = judged.rules if judged is not None else []
    return AuditCriterionRuled(
        audit_id=audit.audit_id,
        dimension_id=ruled.dimension_id,
        dimension_name=ruled.dimension_name,
        final_score=judged.final_score if judged is not None else None,
        reason=ruled.reason if isinstance(ruled, UnjudgedCriterion) else "",
        dissent_summary=ruled.dissent_summary,
        remediation=judged.remediation if judged is not None else "",
        set_aside=list(ruled.set_aside),
        unsupported=list(ruled.unsupported),
        rules=[RuleItem(rule=one.rule, before=one.before, after=one.after, text=one.text) for one in rules],
        unanswered=(list(ruled.unanswered) if isinstance(ruled, UnjudgedCriterion) else []) or UNSET,
    )


# --- the same, as the log has it and as the graph has it -------------------------------------------------------------


def as_item(evidence: Evidence) -> EvidenceItem:
    """Evidence for the log."""
    return msgspec.convert(evidence.model_dump(), EvidenceItem)


def as_evidence(item: EvidenceItem) -> Evidence:
    """Evidence from the log."""
    return Evidence.model_validate(msgspec.structs.asdict(item))


def as_opinion_item(opinion: JudicialOpinion) -> OpinionItem:
    """An opinion for the log."""
    return msgspec.convert(opinion.model_dump(), OpinionItem)


def as_opinion(item: OpinionItem) -> JudicialOpinion:
    """An opinion from the log."""
    return JudicialOpinion.model_validate(msgspec.structs.asdict(item))
