"""Events of an audit (docs/design.md §15.3).

    audit.requested -> (audit.clone_requested -> audit.surveyed), (audit.pdf_requested -> audit.pdf_read),
    (audit.pictures_requested -> audit.pictures_read, model.asked …) -> audit.evidence_found …
    -> (model.asked … ) -> audit.opinion_given … -> audit.criterion_ruled … -> audit.concluded | audit.failed

The correlation of all of it is the audit's id.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pmagent.contracts.audit_facts import CONTENT_CHARS_MAX, RATIONALE_CHARS_MAX, PdfReading, PictureReading, RepoSurvey
from pmagent.contracts.model import ModelLimits, ModelPrice
from pmagent.contracts.payload import Effect, OutwardRequest, Payload, Scope, event_type
from pmagent.contracts.reasoning import Identifier

DIMENSIONS_MAX: Final = 40
EVIDENCE_MAX: Final = 60
"""Most evidence of one dimension."""
ARGUMENT_CHARS_MAX: Final = 4_000
CITATIONS_MAX: Final = 60
CITATION_CHARS_MAX: Final = 200
REMEDIATION_CHARS_MAX: Final = 4_000
SUMMARY_CHARS_MAX: Final = 8_000
PLAN_CHARS_MAX: Final = 200_000
RUBRIC_BYTES_MAX: Final = 256 * 1024
PATH_CHARS_MAX: Final = 4_096
REASON_CHARS_MAX: Final = 1_000
CLONE_SECONDS_MAX: Final = 3_600
READ_SECONDS_MAX: Final = 1_800
GRACE_SECONDS: Final = 60.0
"""So much longer than its parts may take may an effect take as a whole."""
TRIES: Final = 3
"""So often a judge is asked for one opinion that fits."""

JudgeName = Literal["Prosecutor", "Defense", "TechLead"]
Score = Annotated[int, Meta(ge=1, le=5)]
Round = Annotated[int, Meta(ge=1, le=2)]
Reason = Annotated[str, Meta(max_length=REASON_CHARS_MAX)]
Path = Annotated[str, Meta(min_length=1, max_length=PATH_CHARS_MAX)]
DimensionId = Annotated[str, Meta(min_length=1, max_length=100)]

FailureCode = Literal[
    # the repository
    "bad_url", "not_found", "auth", "network", "too_large", "timed_out", "git",
    # the PDF
    "pdf_missing", "pdf_encrypted", "pdf_damaged", "pdf_empty", "pdf_too_large", "pdf_timed_out", "pdf_unavailable",
    # the rest
    "rubric", "evidence", "judge", "not_permitted", "cancelled", "interrupted", "halted", "known", "busy", "failed",
]  # fmt: skip
"""Why something failed. The text beside it names the limit and its size."""


class AuditLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Limits of one audit: bytes and seconds of the clone; files of it that are read, and bytes of each; bytes, pages,
    seconds and memory of reading the PDF; images that are rendered; memory and seconds of the survey."""

    clone_bytes: Annotated[int, Meta(ge=1)] = 2 * 2**30
    clone_seconds: Annotated[float, Meta(gt=0, le=CLONE_SECONDS_MAX)] = 600.0
    files: Annotated[int, Meta(ge=1)] = 50_000
    file_bytes: Annotated[int, Meta(ge=1)] = 8 * 2**20
    survey_seconds: Annotated[float, Meta(gt=0, le=READ_SECONDS_MAX)] = 900.0
    survey_memory: Annotated[int, Meta(ge=2**26)] = 4 * 2**30
    pdf_bytes: Annotated[int, Meta(ge=1)] = 256 * 2**20
    pdf_pages: Annotated[int, Meta(ge=1)] = 2_000
    pdf_seconds: Annotated[float, Meta(gt=0, le=READ_SECONDS_MAX)] = 300.0
    pdf_memory: Annotated[int, Meta(ge=2**26)] = 2 * 2**30
    pictures: Annotated[int, Meta(ge=0, le=200)] = 20


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A detective's question for one dimension: the words of its rubric, and ``terms``: the names, paths and
    phrases that these quote."""

    dimension_id: DimensionId
    instruction: str
    terms: list[str]


REPORTED_MAX: Final = 1_000
APPEALS_MAX: Final = 200


class Reported(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A finding of another tool at ``line`` of ``path`` (0: the file as a whole)."""

    tool: Annotated[str, Meta(max_length=100)]
    rule: Annotated[str, Meta(max_length=200)]
    level: Literal["error", "warning", "note"]
    path: Path
    line: Annotated[int, Meta(ge=0)]
    text: Annotated[str, Meta(max_length=500)]


class Appeal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Somebody's objection to evidence: a key (``graph#3``) or a goal (``security.shell``), where it is ``at`` (a path,
    or ``path:line``; "": anywhere), and why it is wrong. It is shown, and changes nothing."""

    evidence: Annotated[str, Meta(min_length=1, max_length=CITATION_CHARS_MAX)]
    because: Annotated[str, Meta(min_length=1, max_length=REASON_CHARS_MAX)]
    at: Annotated[str, Meta(max_length=PATH_CHARS_MAX)] = ""


MODEL_LIMITS: Final = ModelLimits(calls=1_000, concurrency=4, seconds=3_600.0, tokens=10_000_000)
"""The default limits of an audit's model calls: three judges, each criterion, twice, with retries."""


@event_type("audit.requested", request=True)
class AuditRequested(Payload, frozen=True, kw_only=True):
    """Audit the repository at ``repo_url`` (a URL, or an absolute path) against the PDF at ``pdf_path`` (absolute).
    ``rubric`` is the whole document, checked; ``rubric_source`` where it came from. ``engine`` rules judges offline;
    langchain asks ``model``; ``vision_model`` looks at images ("": nobody does). ``output`` is the report's path in
    the workspace, without its ending. ``panel`` is a second model that is asked the same, beside the first ("": none).
    ``resumes``: the id of an audit that ended without all answers, and is taken up again ("": none). ``origin``: where
    browsers find the repository of a path, as its remote has it ("": not known). ``reported``: findings of other tools;
    ``appeals`` are shown with the evidence. ``operator_id``: who asked for it, where that is known."""

    audit_id: Identifier
    repo_url: Path
    pdf_path: Path
    rubric: dict[str, Any]
    rubric_source: str
    output: Path
    engine: Literal["rules", "langchain"] = "rules"
    model: str = ""
    vision_model: str = ""
    limits: AuditLimits = AuditLimits()
    model_limits: ModelLimits = MODEL_LIMITS
    price: ModelPrice | None = None
    panel: str = ""
    resumes: str = ""
    origin: Annotated[str, Meta(max_length=PATH_CHARS_MAX)] = ""
    reported: Annotated[list[Reported], Meta(max_length=REPORTED_MAX)] = []
    appeals: Annotated[list[Appeal], Meta(max_length=APPEALS_MAX)] = []
    operator_id: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET


@event_type("audit.cancel_requested", request=True)
class AuditCancelRequested(Payload, frozen=True, kw_only=True):
    """An operator (``operator_id``, over ``channel``, where that is known) wants the audit to end; ``reason`` in a few
    words."""

    audit_id: Identifier
    reason: Reason = "cancelled by the operator"
    operator_id: Annotated[str, Meta(max_length=64)] = ""
    channel: Annotated[str, Meta(max_length=16)] = ""


class AuditAnswer(Payload, frozen=True, kw_only=True):
    """The answer to the request at position ``request``, of an audit."""

    request: int
    audit_id: Identifier


@event_type("audit.cancel_answered")
class AuditCancelAnswered(AuditAnswer, frozen=True, kw_only=True):
    """Whether the audit could be cancelled; ``text`` says why not."""

    accepted: bool
    text: str = ""


_CLONE = Effect(
    repeatable=True, limit_s=CLONE_SECONDS_MAX + READ_SECONDS_MAX + GRACE_SECONDS, concurrency=2, bulky=True,
    outcomes=("audit.surveyed", "audit.source_failed"),
)


def _reading(outcome: str) -> Effect:
    return Effect(
        repeatable=True, limit_s=READ_SECONDS_MAX + GRACE_SECONDS, concurrency=2, bulky=True,
        outcomes=(outcome, "audit.source_failed"),
    )


@event_type("audit.clone_requested", effect=_CLONE)
class AuditCloneRequested(OutwardRequest, frozen=True, kw_only=True):
    """Clone the repository into a folder of its own, survey it, and remove the folder. ``function_bytes``: so much code
    around the findings is kept whole; absent: none."""

    audit_id: Identifier
    repo_url: Path
    questions: list[Question]
    limits: AuditLimits
    function_bytes: Annotated[int, Meta(ge=0)] | UnsetType = UNSET

    def scope(self) -> Scope:
        """See OutwardRequest."""
        return Scope("diagnostic", f"audit:{self.audit_id}")


@event_type("audit.surveyed")
class AuditSurveyed(Payload, frozen=True, kw_only=True):
    """The findings in the clone."""

    request: int
    survey: RepoSurvey


@event_type("audit.pdf_requested", effect=_reading("audit.pdf_read"))
class AuditPdfRequested(Payload, frozen=True, kw_only=True):
    """Read the PDF in a process of its own, and answer the questions from its segments."""

    audit_id: Identifier
    pdf_path: Path
    questions: list[Question]
    limits: AuditLimits


@event_type("audit.pdf_read")
class AuditPdfRead(Payload, frozen=True, kw_only=True):
    """The reading of the PDF."""

    request: int
    reading: PdfReading


@event_type("audit.pictures_requested", effect=_reading("audit.pictures_read"))
class AuditPicturesRequested(Payload, frozen=True, kw_only=True):
    """Take the images out of the PDF, render its drawings, and put them into the blob store."""

    audit_id: Identifier
    pdf_path: Path
    limits: AuditLimits


@event_type("audit.pictures_read")
class AuditPicturesRead(Payload, frozen=True, kw_only=True):
    """The images of the PDF."""

    request: int
    reading: PictureReading


@event_type("audit.source_failed")
class AuditSourceFailed(Payload, frozen=True, kw_only=True):
    """The repository or the PDF could not be read; the request at ``request`` has this end. ``text`` and ``mend`` are
    for people, in our own words."""

    request: int
    code: FailureCode
    text: Reason
    mend: Reason


class EvidenceItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An ``Evidence`` in the log; see contracts/audit.py."""

    goal: str
    found: bool
    content: Annotated[str, Meta(max_length=CONTENT_CHARS_MAX)] | None
    location: Annotated[str, Meta(max_length=PATH_CHARS_MAX)]
    rationale: Annotated[str, Meta(max_length=RATIONALE_CHARS_MAX)]
    confidence: Annotated[float, Meta(ge=0, le=1)]


@event_type("audit.evidence_found")
class AuditEvidenceFound(Payload, frozen=True, kw_only=True):
    """The evidence of one dimension, whole; its n-th item has the key ``<dimension_id>#<n>``. A later one of the same
    dimension takes the place of the earlier: the aggregator has cross-referenced it."""

    audit_id: Identifier
    dimension_id: DimensionId
    evidences: Annotated[list[EvidenceItem], Meta(max_length=EVIDENCE_MAX)]


class OpinionItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A ``JudicialOpinion`` in the log; see contracts/audit.py."""

    judge: JudgeName
    criterion_id: DimensionId
    score: Score
    argument: Annotated[str, Meta(max_length=ARGUMENT_CHARS_MAX)]
    cited_evidence: Annotated[list[Annotated[str, Meta(max_length=CITATION_CHARS_MAX)]], Meta(max_length=CITATIONS_MAX)]


@event_type("audit.opinion_given")
class AuditOpinionGiven(Payload, frozen=True, kw_only=True):
    """A judge's opinion that fits. ``reply``: position of the ``model.replied`` that it was read from; 0: the engine
    ``rules`` gave it. ``panel``: the second model's, which counts nowhere; absent: a judge's."""

    audit_id: Identifier
    round: Round
    opinion: OpinionItem
    reply: int = 0
    panel: bool | UnsetType = UNSET


@event_type("audit.opinion_rejected")
class AuditOpinionRejected(Payload, frozen=True, kw_only=True):
    """A reply that is no opinion: ``objection`` says why, in our own words; it is the ``attempt``-th of ``TRIES``.
    ``panel``: the second model's."""

    audit_id: Identifier
    judge: JudgeName
    criterion_id: DimensionId
    round: Round
    attempt: int
    objection: Reason
    reply: int
    panel: bool | UnsetType = UNSET


class RuleItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An ``AppliedRule`` in the log; see contracts/audit.py."""

    rule: str
    before: float | None
    after: float | None
    text: Reason


@event_type("audit.criterion_ruled")
class AuditCriterionRuled(Payload, frozen=True, kw_only=True):
    """The chief justice's ruling on a criterion. ``final_score`` None: not judged, because of ``reason``.
    ``unanswered``: judges whose model gave no opinion; absent: none."""

    audit_id: Identifier
    dimension_id: DimensionId
    dimension_name: str
    final_score: Score | None
    reason: Reason = ""
    dissent_summary: Annotated[str, Meta(max_length=REMEDIATION_CHARS_MAX)] | None = None
    remediation: Annotated[str, Meta(max_length=REMEDIATION_CHARS_MAX)] = ""
    set_aside: list[JudgeName] = []
    unsupported: list[str] = []
    rules: list[RuleItem] = []
    unanswered: list[JudgeName] | UnsetType = UNSET


class BesideItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A ``Beside`` in the log; see contracts/audit.py."""

    engine: str
    overall_score: float | None
    scores: dict[str, Score]


@event_type("audit.concluded")
class AuditConcluded(AuditAnswer, frozen=True, kw_only=True):
    """The audit requested at ``request`` has a report: this, and the rulings, opinions and evidence before it.
    ``beside``: results of others on the same evidence; absent: none."""

    overall_score: float
    executive_summary: Annotated[str, Meta(max_length=SUMMARY_CHARS_MAX)]
    remediation_plan: Annotated[str, Meta(max_length=PLAN_CHARS_MAX)]
    beside: list[BesideItem] | UnsetType = UNSET


@event_type("audit.failed")
class AuditFailed(AuditAnswer, frozen=True, kw_only=True):
    """The audit requested at ``request`` has no report and will have none. The evidence collected so far stays in the
    log."""

    code: FailureCode
    reasons: list[Reason]
    mend: list[Reason]
