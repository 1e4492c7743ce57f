"""An audit as its documents show it: folded from its events, immutable, and small for the snapshot cache."""

from __future__ import annotations

from typing import Literal

import msgspec

from contracts.audit_events import (
    AuditConcluded,
    AuditCriterionRuled,
    AuditFailed,
    EvidenceItem,
    OpinionItem,
)

Doing = Literal["asked", "working", "over"]


class Criterion(msgspec.Struct, frozen=True, array_like=True):
    """A dimension of the rubric, by its id and its name."""

    id: str
    name: str


class Given(msgspec.Struct, frozen=True, array_like=True):
    """An opinion that was given, and in which round."""

    round: int
    opinion: OpinionItem


class Audit(msgspec.Struct, frozen=True):
    """An audit. ``requested`` is the position of its request, ``position`` and ``sum`` those of its newest event;
    times are log times, "" for not yet. ``commit`` and ``report_sha256`` say what was audited ("": not read yet).
    ``refused`` is why the engine did not hand on the request at all; ``superseded``: another audit has concluded later
    with the same path, and the report there is that one's."""

    audit_id: str
    requested: int
    at: str
    repo_url: str
    pdf_path: str
    path: str
    engine: str
    vision_model: str
    rubric_name: str
    rubric_version: str
    rubric_source: str
    criteria: list[Criterion]
    position: int
    sum: str
    updated: str
    doing: Doing = "asked"
    ended: str = ""
    commit: str = ""
    report_sha256: str = ""
    evidence: dict[str, list[EvidenceItem]] = {}
    opinions: list[Given] = []
    rulings: dict[str, AuditCriterionRuled] = {}
    concluded: AuditConcluded | None = None
    failed: AuditFailed | None = None
    refused: str = ""
    superseded: bool = False

    @property
    def items(self) -> int:
        """How much it holds."""
        return sum(len(found) for found in self.evidence.values()) + len(self.opinions)
