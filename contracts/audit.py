"""The audit's models and graph state (docs/design.md §15.2).

Pydantic, because a chat model is bound to ``JudicialOpinion`` as it stands here. Fields beyond the contract's are
marked as ours; they have defaults, so what the contract describes is always valid.

An evidence key is ``<dimension_id>#<n>``: the n-th evidence (from 1) of the dimension. ``cited_evidence`` holds such
keys; any other string is an unsupported citation.
"""

from __future__ import annotations

import operator
from typing import Annotated, Any, Final, Literal, TypedDict

from pydantic import BaseModel, ConfigDict, Field

from pmagent.contracts.audit_events import Reported
from pmagent.contracts.audit_facts import Function, PdfReading, RepoSurvey

Judge = Literal["Prosecutor", "Defense", "TechLead"]
JUDGES: Final[tuple[Judge, ...]] = ("Prosecutor", "Defense", "TechLead")
"""The personas, in the order of every document."""

SCORE_MIN: Final = 1
SCORE_MAX: Final = 5


class Evidence(BaseModel):
    """A fact that a detective found, or looked for in vain: no opinion. ``goal`` begins with the id of what was looked
    for (``actors/audit/goals.py``), then a colon and its words; ``location`` is ``path:line``, a commit, or ``page n``;
    ``rationale`` says how it was looked for; ``confidence`` is 0 where it could not be looked at."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    goal: str
    found: bool
    content: str | None = None
    location: str
    rationale: str
    confidence: float = Field(ge=0.0, le=1.0)


class JudicialOpinion(BaseModel):
    """One judge's opinion on one criterion of the rubric, resting on the evidence that it cites by key."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    judge: Judge = Field(description="Your own persona.")
    criterion_id: str = Field(description="The id of the criterion that you were given.")
    score: int = Field(ge=SCORE_MIN, le=SCORE_MAX, description="1 (failure pattern) to 5 (success pattern).")
    argument: str = Field(description="Why this score, from the evidence.")
    cited_evidence: list[str] = Field(description="Keys of the evidence that the argument rests on, e.g. some_id#2.")


class AppliedRule(BaseModel):
    """Ours: a rule of synthesis that had something to say on a criterion; ``before`` and ``after`` are the score (None:
    there was, or is, none)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: Literal[
        "fact_supremacy", "variance_re_evaluation", "functionality_weight", "median", "security_override", "clamp",
        "dissent_requirement",
    ]  # fmt: skip
    before: float | None
    after: float | None
    text: str


class CriterionResult(BaseModel):
    """A criterion's result. ``judge_opinions`` are the three that counted, Prosecutor, Defense, Tech Lead; the rest is
    ours: ``first_round`` what was said before a re-evaluation ([]: there was none), ``set_aside`` whose opinions did
    not count, ``unsupported`` citations that are no evidence of the criterion, ``rules`` what was done to the score."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dimension_id: str
    dimension_name: str
    final_score: int = Field(ge=SCORE_MIN, le=SCORE_MAX)
    judge_opinions: list[JudicialOpinion]
    dissent_summary: str | None = None
    remediation: str
    first_round: list[JudicialOpinion] = []
    set_aside: list[Judge] = []
    unsupported: list[str] = []
    rules: list[AppliedRule] = []


class UnjudgedCriterion(BaseModel):
    """Ours: a criterion that has no score, and why. The judges' words are told all the same, where they said anything;
    these fields are as in a CriterionResult. ``unanswered``: judges whose model gave no opinion."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dimension_id: str
    dimension_name: str
    reason: str
    judge_opinions: list[JudicialOpinion] = []
    dissent_summary: str | None = None
    first_round: list[JudicialOpinion] = []
    set_aside: list[Judge] = []
    unsupported: list[str] = []
    unanswered: list[Judge] = []


class Beside(BaseModel):
    """Ours: how somebody else (``engine``: the rules, or a second model) scores the same evidence, by criterion. It
    changes no score of the report. ``overall_score`` None: some answers are missing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: str
    overall_score: float | None
    scores: dict[str, int]


class Appealed(BaseModel):
    """Ours: an appeal, and the keys of the evidence that it is about; [] where there is none (any more)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    evidence: str
    at: str
    because: str
    keys: list[str]


class AuditReport(BaseModel):
    """The audit's result: every dimension of the rubric stands in ``criteria``, or, where nothing could be judged, in
    ``not_judged``. ``overall_score`` is the mean of the scores, rounded half up to a tenth, and capped where the
    rubric says so. From ``audit_id`` on, ours: what was judged by whom and from what."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    repo_url: str
    executive_summary: str
    overall_score: float
    criteria: list[CriterionResult]
    remediation_plan: str
    not_judged: list[UnjudgedCriterion] = []
    audit_id: str = ""
    engine: str = ""
    rubric_name: str = ""
    rubric_version: str = ""
    commit: str = ""
    report_sha256: str = ""
    evidence: dict[str, list[Evidence]] = {}
    beside: list[Beside] = []
    appeals: list[Appealed] = []
    origin: str = ""


class Unanswered(BaseModel):
    """Ours: a question to a judge that has no answer, and why; what others answered counts all the same."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    judge: Judge
    criterion_id: str
    reason: str


class AuditFailure(BaseModel):
    """Ours: why a node could not do its work, in our own words; ``code`` is one of ``FailureCode``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    node: str
    code: str
    reason: str
    mend: str = ""


class AgentState(TypedDict, total=False):
    """The graph's state. ``operator.ior`` replaces the value of an equal key; that is safe because each dimension
    belongs to exactly one detective: it has one ``target_artifact``, and a rubric with an id twice is refused. The
    detectives assert that they keep to their own."""

    repo_url: str
    pdf_path: str
    rubric_dimensions: list[dict[str, Any]]
    evidences: Annotated[dict[str, list[Evidence]], operator.ior]
    opinions: Annotated[list[JudicialOpinion], operator.add]
    final_report: AuditReport | None


class AuditState(AgentState, total=False):
    """Ours: what else the nodes hand on. ``rubric`` is the whole rubric; ``survey`` and ``reading`` are what detectives
    brought home, for the aggregator to compare (``compared``: that was done before); ``disputed`` are the criteria of a
    second round; ``failures`` name what ended a node, so that the graph is left without a report; ``unanswered`` the
    questions to judges that have no answer; ``waiting`` what was asked for and has not been answered yet. ``panel`` are
    the second model's opinions, ``reported`` other tools' findings, ``functions`` code for judges to read (where they
    are absent: the survey's)."""

    rubric_path: str
    output_path: str
    reported: list[Reported]
    rubric: dict[str, Any]
    survey: RepoSurvey
    reading: PdfReading
    disputed: list[str]
    compared: bool
    functions: list[Function]
    failures: Annotated[list[AuditFailure], operator.add]
    unanswered: Annotated[list[Unanswered], operator.add]
    panel: Annotated[list[JudicialOpinion], operator.add]
    waiting: Annotated[list[str], operator.add]
