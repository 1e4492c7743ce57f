"""A Python file of the audited repository, and what looks at it; pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, Protocol

from pmagent.contracts.audit_facts import Finding

Role = Literal["code", "test", "example"]


class Source(NamedTuple):
    """``path`` relative to the repository. ``tree`` None: it does not parse, because of ``reason`` (our own words) at
    ``line``. ``text`` is what was parsed: of a notebook its code cells, one behind the other, ``cell_lines`` the lines
    at which they begin. ``role`` follows from the path: what stands in tests is not what ships."""

    path: str
    text: str
    tree: ast.Module | None
    role: Role
    reason: str = ""
    line: int = 0
    cell_lines: tuple[int, ...] = ()


class Detector(Protocol):
    """Is given every file once, in the order of the paths, and keeps little of each; then says what it found."""

    def take(self, source: Source) -> None:
        """Look at a file. Never raises because of what stands in it."""

    def findings(self) -> Iterator[Finding]:
        """All that was found; of each goal the surest first, then in the order of path and line."""

    @property
    def examined(self) -> Mapping[str, int]:
        """Counts of what was looked at, by kind."""
