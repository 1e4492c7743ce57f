"""The auditor's memory: the open audits; pure."""

from __future__ import annotations

from typing import Final

import msgspec

from pmagent.contracts.audit_events import AuditOpinionGiven, AuditRequested, EvidenceItem, OpinionItem
from pmagent.contracts.audit_facts import Function, PdfReading, PictureReading, RepoSurvey
from pmagent.contracts.model import ModelMessage
from pmagent.events.event import Event

AUDITS_MAX: Final = 8
"""So many audits are open at once; a further one fails at once (``busy``)."""
QUESTIONS_MAX: Final = 8
"""So many questions of one audit are open at the model gateway at once."""

ENDED_MAX: Final = 8
"""So many audits that ended without all answers are remembered, the latest, so that they can be taken up again."""

QUESTION: Final = "question"
"""Under this name (``inputs`` of model.asked) a question carries its key, so that who reads the log knows what it is
about: ``<judge> <round> <dimension>``, for the panel behind ``panel``, or ``image <sha256> …``."""

ROUNDS: Final = 2
"""So often a disputed criterion is judged."""
IMAGES: Final = "pdf_images"
"""The target of dimensions about images."""

replace = msgspec.structs.replace


class Asked(msgspec.Struct, frozen=True):
    """A question to a model: its ``ask`` (position of model.asked; 0: it is to be asked again), replies that did not
    fit (``tries``), and the messages that these added to the conversation."""

    ask: int
    tries: int = 0
    more: list[ModelMessage] = []


class Lost(msgspec.Struct, frozen=True):
    """A question that gets no answer: its last ``ask`` (0: its replies did not fit), the code of ``model.failed``
    ("": none), and why, in our own words."""

    ask: int
    code: str
    reason: str


class Audit(msgspec.Struct, frozen=True):
    """An open audit. ``clone``, ``pdf``, ``pictures``: positions of the open requests (0: none); ``permit_asked`` of
    the permit's. ``survey`` and ``reading`` are kept until the evidence of every dimension is there (``dimensions``,
    in the rubric's order): then nothing is compared with them any more, unless it was before (``compared``), by an
    audit that this one takes up again. ``functions`` are code for judges to read. ``given`` are the opinions, the
    panel's among them.
    ``questions``: by key (see QUESTION), those that get no answer in ``lost``; ``answered``: position of the newest
    reply. ``seen``: what the vision model says of an image, by question key."""

    audit_id: str
    requested: int
    asked: AuditRequested
    dimensions: list[str]
    permit_asked: int = 0
    clone: int = 0
    pdf: int = 0
    picturing: int = 0
    survey: RepoSurvey | None = None
    reading: PdfReading | None = None
    pictures: PictureReading | None = None
    commit: str = ""
    report_sha256: str = ""
    evidences: dict[str, list[EvidenceItem]] = {}
    given: list[AuditOpinionGiven] = []
    questions: dict[str, Asked] = {}
    seen: dict[str, str] = {}
    functions: list[Function] = []
    compared: bool = False
    lost: dict[str, Lost] = {}
    answered: int = 0

    def opinions(self, *, panel: bool = False) -> list[OpinionItem]:
        """Those of the judges, or the panel's."""
        return [one.opinion for one in self.given if bool(one.panel) == panel]

    @property
    def collected(self) -> bool:
        """Whether every dimension has its evidence, what the report claims compared with the repository."""
        return all(one in self.evidences for one in self.dimensions)

    @property
    def open_effects(self) -> list[int]:
        """Positions of the requests for effects that have no end yet."""
        return [position for position in (self.clone, self.pdf, self.picturing) if position]

    @property
    def open_asks(self) -> list[int]:
        """Positions of the questions that have no end yet."""
        return [one.ask for one in self.questions.values() if one.ask]


class AuditorState(msgspec.Struct, frozen=True):
    """Open audits by id; ``ended``: those that ended without all answers."""

    audits: dict[str, Audit] = {}
    ended: dict[str, Audit] = {}


def begun(state: AuditorState, event: Event) -> AuditorState:
    """An audit that was taken. Of the one that it takes up again it knows what was read and seen; the evidence and
    opinions of that are decided anew, so that they stand with this one's events."""
    asked: AuditRequested = event.data
    dimensions = [str(one["id"]) for one in asked.rubric["dimensions"]]
    audit = Audit(asked.audit_id, event.position, asked, dimensions)
    earlier = state.ended.get(asked.resumes)
    if earlier is not None:
        audit = replace(audit, seen=earlier.seen)
    if earlier is not None and earlier.collected:
        audit = replace(
            audit, compared=True, commit=earlier.commit, report_sha256=earlier.report_sha256,
            functions=earlier.functions,
        )  # fmt: skip
    return changed(state, audit)


def changed(state: AuditorState, audit: Audit) -> AuditorState:
    """``audit`` stands as it is now."""
    return replace(state, audits={**state.audits, audit.audit_id: audit})


def ended(state: AuditorState, audit_id: str, *, complete: bool) -> AuditorState:
    """The audit is not open any more. Not ``complete``: it can be taken up again, and no earlier one of its id."""
    audit = state.audits[audit_id]
    others = {name: one for name, one in state.audits.items() if name != audit_id}
    earlier = {name: one for name, one in state.ended.items() if name != audit_id}
    if complete:
        return AuditorState(others, earlier)
    kept = replace(
        audit, permit_asked=0, clone=0, pdf=0, picturing=0, survey=None, reading=None, pictures=None, questions={},
    )  # fmt: skip
    newest = [*earlier.items(), (audit_id, kept)][-ENDED_MAX:]
    return AuditorState(others, dict(newest))


def inherited(earlier: Audit) -> Audit:
    """The part of an ended audit that one that takes it up again need not ask for: evidence, but for that of images
    that a model did not see for want of an answer, and opinions on it."""
    unseen = any(key.startswith("image ") for key in earlier.lost)
    targets = {str(one["id"]): one["target_artifact"] for one in earlier.asked.rubric["dimensions"]}
    kept = [name for name in earlier.dimensions if not (unseen and targets[name] == IMAGES)]
    if not earlier.collected:
        kept = []
    return replace(
        earlier, evidences={name: earlier.evidences[name] for name in kept},
        given=[one for one in earlier.given if one.opinion.criterion_id in kept],
    )  # fmt: skip


def of_request(state: AuditorState, position: int) -> Audit | None:
    """The audit that waits for the end of the request, or question, at ``position``."""
    for audit in state.audits.values():
        waits = (audit.permit_asked, *audit.open_effects, *audit.open_asks)
        if position and position in waits:
            return audit
    return None


def question_key(judge: str, number: int, dimension_id: str, *, panel: bool = False) -> str:
    """The key of a question to a judge, see QUESTION."""
    return f"{'panel ' if panel else ''}{judge} {number} {dimension_id}"


def lost(audit: Audit, key: str, why: Lost) -> Audit:
    """The audit without an answer to its question ``key``."""
    questions = {name: one for name, one in audit.questions.items() if name != key}
    return replace(audit, questions=questions, lost={**audit.lost, key: why})


def asked_again(audit: Audit, key: str, **changes: object) -> Audit:
    """The audit with its question ``key`` changed."""
    question = replace(audit.questions.get(key) or Asked(0), **changes)
    return replace(audit, questions={**audit.questions, key: question})
