"""What the auditor remembers: the open audits; pure."""

from __future__ import annotations

from typing import Final

import msgspec

from pmagent.contracts.audit_events import AuditRequested, EvidenceItem, OpinionItem
from pmagent.contracts.audit_facts import PdfReading, PictureReading, RepoSurvey
from pmagent.contracts.model import ModelMessage
from pmagent.events.event import Event

AUDITS_MAX: Final = 8
"""So many audits are open at once; a further one fails at once (``busy``)."""
QUESTIONS_MAX: Final = 8
"""So many questions of one audit are open at the model gateway at once."""

QUESTION: Final = "question"
"""Under this name (``inputs`` of model.asked) a question carries its key, so that who reads the log knows what it is
about: ``<judge> <round> <dimension>`` or ``image <sha256> …``."""

replace = msgspec.structs.replace


class Asked(msgspec.Struct, frozen=True):
    """A question to a model: its ``ask`` (position of model.asked; 0: it is to be asked again), replies that did not
    fit (``tries``), and the messages that these added to the conversation."""

    ask: int
    tries: int = 0
    more: list[ModelMessage] = []


class Audit(msgspec.Struct, frozen=True):
    """An open audit. ``clone``, ``pdf``, ``pictures``: positions of the open requests (0: none); ``permit_asked`` of
    the permit's. ``survey`` and ``reading`` are kept until the evidence of every dimension is there (``dimensions``,
    in the rubric's order): then nothing is compared with them any more. ``opinions`` stand with their round.
    ``questions``: by key (see QUESTION). ``seen``: what the vision model says of an image, by question key."""

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
    opinions: list[OpinionItem] = []
    questions: dict[str, Asked] = {}
    seen: dict[str, str] = {}

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
    """Open audits by id."""

    audits: dict[str, Audit] = {}


def begun(state: AuditorState, event: Event) -> AuditorState:
    """An audit that was taken."""
    asked: AuditRequested = event.data
    dimensions = [str(one["id"]) for one in asked.rubric["dimensions"]]
    return changed(state, Audit(asked.audit_id, event.position, asked, dimensions))


def changed(state: AuditorState, audit: Audit) -> AuditorState:
    """``audit`` stands as it is now."""
    return AuditorState({**state.audits, audit.audit_id: audit})


def ended(state: AuditorState, audit_id: str) -> AuditorState:
    """The audit is not open any more."""
    return AuditorState({name: audit for name, audit in state.audits.items() if name != audit_id})


def of_request(state: AuditorState, position: int) -> Audit | None:
    """The audit that waits for the end of the request, or question, at ``position``."""
    for audit in state.audits.values():
        waits = (audit.permit_asked, *audit.open_effects, *audit.open_asks)
        if position and position in waits:
            return audit
    return None


def asked_again(audit: Audit, key: str, **changes: object) -> Audit:
    """The audit with its question ``key`` changed."""
    question = replace(audit.questions.get(key) or Asked(0), **changes)
    return replace(audit, questions={**audit.questions, key: question})
