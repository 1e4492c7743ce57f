"""The report's statements, held against the repository; pure.

A statement is **supported** where what was found in code that runs bears it out, **contradicted** where the facts deny
it: a flaw was found that excludes it, or everything that could show it was looked for in vain, or stands only in code
that nothing reaches. A statement that nobody can look up stays open, and counts neither way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pmagent.actors.audit.cross_reference import cross_reference
from pmagent.actors.audit.detectors.evidence.care import care
from pmagent.actors.audit.detectors.evidence.checks import STATEMENT_SURE, Checked, Facts
from pmagent.actors.audit.detectors.evidence.report import absent, cross_references, document, graded, readable
from pmagent.actors.audit.detectors.evidence.text import counted, evidence, joined
from pmagent.actors.audit.matters import EXPLAINED, SIGNS, term, terms
from pmagent.actors.audit.rubric import Dimension
from pmagent.contracts.audit import Evidence
from pmagent.contracts.audit_events import EVIDENCE_MAX
from pmagent.contracts.audit_facts import PdfReading, RepoSurvey

LISTED_IN_PART: Final = 0.5
"""How sure it is that a file does not exist when not all files of the repository are listed."""
CONTRADICTED_MAX: Final = 20
EXPLANATIONS: Final = 4
"""So many explanations are looked for in a report at least, one in every so many of its first ``SENTENCES_EACH``
sentences, and one more for every ``SENTENCES_EACH`` beyond."""
SENTENCES_EACH: Final = 40
FOREIGN_PATHS: Final = 4
FOREIGN_SHARE: Final = 0.75
"""A report that names so many paths, of which so large a share does not exist here, is about something else."""
_TITLE_WORD: Final = 3
_MATERIAL: Final = frozenset(("md", "txt", "json", "jsonl", "csv", "html", "pdf", "db", "sqlite", "xlsx", "log", "png",
                              "svg", "yaml", "yml", "parquet", "xml", "tsv"))  # fmt: skip
"""Endings of files that a program may write: where code that runs names the file, it need not be tracked."""


def cross_referenced(
    dimension: Dimension, own: Sequence[Evidence], survey: RepoSurvey, reading: PdfReading
) -> list[Evidence]:
    """The whole evidence of a dimension: its ``own``, and, where the dimension asks for it, which paths of the report
    exist, which of its statements the code bears out, and what it explains. Keys of ``own`` stay. At most
    ``EVIDENCE_MAX`` items."""
    if not cross_references(dimension) and EXPLAINED not in dimension.goals:
        return list(own)
    paths, said = list(_paths(survey, reading)), list(_statements(survey, reading))
    found = [*own, *_foreign(survey, reading, paths, said)]
    if EXPLAINED in dimension.goals:
        found.append(_explained(survey, reading))
    if cross_references(dimension):
        found += [*paths, *said]
    found += care(survey)
    return found[:EVIDENCE_MAX]


# --- paths ---------------------------------------------------------------------------------------------------------


def _paths(survey: RepoSurvey, reading: PdfReading) -> Iterator[Evidence]:
    pages = {one.path: one.page for one in reversed(reading.claims)}
    written = _written(survey, reading)
    claimed = [path for path in dict.fromkeys(one.path for one in reading.claims) if path not in written]
    compared = cross_reference(claimed, {"files": survey.files})
    verified, hallucinated = compared["verified"], compared["hallucinated"]
    rationale = _how_paths(len(claimed), survey, reading)
    content, where = _listed(verified, pages), _first(verified, pages, reading)
    confidence = 1.0 if verified else absent(reading, 1.0)
    yield graded("report.verified", content, where, rationale, confidence, part=len(verified), whole=len(claimed))
    if hallucinated:
        content, where = _listed(hallucinated, pages, compared["ambiguous"]), _first(hallucinated, pages, reading)
        confidence = 1.0 if survey.file_count == len(survey.files) else LISTED_IN_PART
        yield evidence("report.hallucinated", content, where, rationale, confidence, found=True)


def _foreign(
    survey: RepoSurvey, reading: PdfReading, paths: Sequence[Evidence], said: Sequence[Evidence]
) -> Iterator[Evidence]:
    """A report of which nearly no path exists here; or nearly no statement holds, under a title that no code has."""
    missing = _counts(paths[0])
    held = _counts(said[0])
    names = terms(one for one in reading.title.split() if len(one) > _TITLE_WORD)
    known = {*survey.words.split(), *survey.idle_words.split(), *terms(survey.files)}
    ours = not names or not known or bool(names & known)
    if missing[1] >= FOREIGN_PATHS and missing[0] <= (1 - FOREIGN_SHARE) * missing[1]:
        told = f"{missing[1] - missing[0]} of {counted(missing[1], 'path')} that it names do not exist here"
    elif not ours and held[1] >= FOREIGN_PATHS and held[0] <= (1 - FOREIGN_SHARE) * held[1]:
        told = f"{held[1] - held[0]} of {counted(held[1], 'statement')} that could be looked up do not hold here"
    else:
        return
    content = f"{told}; its title is “{reading.title}”"
    rationale = "the paths and statements of the report were held against the repository"
    yield evidence("report.foreign", content, document(reading), rationale, 0.9, found=True)


def _counts(graded: Evidence) -> tuple[int, int]:
    """How much stands behind an item that is met in part, and of how much."""
    part, whole = re.findall(r"\d+", graded.goal.rpartition(": ")[2])
    return int(part), int(whole)


def _written(survey: RepoSurvey, reading: PdfReading) -> set[str]:
    """Files and folders that the program writes or reads rather than being made of: code that runs names them, and of
    a folder the report says that something is put there."""
    used = set(survey.words.split())
    told = [one.text for one in reading.statements]
    return {path for path in {one.path for one in reading.claims} if term(path.rstrip("/").rpartition("/")[2]) in used
            and (path.rpartition(".")[2].lower() in _MATERIAL or (path.endswith("/") and _is_output(path, told)))}


def _is_output(path: str, told: Iterable[str]) -> bool:
    return any(SIGNS["output"].search(text[:at]) for text in told if (at := text.find(path)) > 0)


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


# --- explanations --------------------------------------------------------------------------------------------------


def _explained(survey: RepoSurvey, reading: PdfReading) -> Evidence:
    """How much of the design the report explains: sentences of cause, purpose or price in words of this code."""
    known = {*survey.words.split(), *survey.idle_words.split()}
    said = [one for one in reading.statements if one.goal == EXPLAINED]
    if known:
        said = [one for one in said if len(terms(one.text.split()) & known) > 1]
    first = min(reading.sentences, SENTENCES_EACH)
    wanted = max(EXPLANATIONS, -(-first // EXPLANATIONS)) + (reading.sentences - first) // SENTENCES_EACH
    told = [f"page {one.line}: {one.text}" for one in said]
    where = f"page {said[0].line}" if said else document(reading)
    read = f"{counted(len(said), 'sentence')} of cause, purpose or price found, {wanted} looked for"
    rationale = f"{read} in {reading.characters:,} characters" if readable(reading) else "not read: there is no text"
    confidence = 0.8 if said else absent(reading, 0.8)
    content = joined(told) if told else None
    part = min(len(said), wanted)
    return graded(EXPLAINED, content, where, rationale, confidence, part=part, whole=wanted)


# --- statements ----------------------------------------------------------------------------------------------------


def _statements(survey: RepoSurvey, reading: PdfReading) -> Iterator[Evidence]:
    """The statements of the report that could be looked up, by sentence."""
    claimed = {one.path for one in reading.claims}
    missing = cross_reference(claimed - _written(survey, reading), {"files": survey.files})["hallucinated"]
    known = Facts(survey, missing)
    by_sentence: dict[tuple[int, str], list[Checked]] = {}
    for one in reading.statements:
        if one.goal != EXPLAINED:
            by_sentence.setdefault((one.line, one.text), []).append(known.checked(one))
    denied: list[Checked] = []
    supported: list[Checked] = []
    for several in by_sentence.values():
        lost = [one for one in several if one.outcome == "contradicted"]
        held = [one for one in several if one.outcome == "supported"]
        if lost and not (held and all(one.by_word for one in lost)):
            denied.append(max(lost, key=lambda one: one.sure))
        else:
            supported += held[:1]
    whole = len(denied) + len(supported)
    rationale = f"{counted(len(by_sentence), 'statement')} of the report; {whole} could be looked up in the code"
    content = joined([_told(one) for one in supported]) if supported else None
    where = f"page {supported[0].statement.line}" if supported else document(reading)
    confidence = STATEMENT_SURE if whole else 0.0
    yield graded("report.supported", content, where, rationale, confidence, part=len(supported), whole=whole)
    for against in denied[:CONTRADICTED_MAX]:
        where = f"page {against.statement.line}"
        yield evidence("report.contradicted", _told(against), where, rationale, against.sure, found=True)


def _told(one: Checked) -> str:
    about = f"{one.statement.goal}{f' {one.statement.path}' if one.statement.path else ''}"
    return f"page {one.statement.line}: {one.statement.text} [{about}: {one.why}]"
