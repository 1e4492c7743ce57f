"""All that is read out of the code of a repository: the detectors, one after the other over each file; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from actors.audit.code.graph import GraphReader
from actors.audit.code.outputs import OutputReader
from actors.audit.code.parse import role_of
from actors.audit.code.personas import PersonaReader
from actors.audit.code.processes import ProcessReader
from actors.audit.code.security import SecurityReader
from actors.audit.code.source import Detector, Role, Source
from actors.audit.code.state import StateReader
from actors.audit.code.terms import TermReader
from contracts.audit_events import Question
from contracts.audit_facts import (
    CONTENT_CHARS_MAX,
    FINDINGS_MAX,
    CodeGraph,
    Fact,
    Finding,
    Similarity,
    Term,
    Unparsed,
)

UNPARSED_MAX: Final = 200
GRAPHS_MAX: Final = 100

_RANK: Final[Mapping[Role, int]] = {"code": 0, "example": 1, "test": 2}


class CodeFacts(Fact, frozen=True, kw_only=True):
    """The part of a ``RepoSurvey`` that is about code; see there. ``unparsed`` are the first of those
    that ``examined`` counts."""

    examined: dict[str, int]
    graphs: list[CodeGraph]
    findings: list[Finding]
    counts: dict[str, int]
    similarities: list[Similarity]
    terms: list[Term]
    unparsed: list[Unparsed]


class CodeReader:
    """Takes each file once, in the order of the paths."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self._graphs = GraphReader()
        self._personas = PersonaReader()
        self._detectors: tuple[Detector, ...] = (
            StateReader(),
            self._graphs,
            OutputReader(),
            self._personas,
            SecurityReader(),
            ProcessReader(),
        )
        self._terms = TermReader(term for question in questions for term in question.terms)
        self._unparsed: list[Unparsed] = []
        self._examined = {"python_files": 0, "notebooks": 0, "lines": 0, "parsed": 0, "unparsed": 0}

    def take(self, source: Source) -> None:
        """Look at a file."""
        self._examined["notebooks" if source.path.endswith(".ipynb") else "python_files"] += 1
        self._examined["lines"] += source.text.count("\n") + 1 if source.text else 0
        if source.reason:
            self.refuse(Unparsed(path=source.path, line=source.line, reason=source.reason))
        if source.tree is None:
            return
        self._examined["parsed"] += 1
        for detector in self._detectors:
            detector.take(source)
        self._terms.take(source)

    def refuse(self, unparsed: Unparsed) -> None:
        """A file that cannot be read as Python, or not by us."""
        self._examined["unparsed"] += 1
        if len(self._unparsed) < UNPARSED_MAX:
            self._unparsed.append(unparsed)

    def facts(self, files: Sequence[str], more: Iterable[Finding] = ()) -> CodeFacts:
        """What was found; ``more`` are findings of others. ``files`` are the repository's paths."""
        found: dict[str, list[Finding]] = {}
        for finding in (
            finding for all_of in (*(one.findings() for one in self._detectors), more) for finding in all_of
        ):
            found.setdefault(finding.goal, []).append(finding)
        examined = dict(self._examined)
        for detector in self._detectors:
            for name, count in detector.examined.items():
                examined[name] = max(examined.get(name, 0), count)
        facts = CodeFacts(
            examined=dict(sorted(examined.items())),
            graphs=self._graphs.graphs()[:GRAPHS_MAX],
            findings=[finding for goal in sorted(found) for finding in _kept(found[goal])],
            counts={goal: len(found[goal]) for goal in sorted(found)},
            similarities=self._personas.similarities(),
            terms=self._terms.terms(files),
            unparsed=self._unparsed,
        )
        return msgspec.convert(storable(msgspec.to_builtins(facts)), CodeFacts)


def _kept(found: list[Finding]) -> list[Finding]:
    """The first findings of a goal; those in what ships go before those in examples and tests."""
    return sorted(found, key=lambda finding: _RANK[role_of(finding.path)])[:FINDINGS_MAX]


def survey_code(sources: Iterable[Source], questions: Sequence[Question], files: Sequence[str] = ()) -> CodeFacts:
    """Read ``sources`` (in the order of their paths) once, and say what there is in them."""
    reader = CodeReader(questions)
    for source in sources:
        reader.take(source)
    return reader.facts(files)


def storable(value: Any) -> Any:
    """A value whose texts can be encoded (a literal in code may hold half a surrogate pair) and are not too long."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()[:CONTENT_CHARS_MAX]
    if isinstance(value, dict):
        return {storable(key): storable(one) for key, one in value.items()}
    if isinstance(value, list):
        return [storable(one) for one in value]
    return value
