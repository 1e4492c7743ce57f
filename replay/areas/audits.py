"""Audits in the simulation: what the operator asks for, what detectives bring home, what judges say; with faults."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final, get_args

import msgspec

from pmagent.contracts.audit_events import (
    AuditCancelRequested,
    AuditCloneRequested,
    AuditPdfRead,
    AuditPdfRequested,
    AuditPicturesRead,
    AuditPicturesRequested,
    AuditRequested,
    AuditSourceFailed,
    AuditSurveyed,
    FailureCode,
)
from pmagent.contracts.audit_facts import (
    Claim,
    Commit,
    Excerpt,
    Finding,
    History,
    PdfReading,
    Picture,
    PictureReading,
    RepoSurvey,
)
from pmagent.contracts.model import ModelAsked, ModelLimits
from pmagent.events.event import Event
from pmagent.replay.simulation.performance import Performance, Performances, PerformerContext
from pmagent.replay.simulation.world import World

TARGETS: Final = {
    "state": "github_repo", "safety": "github_repo", "graph_orchestration": "github_repo", "depth": "pdf_report",
    "accuracy": "pdf_report", "diagram": "pdf_images",
}  # fmt: skip
"""Dimension -> what it is about."""
GOALS: Final = {
    "state": ["state.typed", "state.models", "state.reducers", "state.plain_dicts"],
    "safety": ["tools.no_unsafe_calls", "tools.temporary_clone", "security.shell", "security.evaluation"],
    "graph_orchestration": ["graph.builder", "graph.fan_out", "graph.fan_in", "graph.linear"],
    "depth": ["report.term", "report.keyword", "report.structure"],
    "accuracy": ["report.verified", "report.hallucinated", "report.supported", "report.contradicted"],
    "diagram": ["images.present", "images.inspected"],
}
RULES: Final = dict.fromkeys(
    ("security_override", "fact_supremacy", "functionality_weight", "dissent_requirement", "variance_re_evaluation"),
    "As the rule says.",
)

REPOSITORIES: Final = ("https://example.org/team/agent.git", "/srv/agent", "git@example.org:team/other.git")
CODES: Final[tuple[FailureCode, ...]] = get_args(FailureCode)[:11]
"""The ways in which a clone or a PDF can fail."""
ODD: Final = ("no key", "state#0", "state#99", "safety#1", "depth#1 ", "")
"""Citations that are none."""
PICTURES: Final = (b"1", b"2")
"""The images of a report."""


class Audits:
    """The operator's part that has to do with audits, and the performers of what the auditor requests."""

    def __init__(self, world: World, secret: str) -> None:
        self._world = world
        self._asking = world.chance.stream("audits")
        self._random = world.chance.stream("detectives")
        self._again = world.chance.stream("audits again")
        self._secret = secret
        self._ids: list[str] = []
        self._asked: list[AuditRequested] = []

    # --- the operator ------------------------------------------------------------------------------------------------

    def demand(self, n: int) -> msgspec.Struct:
        """A request for an audit, or that one ends; ``n`` tells it from all others."""
        random, faults = self._asking, self._world.faults
        if self._ids and random.random() < 0.25:
            known = not faults.strike("cancel: of an audit that nobody knows")
            name = random.choice(self._ids[-3:]) if known else audit_id(0)
            return AuditCancelRequested(audit_id=name, reason=f"enough of {self._secret}")
        again = bool(self._ids) and faults.strike("audit: id used again")
        self._ids.append(self._ids[-1] if again else audit_id(n))
        engine = random.choice(("rules", "langchain", "langchain"))
        asked = msgspec.convert(
            {
                "audit_id": self._ids[-1],
                "repo_url": random.choice(REPOSITORIES),
                "pdf_path": "/srv/report.pdf",
                "rubric": self._rubric(),
                "rubric_source": f"token={self._secret}",
                "output": random.choice(("audit/report_agent", "audit/report_other")),
                "engine": engine,
                "model": "" if engine == "rules" else "sim:one",
                "vision_model": random.choice(("", "sim:two")),
                "model_limits": ModelLimits(calls=500, seconds=600.0, call_seconds=20.0, tokens=10_000_000),
                "panel": "sim:two" if engine == "langchain" and self._again.random() < 0.15 else "",
            },
            AuditRequested,
        )
        if self._asked and self._again.random() < 0.3:
            earlier = self._again.choice(self._asked[-3:])
            asked = msgspec.structs.replace(earlier, audit_id=asked.audit_id, resumes=earlier.audit_id)
        self._asked.append(asked)
        return asked

    def _rubric(self) -> dict[str, Any]:
        random = self._asking
        names = random.sample(sorted(TARGETS), random.choice((1, 1, 2, 3)))
        if random.random() < 0.3:
            names = ["safety"]
        dimensions = [
            {
                "id": name, "name": name.title(), "target_artifact": TARGETS[name], "goals": GOALS[name],
                "forensic_instruction": f"Look at {name}.", "success_pattern": "It is there.",
                "failure_pattern": "It is not.",
            }
            for name in names
        ]  # fmt: skip
        metadata = {"rubric_name": f"password={self._secret}", "version": "1"}
        parameters = {"spread": random.choice((0, 1, 2, 2)), "total_cap": random.random() < 0.3}
        return {
            "rubric_metadata": metadata, "dimensions": dimensions, "synthesis_rules": RULES,
            "synthesis_parameters": parameters,
        }  # fmt: skip

    # --- detectives --------------------------------------------------------------------------------------------------

    def outcome(self, event: Event) -> msgspec.Struct:
        """How the effect that ``event`` requests ends."""
        faults, random = self._world.faults, self._random
        match event.data:
            case AuditCloneRequested() if not faults.strike("clone: fails"):
                return AuditSurveyed(request=event.position, survey=self._survey())
            case AuditPdfRequested() if not faults.strike("report: cannot be read"):
                return AuditPdfRead(request=event.position, reading=self._reading())
            case AuditPicturesRequested() if not faults.strike("pictures: cannot be read"):
                return AuditPicturesRead(request=event.position, reading=self._pictures())
        return AuditSourceFailed(
            request=event.position, code=random.choice(CODES), text=f"no {self._secret}", mend="look"
        )

    def _survey(self) -> RepoSurvey:
        random = self._random
        found: list[Finding] = []
        if not self._world.faults.strike("survey: nothing is found"):
            goals = [goal for name, goals in sorted(GOALS.items()) if TARGETS[name] == "github_repo" for goal in goals]
            found = [
                Finding(
                    goal=goal, path="src/app.py", line=number, text=f"key = '{self._secret}'",
                    confidence=random.choice((1.0, 1.0, 0.5)),
                )
                for number, goal in enumerate(goals, 1)
                if random.random() < 0.6
            ]  # fmt: skip
        counts = {one.goal: 1 for one in found}
        commit = Commit(commit=f"{7:040x}", message=f"token={self._secret}", timestamp="2026-11-21T12:00:00+00:00")
        history = History(total=1, shown=[commit], span_s=0, burst=1.0)
        return RepoSurvey(
            commit=commit.commit, branch="main", history=history, files=["src/app.py"], file_count=1,
            examined={"files": 1, "python_files": 1}, graphs=[], findings=found, counts=counts, similarities=[],
            terms=[], unparsed=[],
        )  # fmt: skip

    def _reading(self) -> PdfReading:
        random = self._random
        claims = [Claim(path=path, page=1) for path in ("src/app.py", "src/ghost.py") if random.random() < 0.7]
        excerpt = Excerpt(query="state", page=1, rank=1, text=self._secret, literal=True, sentences=random.randrange(4))
        return PdfReading(
            sha256=sha256(b"report").hexdigest(), title=self._secret, pages=2, text_pages=random.choice((0, 2)),
            ocr_pages=0, characters=2_000, segments=2, tables=0, headings=[], claims=claims, statements=[],
            excerpts=[excerpt] if random.random() < 0.7 else [],
        )  # fmt: skip

    def _pictures(self) -> PictureReading:
        count = self._random.randrange(len(PICTURES) + 1)
        pictures = [
            Picture(
                page=n, kind="drawing", width=80, height=60, sha256=sha256(PICTURES[n - 1]).hexdigest(),
                media_type="image/png",
            )
            for n in range(1, count + 1)
        ]  # fmt: skip
        return PictureReading(count=count, pictures=pictures)


def audit_id(n: int) -> str:
    """The n-th audit's id."""
    return f"00000000-0000-4000-a000-{n:012x}"


def opinion(world: World, asked: ModelAsked, secret: str) -> dict[str, Any]:
    """A judge's answer to the question: a good one, or with something wrong in it that looks good."""
    random, faults = world.chance.stream("judges"), world.faults
    judge, _, criterion = str(asked.inputs["question"]).removeprefix("panel ").split(" ", 2)
    cited = [f"{criterion}#{number}" for number in range(1, 5) if random.random() < 0.6]
    if faults.strike("judge: cites what is not there"):
        cited = [random.choice(ODD) for _ in range(random.randrange(3))]
    score: object = random.choice((2, 4, 5, 5))
    if faults.strike("judge: contradicts the others"):
        score = {"Prosecutor": 1, "Defense": 5}.get(judge, 3)
    if faults.strike("judge: score out of bounds"):
        score = random.choice((0, 6, "5", 3.5, True, None))
    if faults.strike("judge: in another's name"):
        judge = "Defense" if judge != "Defense" else "Prosecutor"
    if faults.strike("judge: on another criterion"):
        criterion = "another"
    return {
        "judge": judge, "criterion_id": criterion, "score": score, "argument": f"Because of api_key={secret}.",
        "cited_evidence": cited,
    }  # fmt: skip


def part(context: PerformerContext) -> Performances:
    """See ``Area.simulated``."""
    audits = Audits(context.world, context.secret)
    return dict.fromkeys((AuditCloneRequested, AuditPdfRequested, AuditPicturesRequested), Performance(audits.outcome))
