"""What the report says, held against the repository; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pmagent.actors.audit.cross_reference import cross_reference
from pmagent.actors.audit.detectors.evidence.repo import absence_of
from pmagent.actors.audit.detectors.evidence.report import absent, cross_references, document, readable
from pmagent.actors.audit.detectors.evidence.text import counted, evidence, joined
from pmagent.actors.audit.goals import GOALS
from pmagent.actors.audit.rubric import Dimension
from pmagent.contracts.audit import Evidence
from pmagent.contracts.audit_events import EVIDENCE_MAX
from pmagent.contracts.audit_facts import Finding, PdfReading, RepoSurvey

LISTED_IN_PART: Final = 0.5
"""How sure it is that a file does not exist when not all files of the repository are listed."""
STATEMENT_SURE: Final = 0.7
"""A passage was taken for a claim by its words."""


def cross_referenced(
    dimension: Dimension, own: Sequence[Evidence], survey: RepoSurvey, reading: PdfReading
) -> list[Evidence]:
    """The whole evidence of a dimension: its ``own``, and, where the dimension asks for it, which paths of the report
    exist and which features that it claims the code shows. Keys of ``own`` stay. At most ``EVIDENCE_MAX`` items."""
    if not cross_references(dimension):
        return list(own)
    return [*own, *_paths(survey, reading), *_features(survey, reading)][:EVIDENCE_MAX]


# --- paths ---------------------------------------------------------------------------------------------------------


def _paths(survey: RepoSurvey, reading: PdfReading) -> Iterator[Evidence]:
    pages = {one.path: one.page for one in reversed(reading.claims)}
    claimed = list(dict.fromkeys(one.path for one in reading.claims))
    compared = cross_reference(claimed, {"files": survey.files})
    verified, hallucinated = compared["verified"], compared["hallucinated"]
    rationale = _how_paths(len(claimed), survey, reading)
    content, where = _listed(verified, pages), _first(verified, pages, reading)
    confidence = 1.0 if verified else absent(reading, 1.0)
    yield evidence("report.verified", content, where, rationale, confidence, found=bool(verified))
    if hallucinated:
        content, where = _listed(hallucinated, pages, compared["ambiguous"]), _first(hallucinated, pages, reading)
        confidence = 1.0 if survey.file_count == len(survey.files) else LISTED_IN_PART
        yield evidence("report.hallucinated", content, where, rationale, confidence, found=True)


def _how_paths(claimed: int, survey: RepoSurvey, reading: PdfReading) -> str:
    if not readable(reading):
        return "not compared: the PDF holds no text that could be read"
    if not claimed:
        return f"the report names no path in the {reading.characters:,} characters that were read"
    return (
        f"{counted(claimed, 'path')} of the report compared with {counted(survey.file_count, 'tracked file')} of "
        f"commit {survey.commit[:12]}: a path exists where it is a file's path or the end of just one, at a /"
    )


def _listed(paths: Sequence[str], pages: dict[str, int], ambiguous: Sequence[str] = ()) -> str | None:
    told = [f"page {pages[path]}: {path}{' (the end of several paths)' if path in ambiguous else ''}" for path in paths]
    return joined(told) if told else None


def _first(paths: Sequence[str], pages: dict[str, int], reading: PdfReading) -> str:
    return f"page {pages[paths[0]]}" if paths else document(reading)


# --- features ------------------------------------------------------------------------------------------------------


def _features(survey: RepoSurvey, reading: PdfReading) -> Iterator[Evidence]:
    """Claims of features of which the survey knows whether they are there: what it could not look for stays open. Of
    those that the code does not show, the ones are told of which that is surest."""
    known = [one for one in reading.statements if one.goal in GOALS and GOALS[one.goal].kind == "asset"]
    supported = [one for one in known if survey.counts.get(one.goal, 0)]
    missing = [(absence_of(one.goal, survey), one) for one in known if not survey.counts.get(one.goal, 0)]
    sure = max((one for one, _ in missing), default=0.0)
    contradicted = [one for how_sure, one in missing if how_sure == sure and sure]
    rationale = f"{counted(len(known), 'statement')} of the report compared with what was found in the code"
    if not known:
        rationale = f"no statement of the report claims a feature that can be looked for ({_read(reading)})"
    unseen = STATEMENT_SURE * sure if known else absent(reading, STATEMENT_SURE)
    confidence = STATEMENT_SURE if supported else unseen
    content, where = _told(supported, survey), _page(supported, reading)
    yield evidence("report.supported", content, where, rationale, confidence, found=bool(supported))
    if contradicted:
        content, where = _told(contradicted, survey), _page(contradicted, reading)
        yield evidence("report.contradicted", content, where, rationale, unseen, found=True)


def _read(reading: PdfReading) -> str:
    return f"{reading.characters:,} characters were read"


def _told(statements: Sequence[Finding], survey: RepoSurvey) -> str | None:
    shown = [_one(statement, survey) for statement in statements]
    return joined(shown) if shown else None


def _one(statement: Finding, survey: RepoSurvey) -> str:
    count = survey.counts.get(statement.goal, 0)
    places = [one for one in survey.findings if one.goal == statement.goal]
    first = f", first at {places[0].path}:{places[0].line}" if places else ""
    in_code = f"found {counted(count, 'time')}{first}" if count else "not found"
    return f"page {statement.line}: {statement.text} [{statement.goal}: {in_code}]"


def _page(statements: Sequence[Finding], reading: PdfReading) -> str:
    return f"page {statements[0].line}" if statements else document(reading)
