"""Evidence about the report, from what was read of the PDF; pure.

A term counts as explained where a passage that holds it as it stands has ``EXPLAINED`` sentences about it, and does not
stand in a summary alone; a term that is there without that was dropped, which is a flaw (``report.keyword``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from actors.audit.evidence_text import counted, evidence, joined
from actors.audit.rubric import Dimension
from contracts.audit import Evidence
from contracts.audit_events import EVIDENCE_MAX
from contracts.audit_facts import Excerpt, PdfReading

EXPLAINED: Final = 2
"""So many sentences about a term are an explanation; of fewer, it was only named."""
HEADINGS: Final = 3
"""A report with fewer headings has no structure."""
STRUCTURE_SURE: Final = 0.8
"""Headings are known by their type, bookmarks or numbers; that is nearly always right."""
ABSENCE: Final = 0.9
"""How sure it is that words are not in a text: they may stand in a picture, or be broken in an unusual way."""
EXPLAINED_SURE: Final = 0.8
_SUMMARY: Final = re.compile(r"(?ai)\b(summary|abstract|overview|introduction|conclusions?|contents)\b")


def report_evidence(dimension: Dimension, reading: PdfReading) -> list[Evidence]:
    """The evidence of a dimension about the report's text: what was read, its goals, the terms that the rubric quotes;
    at most ``EVIDENCE_MAX`` items. Where nothing could be read, every item but the first has confidence 0."""
    found = [report_scope(reading)]
    if "report.structure" in dimension.goals:
        found.append(_structure(reading))
    if "report.paths" in dimension.goals or cross_references(dimension):
        found.append(_paths(reading))
    if "report.statements" in dimension.goals or cross_references(dimension):
        found.append(_statements(reading))
    if "report.term" in dimension.goals or "report.keyword" in dimension.goals:
        found += _terms(dimension, reading)
    if len(found) == 1:
        found += _about(dimension, reading)
    return found[:EVIDENCE_MAX]


def cross_references(dimension: Dimension) -> bool:
    """Whether the dimension asks to hold what the report says against the repository."""
    asked = {"report.verified", "report.hallucinated", "report.contradicted", "report.supported"}
    return dimension.id == "report_accuracy" or not asked.isdisjoint(dimension.goals)


def readable(reading: PdfReading) -> bool:
    """Whether the PDF has any text to be read."""
    return reading.characters > 0


def document(reading: PdfReading) -> str:
    """The PDF as a location."""
    return f"PDF {reading.sha256[:16]}"


def how(reading: PdfReading) -> str:
    """How the report was read, for a rationale."""
    if not readable(reading):
        return "not read: the PDF holds no text, and none was recognised in its images"
    return f"looked for in the text of {counted(reading.pages, 'page')} ({reading.characters:,} characters)"


def sure(reading: PdfReading, confidence: float) -> float:
    """``confidence``, but 0 where nothing could be read, and less where pages could not."""
    if not readable(reading):
        return 0.0
    read = min(reading.text_pages + reading.ocr_pages, reading.pages)
    return confidence * read / max(reading.pages, 1)


def report_scope(reading: PdfReading) -> Evidence:
    """What of the PDF was read."""
    told = [
        f"“{reading.title}”" if reading.title else "without a title",
        counted(reading.pages, "page"),
        f"{reading.text_pages:,} with text, {reading.ocr_pages:,} by recognition",
        f"{reading.characters:,} characters in {counted(reading.segments, 'segment')}",
        counted(len(reading.headings), "heading"),
        counted(reading.tables, "table"),
        counted(len(reading.claims), "path") + " named",
    ]
    notes = [f"not read: {note}" for note in reading.notes]
    rationale = "the PDF was parsed in a process of its own, page by page"
    content = joined(["; ".join(told), *notes])
    return evidence("report.scope", content, document(reading), rationale, 1.0, found=True)


# --- goals ---------------------------------------------------------------------------------------------------------


def _structure(reading: PdfReading) -> Evidence:
    found = len(reading.headings) >= HEADINGS
    told = [f"page {one.page}: {'#' * min(max(one.level, 1), 6)} {one.text}" for one in reading.headings]
    where = f"page {reading.headings[0].page}" if reading.headings else document(reading)
    rationale = f"{how(reading)}: {counted(len(reading.headings), 'heading')}, at least {HEADINGS} were looked for"
    content = joined(told) if told else None
    confidence = sure(reading, STRUCTURE_SURE)
    return evidence("report.structure", content, where, rationale, confidence, found=found and confidence > 0)


def _paths(reading: PdfReading) -> Evidence:
    return _listed("report.paths", [f"page {one.page}: {one.path}" for one in reading.claims], reading, "path")


def _statements(reading: PdfReading) -> Evidence:
    told = [f"page {one.line}: {one.goal}: {one.text}" for one in reading.statements]
    return _listed("report.statements", told, reading, "statement")


def _listed(goal: str, told: Sequence[str], reading: PdfReading, what: str) -> Evidence:
    where = told[0].partition(":")[0] if told else document(reading)
    rationale = f"{how(reading)}: {counted(len(told), what)}"
    content = joined(told) if told else None
    return evidence(goal, content, where, rationale, sure(reading, ABSENCE), found=bool(told))


# --- what a rubric quotes ------------------------------------------------------------------------------------------


def _terms(dimension: Dimension, reading: PdfReading) -> Iterator[Evidence]:
    for term in dimension.terms:
        places = [one for one in reading.excerpts if one.query == term and one.literal]
        yield _term(term, places, reading)
        if places and not _explaining(places, reading):
            yield _dropped(term, places, reading)


def _term(term: str, places: Sequence[Excerpt], reading: PdfReading) -> Evidence:
    explaining = _explaining(places, reading)
    if explaining:
        best = max(explaining, key=lambda one: (one.sentences, -one.rank))
        rationale = f"{how(reading)}: {counted(best.sentences, 'sentence')} about it on page {best.page}"
        content = joined([_shown(one) for one in explaining])
        confidence = sure(reading, EXPLAINED_SURE)
        return evidence("report.term", content, f"page {best.page}", rationale, confidence, found=True, about=term)
    told = "named, not explained" if places else "these words do not stand in it"
    rationale = f"{how(reading)}: {told}" if readable(reading) else how(reading)
    content = joined([_shown(one) for one in places]) if places else None
    where = f"page {places[0].page}" if places else document(reading)
    return evidence("report.term", content, where, rationale, sure(reading, ABSENCE), found=False, about=term)


def _dropped(term: str, places: Sequence[Excerpt], reading: PdfReading) -> Evidence:
    most = max(one.sentences for one in places)
    rationale = (
        f"{how(reading)}: at most {counted(most, 'sentence')} about it in one place; an explanation has at least "
        f"{EXPLAINED}, and does not stand in a summary alone"
    )
    content = joined([_shown(one) for one in places])
    where = f"page {places[0].page}"
    return evidence("report.keyword", content, where, rationale, sure(reading, EXPLAINED_SURE), found=True, about=term)


def _explaining(places: Sequence[Excerpt], reading: PdfReading) -> list[Excerpt]:
    return [one for one in places if one.sentences >= EXPLAINED and not _in_summary(one, reading)]


def _in_summary(place: Excerpt, reading: PdfReading) -> bool:
    """Whether all headings that the passage may stand under are those of a summary: the ones of its page, or, where it
    has none, the last before it."""
    on_page = [one.text for one in reading.headings if one.page == place.page]
    before = [one.text for one in reading.headings if one.page < place.page]
    above = on_page or before[-1:]
    return bool(above) and all(_SUMMARY.search(text) for text in above)


def _shown(place: Excerpt) -> str:
    return f"page {place.page}: {place.text}"


def _about(dimension: Dimension, reading: PdfReading) -> Iterator[Evidence]:
    """A rubric that names no goal and quotes nothing gets the passages nearest to its instruction: what they are worth
    is the judges' business."""
    places = [one for one in reading.excerpts if one.query == dimension.forensic_instruction]
    content = joined([_shown(one) for one in places]) if places else None
    where = f"page {places[0].page}" if places else document(reading)
    rationale = f"{how(reading)}: {counted(len(places), 'passage')} nearest to the instruction"
    confidence = sure(reading, EXPLAINED_SURE)
    about = "the instruction"
    yield evidence("report.term", content, where, rationale, confidence, found=bool(places), about=about)
