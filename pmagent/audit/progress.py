"""An audit's events, folded to what people are shown of it: what the detectives brought, what each judge said of each
criterion, what was ruled, and what changed.

Fold only: no clock, no screen. Whoever shows it says what time it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

import msgspec

from contracts.audit_events import (
    AuditCloneRequested,
    AuditConcluded,
    AuditCriterionRuled,
    AuditEvidenceFound,
    AuditFailed,
    AuditOpinionGiven,
    AuditOpinionRejected,
    AuditPdfRead,
    AuditPdfRequested,
    AuditPicturesRead,
    AuditPicturesRequested,
    AuditRequested,
    AuditSourceFailed,
    AuditSurveyed,
    JudgeName,
)
from contracts.effect import RequestRefused
from contracts.model import ModelCallFailed
from events.event import Event
from pmagent.jobs.kinds import AUDITS
from pmagent.jobs.progress import Change

Doing = Literal["collecting", "judging", "ruling", "ended"]
SourceName = Literal["repository", "report", "images"]
SourceState = Literal["waiting", "running", "done", "failed"]
SOURCES: Final[tuple[SourceName, ...]] = ("repository", "report", "images")
BASE: Final = "median"
"""The rule that makes the score which others change."""
JUDGES: Final[tuple[JudgeName, ...]] = ("Prosecutor", "Defense", "TechLead")


class Source(msgspec.Struct):
    """What a detective reads. ``text``: what was read of it, or why it could not be; ``started`` and ``ended``: log
    times ("": not yet)."""

    name: SourceName
    state: SourceState = "waiting"
    text: str = ""
    started: str = ""
    ended: str = ""


class Criterion(msgspec.Struct):
    """A dimension of the rubric as it is shown. ``evidence``: how much there is (-1: none yet), ``found`` how much of
    it is of things that are there; ``scores`` by judge, of their last round; ``round`` is that of the last opinion (0:
    none yet). ``ruled``: whether the chief justice has; then ``final_score`` None means: not judged, because of
    ``reason``."""

    id: str
    name: str
    target: str
    evidence: int = -1
    found: int = 0
    scores: dict[str, int] = {}
    round: int = 0
    ruled: bool = False
    final_score: int | None = None
    reason: str = ""
    dissent: str = ""
    rules: list[str] = []
    set_aside: list[JudgeName] = []

    @property
    def state(self) -> str:
        """In one word: waiting, evidence, judging, ruled, or not judged."""
        if self.ruled:
            return "ruled" if self.final_score is not None else "not judged"
        if self.scores:
            return "judging"
        return "evidence" if self.evidence >= 0 else "waiting"


class Progress:
    """An audit as it is known so far, from its request on."""

    def __init__(self, requested: Event) -> None:
        assert isinstance(requested.data, AuditRequested), "an audit begins with its request"
        self.asked: AuditRequested = requested.data
        self.audit_id = self.asked.audit_id
        self.position = requested.position
        self.requested_at = requested.time
        self.last_time = requested.time
        self.last_position = requested.position
        self.doing: Doing = "collecting"
        self.commit = ""
        self.sources = {name: Source(name) for name in SOURCES}
        self.criteria = {one.id: one for one in _criteria(self.asked.rubric)}
        """By id, in the rubric's order."""
        self.rejected = 0
        """Replies of models that were no opinions."""
        self.end: AuditConcluded | AuditFailed | RequestRefused | None = None
        self.requests: dict[int, SourceName] = {}

    @property
    def over(self) -> bool:
        """Whether the audit has ended, or never began."""
        return self.end is not None

    @property
    def state(self) -> str:
        """In one word: how it ended, else ``open``."""
        return AUDITS.state(self.end)

    @property
    def code(self) -> str:
        """Why it failed, as a word for programs; "" where it has not."""
        return self.end.code if isinstance(self.end, AuditFailed) else ""

    @property
    def reasons(self) -> list[str]:
        """Why it ended so."""
        if isinstance(self.end, RequestRefused):
            return [f"{self.end.name} is {self.end.reason}"]
        return list(self.end.reasons) if isinstance(self.end, AuditFailed) else []

    @property
    def mend(self) -> list[str]:
        """What would help."""
        return list(self.end.mend) if isinstance(self.end, AuditFailed) else []

    @property
    def overall_score(self) -> float | None:
        """The report's; None where there is no report."""
        return self.end.overall_score if isinstance(self.end, AuditConcluded) else None

    @property
    def engine(self) -> str:
        """Who judges."""
        return self.asked.model or self.asked.engine

    @property
    def report(self) -> str:
        """Where the report lies, relative to the workspace; "" where there is none."""
        return f"{self.asked.output}.md" if isinstance(self.end, AuditConcluded) else ""

    def fold(self, event: Event) -> list[Change]:
        """Take the next event of the audit's correlation; what is to be told of it."""
        self.last_time, self.last_position = event.time, event.position
        known = _FOLDS.get(type(event.data))
        return [] if known is None else list(known(self, event, event.data))


def _criteria(rubric: dict[str, Any]) -> Iterator[Criterion]:
    listed = rubric.get("dimensions")
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict):  # a rubric that nobody has checked: the audit fails, and is shown all the same
            name, target = one.get("name", one.get("id")), one.get("target_artifact", "")
            yield Criterion(str(one.get("id")), str(name), str(target))


def _source_asked(name: SourceName, doing: str) -> Callable[[Progress, Event, Any], Iterator[Change]]:
    def fold(audit: Progress, event: Event, _data: Any) -> Iterator[Change]:
        audit.requests[event.position] = name
        source = audit.sources[name]
        source.state, source.started = "running", event.time
        yield Change(event.time, name, "running", doing)

    return fold


def _done(audit: Progress, event: Event, name: SourceName, text: str) -> Iterator[Change]:
    source = audit.sources[name]
    source.state, source.text, source.ended = "done", text, event.time
    yield Change(event.time, name, "done", text, source.started)


def _surveyed(audit: Progress, event: Event, data: AuditSurveyed) -> Iterator[Change]:
    survey = data.survey
    audit.commit = survey.commit
    python = survey.examined.get("python_files")
    said = [f"commit {survey.commit[:12]}", _counted(survey.file_count, "file")]
    said += [_counted(python, "Python file")] if python is not None else []
    said += [_counted(survey.history.total, "commit"), _counted(len(survey.graphs), "graph")]
    yield from _done(audit, event, "repository", ", ".join(said))


def _read(audit: Progress, event: Event, data: AuditPdfRead) -> Iterator[Change]:
    reading = data.reading
    said = [_counted(reading.pages, "page"), _counted(len(reading.headings), "heading")]
    said += [f"{_counted(len(reading.claims), 'path')} named"]
    said += [f"{reading.ocr_pages} read by recognition"] if reading.ocr_pages else []
    yield from _done(audit, event, "report", ", ".join(said))


def _pictures(audit: Progress, event: Event, data: AuditPicturesRead) -> Iterator[Change]:
    yield from _done(audit, event, "images", _counted(data.reading.count, "image"))


def _source_failed(audit: Progress, event: Event, data: AuditSourceFailed) -> Iterator[Change]:
    name = audit.requests.get(data.request)
    if name is None:
        return
    source = audit.sources[name]
    source.state, source.text, source.ended = "failed", data.text, event.time
    yield Change(event.time, name, "failed", data.text, source.started)


def _evidence(audit: Progress, event: Event, data: AuditEvidenceFound) -> Iterator[Change]:
    criterion = audit.criteria.get(data.dimension_id)
    if criterion is None:
        return
    again = criterion.evidence >= 0
    criterion.evidence = len(data.evidences)
    criterion.found = sum(1 for one in data.evidences if one.found)
    text = f"{_counted(criterion.evidence, 'piece')}, {criterion.found} found"
    yield Change(event.time, criterion.id, "evidence", f"compared with the repository: {text}" if again else text)


def _opinion(audit: Progress, event: Event, data: AuditOpinionGiven) -> Iterator[Change]:
    audit.doing = "judging"
    criterion = audit.criteria.get(data.opinion.criterion_id)
    if criterion is None:
        return
    if data.round > criterion.round:
        criterion.round, criterion.scores = data.round, {}
    criterion.scores = {**criterion.scores, data.opinion.judge: data.opinion.score}
    again = ", second round" if data.round > 1 else ""
    yield Change(event.time, criterion.id, "judged", f"{data.opinion.judge}: {data.opinion.score}{again}")


def _rejected(audit: Progress, event: Event, data: AuditOpinionRejected) -> Iterator[Change]:
    audit.rejected += 1
    text = f"{data.judge}'s answer {data.attempt} is no opinion: {data.objection}"
    yield Change(event.time, data.criterion_id, "retry", text)


def _call_failed(_audit: Progress, event: Event, data: ModelCallFailed) -> Iterator[Change]:
    after = f", again in {data.retry_after_s:g} s or later" if data.retry_after_s else ""
    text = f"a call gave no reply: {data.code.replace('_', ' ')}{after if data.transient else ''}"
    yield Change(event.time, "model", "retry" if data.transient else "failed", text)


def _ruled(audit: Progress, event: Event, data: AuditCriterionRuled) -> Iterator[Change]:
    audit.doing = "ruling"
    criterion = audit.criteria.get(data.dimension_id)
    if criterion is None:
        return
    criterion.ruled, criterion.final_score, criterion.reason = True, data.final_score, data.reason
    criterion.dissent, criterion.set_aside = data.dissent_summary or "", list(data.set_aside)
    criterion.rules = [one.rule for one in data.rules if one.before not in (None, one.after) and one.rule != BASE]
    text = data.reason if data.final_score is None else f"{data.final_score}"
    if criterion.rules:
        text += f" ({', '.join(criterion.rules)})"
    yield Change(event.time, criterion.id, "not judged" if data.final_score is None else "ruled", text)


def _over(audit: Progress, event: Event, data: AuditConcluded | AuditFailed | RequestRefused) -> Iterator[Change]:
    if data.request != audit.position:
        return
    audit.doing, audit.end = "ended", data
    for source in audit.sources.values():  # what was taken back has no other end
        if source.state == "running":
            source.state, source.ended = "waiting", event.time
    text = f"{data.overall_score:g}/5" if isinstance(data, AuditConcluded) else "; ".join(audit.reasons)
    yield Change(event.time, "", audit.state, text, audit.requested_at)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


_FOLDS: Final[dict[type, Callable[[Progress, Event, Any], Iterator[Change]]]] = {
    AuditCloneRequested: _source_asked("repository", "cloned and surveyed"),
    AuditPdfRequested: _source_asked("report", "read"),
    AuditPicturesRequested: _source_asked("images", "taken out of the report"),
    AuditSurveyed: _surveyed,
    AuditPdfRead: _read,
    AuditPicturesRead: _pictures,
    AuditSourceFailed: _source_failed,
    AuditEvidenceFound: _evidence,
    AuditOpinionGiven: _opinion,
    AuditOpinionRejected: _rejected,
    ModelCallFailed: _call_failed,
    AuditCriterionRuled: _ruled,
    AuditConcluded: _over,
    AuditFailed: _over,
    RequestRefused: _over,
}
