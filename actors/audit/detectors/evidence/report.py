"""Evidence about the report, from what was read of the PDF; pure.

A term counts as explained where a passage that holds it as it stands has a sentence that explains (``pdf/passages.py``:
none of a summary, none that lists); a term that is there without that was dropped, which is a flaw
(``report.keyword``). Of a report that holds next to nothing, or that cannot be read, that itself is the flaw: it never
scores higher than a poor one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pmagent.actors.audit.detectors.evidence.text import counted, evidence, joined
from pmagent.actors.audit.rubric import Dimension
from pmagent.contracts.audit import Evidence
from pmagent.contracts.audit_events import EVIDENCE_MAX
from pmagent.contracts.audit_facts import Excerpt, PdfReading

EXPLAINED: Final = 1
"""So many sentences that explain a term are an explanation; of fewer, it was only named."""
SCANTY: Final = 400
"""A report of fewer characters says next to nothing."""
CROSSED: Final = 26
"""So many items may be added when the report is held against the repository."""
HEADINGS: Final = 3
"""A report with fewer headings has no structure."""
STRUCTURE_SURE: Final = 0.8
"""Headings are known by their type, bookmarks or numbers; that is nearly always right."""
ABSENCE: Final = 0.8
"""How sure it is that words are not in a text: they may stand in a picture, or be broken in an unusual way."""
EXPLAINED_SURE: Final = 0.8


def report_evidence(dimension: Dimension, reading: PdfReading) -> list[Evidence]:
    """The evidence of a dimension about the report's text: what was read, its goals, the terms that the rubric quotes;
    so many items that ``CROSSED`` more are within ``EVIDENCE_MAX``. Where nothing could be read, every item but the
    first has confidence 0."""
    found = [report_scope(reading)]
    if reading.characters < SCANTY:
        found.append(_scanty(reading))
    if "report.structure" in dimension.goals:
        found.append(_structure(reading))
    if "report.paths" in dimension.goals or cross_references(dimension):
        found.append(_paths(reading))
    if "report.statements" in dimension.goals or cross_references(dimension):
        found.append(_statements(reading))
    if "report.term" in dimension.goals or "report.keyword" in dimension.goals:
        found += _terms(dimension, reading)
    if len(found) == 1 and not {"report.explained", "report.keyword"} & {*dimension.goals}:
        found += _about(dimension, reading)
    return found[: EVIDENCE_MAX - CROSSED]


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


def absent(reading: PdfReading, confidence: float) -> float:
    """How sure it is that something is not there: ``confidence``, less where pages could not be read, 0 where none
    could."""
    if not readable(reading):
        return 0.0
    read = min(reading.text_pages + reading.ocr_pages, reading.pages)
    return confidence * read / max(reading.pages, 1)


def report_scope(reading: PdfReading) -> Evidence:
    """The extent to which the PDF was read."""
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


def _scanty(reading: PdfReading) -> Evidence:
    told = f"{counted(reading.characters, 'character')} on {counted(reading.pages, 'page')} could be read"
    rationale = f"a report of fewer than {SCANTY} characters can explain nothing, and of an unreadable one nobody knows"
    return evidence("report.scanty", told, document(reading), rationale, 1.0, found=True)


def graded(
    goal: str, content: str | None, where: str, rationale: str, confidence: float, *, part: int, whole: int
) -> Evidence:
    """An item that is met in part: ``part`` of ``whole`` stands behind the goal."""
    about = f"{part} of {whole}"
    return evidence(goal, content, where, rationale, confidence if whole else 0.0, found=part > 0, about=about)


# --- goals ---------------------------------------------------------------------------------------------------------


def _structure(reading: PdfReading) -> Evidence:
    found = len(reading.headings) >= HEADINGS
    told = [f"page {one.page}: {'#' * min(max(one.level, 1), 6)} {one.text}" for one in reading.headings]
    where = f"page {reading.headings[0].page}" if reading.headings else document(reading)
    rationale = f"{how(reading)}: {counted(len(reading.headings), 'heading')}, at least {HEADINGS} were looked for"
    content = joined(told) if told else None
    confidence = STRUCTURE_SURE if found else absent(reading, STRUCTURE_SURE)
    return evidence("report.structure", content, where, rationale, confidence, found=found)


def _paths(reading: PdfReading) -> Evidence:
    return _listed("report.paths", [f"page {one.page}: {one.path}" for one in reading.claims], reading, "path")


def _statements(reading: PdfReading) -> Evidence:
    told = [f"page {one.line}: {one.goal}: {one.text}" for one in reading.statements]
    return _listed("report.statements", told, reading, "statement")


def _listed(goal: str, told: Sequence[str], reading: PdfReading, what: str) -> Evidence:
    where = told[0].partition(":")[0] if told else document(reading)
    rationale = f"{how(reading)}: {counted(len(told), what)}"
    content = joined(told) if told else None
    confidence = 1.0 if told else absent(reading, ABSENCE)
    return evidence(goal, content, where, rationale, confidence, found=bool(told))


# --- what a rubric quotes ------------------------------------------------------------------------------------------


def _terms(dimension: Dimension, reading: PdfReading) -> Iterator[Evidence]:
    for term in dimension.terms:
        places = [one for one in reading.excerpts if one.query == term and one.literal]
        yield _term(term, places, reading)
        if places and not _explaining(places):
            yield _dropped(term, places, reading)


def _term(term: str, places: Sequence[Excerpt], reading: PdfReading) -> Evidence:
    explaining = _explaining(places)
    if explaining:
        best = max(explaining, key=lambda one: one.sentences)
        rationale = f"{how(reading)}: {counted(best.sentences, 'sentence')} about it on page {best.page}"
        content = joined([_shown(one) for one in explaining])
        where = f"page {best.page}"
        return evidence("report.term", content, where, rationale, EXPLAINED_SURE, found=True, about=term)
    told = "named, not explained" if places else "these words do not stand in it"
    rationale = f"{how(reading)}: {told}" if readable(reading) else how(reading)
    named = joined([_shown(one) for one in places]) if places else None
    where = f"page {places[0].page}" if places else document(reading)
    confidence = EXPLAINED_SURE if places else absent(reading, ABSENCE)
    return evidence("report.term", named, where, rationale, confidence, found=False, about=term)


def _dropped(term: str, places: Sequence[Excerpt], reading: PdfReading) -> Evidence:
    most = max(one.sentences for one in places)
    rationale = f"{how(reading)}: at most {counted(most, 'sentence')} about it in one place, fewer than {EXPLAINED}"
    content = joined([_shown(one) for one in places])
    where = f"page {places[0].page}"
    return evidence("report.keyword", content, where, rationale, EXPLAINED_SURE, found=True, about=term)


def _explaining(places: Sequence[Excerpt]) -> list[Excerpt]:
    return [one for one in places if one.sentences >= EXPLAINED]


def _shown(place: Excerpt) -> str:
    return f"page {place.page}: {place.text}"


def _about(dimension: Dimension, reading: PdfReading) -> Iterator[Evidence]:
    """A rubric that names no goal and quotes nothing gets the passages nearest to its instruction: what they are worth
    is the judges' business."""
    places = [one for one in reading.excerpts if one.query == dimension.forensic_instruction]
    content = joined([_shown(one) for one in places]) if places else None
    where = f"page {places[0].page}" if places else document(reading)
    rationale = f"{how(reading)}: {counted(len(places), 'passage')} nearest to the instruction"
    confidence = EXPLAINED_SURE if places else absent(reading, EXPLAINED_SURE)
    about = "the instruction"
    yield evidence("report.term", content, where, rationale, confidence, found=bool(places), about=about)
