"""The nodes of the audit's graph: state in, partial update out (docs/design.md §15.3).

Pure but for the clerk (``configurable.clerk``), whom they ask for everything. Nothing that stands in the state already
is asked for again, so the graph can be invoked any number of times with what is known so far. A node whose answer has
yet to come says so in ``waiting``; one that will have none, in ``failures``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from langchain_core.runnables import RunnableConfig

from pmagent.actors.audit.clerk import Clerk, NoAnswer, NodeFailed, brief_of
from pmagent.actors.audit.detectors.evidence.claims import cross_referenced
from pmagent.actors.audit.detectors.evidence.items import judgeable
from pmagent.actors.audit.detectors.evidence.pictures import picture_evidence
from pmagent.actors.audit.detectors.evidence.repo import repo_evidence
from pmagent.actors.audit.detectors.evidence.report import report_evidence
from pmagent.actors.audit.detectors.evidence.reported import reported_evidence
from pmagent.actors.audit.judges.functions import located, pointed_at
from pmagent.actors.audit.justice.beside import by_panel, by_rules
from pmagent.actors.audit.justice.synthesis import disputed, synthesize
from pmagent.actors.audit.rubric import BadRubric, Dimension, Rubric, questions, rubric_of
from pmagent.actors.audit.state import IMAGES, ROUNDS
from pmagent.contracts.audit import JUDGES, AuditFailure, AuditState, Evidence, Judge, Unanswered
from pmagent.contracts.audit_events import EVIDENCE_MAX

Update = dict[str, Any]

REPO: Final = "github_repo"
REPORT: Final = "pdf_report"


def _guarded(name: str, work: Callable[[], Update]) -> Update:
    """A node's work; that it cannot be done is part of the state, so that an edge can lead away from it."""
    try:
        return work()
    except NodeFailed as failed:
        failure = AuditFailure(node=name, code=failed.code, reason=failed.reason, mend=failed.mend)
        return {"failures": [failure]}


def _clerk(config: RunnableConfig) -> Clerk:
    clerk: Clerk = config["configurable"]["clerk"]
    return clerk


def _given(config: RunnableConfig) -> dict[str, str]:
    """Where the audit comes from, and who judges (``compile_audit_graph``)."""
    provenance: dict[str, str] = config["configurable"].get("provenance", {})
    return provenance


def _rubric(state: AuditState) -> Rubric:
    return rubric_of(state["rubric"])


def _of(state: AuditState, target: str) -> list[Dimension]:
    """The dimensions that are about this artifact: no other detective looks at them."""
    return [one for one in _rubric(state).dimensions if one.target_artifact == target]


def _open(state: AuditState, dimensions: Sequence[Dimension]) -> list[Dimension]:
    """Those without evidence yet."""
    return [one for one in dimensions if one.id not in state.get("evidences", {})]


def _owned(state: AuditState, target: str, evidences: dict[str, list[Evidence]]) -> dict[str, list[Evidence]]:
    """A detective's evidence; that none of it is another's is asserted, for the reducer would let one replace it."""
    others = {one.id for one in _rubric(state).dimensions if one.target_artifact != target}
    assert others.isdisjoint(evidences), "a detective has evidence of another's dimension"
    return evidences


def _collected(state: AuditState) -> bool:
    """Whether every dimension has its evidence, or all but those about images (``compared``): then nobody looks at code
    and text any more."""
    return state.get("compared", False) or not _open(state, _rubric(state).dimensions)


# --- before the detectives -----------------------------------------------------------------------------------------


def context_builder_node(state: AuditState, config: RunnableConfig) -> Update:
    """Give the detectives and judges the rubric: ``rubric``, ``rubric_dimensions``. There is no report yet."""

    def work() -> Update:
        clerk = _clerk(config)
        if not isinstance(state.get("repo_url"), str):
            raise NodeFailed("bad_url", "repo_url is missing, or no text", "give the repository's URL or path")
        if not isinstance(state.get("pdf_path"), str):
            raise NodeFailed("pdf_missing", "pdf_path is missing, or no text", "give the path of the report")
        clerk.prepare(state["repo_url"], state.get("output_path", ""))
        document = state.get("rubric") or rubric_for(state, clerk)
        try:
            rubric_of(document)
        except BadRubric as error:
            raise NodeFailed("rubric", error.message, error.hint) from error
        return {"rubric": document, "rubric_dimensions": document["dimensions"]}

    return {"final_report": None, **_guarded("context_builder", work)}


def rubric_for(state: AuditState, clerk: Clerk) -> dict[str, Any]:
    """The rubric of a state that does not hold it whole: the file's that it names; without one, its own dimensions
    under the default's rules of synthesis; without any, the default. Raises NodeFailed."""
    path, dimensions = state.get("rubric_path", ""), state.get("rubric_dimensions")
    document = clerk.rubric(path)
    if path or not dimensions:
        return document
    return {"rubric_metadata": {}, "dimensions": dimensions, "synthesis_rules": document["synthesis_rules"]}


# --- detectives ----------------------------------------------------------------------------------------------------


def repo_investigator_node(state: AuditState, config: RunnableConfig) -> Update:
    """Evidence of the dimensions that are about the repository. The survey is made in any case: what the report says
    is compared with it."""

    def work() -> Update:
        own = _of(state, REPO)
        if _collected(state) or not (own or _of(state, REPORT)):
            return {}
        survey = _clerk(config).survey(state["repo_url"], questions(_rubric(state), REPO))
        if survey is None:
            return {"waiting": ["the repository"]}
        evidences = {}
        for one in _open(state, own):
            items = [*repo_evidence(one, survey), *reported_evidence(one, state.get("reported", []), survey)]
            evidences[one.id] = located(items[:EVIDENCE_MAX], survey.functions)
        return {"evidences": _owned(state, REPO, evidences), "survey": survey}

    return _guarded("repo_investigator", work)


def doc_analyst_node(state: AuditState, config: RunnableConfig) -> Update:
    """Evidence of the dimensions that are about the report's text."""

    def work() -> Update:
        own = _of(state, REPORT)
        if _collected(state) or not own:
            return {}
        reading = _clerk(config).reading(state["pdf_path"], questions(_rubric(state), REPORT))
        if reading is None:
            return {"waiting": ["the report"]}
        evidences = {one.id: report_evidence(one, reading) for one in _open(state, own)}
        return {"evidences": _owned(state, REPORT, evidences), "reading": reading}

    return _guarded("doc_analyst", work)


def vision_inspector_node(state: AuditState, config: RunnableConfig) -> Update:
    """Evidence of the dimensions that are about the report's images, seen by a vision model where there is one."""

    def work() -> Update:
        wanted = _open(state, _of(state, IMAGES))
        if not wanted:
            return {}
        reading = _clerk(config).pictures(state["pdf_path"])
        if reading is None:
            return {"waiting": ["the images"]}
        evidences: dict[str, list[Evidence]] = {}
        waiting = []
        for dimension in wanted:
            asked = dimension.forensic_instruction
            answers = {picture.sha256: _clerk(config).seen(picture, asked) for picture in reading.pictures}
            seen = {sha256: answer for sha256, answer in answers.items() if answer is not None}
            if len(seen) < len(answers):
                waiting.append("what the images show")
                continue
            inspected = any(seen.values())
            evidences[dimension.id] = picture_evidence(dimension, reading, seen, inspected=inspected)
        return {"evidences": _owned(state, IMAGES, evidences), "waiting": waiting}

    return _guarded("vision_inspector", work)


def evidence_aggregator_node(state: AuditState) -> Update:
    """Wait for all detectives; hold what the report claims against the repository; see that no dimension was left."""

    def work() -> Update:
        rubric, known = _rubric(state), state.get("evidences", {})
        if state.get("failures") or state.get("waiting"):
            return {}
        without = [one.id for one in rubric.dimensions if not known.get(one.id)]
        if without:
            raise NodeFailed("evidence", f"no detective brought evidence for {', '.join(without)}")
        survey, reading = state.get("survey"), state.get("reading")
        if survey is None or reading is None:
            return {}
        claiming = _of(state, REPORT)
        return {"evidences": {one.id: cross_referenced(one, known[one.id], survey, reading) for one in claiming}}

    return _guarded("evidence_aggregator", work)


def after_context(state: AuditState) -> Sequence[str]:
    """Where to go with, or without, a rubric."""
    return ["failed"] if state.get("failures") else ["repo_investigator", "doc_analyst", "vision_inspector"]


def after_evidence(state: AuditState) -> Sequence[str]:
    """Where to go when the detectives are done: a detective that failed ends the audit, one that waits ends this
    invocation, evidence that is there goes to all three judges."""
    if state.get("failures"):
        return ["failed"]
    return ["waiting"] if state.get("waiting") else ["prosecutor", "defense", "tech_lead"]


# --- judges --------------------------------------------------------------------------------------------------------


def prosecutor_node(state: AuditState, config: RunnableConfig) -> Update:
    """The Prosecutor's opinions."""
    return _guarded("prosecutor", lambda: _judged("Prosecutor", state, config))


def defense_node(state: AuditState, config: RunnableConfig) -> Update:
    """The Defense's opinions."""
    return _guarded("defense", lambda: _judged("Defense", state, config))


def tech_lead_node(state: AuditState, config: RunnableConfig) -> Update:
    """The Tech Lead's opinions."""
    return _guarded("tech_lead", lambda: _judged("TechLead", state, config))


def _judged(judge: Judge, state: AuditState, config: RunnableConfig) -> Update:
    """One opinion on each criterion that can be judged; a second on each that is disputed. The panel is asked for one,
    beside the first. A question that has no answer is not asked again."""
    made: dict[str, list[Any]] = {"opinions": [], "panel": [], "unanswered": [], "waiting": []}
    without = {(one.judge, one.criterion_id) for one in state.get("unanswered", [])}
    clerk, survey, has_panel = _clerk(config), state.get("survey"), bool(_given(config).get("panel"))
    code = state.get("functions", survey.functions if survey is not None else [])
    for dimension in _rubric(state).dimensions:
        evidence = state["evidences"][dimension.id]
        if not judgeable(evidence, dimension):
            continue
        given = [one for one in state.get("opinions", []) if one.criterion_id == dimension.id]
        own = [one for one in given if one.judge == judge]
        if len(own) <= (dimension.id in state.get("disputed", [])) and (judge, dimension.id) not in without:
            try:
                opinion = clerk.opinion(brief_of(judge, dimension, evidence, given, own, pointed_at(evidence, code)))
            except NoAnswer as error:
                made["unanswered"].append(Unanswered(judge=judge, criterion_id=dimension.id, reason=str(error)))
            else:
                made["waiting" if opinion is None else "opinions"].append(opinion or f"{judge} on {dimension.id}")
        panel = [one for one in state.get("panel", []) if (one.judge, one.criterion_id) == (judge, dimension.id)]
        if has_panel and not panel and not state.get("disputed"):
            brief = brief_of(judge, dimension, evidence, [], [], pointed_at(evidence, code))
            with suppress(NoAnswer):  # the panel's scores stand beside, and one may be missing
                opinion = clerk.opinion(msgspec.structs.replace(brief, panel=True))
                made["waiting" if opinion is None else "panel"].append(opinion or f"the panel's {judge}")
    return made


def deliberation_node(state: AuditState) -> Update:
    """Wait for all three judges; say which criteria they have to judge once more (variance_re_evaluation)."""

    def work() -> Update:
        if state.get("failures") or state.get("waiting"):
            return {}
        opinions, unanswered = state.get("opinions", []), state.get("unanswered", [])
        return {"disputed": disputed(_rubric(state), state["evidences"], opinions, unanswered)}

    return _guarded("deliberation", work)


def after_opinions(state: AuditState) -> Sequence[str]:
    """Where to go when the judges have spoken: away, when one failed or waits; back, when there is a dispute of which
    they have not spoken a second time; else to the chief justice."""
    if state.get("failures"):
        return ["failed"]
    if state.get("waiting"):
        return ["waiting"]
    said = [(one.judge, one.criterion_id) for one in state.get("opinions", [])]
    without = {(one.judge, one.criterion_id) for one in state.get("unanswered", [])}
    pairs = [(judge, one) for judge in JUDGES for one in state.get("disputed", [])]
    once = any(said.count(pair) < ROUNDS and pair not in without for pair in pairs)
    return ["prosecutor", "defense", "tech_lead"] if once else ["chief_justice"]


def chief_justice_node(state: AuditState, config: RunnableConfig) -> Update:
    """The report: synthesis by rules alone."""

    def work() -> Update:
        given = _given(config)
        survey, reading = state.get("survey"), state.get("reading")
        known = {
            "commit": survey.commit if survey is not None else "",
            "report_sha256": reading.sha256 if reading is not None else "",
            **given,
        }
        rubric, evidences = _rubric(state), state["evidences"]
        report = synthesize(
            state["repo_url"],
            rubric,
            evidences,
            state.get("opinions", []),
            audit_id=known.get("audit_id", ""),
            engine=known.get("engine", ""),
            commit=known["commit"],
            report_sha256=known["report_sha256"],
            unanswered=state.get("unanswered", []),
        )
        beside = [by_rules(rubric, evidences)] if given.get("engine", "rules") != "rules" else []
        if given.get("panel"):
            beside.append(by_panel(rubric, evidences, state.get("panel", []), given["panel"]))
        report = report.model_copy(update={"beside": beside})
        _clerk(config).deliver(report, state["repo_url"], state.get("output_path", ""))
        return {"final_report": report}

    return _guarded("chief_justice", work)
