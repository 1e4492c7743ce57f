"""A court for audits: all real actors over one log, with sources and models that answer what a test says."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec

from pmagent.contracts.audit import JUDGES
from pmagent.contracts.audit_events import (
    AuditCloneRequested,
    AuditConcluded,
    AuditFailed,
    AuditPdfRead,
    AuditPdfRequested,
    AuditPicturesRead,
    AuditPicturesRequested,
    AuditRequested,
    AuditSurveyed,
)
from pmagent.contracts.audit_facts import (
    Claim,
    Commit,
    Excerpt,
    Finding,
    Heading,
    History,
    PdfReading,
    Picture,
    PictureReading,
    RepoSurvey,
)
from pmagent.contracts.model import ModelAsked, ModelCallRequested, ModelReplied, ModelUsage
from pmagent.events.event import Event
from tests.support.orchestra import Harness

AUDIT = "7d3f5a10-6f0c-4d0e-8c11-000000000001"
SHA = sha256(b"a picture").hexdigest()

RULES = {
    "security_override": "A confirmed flaw caps the criterion.",
    "fact_supremacy": "Evidence goes before opinion.",
    "functionality_weight": "The Tech Lead counts double on architecture.",
    "dissent_requirement": "A wide spread is told.",
    "variance_re_evaluation": "A wide spread is judged once more.",
}


def dimension(id: str, target: str = "github_repo", **more: Any) -> dict[str, Any]:
    """A dimension of a rubric."""
    return {
        "id": id, "name": id.replace("_", " ").title(), "target_artifact": target,
        "forensic_instruction": "Look for typed state.", "success_pattern": "Typed state with reducers.",
        "failure_pattern": "Plain dicts.", "goals": ["state.typed", "state.reducers"], **more,
    }  # fmt: skip


def rubric(*dimensions: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A rubric of these dimensions; without any: one for each artifact."""
    given = dimensions or (
        dimension("state"),
        dimension("safety", goals=["tools.no_unsafe_calls", "security.shell"]),
        dimension("accuracy", "pdf_report", goals=["report.verified", "report.hallucinated"]),
        dimension("diagram", "pdf_images", goals=["images.present", "images.inspected"]),
    )
    metadata = {"rubric_name": "Toy", "grading_target": "anything", "version": "1"}
    return {"rubric_metadata": metadata, "dimensions": list(given), "synthesis_rules": RULES, **more}


def finding(goal: str, path: str = "src/app.py", line: int = 3, **more: Any) -> Finding:
    """Something that was found."""
    return Finding(goal=goal, path=path, line=line, text=more.pop("text", "code()"), **more)


def survey(*found: Finding, **more: Any) -> RepoSurvey:
    """A small survey of a repository, with these findings."""
    findings = list(found) or [finding("state.typed"), finding("state.reducers", line=4)]
    counts: dict[str, int] = {}
    for one in findings:
        counts[one.goal] = counts.get(one.goal, 0) + 1
    commits = [Commit(commit=f"{n:040x}", message=f"Step {n}", timestamp=f"2026-11-{n:02}T12:00:00+00:00")
               for n in range(1, 6)]  # fmt: skip
    fields: dict[str, Any] = {
        "commit": f"{5:040x}", "branch": "main",
        "history": History(total=5, shown=commits, span_s=4 * 86_400, burst=0.2),
        "files": ["README.md", "src/app.py"], "file_count": 2, "examined": {"files": 2, "python_files": 1, "lines": 40},
        "graphs": [], "findings": findings, "counts": counts, "similarities": [], "terms": [], "unparsed": [],
    }  # fmt: skip
    return RepoSurvey(**(fields | more))


def reading(**more: Any) -> PdfReading:
    """A small reading of a report."""
    fields: dict[str, Any] = {
        "sha256": sha256(b"report").hexdigest(), "title": "Report", "pages": 2, "text_pages": 2, "ocr_pages": 0,
        "characters": 2_000, "segments": 2, "tables": 0, "headings": [Heading(text="State", page=1, level=1)],
        "claims": [Claim(path="src/app.py", page=1), Claim(path="src/ghost.py", page=2)], "statements": [],
        "excerpts": [Excerpt(query="state", page=1, rank=1, text="The state is typed.", literal=True, sentences=1)],
    }  # fmt: skip
    return PdfReading(**(fields | more))


def pictures(count: int = 1) -> PictureReading:
    """The images of a report."""
    shown = [
        Picture(page=n, kind="drawing", width=800, height=600, sha256=sha256(b"%d" % n).hexdigest(),
                media_type="image/png", shapes=9)
        for n in range(1, count + 1)
    ]  # fmt: skip
    return PictureReading(count=count, pictures=shown)


def said(event: Event, asked: ModelAsked, score: int = 4, **more: Any) -> ModelReplied:
    """A model's reply to the call that ``event`` requests: a good opinion with this score, or what ``more`` makes of
    it; ``text`` instead of it all."""
    judge, _, criterion = asked.inputs["question"].removeprefix("panel ").split(" ", 2)
    text = more.pop("text", None)
    opinion = {
        "judge": judge, "criterion_id": criterion, "score": score, "argument": "Because of what was found.",
        "cited_evidence": [f"{criterion}#1"], **more,
    }  # fmt: skip
    return ModelReplied(
        request=event.position, ask=event.data.ask, tool_calls=[], latency_ms=5, model="toy",
        content=msgspec.json.encode(opinion).decode() if text is None else text,
        usage=ModelUsage(input_tokens=10, output_tokens=5, counted=True),
    )  # fmt: skip


Model = Callable[[Event, ModelAsked], msgspec.Struct | None]


class Court(Harness):
    """A harness in which audits are asked for. ``clone``, ``pdf``, ``images`` and ``model`` make outcomes; None: none
    yet."""

    def __init__(self, mode: str = "NORMAL", surface: str = "daemon") -> None:
        super().__init__(mode, surface)
        self.clone: Callable[[Event], msgspec.Struct | None] = lambda event: AuditSurveyed(
            request=event.position, survey=survey()
        )
        self.pdf: Callable[[Event], msgspec.Struct | None] = lambda event: AuditPdfRead(
            request=event.position, reading=reading()
        )
        self.images: Callable[[Event], msgspec.Struct | None] = lambda event: AuditPicturesRead(
            request=event.position, reading=pictures()
        )
        self.model: Model = said

    def ask(self, document: dict[str, Any] | None = None, audit_id: str = AUDIT, **more: Any) -> str:
        """Ask for an audit; its id."""
        fields: dict[str, Any] = {
            "repo_url": "https://example.org/team/agent.git", "pdf_path": "/reports/agent.pdf",
            "rubric": document or rubric(), "rubric_source": "toy.json", "output": "audit/report_agent", **more,
        }  # fmt: skip
        self.tell(AuditRequested(audit_id=audit_id, **fields), audit_id, audit_id)
        return audit_id

    def step(self) -> bool:
        """Perform the oldest effect that has an outcome; whether there was one."""
        makers: list[tuple[type[msgspec.Struct], Callable[[Event], msgspec.Struct | None]]] = [
            (AuditCloneRequested, self.clone), (AuditPdfRequested, self.pdf), (AuditPicturesRequested, self.images),
            (ModelCallRequested, self._modelled),
        ]  # fmt: skip
        for kind, make in makers:
            for event in self.open(kind):
                outcome = make(event)
                if outcome is not None:
                    self.end(event, outcome)
                    return True
        return super().step()

    def _modelled(self, event: Event) -> msgspec.Struct | None:
        asked: ModelAsked = self.history[event.data.ask - 1].data
        return self.model(event, asked)

    def audit(self, audit_id: str = AUDIT) -> AuditConcluded | AuditFailed:
        """Go on until the audit is over; how it ended."""
        while (over := self.ended(audit_id)) is None:
            assert self.step() or self.wake(), f"nothing goes on: {[event.type for event in self.history[-20:]]}"
        return over

    def ended(self, audit_id: str = AUDIT) -> AuditConcluded | AuditFailed | None:
        """How the audit ended, if it has."""
        ends: list[AuditConcluded | AuditFailed] = [*self.of(AuditConcluded), *self.of(AuditFailed)]
        return next((end for end in ends if end.audit_id == audit_id), None)


__all__ = ["AUDIT", "JUDGES", "Court", "dimension", "finding", "pictures", "reading", "rubric", "said", "survey"]
