"""All that is read out of the code of a repository: the detectors, one after the other over each file; pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from pmagent.actors.audit.detectors.code.connected import Connection, counted
from pmagent.actors.audit.detectors.code.history import history_findings
from pmagent.actors.audit.detectors.code.parse import is_python, role_of
from pmagent.actors.audit.detectors.code.passages import PassageReader
from pmagent.actors.audit.detectors.code.personas import PersonaReader
from pmagent.actors.audit.detectors.code.project import ProjectReader, Read, project_findings
from pmagent.actors.audit.detectors.code.reach import ReachReader
from pmagent.actors.audit.detectors.code.scopes import release
from pmagent.actors.audit.detectors.code.source import Detector, Role, Source
from pmagent.actors.audit.detectors.code.state import StateReader
from pmagent.actors.audit.detectors.code.table import TableReader
from pmagent.actors.audit.graphs.reader import GraphReader
from pmagent.actors.audit.lists import Lists
from pmagent.contracts.audit_facts import (
    CONTENT_CHARS_MAX,
    FINDINGS_MAX,
    CodeGraph,
    CodePassage,
    Fact,
    Finding,
    History,
    Similarity,
    Term,
    Unparsed,
)

_LISTS: Final = Lists(__package__, "survey")

UNPARSED_MAX: Final = 200
GRAPHS_MAX: Final = 100

OTHERS_MAX: Final = 400
"""Of a repository with more templates, scripts and settings than this, its words are not counted."""
OTHER_BYTES: Final = 200_000
_OF_OTHERS: Final = _LISTS.pattern("of_others")
_DEPENDING: Final = re.compile(
    r"^\s*(?:[\w-]*dependencies|requires|dev|test|\w+)\s*=\s*\[[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*[<>=~][^\]\[]*(?:\[[^\]]*\][^\]\[]*)*\]",
    re.MULTILINE,
)
"""A list of versions in a settings file."""
_LOCKED: Final = re.compile(r"(?:^|/)(?:[\w-]*lock[\w-]*\.\w+|node_modules/.*)$")

_RANK: Final[Mapping[Role, int]] = {"code": 0, "example": 1, "test": 2}


class CodeFacts(Fact, frozen=True, kw_only=True):
    """The part of a ``RepoSurvey`` that is about code; see there. ``unparsed`` are the first files that
    Python would not take, also those of them that were read nevertheless; ``examined`` counts those that were not."""

    examined: dict[str, int]
    graphs: list[CodeGraph]
    findings: list[Finding]
    counts: dict[str, int]
    similarities: list[Similarity]
    terms: list[Term]
    unparsed: list[Unparsed]
    words: str = ""
    idle_words: str = ""
    passages: list[CodePassage] = []


class CodeReader:
    """Takes each file once, in the order of the paths; ``files``: all that there are."""

    def __init__(self, files: Sequence[str] = ()) -> None:
        roles = {role_of(path) for path in files if is_python(path)}
        self._examples_only = "example" in roles and "code" not in roles  # then they are what there is
        self._graphs = GraphReader()
        self._personas = PersonaReader()
        self._project = ProjectReader()
        python = sum(map(is_python, files))
        self._reach = ReachReader(python)
        self._passages = PassageReader(python)
        self._state = StateReader()
        self._table = TableReader()
        self._detectors: tuple[Detector, ...] = (
            self._state, self._graphs, self._table, self._personas, self._project
        )
        self._unparsed: list[Unparsed] = []
        self._examined = {"python_files": 0, "notebooks": 0, "lines": 0, "parsed": 0, "unparsed": 0}

    def take(self, source: Source) -> None:
        """Look at a file."""
        self._examined["notebooks" if source.path.endswith(".ipynb") else "python_files"] += 1
        self._examined["lines"] += source.text.count("\n") + 1 if source.text else 0
        if source.reason:
            self._note(Unparsed(path=source.path, line=source.line, reason=source.reason))
        if source.tree is None:
            self._examined["unparsed"] += 1
            return
        if self._examples_only and source.role == "example":
            source = source._replace(role="code")
        self._examined["parsed"] += 1
        for detector in self._detectors:
            detector.take(source)
        self._reach.take(source)
        self._passages.take(source)
        release(source)

    def refuse(self, unparsed: Unparsed) -> None:
        """A file that is not to be looked at, because of what it did to who looked."""
        self._examined["notebooks" if unparsed.path.endswith(".ipynb") else "python_files"] += 1
        self._examined["unparsed"] += 1
        self._note(unparsed)

    def _note(self, unparsed: Unparsed) -> None:
        if len(self._unparsed) < UNPARSED_MAX:
            self._unparsed.append(unparsed)

    def join(self, later: CodeReader) -> None:
        """Add what was taken by another reader: files that stand behind this one's in the order of the paths."""
        for mine, theirs in zip(self._readers(), later._readers(), strict=True):
            _joined(mine, theirs)
        _joined(self._examined, later._examined)
        for unparsed in later._unparsed:
            self._note(unparsed)

    def _readers(self) -> tuple[object, ...]:
        return (*self._detectors, self._reach, self._passages)

    def facts(self, files: Sequence[str], read: Read, history: History) -> CodeFacts:
        """All facts that were found. ``files`` are the repository's paths, ``read`` gives the content of one."""
        self._personas.take_files(files, read)
        self._reach.settle(files, read)
        self._table.settle(self._state.classes)
        of_project = project_findings(files, read, self._project, self._table.settings)
        all_found = (*(one.findings() for one in self._detectors), of_project, history_findings(history))
        connected = Connection(self._reach, self._graphs, self._personas.personas(), files, read)
        found: dict[str, list[Finding]] = {}
        for finding in connected.findings(itertools.chain.from_iterable(all_found)):
            found.setdefault(finding.goal, []).append(finding)
        examined = dict(self._examined)
        for detector in self._detectors:
            for name, count in detector.examined.items():
                examined[name] = max(examined.get(name, 0), count)
        others = _others(files, read)
        told = self._passages.told(self._reach.runs, others, files) if len(others) <= OTHERS_MAX else ("", "", [])
        facts = CodeFacts(
            examined=dict(sorted(examined.items())), graphs=self._graphs.graphs()[:GRAPHS_MAX],
            findings=[finding for goal in sorted(found) for finding in kept(found[goal])],
            counts={goal: counted(found[goal]) for goal in sorted(found)}, similarities=self._personas.similarities(),
            terms=[], unparsed=self._unparsed,
        )
        kept_short = msgspec.convert(storable(msgspec.to_builtins(facts)), CodeFacts)
        return msgspec.structs.replace(kept_short, words=told[0], idle_words=told[1], passages=told[2])


def _joined(one: Any, later: Any) -> Any:
    """The state of a detector, with that of one that has seen the files behind: lists one behind the other, counts
    together; of what may be said once, what was said first."""
    if isinstance(one, list):
        one += later
    elif isinstance(one, set):
        one |= later
    elif isinstance(one, dict):
        for key, value in later.items():
            one[key] = _joined(one[key], value) if key in one else value
    elif isinstance(one, int) and not isinstance(one, bool):
        return one + later
    elif one is None or isinstance(one, bool | str | tuple | frozenset | Finding):
        return one or later
    else:
        _joined(vars(one), vars(later))
    return one


def kept(found: list[Finding]) -> list[Finding]:
    """The first findings of a goal; what can run goes before what cannot, and what ships before examples and tests."""
    return sorted(found, key=lambda finding: (not finding.reached, _RANK[role_of(finding.path)]))[:FINDINGS_MAX]


def _others(files: Sequence[str], read: Read) -> dict[str, str]:
    """The texts of templates, scripts and settings, by path: one more than ``OTHERS_MAX`` at most."""
    paths = [path for path in files if _OF_OTHERS.search(path) and not _LOCKED.search(path)][: OTHERS_MAX + 1]
    return {path: _without_dependencies((read(path) or b"")[:OTHER_BYTES].decode("utf-8", "replace")) for path in paths}


def _without_dependencies(text: str) -> str:
    """A file's text without what it only says to be installed: who does not import it does not use it."""
    return _DEPENDING.sub("", text)


def survey_code(sources: Iterable[Source], files: Sequence[str], read: Read, history: History) -> CodeFacts:
    """Read ``sources`` (in the order of their paths) once, and say what there is in them; the rest as ``facts``."""
    reader = CodeReader(files)
    for source in sources:
        reader.take(source)
    return reader.facts(files, read, history)


def storable(value: Any) -> Any:
    """A value whose texts can be encoded (a literal in code may hold half a surrogate pair) and are not too long."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()[:CONTENT_CHARS_MAX]
    if isinstance(value, dict):
        return {storable(key): storable(one) for key, one in value.items()}
    if isinstance(value, list):
        return [storable(one) for one in value]
    return value
