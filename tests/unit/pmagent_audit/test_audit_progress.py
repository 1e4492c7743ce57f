"""The view of an audit shows what its events say."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pmagent.clean import width
from pmagent.cli.audit_text import criterion_rows, document, exit_code, table
from pmagent.cli.job_text import change_line
from pmagent.cli.output import Piece, Styled, _line
from pmagent.contracts.audit_events import (
    AuditCloneRequested,
    AuditConcluded,
    AuditCriterionRuled,
    AuditEvidenceFound,
    AuditFailed,
    AuditLimits,
    AuditOpinionGiven,
    AuditOpinionRejected,
    AuditPdfRead,
    AuditPdfRequested,
    AuditPicturesRead,
    AuditPicturesRequested,
    AuditRequested,
    AuditSourceFailed,
    AuditSurveyed,
    EvidenceItem,
    OpinionItem,
    RuleItem,
)
from pmagent.contracts.audit_facts import CodeGraph, History, PdfReading, PictureReading, RepoSurvey
from pmagent.contracts.effect import RequestRefused
from pmagent.contracts.model import ModelCallFailed, ModelReplied, ModelUsage
from pmagent.contracts.payload import Payload, encode, type_of
from pmagent.events.event import Event
from pmagent.jobs.kinds import AUDITS
from pmagent.projections.views.audits import JUDGES, Audit, Standing, Used
from pmagent.projections.views.jobs import Change
from tests.support.cases import each
from tests.support.hostile import CORPUS, assert_harmless

AUDIT = "5b0c7a52-3f7e-4c1d-9a55-000000000001"
LIMITS = AuditLimits()
RUBRIC = {
    "dimensions": [
        {"id": "history", "name": "History", "target_artifact": "github_repo"},
        {"id": "depth", "name": "Depth of the report", "target_artifact": "pdf_report"},
        {"id": "diagrams", "name": "Diagrams", "target_artifact": "pdf_images"},
    ]
}
REQUESTED = AuditRequested(
    audit_id=AUDIT,
    repo_url="https://example.org/o/n",
    pdf_path="/tmp/r.pdf",
    rubric=RUBRIC,
    rubric_source="default",
    output="audit/report_o_n",
)
GRAPH = CodeGraph(
    path="g.py",
    line=1,
    name="g",
    builder="StateGraph",
    state="S",
    nodes=[],
    edges=[],
    parallel_sources=[],
    fan_in_targets=[],
    compiled=True,
)
SURVEY = RepoSurvey(
    commit="0123456789abcdef",
    branch="main",
    history=History(total=9, shown=[], span_s=1, burst=0.5),
    files=["a.py"],
    file_count=1,
    examined={"python_files": 1},
    graphs=[GRAPH],
    findings=[],
    counts={},
    similarities=[],
    terms=[],
    unparsed=[],
)
READING = PdfReading(
    sha256="00",
    title="t",
    pages=2,
    text_pages=2,
    ocr_pages=1,
    characters=9,
    segments=1,
    tables=0,
    headings=[],
    claims=[],
    statements=[],
    excerpts=[],
)


def found(dimension: str, marks: str) -> AuditEvidenceFound:
    """Evidence of a dimension: + for what is there, - for what is not."""
    items = [
        EvidenceItem(goal="g: x", found=one == "+", content=None, location=".", rationale="r", confidence=1)
        for one in marks
    ]
    return AuditEvidenceFound(audit_id=AUDIT, dimension_id=dimension, evidences=items)


def opinion(judge: Any, criterion: str, score: Any, number: int = 1) -> AuditOpinionGiven:
    """A judge's opinion."""
    said = OpinionItem(judge=judge, criterion_id=criterion, score=score, argument="so", cited_evidence=[])
    return AuditOpinionGiven(audit_id=AUDIT, round=number, opinion=said)


def ruled(criterion: str, score: Any, **more: Any) -> AuditCriterionRuled:
    """A ruling."""
    return AuditCriterionRuled(
        audit_id=AUDIT, dimension_id=criterion, dimension_name=criterion, final_score=score, **more
    )


def failed(code: Any, *reasons: str) -> AuditFailed:
    """The end without a report."""
    return AuditFailed(request=1, audit_id=AUDIT, code=code, reasons=list(reasons), mend=["mend it"])


CONCLUDED = AuditConcluded(request=1, audit_id=AUDIT, overall_score=3.5, executive_summary="s", remediation_plan="p")
SOURCES: list[Payload] = [
    AuditCloneRequested(permit=1, audit_id=AUDIT, repo_url="u", questions=[], limits=LIMITS),
    AuditPdfRequested(audit_id=AUDIT, pdf_path="/tmp/r.pdf", questions=[], limits=LIMITS),
    AuditPicturesRequested(audit_id=AUDIT, pdf_path="/tmp/r.pdf", limits=LIMITS),
    AuditPdfRead(request=3, reading=READING),
    AuditPicturesRead(request=4, reading=PictureReading(count=1, pictures=[])),
    AuditSurveyed(request=2, survey=SURVEY),
]
EVIDENCE: list[Payload] = [found("history", "+-"), found("depth", "+"), found("diagrams", "+")]


def event(position: int, payload: Payload) -> Event:
    """An event of the audit, a second behind the one before."""
    time = f"2026-11-22T12:{position // 60:02}:{position % 60:02}.000000Z"
    raw = encode(payload)
    return Event(position, time, f"e{position}", "fact", "tests", type_of(payload), AUDIT, 0, payload, raw)


def folded(*payloads: Payload) -> tuple[Audit, list[Change]]:
    """The audit after its request and these, and what was told of it."""
    audit: Audit = AUDITS.begun(event(1, REQUESTED), "")
    changes: list[Change] = []
    for position, payload in enumerate(payloads, 2):
        if not audit.over:
            audit, made = AUDITS.folded(audit, event(position, payload), "")
            changes += made
    return audit, changes


def standing(audit: Audit, criterion: str) -> Standing:
    """How far a criterion is."""
    return next(one for one in audit.standings if one.criterion.id == criterion)


def text(pieces: list[Piece]) -> str:
    """A line without its styles."""
    return "".join(piece.text if isinstance(piece, Styled) else piece for piece in pieces)


def test_an_audit_is_told_from_its_sources_to_its_score() -> None:
    opinions = [opinion(judge, one, 3) for one in ("history", "depth") for judge in JUDGES]
    rulings = [ruled("history", 3), ruled("depth", 4), ruled("diagrams", None, reason="not inspected")]
    audit, changes = folded(*SOURCES, *EVIDENCE, *opinions, *rulings, CONCLUDED)
    assert [(change.name, change.word) for change in changes] == [
        ("repository", "running"),
        ("report", "running"),
        ("images", "running"),
        ("report", "done"),
        ("images", "done"),
        ("repository", "done"),
        ("history", "evidence"),
        ("depth", "evidence"),
        ("diagrams", "evidence"),
        *[("history", "judged")] * 3,
        *[("depth", "judged")] * 3,
        ("history", "ruled"),
        ("depth", "ruled"),
        ("diagrams", "not judged"),
        ("", "concluded"),
    ]
    assert (audit.state, audit.over, audit.score, exit_code(audit)) == ("concluded", True, 3.5, 0)
    assert "1 file, 1 Python file, 9 commits, 1 graph" in audit.sources["repository"].text
    made = document(audit)
    assert made["report"] == "audit/report_o_n.md"
    assert [one["final_score"] for one in made["criteria"]] == [3, 4, None]
    assert made["criteria"][0]["scores"] == {"Prosecutor": 3, "Defense": 3, "TechLead": 3}
    assert (made["criteria"][0]["evidence"], made["criteria"][0]["found"]) == (2, 1)


def test_the_second_round_takes_the_place_of_the_first() -> None:
    first = [opinion("Prosecutor", "history", 1), opinion("Defense", "history", 5), opinion("TechLead", "history", 3)]
    audit, changes = folded(*EVIDENCE, *first, opinion("Defense", "history", 4, 2))
    criterion = standing(audit, "history")
    assert (criterion.round, criterion.scores) == (2, {"Defense": 4})
    assert changes[-1].text == "Defense: 4, second round"


def test_a_ruling_says_which_rules_changed_the_score() -> None:
    rules = [
        RuleItem(rule="median", before=None, after=5, text="t"),
        RuleItem(rule="security_override", before=5, after=3, text="t"),
        RuleItem(rule="clamp", before=3, after=3, text="t"),
    ]
    ruling = ruled("history", 3, rules=rules, set_aside=["Defense"])
    audit, changes = folded(ruling, opinion("Defense", "history", 5))
    assert standing(audit, "history").rules == ["security_override"]
    assert changes[0].text == "3 (security_override)"
    (row,) = criterion_rows([standing(audit, "history")], 120)
    assert "D (5)" in text(row)


def test_evidence_that_was_compared_takes_the_place_of_the_earlier() -> None:
    audit, changes = folded(found("depth", "+"), found("depth", "++-"))
    assert (standing(audit, "depth").evidence, standing(audit, "depth").found) == (3, 2)
    assert changes[-1].text.startswith("compared with the repository: 3 pieces, 2 found")


@each(
    "code, state, exit_",
    [
        ("not_found", "failed", 1),
        ("timed_out", "failed", 6),
        ("pdf_timed_out", "failed", 6),
        ("cancelled", "cancelled", 1),
        ("judge", "failed", 1),
        ("not_permitted", "failed", 1),
    ],
)
def test_an_audit_without_a_report_says_why(code: str, state: str, exit_: int) -> None:
    audit, changes = folded(*EVIDENCE, failed(code, "this is why"))
    assert (audit.state, exit_code(audit), document(audit)["report"]) == (state, exit_, None)
    assert (audit.reasons, audit.mend, audit.failure) == (["this is why"], ["mend it"], code)
    assert (changes[-1].word, changes[-1].text) == (state, "this is why")
    assert document(audit)["overall_score"] is None


def test_a_source_that_failed_is_told_as_itself() -> None:
    failure = AuditSourceFailed(request=2, code="auth", text="no access", mend="log in")
    audit, changes = folded(*SOURCES[:3], failure, failed("auth", "no access"))
    assert (changes[-2].name, changes[-2].word, changes[-2].text) == ("repository", "failed", "no access")
    assert audit.sources["report"].state == "waiting", "nobody reads it any more"


def test_a_refused_request_ends_the_audit() -> None:
    audit, _ = folded(RequestRefused(request=1, name="auditor", reason="halted"))
    assert (audit.state, audit.reasons, exit_code(audit)) == ("refused", ["auditor is halted"], 1)


def test_the_end_of_another_request_is_not_this_ones() -> None:
    audit, changes = folded(AuditFailed(request=9, audit_id=AUDIT, code="known", reasons=["open"], mend=[]))
    assert (audit.over, changes) == (False, [])


def test_replies_that_were_no_opinions_and_calls_that_failed_are_told() -> None:
    rejected = AuditOpinionRejected(
        audit_id=AUDIT,
        judge="Defense",
        criterion_id="history",
        round=1,
        attempt=2,
        objection="the score is a text",
        reply=7,
    )
    call = ModelCallFailed(request=3, ask=2, code="rate_limited", error="X", transient=True, retry_after_s=2.5)
    usage = ModelUsage(input_tokens=1_000, output_tokens=50, counted=True)
    reply = ModelReplied(request=5, ask=2, content="", tool_calls=[], usage=usage, latency_ms=1)
    audit, changes = folded(rejected, call, reply, reply)
    assert audit.used == Used(2, 1, 2_000, 100, 0.0)
    assert audit.used_text.startswith("3 calls (1 failed), 2,000 tokens in, 100 out")
    assert len(audit.rejected) == 1
    assert "Defense's answer 2 is no opinion: the score is a text" in changes[0].text
    assert changes[1].word == "retry"
    assert changes[1].text == "a call gave no reply: rate limited, again in 2.5 s or later"


@given(
    until=st.integers(0, 14), columns=st.integers(1, 120), rows=st.integers(1, 30), name=st.sampled_from(sorted(CORPUS))
)
def test_the_table_fits_whatever_is_written_in_it(until: int, columns: int, rows: int, name: str) -> None:
    bad = CORPUS[name][:1000]
    history = [
        *SOURCES,
        *EVIDENCE,
        opinion("Defense", "history", 3),
        ruled("history", None, reason=bad),
        failed("judge", bad),
    ]
    audit, changes = folded(*history[:until])
    named = [msgspec.structs.replace(one, name=bad) for one in audit.criteria]
    audit = msgspec.structs.replace(audit, criteria=named)
    lines = table(audit, "2026-11-22T13:00:00.000000Z", columns, rows)
    assert 1 <= len(lines) <= rows
    for line in lines:
        assert width(text(line)) <= columns
        assert_harmless(_line(line, color=False, encoding="utf-8"))
    for change in changes:
        assert_harmless(_line(change_line(change, "audit"), color=False, encoding="utf-8"))
