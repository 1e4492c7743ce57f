"""Evidence about the report's images, and what a vision model says of them; pure.

Without a vision model nobody has looked: found false, confidence 0. That there are images says nothing on what they
show, so such a dimension is not judged (``evidence.judgeable``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pmagent.actors.audit.detectors.evidence.text import counted, evidence, joined
from pmagent.actors.audit.rubric import Dimension
from pmagent.contracts.audit import Evidence
from pmagent.contracts.audit_events import EVIDENCE_MAX
from pmagent.contracts.audit_facts import Picture, PictureReading

SEEN_SURE: Final = 0.7
"""A model's description of an image is less sure than what is counted."""
NOT_INSPECTED: Final = "not inspected: no vision model"
_WORDS: Final = 30
_REPORT: Final = "the report"


def picture_evidence(
    dimension: Dimension, reading: PictureReading, seen: Mapping[str, str], *, inspected: bool
) -> list[Evidence]:
    """The evidence of a dimension about images: which there are, and what was ``seen`` on each (by SHA-256). With
    ``inspected`` false there is no vision model. At most ``EVIDENCE_MAX`` items."""
    found = [_scope(reading), _present(reading)]
    if reading.count and _asks_for_a_look(dimension):
        found += _looked_at(reading, seen) if inspected else [_not_inspected()]
    return found[:EVIDENCE_MAX]


def _asks_for_a_look(dimension: Dimension) -> bool:
    """Only a rubric that lists its goals itself can do without what the images show."""
    return not dimension.explicit or "images.inspected" in dimension.goals


def _scope(reading: PictureReading) -> Evidence:
    told = [f"{counted(reading.count, 'image')}; {len(reading.pictures):,} taken out"]
    told += [_described(one) for one in reading.pictures]
    told += [f"not looked at: {note}" for note in reading.notes]
    rationale = "embedded images were taken out of the PDF, and pages with vector drawings rendered"
    return evidence("images.scope", joined(told), _REPORT, rationale, 1.0, found=True)


def _present(reading: PictureReading) -> Evidence:
    told = [_described(one) for one in reading.pictures]
    where = f"page {reading.pictures[0].page}" if reading.pictures else _REPORT
    rationale = f"embedded images and vector drawings of all pages were counted: {reading.count:,}"
    content = joined(told, reading.count) if told else None
    if reading.missed and not reading.count:
        rationale += f"; {reading.missed:,} more, or pages that may hold some, could not be looked at"
        return evidence("images.present", content, where, rationale, 0.0, found=False)
    return evidence("images.present", content, where, rationale, 1.0, found=reading.count > 0)


def _described(picture: Picture) -> str:
    kind = f"drawing of {picture.shapes:,} shapes" if picture.kind == "drawing" else "embedded image"
    words = f"; words in it: {' '.join(picture.words[:_WORDS])}" if picture.words else ""
    alike = f"; the same on {picture.alike:,} more pages" if picture.alike else ""
    return f"page {picture.page}: {kind}, {picture.width} x {picture.height}{alike}{words}"


def _looked_at(reading: PictureReading, seen: Mapping[str, str]) -> list[Evidence]:
    told = [_seen(one, seen.get(one.sha256, "")) for one in reading.pictures]
    return told or [_not_inspected()]


def _seen(picture: Picture, said: str) -> Evidence:
    where = f"page {picture.page}"
    if not said.strip(" \t\r\n"):
        rationale = "not inspected: the vision model said nothing of this image"
        return evidence("images.inspected", None, where, rationale, 0.0, found=False)
    rationale = f"a vision model's answer about the image {picture.sha256[:16]}"
    return evidence("images.inspected", said, where, rationale, SEEN_SURE, found=True)


def _not_inspected() -> Evidence:
    return evidence("images.inspected", None, _REPORT, NOT_INSPECTED, 0.0, found=False)
