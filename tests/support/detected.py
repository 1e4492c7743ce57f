"""Programs of a few lines, given to a detector as the files of a repository."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.detectors.code.source import Detector, Source
from pmagent.actors.audit.detectors.code.state import StateReader
from pmagent.actors.audit.detectors.code.table import TableReader
from pmagent.contracts.audit_facts import Finding


class Table:
    """The detectors' table over some files, with the classes of their code: the findings whose goals begin so."""

    def __init__(self, *goals: str) -> None:
        self._goals = goals
        self._table, self._state = TableReader(), StateReader()
        self.examined = self._table.examined

    def take(self, source: Source) -> None:
        self._table.take(source)
        self._state.take(source)

    def findings(self) -> Iterator[Finding]:
        self._table.settle(self._state.classes)
        return (one for one in (*self._table.findings(), *self._table.settings) if one.goal.startswith(self._goals))


def source(text: str, path: str = "app/main.py") -> Source:
    """A file of a repository, parsed as the survey does it; its role follows from ``path``."""
    found = parsed(path, textwrap.dedent(text).lstrip("\n").encode())
    assert found.tree is not None, found.reason
    return found


def detected(reader: Detector, *programs: str, **named: str) -> list[Finding]:
    """``reader``'s findings in these files. Those of ``programs`` are ``app/m0.py``, ``app/m1.py`` …; ``named`` ones
    stand at the name's path: ``tests__test_it`` is ``tests/test_it.py``."""
    files = {f"app/m{number}.py": text for number, text in enumerate(programs)}
    files |= {f"{name.replace('__', '/')}.py": text for name, text in named.items()}
    for path in sorted(files):
        reader.take(source(files[path], path))
    return list(reader.findings())


def goals(findings: list[Finding]) -> set[str]:
    """Which goals were found."""
    return {finding.goal for finding in findings}


def of(findings: list[Finding], goal: str) -> list[Finding]:
    """The findings of one goal, by their place."""
    return sorted((one for one in findings if one.goal == goal), key=lambda one: (one.path, one.line))


def lines(findings: list[Finding], goal: str) -> list[int]:
    """The lines at which a goal was found."""
    return [finding.line for finding in of(findings, goal)]
